//! The output of a run, and assertions that show all of it when they fail.

use std::sync::Arc;

use serde_json::Value;

use crate::run::Place;

/// A run that has ended.
pub struct Output {
    /// The command line, for messages.
    pub line: String,
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
    pub place: Arc<Place>,
}

impl Output {
    /// It ended with 0.
    #[track_caller]
    pub fn success(self) -> Self {
        self.exits(0)
    }

    /// It ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert!(self.code == code, "expected exit code {code}\n{}", self.shown());
        self
    }

    /// It ended with a code other than 0.
    #[track_caller]
    pub fn fails(self) -> Self {
        assert!(self.code > 0, "expected a failure\n{}", self.shown());
        self
    }

    /// stdout is exactly this.
    #[track_caller]
    pub fn stdout_is(self, text: &str) -> Self {
        assert!(self.stdout == text, "expected stdout to be {text:?}\n{}", self.shown());
        self
    }

    #[track_caller]
    pub fn stdout_has(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "expected {text:?} in stdout\n{}", self.shown());
        self
    }

    #[track_caller]
    pub fn stderr_has(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "expected {text:?} in stderr\n{}", self.shown());
        self
    }

    #[track_caller]
    pub fn stderr_lacks(self, text: &str) -> Self {
        assert!(!self.stderr.contains(text), "{text:?} must not be in stderr\n{}", self.shown());
        self
    }

    /// The last line of stderr: the reason, when a run fails.
    pub fn reason(&self) -> &str {
        self.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    #[track_caller]
    pub fn reason_has(self, text: &str) -> Self {
        assert!(self.reason().contains(text), "expected {text:?} in the last line of stderr\n{}", self.shown());
        self
    }

    /// stdout as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON value: {error}\n{}", self.shown()))
    }

    /// stdout as `--output jsonl` promises it: every line parses, `seq` has no gap, the run starts and completes.
    #[track_caller]
    pub fn events(&self) -> Events {
        let events: Vec<Value> = self
            .stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in `{line}`\n{}", self.shown()))
            })
            .collect();
        assert!(self.stdout.ends_with('\n'), "the last event has no newline\n{}", self.shown());
        for (index, event) in events.iter().enumerate() {
            assert!(event["seq"] == index, "seq of event {index} is {}\n{}", event["seq"], self.shown());
            assert!(event["v"] == 1 && event["time"].is_string(), "event {index} lacks its envelope: {event}");
        }
        let kind = |event: Option<&Value>| event.map(|event| event["type"].clone()).unwrap_or_default();
        assert!(kind(events.first()) == "run.started", "the first event is not run.started\n{}", self.shown());
        assert!(kind(events.last()) == "run.completed", "the last event is not run.completed\n{}", self.shown());
        assert!(
            events.last().is_some_and(|event| event["exit_code"] == self.code),
            "another code\n{}",
            self.shown()
        );
        Events(events)
    }

    /// All of it, for a message.
    pub fn shown(&self) -> String {
        format!(
            "$ {}\n--- exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.code,
            shortened(&self.stdout),
            shortened(&self.stderr)
        )
    }
}

/// The events of a run.
pub struct Events(pub Vec<Value>);

impl Events {
    /// Those of one type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.0.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The one event of this type.
    #[track_caller]
    pub fn one(&self, kind: &str) -> &Value {
        let found = self.of(kind);
        assert!(found.len() == 1, "expected one {kind}, found {}: {:#?}", found.len(), self.0);
        found[0]
    }

    /// All text of one kind of delta, joined.
    pub fn text(&self, kind: &str) -> String {
        self.of(kind).iter().filter_map(|event| event["text"].as_str()).collect()
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 20_000;
    match text.len() {
        0..=MOST => text.to_owned(),
        bytes => format!("{}\n… ({bytes} bytes in all)", &text[..text.floor_char_boundary(MOST)]),
    }
}
