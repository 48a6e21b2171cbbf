//! The conversation: a list of items. An item is a text in the person's place, a step, or a summary of older
//! items.
//!
//! A step is one reply of the model with a slot for the answer to each of its calls; a slot may be empty. So a
//! call and its answer cannot be separated, and an answer without a call cannot exist. A call keeps its arguments
//! as the text that the model wrote: the code that builds a request decides which arguments to send back.

mod cost;
mod handle;
mod usage;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::image::Image;
pub use crate::base::output::CallStatus;

pub use cost::Cost;
pub use handle::Handle;
pub use usage::Usage;

/// One entry of a conversation. The system prompt is not an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Text in the person's place, including attachments.
    Said(UserText),
    /// A reply of the model, with the answers to its calls.
    Step(Step),
    /// A summary of items that are no longer sent.
    Summary(Summary),
}

/// Text in the person's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserText {
    pub text: String,
    #[serde(default, skip_serializing_if = "Author::is_person")]
    pub author: Author,
    /// Instructions of skills that a person loaded with the text; they follow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillText>,
    /// Pictures; they follow the texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// The instructions of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillText {
    pub name: String,
    pub text: String,
}

impl SkillText {
    /// The line that replaces instructions that were removed to save room.
    pub fn stub(name: &str) -> String {
        format!("[The skill `{}` was unloaded; load_skill loads it again.]", name.replace('`', "'"))
    }
}

/// The author of a text that the model reads as the user's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A person, or the caller of the program.
    #[default]
    Person,
    /// This program: a reminder, a correction, the request for a closing answer.
    Program,
}

impl Author {
    /// True if a person wrote it.
    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

/// One model request and its results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The parts in the order in which the model wrote them.
    pub parts: Vec<ReplyPart>,
    pub finish_reason: FinishReason,
    #[serde(default)]
    pub usage: Usage,
    /// USD by the model's prices; `None` if the prices are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// True if no model wrote it: it is from a prompt, or a step of a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// True if the request allowed no calls: the answer that ends a turn, a correction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum ReplyPart {
    /// Visible text.
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
    },
    /// The model's reasoning, if the provider shows it.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Opaque>,
    },
    Call(Call),
}

/// A call, with a slot for its one answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    #[serde(flatten)]
    pub request: ToolCall,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
    /// `None` until the call is answered. The log has answers in separate entries.
    #[serde(skip)]
    pub answer: Option<CallAnswer>,
}

/// Data that a provider needs back unchanged with its part: a signature, encrypted reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    pub origin: Origin,
    pub data: Value,
    /// True if it is valid only while everything before it is sent unchanged: a compression voids it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bound: bool,
}

/// The origin of opaque data; it is sent back only there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The protocol: `chat`, `responses`, `anthropic`.
    pub wire: String,
    pub host: String,
    /// The provider's name for the model.
    pub model: String,
}

/// The answer to a call, as the model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallAnswer {
    pub content: String,
    pub status: CallStatus,
    /// Pictures for the model, sent after the answers of its step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The handle by which `recall` reads the whole text that was cut out of `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill_id: Option<String>,
    /// The skill whose instructions or file `content` contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// True if a compression wrote `content`: a digest of the answer, or the stub of a skill. It is never shortened
    /// again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub digested: bool,
}

impl CallAnswer {
    /// An answer of only text.
    pub fn of_text(content: impl Into<String>, status: CallStatus) -> Self {
        Self { content: content.into(), status, images: Vec::new(), spill_id: None, skill: None, digested: false }
    }
}

/// A text that replaces items that are no longer sent, and the facts that the next summary carries over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The whole text, as the model reads it.
    pub text: String,
    /// The part of the text that a model or a strategy wrote; the next summary updates it.
    #[serde(default)]
    pub body: String,
    /// The person's messages in the removed items, oldest first, verbatim as far as there was room.
    #[serde(default)]
    pub said: Vec<String>,
    /// Files that were read but not changed.
    #[serde(default)]
    pub read: BTreeSet<String>,
    /// Files that were changed.
    #[serde(default)]
    pub changed: BTreeSet<String>,
    /// The number of items that it replaces, including those of earlier summaries.
    #[serde(default)]
    pub covers: u64,
}

/// A call that the model requested. `arguments` is its text verbatim, well-formed or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// The reason that the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    #[default]
    Stop,
    ToolCalls,
    /// The output limit cut the reply.
    Length,
    ContentFilter,
    /// The server paused while it used tools of its own: the same conversation, sent again, goes on.
    Paused,
    /// The program stopped reading: a signal, a limit, or a broken stream.
    Interrupted,
}

impl UserText {
    /// Text written by a person.
    pub fn by_person(text: impl Into<String>) -> Self {
        Self { text: text.into(), author: Author::Person, skills: Vec::new(), images: Vec::new() }
    }

    /// Text that this program writes in the person's place.
    pub fn by_program(text: impl Into<String>) -> Self {
        Self { text: text.into(), author: Author::Program, skills: Vec::new(), images: Vec::new() }
    }

    /// Its texts, in the order in which they are sent.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text.as_str()).chain(self.skills.iter().map(|skill| skill.text.as_str()))
    }
}

impl Step {
    /// A reply of only text.
    pub fn of_text(text: impl Into<String>, finish_reason: FinishReason) -> Self {
        let parts = vec![ReplyPart::Text { text: text.into(), opaque: None }];
        Self { parts, finish_reason, ..Self::default() }
    }

    /// The step with secrets masked in what the model wrote, except in reasoning that its provider has signed.
    pub fn mask(mut self, mask: impl Fn(&str) -> Cow<'_, str>) -> Self {
        for part in &mut self.parts {
            let text = match part {
                ReplyPart::Text { text, .. } | ReplyPart::Reasoning { text, opaque: None } => text,
                ReplyPart::Reasoning { .. } => continue,
                ReplyPart::Call(call) => &mut call.request.arguments,
            };
            if let Cow::Owned(masked) = mask(text) {
                *text = masked;
            }
        }
        self
    }

    /// The visible text of the reply; empty if the reply consists only of calls.
    pub fn text(&self) -> String {
        self.texts().collect()
    }

    /// The pieces of its visible text.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            ReplyPart::Text { text, .. } => Some(text.as_str()),
            ReplyPart::Reasoning { .. } | ReplyPart::Call(_) => None,
        })
    }

    /// The reasoning of the reply; empty if the provider shows none.
    pub fn reasoning(&self) -> String {
        let pieces = self.parts.iter().filter_map(|part| match part {
            ReplyPart::Reasoning { text, .. } => Some(text.as_str()),
            ReplyPart::Text { .. } | ReplyPart::Call(_) => None,
        });
        pieces.collect()
    }

    /// Its calls, in order. A position here identifies a call: see [`Handle::call`].
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.parts.iter().filter_map(|part| if let ReplyPart::Call(call) = part { Some(call) } else { None })
    }

    /// Its calls, mutable.
    pub fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.parts.iter_mut().filter_map(|part| if let ReplyPart::Call(call) = part { Some(call) } else { None })
    }

    /// True if the model called a tool.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Puts an answer into the slot of a call. Returns false if there is no such call, or its slot is filled.
    pub fn fill(&mut self, call: usize, answer: CallAnswer) -> bool {
        let Some(call) = self.calls_mut().nth(call).filter(|call| call.answer.is_none()) else { return false };
        call.answer = Some(answer);
        true
    }
}

impl Item {
    /// The text if a person said it.
    pub fn said_by_person(&self) -> Option<&str> {
        match self {
            Self::Said(UserText { text, author: Author::Person, .. }) => Some(text),
            _ => None,
        }
    }

    /// The step, if it is one.
    pub fn as_step(&self) -> Option<&Step> {
        if let Self::Step(step) = self { Some(step) } else { None }
    }

    /// Every text of the item that a request contains: the user's text, the reply, the names and arguments of its
    /// calls, their answers, and reasoning that its provider wants back.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (said, summary, parts) = match self {
            Self::Said(said) => (Some(said), None, &[][..]),
            Self::Summary(summary) => (None, Some(summary.text.as_str()), &[][..]),
            Self::Step(step) => (None, None, step.parts.as_slice()),
        };
        said.into_iter().flat_map(UserText::texts).chain(summary).chain(parts.iter().flat_map(ReplyPart::texts))
    }

    /// Its pictures: those of a text in the person's place, and those of answers.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        let said = match self {
            Self::Said(said) => said.images.as_slice(),
            Self::Step(_) | Self::Summary(_) => &[],
        };
        let answers = self.as_step().into_iter().flat_map(Step::calls).filter_map(|call| call.answer.as_ref());
        said.iter().chain(answers.flat_map(|answer| &answer.images))
    }
}

impl ReplyPart {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            Self::Text { text, .. } => [Some(text.as_str()), None, None],
            // Reasoning is sent only if its provider wants it back.
            Self::Reasoning { text, opaque } => [opaque.as_ref().map(|_| text.as_str()), None, None],
            Self::Call(Call { request, answer, .. }) => [
                Some(request.name.as_str()),
                Some(request.arguments.as_str()),
                answer.as_ref().map(|answer| answer.content.as_str()),
            ],
        };
        texts.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ReplyPart {
        let request = ToolCall { id: id.to_owned(), name: "grep".to_owned(), arguments: "{}".to_owned() };
        ReplyPart::Call(Call { request, opaque: None, answer: None })
    }

    fn answer(content: &str) -> CallAnswer {
        CallAnswer::of_text(content, CallStatus::Ok)
    }

    #[test]
    fn a_slot_takes_one_answer() {
        let mut step = Step { parts: vec![call("a"), call("b")], ..Step::default() };
        assert!(step.fill(1, answer("first")));
        assert!(!step.fill(1, answer("second")), "the first answer stands");
        assert!(!step.fill(2, answer("nothing")), "there is no third call");
        assert!(step.calls().any(|call| call.answer.is_none()));
        assert!(step.fill(0, answer("x")));
        assert!(step.calls().all(|call| call.answer.is_some()));
    }
}
