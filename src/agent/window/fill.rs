//! The contents of the window, by layer and kind.

use crate::base::image;
use crate::base::tokens::BYTES_PER_TOKEN;
use crate::conversation::message::{Author, Item, SkillText, Step, UserText};

use super::budget::Budget;
use super::layers::WindowLayer;

/// The tokens of one kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FillRow {
    pub name: &'static str,
    pub layer: WindowLayer,
    pub tokens: u64,
}

/// The contents of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// Each kind, layer by layer, without the reserve for the reply.
    pub rows: Vec<FillRow>,
    pub used: u64,
    pub budget: Budget,
    /// The size at which the next compression begins.
    pub threshold: u64,
}

/// The parts of a request beside the items, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// The definitions of the tools.
    pub tools: u64,
    /// The system prompt.
    pub system: u64,
    /// The part of the system prompt that lists skills and tools.
    pub lists: u64,
    /// The part of the system prompt with the project's instructions.
    pub instructions: u64,
}

/// The kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FillKind {
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

const KINDS: [(FillKind, &str, WindowLayer); 13] = [
    (FillKind::Rules, "rules of the prompt", WindowLayer::System),
    (FillKind::Tools, "tool definitions", WindowLayer::Context),
    (FillKind::Lists, "lists in the prompt", WindowLayer::Context),
    (FillKind::Instructions, "project instructions", WindowLayer::Context),
    (FillKind::Skills, "loaded skills", WindowLayer::Context),
    (FillKind::Said, "what you said before", WindowLayer::History),
    (FillKind::Words, "the model's words", WindowLayer::History),
    (FillKind::Calls, "its calls", WindowLayer::History),
    (FillKind::Files, "files read", WindowLayer::History),
    (FillKind::Results, "other results", WindowLayer::History),
    (FillKind::Summaries, "summaries", WindowLayer::History),
    (FillKind::Input, "your last message", WindowLayer::Input),
    (FillKind::Reminders, "reminders", WindowLayer::Reminders),
];

impl Fill {
    /// The number of rows.
    pub const ROWS: usize = KINDS.len();

    /// Adds up the parts. `weights` are the tokens of `items`, one each.
    pub fn new(items: &[Item], weights: &[u64], head: RequestHead, budget: Budget, threshold: u64) -> Self {
        let mut tokens = [0; Self::ROWS];
        let mut add = |kind: FillKind, weight: u64| tokens[kind as usize] += weight;
        let lists = head.lists.min(head.system);
        let instructions = head.instructions.min(head.system - lists);
        add(FillKind::Tools, head.tools);
        add(FillKind::Lists, lists);
        add(FillKind::Instructions, instructions);
        add(FillKind::Rules, head.system - lists - instructions);
        let last = items.iter().rposition(|item| item.said_by_person().is_some());
        for (index, (item, weight)) in items.iter().zip(weights).enumerate() {
            let parts = match item {
                Item::Said(said) => parts_of_said(said, last == Some(index)),
                Item::Summary(summary) => vec![(FillKind::Summaries, summary.text.len())],
                Item::Step(step) => parts_of_step(step),
            };
            divide_weight(*weight, &parts, &mut add);
        }
        let rows =
            KINDS.iter().zip(tokens).map(|((_, name, layer), tokens)| FillRow { name, layer: *layer, tokens });
        Self { rows: rows.collect(), used: tokens.iter().sum(), budget, threshold }
    }

    /// The largest kinds, as one sentence: `tool definitions 1,240, files read 90,120`.
    pub fn sentence(&self) -> String {
        let mut rows: Vec<&FillRow> = self.rows.iter().filter(|row| row.tokens > 0).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.tokens));
        rows.iter().map(|row| format!("{} {}", row.name, row.tokens)).collect::<Vec<_>>().join(", ")
    }
}

/// The parts of a message, in bytes.
fn parts_of_said(said: &UserText, is_last: bool) -> Vec<(FillKind, usize)> {
    let kind = match said.author {
        Author::Person if is_last => FillKind::Input,
        Author::Person => FillKind::Said,
        Author::Program => FillKind::Reminders,
    };
    let skills = said.skills.iter().map(|SkillText { text, .. }| (FillKind::Skills, text.len()));
    std::iter::once((kind, said.text.len())).chain(skills).collect()
}

/// The parts of a step, in bytes.
fn parts_of_step(step: &Step) -> Vec<(FillKind, usize)> {
    let mut parts: Vec<(FillKind, usize)> = step.texts().map(|text| (FillKind::Words, text.len())).collect();
    for call in step.calls() {
        parts.push((FillKind::Calls, call.request.name.len() + call.request.arguments.len()));
        let Some(answer) = &call.answer else { continue };
        let kind = match call.request.name.as_str() {
            _ if answer.skill.is_some() => FillKind::Skills,
            "read_file" => FillKind::Files,
            _ => FillKind::Results,
        };
        let pictures = image::estimate_tokens(&answer.images);
        parts.push((kind, answer.content.len() + usize::try_from(pictures).unwrap_or(0) * BYTES_PER_TOKEN));
    }
    parts
}

/// Divides a weight among parts by their bytes; the first gets the remainder.
fn divide_weight(weight: u64, parts: &[(FillKind, usize)], add: &mut impl FnMut(FillKind, u64)) {
    let Some(((first, _), others)) = parts.split_first() else { return };
    let all = parts.iter().map(|(_, bytes)| *bytes as u64).sum::<u64>().max(1);
    let mut left = weight;
    for (kind, bytes) in others {
        let share = weight * *bytes as u64 / all;
        left -= share;
        add(*kind, share);
    }
    add(*first, left);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, CallAnswer, CallStatus, ReplyPart, Summary, ToolCall};

    fn call(name: &str, arguments: usize, answer: usize, skill: Option<&str>) -> ReplyPart {
        let (id, name, arguments) = (String::new(), name.to_owned(), "x".repeat(arguments - name.len()));
        let answer = CallAnswer {
            skill: skill.map(str::to_owned),
            ..CallAnswer::of_text("x".repeat(answer), CallStatus::Ok)
        };
        ReplyPart::Call(Call { request: ToolCall { id, name, arguments }, opaque: None, answer: Some(answer) })
    }

    #[test]
    fn every_kind_is_added_up_and_the_largest_is_named_first() {
        let mut now = UserText::by_person("four");
        now.skills.push(SkillText { name: "fly".to_owned(), text: "twelve bytes".to_owned() });
        let parts = vec![
            ReplyPart::Text { text: "x".repeat(10), opaque: None },
            call("read_file", 30, 50, None),
            call("load_skill", 10, 60, Some("fly")),
            call("grep", 10, 70, None),
        ];
        let items = [
            Item::Summary(Summary { text: "x".to_owned(), ..Summary::default() }),
            Item::Said(UserText::by_person("before")),
            Item::Said(now),
            Item::Step(Step { parts, ..Step::default() }),
            Item::Said(UserText::by_program("x")),
        ];
        let budget = Budget { window: 2000, reserve: 100, tokens: 1800, declared: 1800, whole: 1800 };
        let head = RequestHead { tools: 90, system: 10, lists: 3, instructions: 2 };
        let fill = Fill::new(&items, &[20, 7, 40, 240, 80], head, budget, 1440);
        let tokens: Vec<u64> = fill.rows.iter().map(|row| row.tokens).collect();
        assert_eq!(tokens, [5, 90, 3, 2, 90, 7, 10, 50, 50, 70, 20, 10, 80]);
        assert_eq!(fill.used, 487);
        let sentence = fill.sentence();
        assert!(sentence.starts_with("tool definitions 90, loaded skills 90, reminders 80"), "{sentence}");
    }
}
