//! A conversation as units that stand or go together: what was said in the user's place, and steps, which are a reply
//! and the answers to its calls.

use std::ops::Range;

use crate::message::{Message, Origin};

/// One unit, by the indices of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub kind: Kind,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    System,
    /// What a person said.
    Said,
    /// What this program said in their place, or what stands for older messages.
    Note,
    /// A reply, with the answers to its calls.
    Step,
}

/// The units of a conversation, in order; they cover it without gaps.
pub fn units(messages: &[Message]) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let kind = match message {
            Message::System { .. } => Kind::System,
            Message::User { origin: Origin::Person, .. } => Kind::Said,
            Message::User { .. } => Kind::Note,
            Message::Assistant(_) => Kind::Step,
            Message::Tool(_) => {
                if let Some(step) = units.last_mut() {
                    step.range.end = index + 1;
                }
                continue;
            }
        };
        units.push(Unit { kind, range: index..index + 1 });
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantMessage, CallStatus, ToolMessage};

    #[test]
    fn answers_belong_to_the_reply_before_them() {
        let answer = |id: &str| {
            Message::Tool(ToolMessage {
                call_id: id.to_owned(),
                name: "grep".to_owned(),
                content: String::new(),
                status: CallStatus::Ok,
                images: Vec::new(),
            })
        };
        let reply = || Message::Assistant(AssistantMessage::default());
        let system = Message::System { content: String::new() };
        let talk =
            [system, Message::user("go"), reply(), answer("a"), answer("b"), Message::reminder("on"), reply()];
        let found: Vec<(Kind, Range<usize>)> =
            units(&talk).into_iter().map(|unit| (unit.kind, unit.range)).collect();
        assert_eq!(
            found,
            [(Kind::System, 0..1), (Kind::Said, 1..2), (Kind::Step, 2..5), (Kind::Note, 5..6), (Kind::Step, 6..7)]
        );
        assert!(units(&[]).is_empty());
    }
}
