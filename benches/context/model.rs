//! A model that follows the plan of the work. When a step rests on a fact that it does not see, it asks `recall` for
//! it, and makes the call again that brought it in if that does not help either.
//!
//! Its summaries are faithful and lossy: the decisions, save for one in twenty; one figure in eight; the errors of the
//! last failures; a few words on what was done.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use agent::facade::agent::window;
use agent::facade::base::{ToolError, ToolOutput};
use agent::facade::base::{text, tokens};
use agent::facade::conversation::message::{
    Author, CallStatus, FinishReason, Item, ReplyPart, ToolCall, Usage, UserText,
};
use agent::facade::model::{
    ChatModel, Delta, ModelError, ModelInfo, ModelRequest, ReplyEnd, ReplyStream, ToolDefinition,
};
use agent::facade::tools::{CallContext, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::figures::{Figures, Kept, holds};
use crate::workload::{Call, Workload};

/// The first words of the prompt that asks for a summary.
const ASKS_FOR_SUMMARY: &str = "The conversation is about to be shortened";

/// The state that the model, its command and the sink share.
pub struct Play {
    pub work: Workload,
    pub state: Mutex<State>,
    /// The time that the model took, in nanoseconds.
    pub thinking: AtomicU64,
}

#[derive(Default)]
pub struct State {
    pub figures: Figures,
    /// The number of steps that were taken.
    pub taken: usize,
    /// A compression has happened since the last request.
    pub compressed: bool,
    /// The texts that `recall` searches.
    pub kept: Kept,
    /// The fact that was asked for with the last reply.
    asked: Option<usize>,
    /// True if the step that comes has asked for what it needs.
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

    fn reply(&self, request: ModelRequest<'_>) -> Reply {
        let mut state = self.state();
        let (input_tokens, cached_input_tokens) = state.figures.request(request);
        let (words, calls) = if let Some(asked) = request.aside {
            assert!(asked.starts_with(ASKS_FOR_SUMMARY), "{asked}");
            state.figures.summaries += 1;
            (summary(request.items, allowed(asked)), Vec::new())
        } else {
            let (taken, kept) = (state.taken, state.kept.clone());
            state.figures.learn(request.items, &self.work.facts, taken, &kept);
            if std::mem::take(&mut state.compressed) {
                state.figures.check(request.items, &self.work.facts, &kept);
            }
            self.step(&mut state, request.items)
        };
        let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
        let usage = Usage {
            input_tokens,
            cached_input_tokens,
            output_tokens: tokens::estimate_tokens(&words),
            ..Usage::default()
        };
        let text = ReplyPart::Text { text: words.clone(), opaque: None };
        let call = |request| {
            ReplyPart::Call(agent::facade::conversation::message::Call { request, opaque: None, answer: None })
        };
        let parts = std::iter::once(text).chain(calls.into_iter().map(call)).collect();
        Reply { words: Some(words), end: Some(ReplyEnd { parts, finish, usage, cost_usd: None, streamed: true }) }
    }

    fn step(&self, state: &mut State, items: &[Item]) -> (String, Vec<ToolCall>) {
        let facts = &self.work.facts;
        if let Some(fact) = state.asked.take().map(|fact| &facts[fact])
            && !holds(items, &fact.text)
        {
            state.figures.repeats += 1;
            let (step, at) = fact.source.expect("only what a call brought in is needed");
            state.running = step;
            return ("I look at it once more.".to_owned(), vec![called(state, &self.work.steps[step].calls[at])]);
        }
        let step = &self.work.steps[state.taken];
        if let Some(need) = step.needs
            && state.figures.knows(need)
            && !std::mem::replace(&mut state.has_asked, true)
            && !holds(items, &facts[need].text)
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

/// The tokens that a summary may have, as the model is told.
fn allowed(prompt: &str) -> usize {
    let (_, rest) = prompt.split_once("Use at most ").expect("the prompt says how much");
    rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

/// A summary in the form that is asked for, of so many tokens at most. Decisions come first.
fn summary(items: &[Item], tokens: usize) -> String {
    const BYTES_PER_TOKEN: usize = 4;
    let (mut decisions, mut done, mut errors, mut task) = (Vec::new(), Vec::new(), Vec::new(), "");
    for item in items {
        match item {
            Item::Summary(summary) => {
                let part = |name: &str| {
                    let rest = summary.body.split_once(&format!("## {name}\n")).map_or("", |(_, rest)| rest);
                    let lines = rest.lines().take_while(|line| !line.starts_with('#'));
                    lines.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect::<Vec<_>>()
                };
                decisions.extend(part("Decisions"));
                done.extend(part("Done"));
            }
            Item::Said(UserText { text, author: Author::Person, .. }) => {
                task = text.lines().next().unwrap_or_default();
            }
            Item::Said(_) => {}
            Item::Step(step) => {
                let words = step.text();
                let said = words.lines().filter(|line| line.starts_with("Decision: "));
                decisions.extend(said.filter(|line| !is_forgotten(line, 20)).map(str::to_owned));
                done.push(text::take_head(words.lines().next().unwrap_or_default(), 80).to_owned());
                for answer in step.calls().filter_map(|call| call.answer.as_ref()) {
                    let figures = answer.content.lines().filter(|line| line.contains("p99 of "));
                    done.extend(figures.filter(|line| is_forgotten(line, 8)).map(|line| line.trim().to_owned()));
                    if answer.status != CallStatus::Ok {
                        let lines = answer.content.lines().filter(|line| line.contains("error"));
                        errors.extend(lines.map(str::to_owned));
                    }
                }
            }
        }
    }
    // The headings, and what is said below the others.
    let mut room = (tokens * BYTES_PER_TOKEN).saturating_sub(280 + task.len());
    let mut newest = |lines: &[String], count: usize| {
        let fits = |line: &&String| {
            let fits = line.len() + 3 <= room;
            room -= if fits { line.len() + 3 } else { 0 };
            fits
        };
        let newest: Vec<&String> = lines.iter().rev().take(count).take_while(fits).collect();
        newest.iter().rev().fold(String::new(), |out, line| out + "- " + line + "\n")
    };
    let (decisions, errors, done) = (newest(&decisions, usize::MAX), newest(&errors, 3), newest(&done, 30));
    let mut out = String::new();
    for (part, _) in window::PARTS {
        let text = match part {
            "Goal" => &format!("- {task}\n"),
            "Constraints" => "- what the person demanded holds as they said it\n",
            "Decisions" => &decisions,
            "Done" => &done,
            "Open errors" => &errors,
            _ => "none\n",
        };
        let _ = write!(out, "## {part}\n{text}\n");
    }
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
}

impl ChatModel for Planned {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        let begun = Instant::now();
        let reply: Box<dyn ReplyStream> = Box::new(self.play.reply(request));
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.play.thinking.fetch_add(took, Ordering::Relaxed);
        std::future::ready(Ok(reply)).boxed()
    }

    fn preview(&self, _request: ModelRequest<'_>) -> Value {
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

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let mut state = self.play.state();
        state.kept.spill.get_or_insert_with(|| Arc::clone(context.spill));
        let running = state.running;
        drop(state);
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
