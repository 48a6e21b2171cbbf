//! Assembles a reply from the pieces that a decoder reads. Pure: pieces in, deltas out.
//!
//! A reply is a list of parts in the order in which they began. A decoder opens a part, appends to it under the key
//! that it got, and may record what the provider needs back with it. The keys are ours: ids and indexes of servers
//! are unreliable. Consecutive text accumulates in one delta until somebody takes it.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::bounds::{self, LONGEST_NAME, MOST_BYTES, MOST_CALLS};
use super::errors::StatedError;
use crate::base::secrets::Redactor;
use crate::base::text::{one_line, take_head};
use crate::base::tokens;
use crate::conversation::message::{Call, FinishReason, Opaque, Origin, ReplyPart, ToolCall, Usage};
use crate::model::{Delta, ReplyEnd, TakenTokens};

/// The reason why a reply cannot be completed.
#[derive(Debug, PartialEq)]
pub enum Broken {
    /// The server said what went wrong.
    Error(StatedError),
    /// Something arrived that is not part of a reply.
    Unreadable(String),
    /// More arrived than a reply may contain.
    TooLarge(String),
}

impl Broken {
    /// Requires that data which is no part of a reply is no error of the server either, in whatever shape.
    pub fn check_error(data: &[u8]) -> Result<(), Self> {
        StatedError::in_reply(&String::from_utf8_lossy(data)).map_or(Ok(()), |said| Err(Self::Error(said)))
    }
}

/// The key of a part of an unfinished reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartKey(usize);

/// An unfinished reply.
#[derive(Debug, Default)]
pub struct Assembly {
    deltas: VecDeque<Delta>,
    parts: Vec<Building>,
    calls: usize,
    finish: Option<FinishReason>,
    done: bool,
    begun: bool,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    /// The estimated size of the reply, in quarters of a token.
    weight: u64,
    reasoning_weight: u64,
    /// The bytes received.
    size: usize,
    origin: Origin,
    used_ids: HashSet<String>,
    redactor: Redactor,
}

#[derive(Debug)]
struct Building {
    kind: UnfinishedPartKind,
    /// The text; for a call, its arguments.
    text: String,
    opaque: Option<Value>,
    bound: bool,
    left_out: bool,
}

#[derive(Debug)]
enum UnfinishedPartKind {
    Text,
    Reasoning,
    Call { id: String, name: String },
}

impl Assembly {
    /// Begins a reply of `origin`. `used_ids` are the ids of calls in the conversation, which are not assigned again.
    pub fn new(origin: Origin, used_ids: HashSet<String>) -> Self {
        Self { origin, used_ids, ..Self::default() }
    }

    /// Masks secrets in what the server says beside the words of the model.
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// The server's words without secrets. They must be whole: of a secret that was cut, a part would stay.
    pub fn redact<'t>(&self, words: &'t str) -> Cow<'t, str> {
        self.redactor.redact_known(words)
    }

    /// Opens a part of visible text.
    pub fn open_text(&mut self) -> PartKey {
        self.open(UnfinishedPartKind::Text)
    }

    /// Opens a part of reasoning. A part without text carries only what the provider needs back.
    pub fn open_reasoning(&mut self) -> PartKey {
        self.open(UnfinishedPartKind::Reasoning)
    }

    /// Opens a call. Its id and its name may come later. Calls beyond a limit are not kept; the reply is too large
    /// then.
    pub fn open_call(&mut self, id: &str, name: &str) -> PartKey {
        self.calls += 1;
        let key = self.open(UnfinishedPartKind::Call { id: String::new(), name: String::new() });
        self.set_id(key, id);
        self.set_name(key, name);
        if self.calls > MOST_CALLS && !self.done {
            self.parts.pop();
            return PartKey(usize::MAX);
        }
        key
    }

    fn open(&mut self, kind: UnfinishedPartKind) -> PartKey {
        // After the end only usage counts.
        if self.done {
            return PartKey(usize::MAX);
        }
        self.parts.push(Building { kind, text: String::new(), opaque: None, bound: false, left_out: false });
        PartKey(self.parts.len() - 1)
    }

    /// Adds to a part: text, reasoning, or the arguments of a call.
    pub fn push(&mut self, key: PartKey, text: &str) {
        let room = MOST_BYTES.saturating_sub(self.size);
        self.size = self.size.saturating_add(text.len());
        let text = take_head(text, room);
        let Some(part) = self.parts.get_mut(key.0).filter(|_| !text.is_empty() && !self.done) else { return };
        part.text.push_str(text);
        let weight = tokens::count_quarters(text.as_bytes());
        match part.kind {
            UnfinishedPartKind::Text => {
                self.weight += weight;
                match self.deltas.back_mut() {
                    Some(Delta::Text(last)) => last.push_str(text),
                    _ => self.deltas.push_back(Delta::Text(text.to_owned())),
                }
            }
            UnfinishedPartKind::Reasoning => {
                self.reasoning_weight += weight;
                match self.deltas.back_mut() {
                    Some(Delta::Reasoning(last)) => last.push_str(text),
                    _ => self.deltas.push_back(Delta::Reasoning(text.to_owned())),
                }
            }
            UnfinishedPartKind::Call { .. } => self.weight += weight,
        }
    }

    /// Replaces the arguments of a call by the complete ones.
    pub fn set_arguments(&mut self, key: PartKey, arguments: &str) {
        if let Some(Building { kind: UnfinishedPartKind::Call { .. }, text, .. }) = self.parts.get_mut(key.0)
            && text != arguments
        {
            let old = tokens::count_quarters(text.as_bytes());
            self.weight = self.weight.saturating_sub(old);
            self.size = self.size.saturating_sub(text.len());
            text.clear();
            self.push(key, arguments);
        }
    }

    /// The text of a part so far; for a call, its arguments.
    pub fn text_of(&self, key: PartKey) -> &str {
        self.parts.get(key.0).map_or("", |part| &part.text)
    }

    /// The id of a call as the server gave it; empty while there is none.
    pub fn id_of(&self, key: PartKey) -> &str {
        match self.parts.get(key.0).map(|part| &part.kind) {
            Some(UnfinishedPartKind::Call { id, .. }) => id,
            _ => "",
        }
    }

    /// The name of a call; empty while there is none.
    pub fn name_of(&self, key: PartKey) -> &str {
        match self.parts.get(key.0).map(|part| &part.kind) {
            Some(UnfinishedPartKind::Call { name, .. }) => name,
            _ => "",
        }
    }

    /// Gives a call its id. An id longer than any server's, or with a secret in it, is ignored, so that the call gets one
    /// of ours.
    pub fn set_id(&mut self, key: PartKey, new: &str) {
        let is_secret = self.redact(new) != new;
        if let Some(Building { kind: UnfinishedPartKind::Call { id, .. }, .. }) = self.parts.get_mut(key.0)
            && new.len() <= LONGEST_NAME
            && !is_secret
        {
            self.size = self.size.saturating_add(new.len());
            new.clone_into(id);
        }
    }

    /// Gives a call its name. The first time, the reader gets a delta saying that the call began.
    pub fn set_name(&mut self, key: PartKey, new: &str) {
        let new = self.redactor.redact_known(new);
        let Some(Building { kind: UnfinishedPartKind::Call { name, .. }, .. }) = self.parts.get_mut(key.0) else {
            return;
        };
        let new = take_head(&new, LONGEST_NAME);
        if new.is_empty() || name == new {
            return;
        }
        if name.is_empty() {
            self.deltas.push_back(Delta::CallBegun(new.to_owned()));
        }
        self.size = self.size.saturating_add(new.len());
        self.weight += tokens::count_quarters(new.as_bytes());
        new.clone_into(name);
    }

    /// Keeps what the provider needs back with a part; `bound` as in [`Opaque::bound`].
    pub fn keep(&mut self, key: PartKey, data: Value, bound: bool) {
        if let Some(part) = self.parts.get_mut(key.0) {
            part.opaque = Some(data);
            part.bound = bound;
        }
    }

    /// Leaves a part out of the reply, although any text of it that was already taken has been seen.
    pub fn leave_out(&mut self, key: PartKey) {
        if let Some(part) = self.parts.get_mut(key.0) {
            part.left_out = true;
        }
    }

    /// Leaves out all parts so far, as the server started over. Returns false if somebody has seen text of them, which
    /// cannot be taken back.
    pub fn restart(&mut self) -> bool {
        self.parts.iter_mut().for_each(|part| part.left_out = true);
        // All but text is always delivered, whenever the deltas are taken.
        self.deltas.retain(|delta| !matches!(delta, Delta::Text(_)));
        !self.parts.iter().any(|part| !part.text.is_empty() && matches!(part.kind, UnfinishedPartKind::Text))
    }

    /// Tells the reader something about the reply.
    pub fn notice(&mut self, words: String) {
        let words = self.redact(&words).into_owned();
        self.deltas.push_back(Delta::Notice(words));
    }

    /// Tells that the provider searched the web for this, or found these pages.
    pub fn searched(&mut self, query: &str, found: &[String]) {
        const MOST_PAGES: usize = 5;
        const COLUMNS: usize = 300;
        let pages = found.iter().take(MOST_PAGES).cloned().collect::<Vec<_>>().join(", ");
        let more = found.len().saturating_sub(MOST_PAGES);
        let words = match (query, more) {
            ("", 0) => format!("the web search found {pages}"),
            ("", more) => format!("the web search found {pages} and {more} more"),
            (query, _) => format!("the model searched the web for: {query}"),
        };
        let words = one_line(&self.redact(&words), COLUMNS);
        self.deltas.push_back(Delta::Searched(words));
    }

    /// Sets the reason that the model stopped. Only usage may follow.
    pub fn finish(&mut self, reason: FinishReason) {
        self.finish = Some(reason);
    }

    /// Marks the reply as begun: something came that is no error in its place.
    pub fn mark_begun(&mut self) {
        self.begun = true;
    }

    /// Marks the reply as complete: nothing more comes.
    pub fn mark_complete(&mut self) {
        self.done = true;
    }

    /// Takes the usage that the server reports; the last report counts.
    pub fn report(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Takes the cost of the request, in USD, as the provider states it.
    pub fn cost(&mut self, usd: f64) {
        self.cost_usd = Some(usd).filter(|usd| usd.is_finite() && *usd >= 0.0);
    }

    /// Changes while the reply grows: its text, its reasoning, its arguments, its parts or its usage.
    pub fn measure_progress(&self) -> u64 {
        let usage = self.usage.map_or(0, |usage| usage.total());
        (self.size as u64).saturating_add(self.parts.len() as u64).saturating_add(usage)
    }

    /// True if the model has finished. Only usage may still come.
    pub fn is_finished(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// True if the server has said that nothing more comes.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Refuses a reply that has outgrown its bounds.
    pub fn check_size(&self) -> Result<(), Broken> {
        bounds::check_size(self.size, self.calls).map_err(Broken::TooLarge)
    }

    /// The next delta that is ready.
    pub fn take(&mut self) -> Option<Delta> {
        self.deltas.pop_front()
    }

    /// The bytes of text in the delta that would be taken next.
    pub fn ready_bytes(&self) -> Option<usize> {
        self.deltas.front().map(|delta| match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            Delta::CallBegun(_) | Delta::Notice(_) | Delta::Searched(_) | Delta::Finished(_) => usize::MAX,
        })
    }

    /// The end of a finished reply. `input_estimate` is called only if the server reported no usage.
    pub fn end(&mut self, input_estimate: impl FnOnce() -> u64) -> ReplyEnd {
        let parts = self.take_parts();
        let has_calls = parts.iter().any(|part| matches!(part, ReplyPart::Call(_)));
        let finish = match self.finish {
            // Calls in a reply outweigh the reason that its server gives.
            None | Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Paused) if has_calls => {
                FinishReason::ToolCalls
            }
            None | Some(FinishReason::ToolCalls) => FinishReason::Stop,
            Some(finish) => finish,
        };
        let usage =
            self.usage.unwrap_or_else(|| Usage { input_tokens: input_estimate(), ..self.estimate_output() });
        ReplyEnd { parts, finish, usage, cost_usd: self.cost_usd, streamed: false }
    }

    /// What a reply that failed took, if it had begun. A report from its beginning does not count what came after it.
    pub fn count_taken(&self) -> Option<TakenTokens> {
        let estimate = self.estimate_output();
        let usage = self.usage.map_or(estimate, |usage| Usage {
            output_tokens: usage.output_tokens.max(estimate.output_tokens),
            estimated: usage.estimated || estimate.output_tokens > usage.output_tokens,
            ..usage
        });
        (self.begun || usage.total() > 0).then_some(TakenTokens { usage, cost_usd: self.cost_usd })
    }

    fn estimate_output(&self) -> Usage {
        Usage {
            output_tokens: (self.weight + self.reasoning_weight).div_ceil(4),
            reasoning_tokens: self.reasoning_weight.div_ceil(4),
            estimated: true,
            ..Usage::default()
        }
    }

    /// Takes the parts, each call with an id that is unique in the conversation.
    fn take_parts(&mut self) -> Vec<ReplyPart> {
        let mut number = self.used_ids.len();
        let mut parts = Vec::with_capacity(self.parts.len());
        for Building { kind, text, opaque, bound, left_out } in std::mem::take(&mut self.parts) {
            let opaque = opaque.map(|data| Opaque { origin: self.origin.clone(), data, bound });
            let is_nothing = text.is_empty() && opaque.is_none();
            match kind {
                _ if left_out => {}
                UnfinishedPartKind::Text | UnfinishedPartKind::Reasoning if is_nothing => {}
                UnfinishedPartKind::Text => parts.push(ReplyPart::Text { text, opaque }),
                UnfinishedPartKind::Reasoning => parts.push(ReplyPart::Reasoning { text, opaque }),
                UnfinishedPartKind::Call { mut id, name } => {
                    while id.is_empty() || self.used_ids.contains(&id) {
                        number += 1;
                        id = format!("call_{number}");
                    }
                    self.used_ids.insert(id.clone());
                    let request = ToolCall { id, name, arguments: text };
                    parts.push(ReplyPart::Call(Call { request, opaque, answer: None }));
                }
            }
        }
        parts
    }
}
