//! The closing answer: when a limit ends a turn, the model is asked once more, with the same tools but none
//! callable, for an honest summary. If the answer is empty, or time is out, code writes the summary.

use std::fmt::Write;
use std::time::Duration;

use crate::conversation::message::{Call, CallStatus, FinishReason, Item, Said, Step};

use super::limits::Limit;
use super::purpose::Purpose;
use super::turn::{Stop, Turn, TurnEnd};

impl Turn<'_> {
    /// Ends the turn with a summary. After `max_time` no request is made.
    pub(super) async fn close(&mut self, limit: Limit, max_time: Option<Duration>) -> Result<TurnEnd, Stop> {
        self.settle(&Stop::Limit(limit))?;
        let prompt = self.agent.briefing.termination(self, &limit)?;
        self.say(Said::by_program(prompt))?;
        let clock = self.clock;
        let asked = tokio::select! {
            biased;
            () = clock.reach(max_time) => None,
            reply = self.step(Purpose::Closing) => Some(reply),
        };
        let (stop, text) = match asked {
            Some(Ok((_, step))) if !step.has_calls() => (Stop::Limit(limit), step.text()),
            // What is left does not pay for it, or it called again.
            Some(Ok(_) | Err(Stop::Limit(_))) | None => (Stop::Limit(limit), String::new()),
            // Running out of time outranks a provider that fails; the other limits do not.
            Some(Err(Stop::Model(_) | Stop::ContextFull(_))) if matches!(limit, Limit::Time(_)) => {
                (Stop::Limit(limit), String::new())
            }
            Some(Err(stop @ (Stop::Model(_) | Stop::ContextFull(_)))) => (stop, String::new()),
            Some(Err(stop)) => return Err(stop),
        };
        self.settle(&Stop::Limit(limit))?;
        let answer = if text.trim().is_empty() { self.summary_in_code(limit)? } else { text };
        Ok(TurnEnd { stop, answer })
    }

    /// Writes a summary without the model, and records it like any answer.
    fn summary_in_code(&mut self, limit: Limit) -> Result<String, Stop> {
        let summary = summary(limit, self.this_turn());
        self.keep_reply(Step::of_text(summary.clone(), FinishReason::Interrupted))?;
        Ok(summary)
    }

    /// The items since the person's last input.
    fn this_turn(&self) -> &[Item] {
        let items = self.conversation.session.items();
        let start = items.iter().rposition(|item| item.said_by_person().is_some()).unwrap_or(0);
        &items[start..]
    }
}

fn summary(limit: Limit, items: &[Item]) -> String {
    const MOST: usize = 10;
    let ended = |call: &Call| {
        let status = call.answer.as_ref().map_or(CallStatus::Cancelled, |answer| answer.status);
        format!("- {}: {}", call.request.name, word(status))
    };
    let calls: Vec<String> = items.iter().filter_map(Item::as_step).flat_map(Step::calls).map(ended).collect();
    let mut out = format!("Stopped: {limit}. The model gave no closing answer.");
    if calls.is_empty() {
        out.push_str(" No tool was called.");
        return out;
    }
    let _ = write!(out, " {} tool calls were made", calls.len());
    let shown = &calls[calls.len().saturating_sub(MOST)..];
    out.push_str(if shown.len() < calls.len() { "; the last of them:\n" } else { ":\n" });
    out.push_str(&shown.join("\n"));
    out
}

fn word(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Ok => "done",
        CallStatus::Error => "failed",
        CallStatus::Denied => "not allowed",
        CallStatus::Timeout => "timed out",
        CallStatus::Cancelled => "cancelled",
    }
}
