//! What is to become of each message when a conversation has to shrink: decided here, for every strategy, without
//! touching anything.

use std::collections::BTreeSet;

use crate::config::Strategy;
use crate::message::{AssistantMessage, FinishReason, Message, Origin};
use crate::session::{Edit, MessageId};

use super::digest;
use super::draft::Draft;
use super::ruler::Ruler;
use super::units::{Kind, units};
use super::{importance, skills, staged};

/// A conversation as a strategy sees it. The lists are aligned.
#[derive(Clone, Copy)]
pub struct Material<'a> {
    pub messages: &'a [Message],
    pub ids: &'a [MessageId],
    /// The tokens of each message.
    pub weights: &'a [u64],
    /// The tokens of what stands beside the messages: the definitions of the tools.
    pub fixed: u64,
    /// The numbers of messages that stay as they are.
    pub pinned: &'a BTreeSet<u64>,
    /// The tokens of what the person said earlier and is quoted in a summary already.
    pub quoted: u64,
    /// Weighs texts that are not part of the conversation yet.
    pub ruler: &'a Ruler,
}

/// Where to land, in tokens of a whole request.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// At or under this, if it can be done while recent steps stay whole.
    pub to: u64,
    /// Above this, recent steps give way as well.
    pub at_most: u64,
    /// How many of the last steps stay whole as long as possible.
    pub keep_recent_steps: usize,
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Keep,
    /// A digest stands in its place, or its long arguments are taken out.
    Shorten,
    /// The instructions of this skill, or a file of it, make room for a line that says how to load them again.
    Unload(String),
    /// It goes; a summary or a note stands for all that go.
    Remove,
}

/// What becomes of each message, in order, and what the request then weighs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub fates: Vec<Fate>,
    /// An estimate; what stands for removed messages is allowed for.
    pub tokens: u64,
}

/// Plans by a strategy.
#[must_use]
pub fn plan(strategy: Strategy, material: Material<'_>, goal: Goal) -> Plan {
    let mut draft = Draft::new(material, goal);
    match strategy {
        Strategy::Staged => staged::staged(&mut draft),
        Strategy::Summary => staged::summary(&mut draft),
        Strategy::Window => importance::window(&mut draft),
        Strategy::Selective => importance::selective(&mut draft),
    }
    draft.finish()
}

impl Plan {
    /// How many messages have this kind of fate.
    #[must_use]
    pub fn count(&self, of: impl Fn(&Fate) -> bool) -> usize {
        self.fates.iter().filter(|fate| of(fate)).count()
    }

    /// The indices of the messages that go.
    pub fn removed(&self) -> impl Iterator<Item = usize> {
        self.fates.iter().enumerate().filter(|(_, fate)| **fate == Fate::Remove).map(|(index, _)| index)
    }

    /// Whether results go before the model could read them: those of the last reply.
    #[must_use]
    pub fn hides_the_unread(&self, messages: &[Message]) -> bool {
        let unread = messages.iter().rev().take_while(|message| matches!(message, Message::Tool(_))).count();
        self.fates[self.fates.len() - unread..].iter().any(|fate| *fate != Fate::Keep)
    }

    /// The names of the skills that are unloaded, each once.
    #[must_use]
    pub fn unloaded(&self) -> BTreeSet<&str> {
        let names = self.fates.iter().filter_map(|fate| match fate {
            Fate::Unload(name) => Some(name.as_str()),
            Fate::Keep | Fate::Shorten | Fate::Remove => None,
        });
        names.collect()
    }

    /// The edits that carry the plan out. `recall` gives the id by which the original of a message is read again,
    /// `standing` what stands for the messages that go.
    ///
    /// A reply that goes although answers to some of its calls stay (the instructions of a skill) stays for these
    /// calls alone, so that a call and its answer are never parted.
    #[must_use]
    pub fn edits(
        &self,
        material: Material<'_>,
        recall: &dyn Fn(usize) -> Option<String>,
        mut standing: Option<Message>,
    ) -> Vec<Edit> {
        let mut edits = Vec::new();
        for unit in units(material.messages) {
            let whole = unit.range.clone().all(|index| self.fates[index] == Fate::Remove);
            let stays: Vec<&str> = unit
                .range
                .clone()
                .filter(|index| self.fates[*index] != Fate::Remove)
                .filter_map(|index| match &material.messages[index] {
                    Message::Tool(answer) => Some(answer.call_id.as_str()),
                    _ => None,
                })
                .collect();
            for index in unit.range {
                let message = &material.messages[index];
                let number = material.ids[index].number;
                let edited = match (&self.fates[index], message) {
                    (Fate::Shorten, _) => {
                        let id = recall(index);
                        Some(shortened(material.messages, index, id.as_deref()))
                    }
                    (Fate::Unload(name), Message::Tool(answer)) => Some(skills::stub(answer, name)),
                    (Fate::Keep | Fate::Unload(_), _) => continue,
                    (Fate::Remove, Message::Assistant(reply)) if !whole => Some(narrowed(reply, &stays)),
                    (Fate::Remove, _) if whole => standing.take(),
                    (Fate::Remove, _) => None,
                };
                edits.push(Edit { number, message: edited });
            }
        }
        edits
    }
}

/// A conversation with what a plan shortens in short, every result included, and nothing removed: what a summary can
/// be asked over when the whole is too much.
#[must_use]
pub fn shortened_view(plan: &Plan, messages: &[Message]) -> Vec<Message> {
    let short = |(index, message): (usize, &Message)| match (&plan.fates[index], message) {
        (Fate::Shorten, _) | (_, Message::Tool(_)) => shortened(messages, index, None),
        _ => message.clone(),
    };
    messages.iter().enumerate().map(short).collect()
}

/// A message in short.
pub(super) fn shortened(messages: &[Message], index: usize, id: Option<&str>) -> Message {
    match &messages[index] {
        Message::Tool(answer) => digest::of_result(super::calls::call_of(messages, index), answer, id),
        Message::Assistant(reply) => {
            let shorten = |call| digest::of_arguments(call, id).unwrap_or_else(|| call.clone());
            Message::Assistant(AssistantMessage {
                tool_calls: reply.tool_calls.iter().map(shorten).collect(),
                ..reply.clone()
            })
        }
        Message::User { content, origin } => {
            Message::User { content: digest::of_text(content, super::notes::LONG_MESSAGE, id), origin: *origin }
        }
        system @ Message::System { .. } => system.clone(),
    }
}

/// A reply with some of its calls and nothing else.
fn narrowed(reply: &AssistantMessage, calls: &[&str]) -> Message {
    let tool_calls = reply.tool_calls.iter().filter(|call| calls.contains(&call.id.as_str())).cloned().collect();
    Message::Assistant(AssistantMessage {
        content: String::new(),
        reasoning: String::new(),
        tool_calls,
        finish_reason: FinishReason::ToolCalls,
        usage: reply.usage,
        cost_usd: reply.cost_usd,
    })
}

/// Whether this message is what stands for older ones.
pub(super) fn is_summary(message: &Message) -> bool {
    matches!(message, Message::User { origin: Origin::Summary, .. })
}

/// The index of the last thing that a person said.
pub(super) fn last_said(messages: &[Message]) -> Option<usize> {
    units(messages).iter().rev().find(|unit| unit.kind == Kind::Said).map(|unit| unit.range.start)
}
