//! `--output jsonl` and `json`: events as JSON, one per line.
//!
//! Secrets are masked in each line, as in the session; the answer in the last event is the model's text otherwise. What may be
//! the beginning of one at the end of a delta belongs to the next delta.
//!
//! A line ends with LF and contains no other line break of any kind, so every reader counts the same lines.

use std::borrow::Cow;
use std::io::{self, Write};
use std::mem::discriminant;

use crate::base::secrets::Redactor;
use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind};

/// Writes events as JSON and flushes after each line.
pub struct Jsonl<W> {
    out: W,
    /// True if only `run.completed` is written.
    last_only: bool,
    redactor: Redactor,
    /// A delta whose end may be the beginning of a secret.
    held: Option<Event>,
    /// Reused for each event, so a delta allocates nothing.
    line: Vec<u8>,
}

impl<W: Write + Send> Jsonl<W> {
    /// Writes every event (`--output jsonl`).
    pub fn all(out: W, redactor: Redactor) -> Self {
        Self { out, last_only: false, redactor, held: None, line: Vec::new() }
    }

    /// Writes only the last event (`--output json`).
    pub fn last(out: W, redactor: Redactor) -> Self {
        Self { last_only: true, ..Self::all(out, redactor) }
    }
}

impl<W: Write + Send> EventSink for Jsonl<W> {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        if self.last_only && !matches!(event.kind, EventKind::RunCompleted(_)) {
            return Ok(());
        }
        let mut event = Cow::Borrowed(event);
        if let Some(mut held) = self.held.take() {
            if held.path == event.path && discriminant(&held.kind) == discriminant(&event.kind) {
                let (before, after) = (delta_text(&mut held.kind), delta_text(&mut event.to_mut().kind));
                if let (Some(before), Some(after)) = (before, after) {
                    after.insert_str(0, &before.split_off(self.redactor.find_begun(before)));
                }
            }
            self.write(&held)?;
        }
        if let EventKind::TextDelta { text } | EventKind::ReasoningDelta { text } = &event.kind
            && self.redactor.find_begun(text) < text.len()
        {
            self.held = Some(event.into_owned());
            return Ok(());
        }
        self.write(&event)
    }
}

impl<W: Write> Jsonl<W> {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, event)?;
        if let Cow::Owned(masked) = self.redactor.redact_known(std::str::from_utf8(&self.line).unwrap_or_default())
        {
            self.line = masked.into_bytes();
        }
        escape_separators(&mut self.line);
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.out.flush()
    }
}

fn delta_text(kind: &mut EventKind) -> Option<&mut String> {
    match kind {
        EventKind::TextDelta { text } | EventKind::ReasoningDelta { text } => Some(text),
        _ => None,
    }
}

/// Escapes U+2028 and U+2029: JSON allows them, but some readers take them for line breaks.
fn escape_separators(line: &mut Vec<u8>) {
    const LEAD: u8 = 0xe2;
    if !line.contains(&LEAD) {
        return;
    }
    let text = std::str::from_utf8(line).expect("JSON is UTF-8");
    if text.contains(['\u{2028}', '\u{2029}']) {
        *line = text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029").into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::{EVENT_VERSION, EventKind};

    fn event(kind: EventKind) -> Event {
        Event {
            v: EVENT_VERSION,
            kind,
            seq: 3,
            time: "2026-01-02T03:04:05.678Z".to_owned(),
            session_id: "s".to_owned(),
            run_id: "r".to_owned(),
            path: Vec::new(),
        }
    }

    #[test]
    fn a_line_is_one_object_and_has_no_other_line_break() {
        let mut out = Vec::new();
        let text = "a\u{2028}b\u{2029}c\r\né …".to_owned();
        Jsonl::all(&mut out, Redactor::default())
            .emit(&event(EventKind::TextDelta { text: text.clone() }))
            .expect("a Vec takes all");
        let line = String::from_utf8(out).expect("JSON is UTF-8");
        assert_eq!(
            line,
            "{\"v\":1,\"type\":\"text.delta\",\"text\":\"a\\u2028b\\u2029c\\r\\né …\",\"seq\":3,\
             \"time\":\"2026-01-02T03:04:05.678Z\",\"session_id\":\"s\",\"run_id\":\"r\"}\n"
        );
        let value: serde_json::Value = serde_json::from_str(&line).expect("a line is JSON");
        assert_eq!(value["text"], text);
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_masked_and_nothing_else_is_lost() {
        const SECRET: &str = "pä\\ss\"w0rd-9x7";
        let (all, masked) = (format!("ppä It is {SECRET}{SECRET}. pä"), "ppä It is ******. pä");
        for size in 1..all.chars().count() {
            let (mut out, characters) = (Vec::new(), all.chars().collect::<Vec<_>>());
            let mut sink = Jsonl::all(&mut out, Redactor::new(vec![SECRET.to_owned()]));
            for piece in characters.chunks(size) {
                sink.emit(&event(EventKind::TextDelta { text: piece.iter().collect() })).expect("written");
            }
            sink.emit(&event(EventKind::Warning { message: "end".to_owned() })).expect("written");
            let lines = String::from_utf8(out).expect("JSON is UTF-8");
            let events = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
            let texts: Vec<String> = events.filter_map(|event| Some(event["text"].as_str()?.to_owned())).collect();
            assert_eq!(texts.concat(), masked, "{size}");
            assert_eq!(texts.len(), characters.chunks(size).len(), "each delta is one event");
        }
    }

    #[test]
    fn json_prints_the_last_event_alone() {
        let mut out = Vec::new();
        Jsonl::last(&mut out, Redactor::default())
            .emit(&event(EventKind::Warning { message: "no".to_owned() }))
            .expect("written");
        assert!(out.is_empty());
    }

    #[test]
    fn a_closed_stdout_is_an_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error =
            Jsonl::all(Closed, Redactor::default()).emit(&event(EventKind::TurnStarted { input: String::new() }));
        assert_eq!(error.expect_err("closed").kind(), io::ErrorKind::BrokenPipe);
    }
}
