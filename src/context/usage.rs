//! What fills the window, by layer and kind.

use crate::message::{AssistantMessage, Message, Origin};

use super::budget::Budget;
use super::layers::Layer;
use super::skills::SKILL_TOOLS;

/// The tokens of one kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub name: &'static str,
    pub layer: Layer,
    pub tokens: u64,
}

/// What fills the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// Each kind, layer by layer; the reserve for the reply is not among them.
    pub rows: Vec<Row>,
    pub used: u64,
    pub budget: Budget,
    /// Where the next compression begins.
    pub threshold: u64,
}

/// What stands beside the messages or in the system prompt, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// The definitions of the tools.
    pub tools: u64,
    /// The part of the system prompt that lists skills and tools.
    pub lists: u64,
    /// The part of it that is the project's instructions.
    pub instructions: u64,
}

/// The kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rules,
    Tools,
    Lists,
    Instructions,
    Skills,
    Said,
    Words,
    Calls,
    Files,
    Results,
    Summaries,
    Input,
    Reminders,
}

const KINDS: [(Kind, &str, Layer); 13] = [
    (Kind::Rules, "rules of the prompt", Layer::System),
    (Kind::Tools, "tool definitions", Layer::Context),
    (Kind::Lists, "lists in the prompt", Layer::Context),
    (Kind::Instructions, "project instructions", Layer::Context),
    (Kind::Skills, "loaded skills", Layer::Context),
    (Kind::Said, "what you said before", Layer::History),
    (Kind::Words, "the model's words", Layer::History),
    (Kind::Calls, "its calls", Layer::History),
    (Kind::Files, "files read", Layer::History),
    (Kind::Results, "other results", Layer::History),
    (Kind::Summaries, "summaries", Layer::History),
    (Kind::Input, "your last message", Layer::Input),
    (Kind::Reminders, "reminders", Layer::Reminders),
];

impl Usage {
    /// Adds the parts up. `weights` are the tokens of `messages`, one for each.
    #[must_use]
    pub fn new(messages: &[Message], weights: &[u64], head: Head, budget: Budget, threshold: u64) -> Self {
        let mut tokens = [0; KINDS.len()];
        let mut add = |kind: Kind, weight: u64| tokens[kind as usize] += weight;
        add(Kind::Tools, head.tools);
        let last = messages.iter().rposition(Message::is_from_person);
        for (index, (message, weight)) in messages.iter().zip(weights).enumerate() {
            let kind = match message {
                Message::System { .. } => {
                    let lists = head.lists.min(*weight);
                    let instructions = head.instructions.min(weight - lists);
                    add(Kind::Lists, lists);
                    add(Kind::Instructions, instructions);
                    add(Kind::Rules, weight - lists - instructions);
                    continue;
                }
                Message::User { .. } if last == Some(index) => Kind::Input,
                Message::User { origin: Origin::Person, .. } => Kind::Said,
                Message::User { origin: Origin::Program, .. } => Kind::Reminders,
                Message::User { origin: Origin::Summary, .. } => Kind::Summaries,
                Message::Assistant(reply) => {
                    let calls = share_of_calls(reply, *weight);
                    add(Kind::Calls, calls);
                    add(Kind::Words, weight - calls);
                    continue;
                }
                Message::Tool(answer) if answer.name == "read_file" => Kind::Files,
                Message::Tool(answer) if SKILL_TOOLS.contains(&answer.name.as_str()) => Kind::Skills,
                Message::Tool(_) => Kind::Results,
            };
            add(kind, *weight);
        }
        let rows = KINDS.iter().zip(tokens).map(|((_, name, layer), tokens)| Row { name, layer: *layer, tokens });
        Self { rows: rows.collect(), used: tokens.iter().sum(), budget, threshold }
    }

    /// The kinds that fill most, as one sentence: `tool definitions 1,240, files read 90,120`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut rows: Vec<&Row> = self.rows.iter().filter(|row| row.tokens > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.tokens));
        rows.iter().map(|row| format!("{} {}", row.name, row.tokens)).collect::<Vec<_>>().join(", ")
    }
}

/// What of a reply is calls, by bytes.
fn share_of_calls(reply: &AssistantMessage, weight: u64) -> u64 {
    let calls: usize = reply.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    let all = calls + reply.content.len();
    if all == 0 { 0 } else { weight * calls as u64 / all as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{CallStatus, ToolCall, ToolMessage};

    #[test]
    fn every_kind_is_added_up_and_the_largest_is_named_first() {
        let result = |name: &str| {
            let (call_id, content) = (String::new(), String::new());
            let (name, status, images) = (name.to_owned(), CallStatus::Ok, Vec::new());
            Message::Tool(ToolMessage { call_id, name, content, status, images })
        };
        // Three bytes in four are calls.
        let call = ToolCall { id: "a".to_owned(), name: "grep".to_owned(), arguments: "x".repeat(11) };
        let reply = AssistantMessage {
            content: "five!".to_owned(),
            tool_calls: vec![call],
            ..AssistantMessage::default()
        };
        let summary = Message::User { content: String::new(), origin: Origin::Summary };
        let messages = [
            Message::System { content: String::new() },
            summary,
            Message::user("before"),
            Message::user("now"),
            Message::Assistant(reply),
            result("read_file"),
            result("load_skill"),
            result("grep"),
            Message::reminder(""),
        ];
        let budget = Budget { window: 2000, reserve: 100, tokens: 1800, declared: 1800 };
        let head = Head { tools: 90, lists: 3, instructions: 2 };
        let usage = Usage::new(&messages, &[10, 20, 7, 30, 40, 50, 60, 70, 80], head, budget, 1440);
        let tokens: Vec<u64> = usage.rows.iter().map(|row| row.tokens).collect();
        assert_eq!(tokens, [5, 90, 3, 2, 60, 7, 10, 30, 50, 70, 20, 30, 80]);
        assert_eq!(usage.used, 457);
        assert!(
            usage.sentence().starts_with("tool definitions 90, reminders 80, other results 70"),
            "{}",
            usage.sentence()
        );
    }
}
