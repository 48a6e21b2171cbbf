//! A model that follows the plan of the work. When a step rests on a fact that it does not see, it asks `recall` for
//! it, and makes the call again that brought it in if that does not help either.
//!
//! Its summaries are faithful and lossy: the decisions, save for one in twenty; one figure in eight; the errors of the
//! last failures; a few words on what was done.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use agent::contract::{
    CallContext, ChatModel, Delta, ModelError, ModelInfo, ReplyEnd, ReplyStream, Request, Tool, ToolDefinition,
};
use agent::message::{CallStatus, FinishReason, Message, Origin, ToolCall, Usage};
use agent::output::{ToolError, ToolOutput};
use agent::spill::Spill;
use agent::{context, text, tokens};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::figures::{Figures, holds};
use crate::workload::{Call, Workload};

/// The first words of the prompt that asks for a summary.
const ASKS_FOR_SUMMARY: &str = "The conversation is about to be shortened";

/// What the model, its command and the sink share.
pub struct Play {
    pub work: Workload,
    pub state: Mutex<State>,
    /// The time that the model took, in nanoseconds.
    pub thinking: AtomicU64,
}

#[derive(Default)]
pub struct State {
    pub figures: Figures,
    /// How many steps were taken.
    pub taken: usize,
    /// A compression has happened since the last request.
    pub compressed: bool,
    /// The fact that was asked for with the last reply.
    asked: Option<usize>,
    /// Whether the step that comes has asked for what it needs.
    has_asked: bool,
    /// The step whose commands run.
    running: usize,
    calls: u64,
}

impl Play {
    pub fn new(work: Workload) -> Arc<Self> {
        Arc::new(Self { work, state: Mutex::default(), thinking: AtomicU64::new(0) })
    }

    pub fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    fn reply(&self, request: Request<'_>, spill: &Spill) -> Reply {
        let mut state = self.state();
        let (input_tokens, cached_input_tokens) = state.figures.request(request);
        let last = request.messages.last().expect("there is a message");
        let (words, calls) = if last.content().starts_with(ASKS_FOR_SUMMARY) {
            state.figures.summaries += 1;
            (summary(request.messages), Vec::new())
        } else {
            if std::mem::take(&mut state.compressed) {
                let taken = state.taken;
                state.figures.check(request.messages, &self.work.facts, taken, spill);
            }
            self.step(&mut state, request.messages)
        };
        let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let usage = Usage {
            input_tokens,
            cached_input_tokens,
            output_tokens: tokens::estimate(&words),
            ..Usage::default()
        };
        Reply { words: Some(words), end: Some(ReplyEnd { tool_calls: calls, finish, usage }) }
    }

    fn step(&self, state: &mut State, messages: &[Message]) -> (String, Vec<ToolCall>) {
        let facts = &self.work.facts;
        if let Some(fact) = state.asked.take().map(|fact| &facts[fact])
            && !holds(messages, &fact.text)
        {
            state.figures.repeats += 1;
            let (step, at) = fact.source.expect("only what a call brought in is needed");
            state.running = step;
            return ("I look at it once more.".to_owned(), vec![called(state, &self.work.steps[step].calls[at])]);
        }
        let step = &self.work.steps[state.taken];
        if let Some(need) = step.needs
            && !std::mem::replace(&mut state.has_asked, true)
            && !holds(messages, &facts[need].text)
        {
            state.figures.recalls += 1;
            state.asked = Some(need);
            let query = json!({ "query": facts[need].key });
            let call = Call { name: "recall", arguments: query, output: String::new(), fails: false };
            return ("That was said before.".to_owned(), vec![called(state, &call)]);
        }
        state.has_asked = false;
        state.running = state.taken;
        state.taken += 1;
        let calls = step.calls.iter().map(|call| called(state, call)).collect();
        (step.words.clone(), calls)
    }
}

fn called(state: &mut State, call: &Call) -> ToolCall {
    state.calls += 1;
    let id = format!("call_{}", state.calls);
    ToolCall { id, name: call.name.to_owned(), arguments: call.arguments.to_string() }
}

/// A summary in the form that is asked for.
fn summary(messages: &[Message]) -> String {
    const MOST: usize = 12 * 1024;
    let (mut decisions, mut done, mut errors, mut task) = (Vec::new(), Vec::new(), Vec::new(), "");
    for message in messages {
        match message {
            Message::User { content, origin: Origin::Summary } => {
                let part = |name: &str| {
                    let rest = content.split_once(&format!("## {name}\n")).map_or("", |(_, rest)| rest);
                    let lines = rest.lines().take_while(|line| !line.starts_with('#'));
                    lines.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect::<Vec<_>>()
                };
                decisions.extend(part("Decisions"));
                done.extend(part("Done"));
            }
            Message::User { content, origin: Origin::Person } => task = content.lines().next().unwrap_or_default(),
            Message::Assistant(reply) => {
                let said = reply.content.lines().filter(|line| line.starts_with("Decision: "));
                decisions.extend(said.filter(|line| !is_forgotten(line, 20)).map(str::to_owned));
                done.push(text::head(reply.content.lines().next().unwrap_or_default(), 80).to_owned());
            }
            Message::Tool(answer) => {
                let figures = answer.content.lines().filter(|line| line.contains("p99 of "));
                done.extend(figures.filter(|line| is_forgotten(line, 8)).map(|line| line.trim().to_owned()));
                if answer.status != CallStatus::Ok {
                    errors.extend(answer.content.lines().filter(|line| line.contains("error")).map(str::to_owned));
                }
            }
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    let newest = |lines: &[String], count: usize| {
        let newest = &lines[lines.len().saturating_sub(count)..];
        newest.iter().fold(String::new(), |out, line| out + "- " + line + "\n")
    };
    let mut out = String::new();
    for (part, _) in context::PARTS {
        let text = match part {
            "Goal" => format!("- {task}\n"),
            "Constraints" => "- what the person demanded holds as they said it\n".to_owned(),
            "Decisions" => newest(&decisions, usize::MAX),
            "Done" => newest(&done, 30),
            "Open errors" => newest(&errors, 3),
            _ => "none\n".to_owned(),
        };
        let _ = write!(out, "## {part}\n{text}\n");
    }
    assert!(out.len() < MOST, "a summary of {} bytes", out.len());
    out
}

/// One line in `one_in`, the same one always.
fn is_forgotten(line: &str, one_in: u32) -> bool {
    line.bytes().map(u32::from).sum::<u32>().is_multiple_of(one_in)
}

/// The model.
pub struct Planned {
    pub info: ModelInfo,
    pub play: Arc<Play>,
    pub spill: Arc<Spill>,
}

impl ChatModel for Planned {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        let begun = Instant::now();
        let reply: Box<dyn ReplyStream> = Box::new(self.play.reply(request, &self.spill));
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.play.thinking.fetch_add(took, Ordering::Relaxed);
        std::future::ready(Ok(reply)).boxed()
    }

    fn preview(&self, _request: Request<'_>) -> Value {
        Value::Null
    }
}

struct Reply {
    words: Option<String>,
    end: Option<ReplyEnd>,
}

impl ReplyStream for Reply {
    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        let delta = match self.words.take() {
            Some(words) => Delta::Text(words),
            None => Delta::Finished(self.end.take().expect("nothing is asked of a reply that has ended")),
        };
        std::future::ready(Ok(delta)).boxed()
    }
}

/// `run_command` that prints what the plan says.
pub struct Command {
    pub definition: ToolDefinition,
    pub play: Arc<Play>,
}

impl Tool for Command {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn subject(&self, arguments: &Value) -> String {
        arguments["command"].as_str().unwrap_or_default().to_owned()
    }

    fn call<'a>(
        &'a self,
        given: Value,
        _context: CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let running = self.play.state().running;
        let mut calls = self.play.work.steps[running].calls.iter();
        let call = calls.find(|call| call.arguments == given).expect("only what is planned is called");
        let outcome = if call.fails {
            Err(ToolError::permanent(call.output.clone()))
        } else {
            Ok(ToolOutput { observation: call.output.clone(), ..ToolOutput::default() })
        };
        std::future::ready(outcome).boxed()
    }
}
