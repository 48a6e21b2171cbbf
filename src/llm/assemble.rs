//! A reply put together from the events of a stream, or from one whole body. Pure: events in, deltas out.
//!
//! Consecutive text becomes one delta until somebody takes it. A reply ends with a `finish_reason` or `[DONE]`, and
//! with nothing else. The usage that is reported last counts. Chunks are told apart only by the call they belong to, since
//! their ids, roles and indexes cannot be relied on.

use std::collections::{HashSet, VecDeque};

use super::arguments::is_complete;
use super::bounds::{self, LONGEST_NAME, MOST_BYTES, MOST_CALLS};
use super::errors::Said;
use super::wire::{self, CallPiece, Chunk, Function, Piece, Text};
use crate::contract::{Delta, ReplyEnd};
use crate::message::{FinishReason, ToolCall, Usage};
use crate::text::head;
use crate::tokens;

/// The reason why a reply cannot be completed.
#[derive(Debug, PartialEq)]
pub enum Broken {
    /// The server said what went wrong.
    Error(Said),
    /// Something arrived that is no part of a reply.
    Unreadable(String),
    /// More arrived than is read of a reply.
    TooLarge(String),
}

/// A reply in the making.
#[derive(Debug, Default)]
pub struct Assembly {
    deltas: VecDeque<Delta>,
    calls: Vec<Call>,
    finish: Option<FinishReason>,
    done: bool,
    usage: Option<Usage>,
    /// The estimated size of the reply, in quarters of a token.
    weight: u64,
    reasoning_weight: u64,
    /// The bytes that were taken in.
    size: usize,
    used_ids: HashSet<String>,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    /// Begins a reply. `used_ids` are the ids of calls in the conversation, none of which is given again.
    pub fn new(used_ids: HashSet<String>) -> Self {
        Self { used_ids, ..Self::default() }
    }

    /// Takes one event of a stream.
    pub fn event(&mut self, name: &[u8], data: &[u8]) -> Result<(), Broken> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        bounds::check_values(data).map_err(Broken::TooLarge)?;
        if name == b"error" {
            return Err(Broken::Error(Said::read(&String::from_utf8_lossy(data))));
        }
        if let Ok(chunk) = Chunk::read(data) {
            return self.chunk(chunk, data);
        }
        let mended = wire::without_lone_surrogates(data).unwrap_or_default();
        match Chunk::read(&mended) {
            Ok(chunk) => self.chunk(chunk, &mended),
            // Nothing that follows a finished reply can spoil it.
            Err(_) if self.is_finished() => Ok(()),
            Err(_) => Err(unreadable(data)),
        }
    }

    /// Takes a body that is one whole reply. `Ok(false)` if it is something else.
    pub fn whole(&mut self, body: &[u8]) -> Result<bool, Broken> {
        bounds::check_values(body).map_err(Broken::TooLarge)?;
        let Ok(chunk) = Chunk::read(body.trim_ascii()) else { return Ok(false) };
        let is_reply = chunk.choices.as_ref().is_some_and(|choices| choices.iter().any(|c| c.message.is_some()));
        self.chunk(chunk, body)?;
        self.done |= is_reply;
        Ok(is_reply)
    }

    /// Whether the model has finished. Only usage may still come.
    pub fn is_finished(&self) -> bool {
        self.done || self.finish.is_some()
    }

    /// Whether the server has said that nothing more comes.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next delta that is ready.
    pub fn take(&mut self) -> Option<Delta> {
        self.deltas.pop_front()
    }

    /// Bytes of text in the delta that would be taken next.
    pub fn ready_bytes(&self) -> Option<usize> {
        self.deltas.front().map(|delta| match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            Delta::CallBegun(_) | Delta::Finished(_) => usize::MAX,
        })
    }

    /// The end of a finished reply. `input_estimate` is called only if the server reported no usage.
    pub fn end(&mut self, input_estimate: impl FnOnce() -> u64) -> ReplyEnd {
        let tool_calls = self.take_calls();
        let finish = match self.finish {
            // The calls in a reply count for more than its `finish_reason`.
            None | Some(FinishReason::Stop | FinishReason::ToolCalls) if tool_calls.is_empty() => {
                FinishReason::Stop
            }
            None | Some(FinishReason::Stop) => FinishReason::ToolCalls,
            Some(finish) => finish,
        };
        let usage = self.usage.unwrap_or_else(|| Usage {
            cache_write_tokens: 0,
            input_tokens: input_estimate(),
            output_tokens: (self.weight + self.reasoning_weight).div_ceil(4),
            reasoning_tokens: self.reasoning_weight.div_ceil(4),
            cached_input_tokens: 0,
            estimated: true,
        });
        ReplyEnd { tool_calls, finish, usage }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, data: &[u8]) -> Result<(), Broken> {
        let choices = chunk.choices.unwrap_or_default();
        if chunk.error.is_some_and(|error| !is_empty(error.get())) || (choices.is_empty() && chunk.usage.is_none())
        {
            // Errors come in more shapes than `error`, and an empty chunk is none of them.
            if let Some(said) = Said::in_reply(&String::from_utf8_lossy(data)) {
                return Err(Broken::Error(said));
            }
        }
        self.usage = chunk.usage.and_then(wire::usage).or(self.usage);
        for choice in choices.into_iter().filter(|choice| choice.index.0.unwrap_or(0) == 0) {
            self.usage = choice.usage.and_then(wire::usage).or(self.usage);
            if let Some(piece) = choice.delta.or(choice.message.map(|message| *message)) {
                self.piece(piece);
                bounds::check_size(self.size, self.calls.len()).map_err(Broken::TooLarge)?;
            }
            let reason = choice.finish_reason.as_str();
            match finish_reason(reason) {
                Ok(finish) => self.finish = finish.or(self.finish),
                Err(()) => {
                    return Err(Broken::Unreadable(format!("the server gave up (finish_reason `{reason}`)")));
                }
            }
        }
        Ok(())
    }

    fn piece(&mut self, piece: Piece<'_>) {
        let reasoning = match &piece.reasoning_content {
            Text::Absent => &piece.reasoning,
            given => given,
        };
        self.reasoning(reasoning.as_str());
        match &piece.content {
            Text::Data(parts) => {
                let (text, reasoning) = wire::content_parts(parts);
                self.reasoning(&reasoning);
                self.text(&text);
            }
            content => self.text(content.as_str()),
        }
        self.text(piece.refusal.as_str());
        for call in piece.tool_calls.into_iter().flatten() {
            self.call(call);
        }
        if let Some(function) = piece.function_call {
            self.call(CallPiece {
                index: wire::Number(Some(0)),
                function: Some(*function),
                ..CallPiece::default()
            });
        }
    }

    /// The beginning of a text for which there is room. From what is left out on, the reply is too large.
    fn admitted<'t>(&mut self, text: &'t str) -> &'t str {
        let room = MOST_BYTES.saturating_sub(self.size);
        self.size = self.size.saturating_add(text.len());
        head(text, room)
    }

    fn text(&mut self, text: &str) {
        let text = self.admitted(text);
        if text.is_empty() {
            return;
        }
        self.weight += tokens::quarters(text.as_bytes());
        match self.deltas.back_mut() {
            Some(Delta::Text(last)) => last.push_str(text),
            _ => self.deltas.push_back(Delta::Text(text.to_owned())),
        }
    }

    fn reasoning(&mut self, text: &str) {
        let text = self.admitted(text);
        if text.is_empty() {
            return;
        }
        self.reasoning_weight += tokens::quarters(text.as_bytes());
        match self.deltas.back_mut() {
            Some(Delta::Reasoning(last)) => last.push_str(text),
            _ => self.deltas.push_back(Delta::Reasoning(text.to_owned())),
        }
    }

    fn call(&mut self, piece: CallPiece<'_>) {
        let Function { name, arguments } = piece.function.unwrap_or_default();
        // A longer id is none, so that the call gets one of ours; no tool has a longer name.
        let id = Some(piece.id.as_str()).filter(|id| id.len() <= LONGEST_NAME).unwrap_or_default();
        let name = head(name.as_str(), LONGEST_NAME);
        let arguments = match &arguments {
            Text::Data(data) => data.to_string(),
            text => text.as_str().to_owned(),
        };
        let arguments = self.admitted(&arguments).to_owned();
        self.size = self.size.saturating_add(id.len() + name.len());
        if self.calls.len() > MOST_CALLS {
            return;
        }
        self.weight += tokens::quarters(name.as_bytes()) + tokens::quarters(arguments.as_bytes());
        let Some(at) = self.find_call(piece.index.0, id, name) else {
            if !(id.is_empty() && name.is_empty() && arguments.trim().is_empty()) {
                if !name.is_empty() {
                    self.deltas.push_back(Delta::CallBegun(name.to_owned()));
                }
                let (id, name) = (id.to_owned(), name.to_owned());
                self.calls.push(Call { index: piece.index.0, id, name, arguments });
            }
            return;
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut call.name);
            self.deltas.push_back(Delta::CallBegun(name.to_owned()));
        }
        // A frame that came twice: nothing can continue a whole value.
        let repeated = arguments == call.arguments && is_complete(&call.arguments);
        if !repeated {
            call.arguments.push_str(&arguments);
        }
    }

    /// The call that a piece continues; `None` when it begins one.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let last = |matches: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(matches);
        if let Some(index) = index {
            let at = last(&|call| call.index == Some(index))?;
            let call = &self.calls[at];
            // Some servers number every call 0: another id and a name, after whole arguments, begin another call.
            let another = !id.is_empty() && !call.id.is_empty() && id != call.id;
            return (!(another && !name.is_empty() && is_complete(&call.arguments))).then_some(at);
        }
        if !id.is_empty()
            && let Some(at) = last(&|call| call.id == id)
        {
            return Some(at);
        }
        let at = self.calls.len().checked_sub(1)?;
        let call = &self.calls[at];
        let continues = name.is_empty()
            // The name again with each fragment.
            || (id.is_empty() && name == call.name && !call.arguments.is_empty() && !is_complete(&call.arguments));
        continues.then_some(at)
    }

    /// The calls with an id each that the whole conversation has only once.
    fn take_calls(&mut self) -> Vec<ToolCall> {
        let calls = std::mem::take(&mut self.calls);
        let mut number = self.used_ids.len();
        calls
            .into_iter()
            .map(|Call { mut id, name, arguments, .. }| {
                while id.is_empty() || self.used_ids.contains(&id) {
                    number += 1;
                    id = format!("call_{number}");
                }
                self.used_ids.insert(id.clone());
                ToolCall { id, name, arguments }
            })
            .collect()
    }
}

/// The meaning of a server's `finish_reason`: `Ok(None)` if it has none, `Err` if the server gave the reply up.
fn finish_reason(word: &str) -> Result<Option<FinishReason>, ()> {
    Ok(Some(match word.to_ascii_lowercase().as_str() {
        "" | "null" | "none" => return Ok(None),
        "tool_calls" | "tool_call" | "tool_use" | "function_call" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => FinishReason::Length,
        "content_filter" | "safety" | "sensitive" | "recitation" | "prohibited_content" | "blocklist" => {
            FinishReason::ContentFilter
        }
        "error" | "network_error" | "insufficient_system_resource" | "abort" | "aborted" | "cancelled" => {
            return Err(());
        }
        // `stop`, `eos`, `end_turn`, `stop_sequence`, and whatever a server calls it.
        _ => FinishReason::Stop,
    }))
}

fn is_empty(json: &str) -> bool {
    matches!(json.trim(), "" | "null" | "{}" | "\"\"" | "false")
}

fn unreadable(data: &[u8]) -> Broken {
    const SHOWN: usize = 120;
    let data = crate::text::one_line(&String::from_utf8_lossy(data), SHOWN);
    Broken::Unreadable(format!("the stream broke: an event is not JSON: {data}"))
}
