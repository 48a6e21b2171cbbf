//! Requests as texts, to compare them and to show how they differ.

use std::fmt::Write;
use std::path::Path;

use jiff::Zoned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::{diff, text};

/// The longest line of a difference in a sentence.
const MOST_CHARACTERS: usize = 80;
/// The most lines of a difference that are shown.
const MOST_LINES: usize = 40;

/// What differs from run to run without a difference in what is asked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RunFacts {
    pub workspace: String,
    pub date: String,
}

impl RunFacts {
    /// Those of a run that begins now.
    pub fn now(workspace: &Path) -> Self {
        Self { workspace: workspace.to_string_lossy().into_owned(), date: Zoned::now().date().to_string() }
    }

    /// A text without them.
    fn remove_from(&self, text: &str) -> String {
        let without = |text: String, fact: &str, name: &str| match fact {
            "" | "/" => text,
            fact => text.replace(fact, name),
        };
        let text = without(text.to_owned(), &self.workspace, "{workspace}");
        without_sessions(&without(text, &self.date, "{date}"))
    }
}

/// A text without the ids of sessions: those of helpers stand in the results of their calls.
fn without_sessions(text: &str) -> String {
    /// `d` stands for a digit, `a` for a digit or a small letter.
    const FORM: &[u8] = b"dddddddd-dddddd-aaaaaa";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'a' => byte.is_ascii_digit() || byte.is_ascii_lowercase(),
        other => byte == other,
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.as_bytes().windows(FORM.len()).position(|window| window.iter().zip(FORM).all(fits)) {
        out.push_str(&rest[..at]);
        out.push_str("{session}");
        rest = &rest[at + FORM.len()..];
    }
    out + rest
}

/// The request in a form that people read: a heading for each message, then its text and its calls. What depends only
/// on the run is replaced by its name.
pub(super) fn write_request(request: &Value, facts: &RunFacts, with_tools: bool) -> String {
    let mut out = String::new();
    for message in request["messages"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "## {}", message["role"].as_str().unwrap_or("?"));
        write_content(&mut out, &message["content"]);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let called = &call["function"];
            let (name, arguments) = (called["name"].as_str(), called["arguments"].as_str());
            let _ = writeln!(out, "{}({})", name.unwrap_or("?"), arguments.unwrap_or_default());
        }
    }
    for tool in request["tools"].as_array().into_iter().flatten().filter(|_| with_tools) {
        let _ = writeln!(out, "## tool\n{tool}");
    }
    facts.remove_from(&out)
}

fn write_content(out: &mut String, content: &Value) {
    match content {
        Value::Null => {}
        Value::String(text) => drop(writeln!(out, "{}", text.trim_end())),
        Value::Array(parts) => {
            for part in parts {
                write_content(out, part.get("text").unwrap_or(part));
            }
        }
        other => drop(writeln!(out, "{other}")),
    }
}

/// How two such texts differ, in a sentence: how much, and the first line.
pub(super) fn summarise_difference(recorded: &str, asked: &str) -> String {
    let counts = diff::LineCounts::count_changes(recorded, asked);
    let whole = diff::unify("", recorded, asked);
    let is_change =
        |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
    let first = text::cut_to_width(whole.lines().find(is_change).unwrap_or_default(), MOST_CHARACTERS);
    format!("it has {counts}, the first is {first:?}")
}

/// How two such texts differ, in a few lines.
pub(super) fn describe_difference(recorded: &str, asked: &str) -> String {
    let whole = diff::unify("request", recorded, asked);
    let count = whole.lines().count();
    let mut shown: String = whole.lines().take(MOST_LINES).collect::<Vec<_>>().join("\n");
    if count > MOST_LINES {
        let _ = write!(shown, "\n… {} more lines", count - MOST_LINES);
    }
    shown
}
