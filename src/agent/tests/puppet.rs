//! Test doubles for a conversation: a model that plays given acts and checks each request, a tool, and an event sink.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::agent::cancel::Cancel;
use crate::agent::request::purpose::open_call;
use crate::agent::turn::Steering;
use crate::agent::window::{PARTS, Ruler};
use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind, EventMessage};
use crate::conversation::message::{FinishReason, Item, ReplyPart, Step, ToolCall, Usage};
use crate::conversation::session::ItemId;
use crate::model::{
    ChatModel, Delta, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyEnd, ReplyStream, ToolDefinition,
};
use crate::tools::{CallContext, Tool};

/// One act of the model.
#[derive(Debug, Clone)]
pub enum Act {
    Say(usize),
    /// An answer that the output limit cuts.
    RunOn(usize),
    /// Calls: their ids, and what the tool should do.
    Call(Vec<(u8, LookOutcome)>),
    Empty,
    Fail(ModelErrorKind),
    /// Streams this many tokens, then fails.
    Cut(usize, ModelErrorKind),
    /// Streams this many tokens; then the person interrupts.
    Hang(usize),
}

/// The behaviour of a call.
#[derive(Debug, Clone)]
pub enum LookOutcome {
    /// Returns this many tokens.
    Return(usize),
    Fail,
    /// The person interrupts.
    Hang,
    Garbage,
    Unknown,
}

/// The state that the model, the tool and the sink share.
#[derive(Default)]
pub struct Stage {
    pub acts: VecDeque<Act>,
    pub cancel: Cancel,
    /// The items of the last request of the conversation.
    sent: Vec<Item>,
    /// The prefix was broken since then, and that was reported.
    pub broken: bool,
    /// The person's messages so far.
    pub said: BTreeSet<String>,
    /// The violated invariants.
    pub faults: Vec<String>,
    pub budget: u64,
    /// A request was refused as too long.
    pub refused: bool,
    /// The way into the turn, and the numbers of events between the person's messages.
    pub steering: Steering,
    pub pauses: VecDeque<u8>,
    /// The messages sent during turns, in order, and those that the turns took.
    pub steered: Vec<String>,
    pub taken: Vec<String>,
    asked: usize,
}

#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Stage>>);

impl Shared {
    pub fn with<T>(&self, then: impl FnOnce(&mut Stage) -> T) -> T {
        then(&mut self.0.lock().expect("no holder panics"))
    }
}

/// Words of four bytes and one token each, in every encoding.
pub fn text(tokens: usize) -> String {
    " one two six ten".repeat(tokens / 4 + 1)
}

/// A model that plays acts and checks the invariants of each request.
pub struct Puppet {
    pub info: ModelInfo,
    pub shared: Shared,
}

struct Playing {
    deltas: VecDeque<Result<Delta, ModelError>>,
    cancel: Cancel,
}

impl ReplyStream for Playing {
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        match self.deltas.pop_front() {
            Some(delta) => std::future::ready(delta).boxed(),
            None => {
                self.cancel.trigger();
                std::future::pending().boxed()
            }
        }
    }
}

impl Puppet {
    fn error(&self, kind: ModelErrorKind) -> ModelError {
        let message = "the prompt is too long".to_owned();
        ModelError {
            kind,
            status: None,
            message,
            model: self.info.id.clone(),
            retry_after: None,
            is_lesson: false,
        }
    }

    fn end(parts: Vec<ReplyPart>, finish: FinishReason, input_tokens: u64) -> Delta {
        let usage = Usage { input_tokens, output_tokens: 20, ..Usage::default() };
        Delta::Finished(ReplyEnd { parts, finish, usage, cost_usd: None, streamed: true })
    }

    /// A reply of nothing but text: streamed, and whole at its end.
    fn say(text: String, finish: FinishReason, input_tokens: u64) -> Vec<Result<Delta, ModelError>> {
        let part = ReplyPart::Text { text: text.clone(), opaque: None };
        vec![Ok(Delta::Text(text)), Ok(Self::end(vec![part], finish, input_tokens))]
    }

    fn play(&self, act: Act, input: u64) -> Result<Vec<Result<Delta, ModelError>>, ModelError> {
        let said = |tokens| Ok(Delta::Text(text(tokens)));
        Ok(match act {
            Act::Say(tokens) => Self::say(text(tokens), FinishReason::Stop, input),
            Act::RunOn(tokens) => Self::say(text(tokens), FinishReason::Length, input),
            Act::Empty => vec![Ok(Self::end(vec![], FinishReason::Stop, input))],
            Act::Fail(kind) => return Err(self.error(kind)),
            Act::Cut(tokens, kind) => vec![said(tokens), Err(self.error(kind))],
            Act::Hang(tokens) => vec![said(tokens)],
            Act::Call(calls) => {
                let asked = self.shared.with(|stage| stage.asked);
                let call = |(at, (id, look)): (usize, (u8, LookOutcome))| {
                    let n = asked * 10 + at;
                    let (name, arguments) = match look {
                        LookOutcome::Return(tokens) => ("look", json!({ "n": n, "tokens": tokens }).to_string()),
                        LookOutcome::Fail => ("look", json!({ "n": n, "fail": true }).to_string()),
                        LookOutcome::Hang => ("look", json!({ "n": n, "hang": true }).to_string()),
                        LookOutcome::Garbage => ("look", "{\"n\": 1,,".to_owned()),
                        LookOutcome::Unknown => ("no_such_tool", "{}".to_owned()),
                    };
                    ToolCall { id: format!("call_{id}"), name: name.to_owned(), arguments }
                };
                let parts = calls.into_iter().enumerate().map(call).map(open_call).collect();
                vec![Ok(Self::end(parts, FinishReason::ToolCalls, input))]
            }
        })
    }
}

impl ChatModel for Puppet {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        let (act, cancel, input) = self.shared.with(|stage| {
            stage.asked += 1;
            let input = stage.judge(&request);
            (stage.acts.pop_front(), stage.cancel.clone(), input)
        });
        if let Some(Act::Fail(kind) | Act::Cut(_, kind)) = &act
            && *kind == ModelErrorKind::ContextTooLong
        {
            self.shared.with(|stage| stage.refused = true);
        }
        // A good summary is one that has every part.
        let parts = || PARTS.iter().fold(String::new(), |all, (part, _)| all + "## " + part + "\n- known\n");
        let deltas = match act {
            None | Some(Act::Say(_) | Act::Call(_)) if request.aside.is_some() => {
                Ok(Self::say(parts(), FinishReason::Stop, input))
            }
            None => self.play(Act::Say(5), input),
            Some(act) => self.play(act, input),
        };
        let stream =
            deltas.map(|deltas| -> Box<dyn ReplyStream> { Box::new(Playing { deltas: deltas.into(), cancel }) });
        std::future::ready(stream).boxed()
    }

    fn preview(&self, _: ModelRequest<'_>) -> serde_json::Value {
        serde_json::Value::Null
    }
}

impl Stage {
    fn watch(&mut self, event: &EventKind) {
        if let EventKind::Message(EventMessage::User { content, .. }) = event
            && content.starts_with("steer-")
        {
            self.taken.push(content.clone());
            self.said.insert(content.trim_end().to_owned());
        }
        match self.pauses.front_mut() {
            Some(pause) if *pause > 0 => *pause -= 1,
            Some(_) => {
                self.pauses.pop_front();
                let text = format!("steer-{}-{} ", self.asked, self.steered.len());
                self.steered.push(text.clone());
                self.steering.push(text);
            }
            None => {}
        }
    }

    /// Checks the invariants of a request. Returns its size, which is that of an encoding whose name the agent does not
    /// know.
    fn judge(&mut self, request: &ModelRequest<'_>) -> u64 {
        let ids: Vec<ItemId> = (1..=request.items.len() as u64).map(|number| ItemId { number, pass: 0 }).collect();
        let measured = crate::agent::window::MeasuredRequest {
            model: "gpt-4o",
            tools: request.tools,
            system: request.system,
            items: request.items,
            ids: &ids,
        };
        let size = Ruler::default().measure(measured, 0).tokens
            + request.aside.map_or(0, crate::base::tokens::estimate_tokens);
        // Digests and notes are not made of words of one token.
        if size > self.budget + self.budget / 20 {
            self.faults.push(format!("a request of {size} tokens, the budget is {}", self.budget));
        }
        let steps = request.items.iter().filter_map(Item::as_step);
        if steps.flat_map(Step::calls).any(|call| call.answer.is_none()) {
            self.faults.push("a call without an answer".to_owned());
        }
        if request.aside.is_some() {
            return size;
        }
        // A budget that a refusal has taught may be too small for the person's own words.
        for said in self.said.iter().filter(|_| !self.refused) {
            let words = format!("{said} ");
            if !request.items.iter().flat_map(Item::texts).any(|text| text.contains(&words)) {
                self.faults.push(format!("`{said}` is neither there nor in a summary"));
            }
        }
        if !self.broken && !request.items.starts_with(&self.sent) {
            self.faults.push(format!("request {} rewrites its past", self.asked));
        }
        self.broken = false;
        self.sent = request.items.to_vec();
        size
    }
}

/// The one tool.
pub struct Looker {
    pub definition: ToolDefinition,
    pub shared: Shared,
}

impl Tool for Looker {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn subject(&self, _: &serde_json::Value) -> String {
        String::new()
    }

    fn call<'a>(
        &'a self,
        arguments: serde_json::Value,
        _: CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        if arguments["hang"] == true {
            self.shared.with(|stage| stage.cancel.trigger());
            return std::future::pending().boxed();
        }
        if arguments["fail"] == true {
            let error = ToolError::new(ToolErrorKind::Permanent, "error: it failed".to_owned());
            return std::future::ready(Err(error)).boxed();
        }
        let tokens = usize::try_from(arguments["tokens"].as_u64().unwrap_or(1)).unwrap_or(1);
        let lines = format!("{}{}\n", arguments["n"], text(40)).repeat(tokens / 46 + 1);
        std::future::ready(Ok(ToolOutput { observation: lines, ..ToolOutput::default() })).boxed()
    }
}

/// Notes when the prefix is broken, and sends messages to the turn from time to time.
pub struct Watching(pub Shared);

impl EventSink for Watching {
    fn emit(&mut self, event: &Event) -> std::io::Result<()> {
        if matches!(event.kind, EventKind::ContextCompressed(_)) {
            self.0.with(|stage| stage.broken = true);
        }
        self.0.with(|stage| stage.watch(&event.kind));
        Ok(())
    }
}
