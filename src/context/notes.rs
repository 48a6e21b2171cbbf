//! The words that stand in the place of what was taken out, and how much room they get.

use std::fmt::Write;

use crate::message::{Message, Origin};
use crate::text;

use super::{calls, digest};

/// The bytes of a message of the person that are always quoted whole.
pub const LONG_MESSAGE: usize = 8 * 1024;

/// The tokens of a note.
pub const NOTE_TOKENS: u64 = 60;

/// The tokens of the line that says how to load a skill again.
pub const STUB_TOKENS: u64 = 60;

/// The room for what stands for a whole conversation, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For the parts of a summary.
    pub summary: u64,
    /// For the person's own words.
    pub quoted: u64,
}

impl Room {
    /// The room in a request that is to land at `to` tokens.
    #[must_use]
    pub fn of(to: u64) -> Self {
        Self { summary: (to / 6).clamp(300, 4000), quoted: (to / 4).min(20_000) }
    }

    /// The same in bytes.
    #[must_use]
    pub fn bytes(tokens: u64) -> usize {
        usize::try_from(tokens * 4).unwrap_or(usize::MAX)
    }
}

/// What a message says, for `recall`: a result without its frame.
#[must_use]
pub fn original(message: &Message) -> String {
    match message {
        Message::Tool(answer) => digest::inner(&answer.content).to_owned(),
        other => transcript([other].into_iter()),
    }
}

/// Messages as one text, for `recall`.
#[must_use]
pub fn transcript<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let mut out = String::new();
    for message in messages {
        let heading = match message {
            Message::System { .. } => "system",
            Message::User { origin: Origin::Person, .. } => "the person",
            Message::User { .. } => "the program",
            Message::Assistant(_) => "the model",
            Message::Tool(answer) => &answer.name,
        };
        let _ = write!(out, "## {heading}\n{}\n", message.content().trim_end());
        if let Message::Assistant(reply) = message {
            for call in &reply.tool_calls {
                let _ = writeln!(out, "→ {} {}", call.name, call.arguments);
            }
        }
        out.push('\n');
    }
    out
}

/// A message in a few words, for a list.
#[must_use]
pub fn in_short(message: &Message) -> String {
    const COLUMNS: usize = 100;
    let (who, what) = match message {
        Message::System { .. } => ("the system prompt", String::new()),
        Message::User { origin: Origin::Person, content } => ("you:", content.clone()),
        Message::User { content, .. } => ("note:", content.clone()),
        Message::Assistant(reply) => {
            let calls = reply.tool_calls.iter().map(|call| format!(" → {} {}", call.name, calls::subject(call)));
            ("the model:", reply.content.clone() + &calls.collect::<String>())
        }
        Message::Tool(answer) => (answer.name.as_str(), digest::inner(&answer.content).to_owned()),
    };
    text::one_line(&format!("{who} {what}"), COLUMNS)
}

/// Stands for messages that were taken out without a summary.
#[must_use]
pub fn note(messages: usize, id: Option<&str>) -> Message {
    let read = id.map_or(String::new(), |id| format!(" recall id={id} reads them."));
    Message::User {
        content: format!(
            "[{messages} earlier messages of this conversation are not shown any more, to make room.{read} This note is \
             no request.]"
        ),
        origin: Origin::Summary,
    }
}
