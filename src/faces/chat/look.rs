//! Follows the calls of a chat, to show the full output of the last one while a turn runs.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use crate::base::text;
use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind, EventMessage};
use crate::conversation::message::CallStatus;
use crate::conversation::spill::Spill;

/// The most bytes that are kept of what a running call says: its last ones.
const MOST_BYTES: usize = 8 << 20;

/// Follows the calls. Clones share the data.
#[derive(Clone, Default)]
pub(super) struct CallFollower(Arc<Mutex<FollowedCalls>>);

#[derive(Default)]
struct FollowedCalls {
    /// In the order in which they began.
    running: Vec<FollowedCall>,
    last: Option<FollowedCall>,
    /// The parts cut from the results of the conversation.
    left_out: Arc<Spill>,
}

struct FollowedCall {
    /// The helper that made it, if any, and its id.
    whose: (String, String),
    title: String,
    since: Instant,
    output: String,
    /// The number of bytes before `output` that were dropped.
    gone: usize,
    /// What the whole of a finished call's output is kept as, if a part was cut out.
    spill_id: Option<String>,
}

impl CallFollower {
    /// Begins a turn of the conversation with these texts. Another conversation has other calls.
    pub fn begin(&self, left_out: Arc<Spill>) {
        let mut calls = self.lock();
        if !Arc::ptr_eq(&calls.left_out, &left_out) {
            *calls = FollowedCalls { left_out, ..FollowedCalls::default() };
        }
        // The calls of a turn that was dropped.
        calls.running.clear();
    }

    /// The full output of the call that runs, else of the last one. `None`: there was none.
    pub fn look(&self) -> Option<String> {
        let calls = self.lock();
        let running = calls.running.iter().rev();
        let talking = running.clone().find(|call| !call.output.is_empty());
        if let Some(call) = talking.or_else(|| running.clone().next()) {
            return Some(call.show());
        }
        let FollowedCall { title, output, spill_id, .. } = calls.last.as_ref()?;
        let whole = spill_id.as_deref().and_then(|id| calls.left_out.whole(id));
        let whole = whole.unwrap_or_else(|| Ok(output.clone()));
        let whole = whole.unwrap_or_else(|error| format!("The output cannot be read: {error}"));
        Some(format!("{title}\n{}", if whole.is_empty() { "(no output)" } else { &whole }))
    }

    fn lock(&self) -> MutexGuard<'_, FollowedCalls> {
        self.0.lock().expect("no holder of the calls panics")
    }
}

impl EventSink for CallFollower {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        self.lock().follow(&event.path.join(" › "), &event.kind);
        Ok(())
    }
}

impl FollowedCalls {
    fn follow(&mut self, whose: &str, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { call_id, name, subject, .. } => {
                let by = if whose.is_empty() { String::new() } else { format!("{whose}: ") };
                self.running.push(FollowedCall {
                    whose: (whose.to_owned(), call_id.clone()),
                    title: text::one_line(&format!("{by}{name} {subject}"), 200),
                    since: Instant::now(),
                    output: String::new(),
                    gone: 0,
                    spill_id: None,
                });
            }
            EventKind::ToolOutput { call_id, chunk } => {
                if let Some(call) = self.running.iter_mut().rev().find(|call| call.is(whose, call_id)) {
                    call.hear(chunk);
                }
            }
            EventKind::ToolFinished { call_id, status, spill_id, .. } => {
                if let Some(at) = self.running.iter().position(|call| call.is(whose, call_id)) {
                    let mut call = self.running.remove(at);
                    call.title = format!("{} {}", mark_status(Some(*status)), call.title);
                    // The texts of a helper are kept beside its own log.
                    call.spill_id = spill_id.clone().filter(|_| whose.is_empty());
                    self.last = Some(call);
                }
            }
            EventKind::Message(EventMessage::Tool { call_id, content, .. }) => {
                if let Some(last) = self.last.as_mut().filter(|last| last.is(whose, call_id)) {
                    last.output.clone_from(content);
                }
            }
            _ => {}
        }
    }
}

impl FollowedCall {
    fn is(&self, whose: &str, call_id: &str) -> bool {
        (self.whose.0.as_str(), self.whose.1.as_str()) == (whose, call_id)
    }

    fn hear(&mut self, chunk: &str) {
        self.output += chunk;
        if self.output.len() > 2 * MOST_BYTES {
            let kept = text::take_tail(&self.output, MOST_BYTES).len();
            let gone = self.output.len() - kept;
            self.output.drain(..gone);
            self.gone += gone;
        }
    }

    fn show(&self) -> String {
        let (title, seconds) = (&self.title, self.since.elapsed().as_secs());
        let gone = match self.gone {
            0 => String::new(),
            bytes => format!("[… {bytes} bytes left out; /last shows them once the call has ended …]\n"),
        };
        let output = if self.output.is_empty() { "(no output so far)" } else { &self.output };
        format!("▸ {title} · still running after {seconds} s\n{gone}{output}")
    }
}

/// The mark before a call's name for its end; `None` if it has not ended.
pub(super) fn mark_status(status: Option<CallStatus>) -> &'static str {
    match status {
        None => "…",
        Some(CallStatus::Ok) => "✓",
        Some(CallStatus::Error) => "✗ failed:",
        Some(CallStatus::Denied) => "✗ denied:",
        Some(CallStatus::Timeout) => "✗ timed out:",
        Some(CallStatus::Cancelled) => "✗ cancelled:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::CallTelemetry;

    fn started(id: &str, subject: &str) -> EventKind {
        EventKind::ToolStarted {
            call_id: id.to_owned(),
            name: "run_command".to_owned(),
            arguments: serde_json::Value::Null,
            subject: subject.to_owned(),
        }
    }

    fn output(id: &str, chunk: &str) -> EventKind {
        EventKind::ToolOutput { call_id: id.to_owned(), chunk: chunk.to_owned() }
    }

    fn finished(id: &str, spill_id: Option<String>) -> EventKind {
        EventKind::ToolFinished {
            call_id: id.to_owned(),
            name: "run_command".to_owned(),
            status: CallStatus::Ok,
            summary: String::new(),
            telemetry: CallTelemetry::default(),
            truncated: false,
            spill_id,
        }
    }

    fn answer(id: &str, content: &str) -> EventKind {
        EventKind::Message(EventMessage::Tool {
            call_id: id.to_owned(),
            name: "run_command".to_owned(),
            content: content.to_owned(),
            status: CallStatus::Ok,
            images: Vec::new(),
        })
    }

    #[test]
    fn a_running_call_comes_before_one_that_has_ended_and_one_that_talks_before_a_silent_one() {
        let heard = CallFollower::default();
        let spill = Arc::new(Spill::default());
        heard.begin(Arc::clone(&spill));
        assert_eq!(heard.look(), None);
        let follow = |kind: &EventKind| {
            heard.lock().follow("", kind);
            heard.look().expect("there is a call")
        };
        assert!(follow(&started("1", "make")).starts_with("▸ run_command make · still running after "));
        assert!(follow(&output("1", "one\ntw")).ends_with(" s\none\ntw"));
        assert!(follow(&started("2", "sleep")).ends_with("\none\ntw"), "the other one is silent");
        assert!(follow(&finished("1", None)).ends_with("\n(no output so far)"));
        assert_eq!(follow(&finished("2", None)), "✓ run_command sleep\n(no output)");
        assert_eq!(follow(&answer("2", "exit 0")), "✓ run_command sleep\nexit 0");
        // The whole text is shown.
        let crate::base::output::Kept::Whole { id } = spill.keep("all of it") else { panic!("there is room") };
        follow(&started("3", "cat"));
        follow(&finished("3", Some(id)));
        assert_eq!(follow(&answer("3", "a part")), "✓ run_command cat\nall of it");
        heard.begin(spill);
        assert!(heard.look().is_some(), "the next turn may look back");
        heard.begin(Arc::default());
        assert_eq!(heard.look(), None, "another conversation has other calls");
    }

    #[test]
    fn of_an_endless_output_the_end_is_kept() {
        let heard = CallFollower::default();
        heard.lock().follow("explore", &started("1", "yes"));
        for _ in 0..20 {
            heard.lock().follow("explore", &output("1", &"y\n".repeat(1 << 19)));
        }
        let shown = heard.look().expect("it runs");
        assert!(
            shown.len() < 3 * MOST_BYTES && shown.starts_with("▸ explore: run_command yes"),
            "{}",
            shown.len()
        );
        assert!(shown.contains("\n[… ") && shown.ends_with("y\n"));
    }
}
