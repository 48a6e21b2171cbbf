//! The events of a run for every observer: the terminal, `--output jsonl`, tests.
//!
//! The serde form of [`Event`] *is* the JSONL interface; nothing translates it. Readers ignore types and fields
//! that they do not know, so adding is free and renaming is not.

pub mod plan;
mod request;
mod telemetry;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::image::Image;
pub use request::{RequestFinished, RequestStatus};
pub use telemetry::CallTelemetry;

use plan::{PlanCreated, Reflection, Routed, StepFinished, StepStarted};

use crate::conversation::message::{
    Author, CallAnswer, CallStatus, FinishReason, Step, ToolCall, Usage, UserText,
};

/// The version of the event format, `v` in every event.
pub const EVENT_VERSION: u32 = 1;

/// One event with its envelope.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    pub v: u32,
    #[serde(flatten)]
    pub kind: EventKind,
    /// Counts from 0 within a run, without gaps.
    pub seq: u64,
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    /// The session in which it happened: for a helper's event, the helper's own.
    pub session_id: String,
    pub run_id: String,
    /// The helpers in which it happened, outermost first, each with a name such as `explore#2`; empty for the run
    /// itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

/// The kind of an event, with its data.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum EventKind {
    /// Always the first event.
    #[serde(rename = "run.started")]
    RunStarted(RunStarted),
    /// A person, or the caller of the program, sent a message.
    #[serde(rename = "turn.started")]
    TurnStarted { input: String },
    /// A request to the model begins.
    #[serde(rename = "request.started")]
    RequestStarted {
        step: u64,
        messages: usize,
        /// An estimate: bytes of the request over four.
        input_tokens: u64,
        /// The number of leading tokens that are the same as in the previous request.
        prefix_tokens: u64,
    },
    /// A request to a model ended, whatever became of it and whoever sent it.
    #[serde(rename = "request.finished")]
    RequestFinished(RequestFinished),
    /// A piece of the text of a reply.
    #[serde(rename = "text.delta")]
    TextDelta { text: String },
    /// A piece of the model's reasoning.
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta { text: String },
    /// A message entered the conversation. System prompts are not emitted.
    Message(EventMessage),
    /// The first event of a call, whether it runs or is refused.
    #[serde(rename = "tool.started")]
    ToolStarted {
        call_id: String,
        name: String,
        arguments: serde_json::Value,
        /// The subject of the call, in a few words for a person: `src/main.rs`, `cargo test`.
        subject: String,
    },
    /// Live output of a running command.
    #[serde(rename = "tool.output")]
    ToolOutput { call_id: String, chunk: String },
    /// A call was answered. Its answer is the `message` that follows.
    #[serde(rename = "tool.finished")]
    ToolFinished {
        call_id: String,
        name: String,
        status: CallStatus,
        summary: String,
        telemetry: CallTelemetry,
        truncated: bool,
        /// The id by which `recall` reads the left-out text.
        #[serde(skip_serializing_if = "Option::is_none")]
        spill_id: Option<String>,
    },
    /// A call needs permission to run.
    #[serde(rename = "permission.requested")]
    PermissionRequested { call_id: String, name: String, why: String },
    /// A permission question was answered.
    #[serde(rename = "permission.resolved")]
    PermissionResolved { call_id: String, name: String, verdict: PermissionVerdict, by: DecidedBy },
    /// A skill's instructions are part of the conversation.
    #[serde(rename = "skill.loaded")]
    SkillLoaded { name: String, path: String, tokens: u64 },
    /// A skill's instructions are no longer part of the conversation.
    #[serde(rename = "skill.unloaded")]
    SkillUnloaded { name: String, path: String, tokens: u64 },
    /// A file of a skill was read.
    #[serde(rename = "skill.referenced")]
    SkillReferenced { name: String, path: String, tokens: u64 },
    /// A compression of the conversation begins; it may need a request to the model.
    #[serde(rename = "context.compressing")]
    ContextCompressing {
        reason: CompressionReason,
        /// The size of the request that was due.
        tokens: u64,
    },
    /// A compression ended: fewer tokens of the conversation are sent from now on.
    #[serde(rename = "context.compressed")]
    ContextCompressed(Compressed),
    /// A role is asked beside the conversation: the router, the planner, the executor, the reflector.
    #[serde(rename = "role.started")]
    RoleStarted {
        role: String,
        model: String,
        /// An estimate.
        input_tokens: u64,
    },
    /// A role replied. Its reply follows as a separate event if it is valid.
    #[serde(rename = "role.replied")]
    RoleReplied {
        role: String,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// The router chose a target for the request, or none.
    #[serde(rename = "route.decided")]
    RouteDecided(Routed),
    /// A plan was made: the first of a request, or a new one.
    #[serde(rename = "plan.created")]
    PlanCreated(PlanCreated),
    /// A step of a plan begins. Its call has separate events.
    #[serde(rename = "step.started")]
    StepStarted(StepStarted),
    /// A step of a plan ended.
    #[serde(rename = "step.finished")]
    StepFinished(StepFinished),
    /// The results of a plan were judged.
    Reflection(Reflection),
    /// Voids the deltas of this step so far: the request is sent again.
    Retry {
        /// The number of the next attempt; the first attempt of a step is 1.
        attempt: u32,
        /// The maximum number of attempts.
        attempts: u32,
        delay_ms: u64,
        cause: String,
    },
    /// Something is wrong, but the run continues.
    Warning { message: String },
    /// Always the last event, even after an error or a signal.
    #[serde(rename = "run.completed")]
    RunCompleted(RunCompleted),
}

/// A message as it entered the conversation: a user message, a reply, or the answer to a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum EventMessage {
    User {
        content: String,
        #[serde(skip_serializing_if = "Author::is_person")]
        author: Author,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    Assistant(Reply),
    Tool {
        call_id: String,
        name: String,
        content: String,
        status: CallStatus,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
}

/// One reply of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Reply {
    /// The visible text; empty if the reply consists only of calls.
    pub content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    /// USD by the model's prices; `None` if the prices are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// True if no model was asked: it is from a prompt, or a step of a plan.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
}

impl EventMessage {
    /// The message of a text in the person's place.
    pub fn from_user_text(said: &UserText) -> Self {
        let content = said.texts().collect::<Vec<_>>().join("\n\n");
        Self::User { content, author: said.author, images: said.images.clone() }
    }

    /// The message of a reply. The answers in its slots are separate messages.
    pub fn reply(step: &Step) -> Self {
        Self::Assistant(Reply {
            content: step.text(),
            reasoning: step.reasoning(),
            tool_calls: step.calls().map(|call| call.request.clone()).collect(),
            finish_reason: step.finish_reason,
            usage: step.usage,
            cost_usd: step.cost_usd,
            given: step.given,
        })
    }

    /// The message of an answer.
    pub fn answer(call: &ToolCall, answer: &CallAnswer) -> Self {
        Self::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: answer.content.clone(),
            status: answer.status,
            images: answer.images.clone(),
        }
    }
}

/// The start of a run: the agent, the workspace, the model and its surroundings.
#[derive(Debug, Clone, Serialize)]
pub struct RunStarted {
    pub cwd: String,
    pub agent: String,
    pub model: String,
    /// True when a script, not a model, writes the replies.
    pub scripted: bool,
    /// Who serves the model, by the names of OpenTelemetry.
    pub provider: String,
    pub prompts: Vec<PromptUsed>,
    pub tools: Vec<String>,
    pub limits: serde_json::Value,
    pub context: ContextSize,
}

/// A prompt that the run renders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptUsed {
    pub name: String,
    pub version: String,
    pub fingerprint: String,
}

impl std::fmt::Display for PromptUsed {
    /// Formats it as `system@v2.0#0123456789ab`; without a version for a prompt in a configuration.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = if self.version.is_empty() { "" } else { "@" };
        write!(f, "{}{at}{}#{}", self.name, self.version, self.fingerprint)
    }
}

/// The model's window in tokens, and the part of it that a request may use.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ContextSize {
    pub budget: u64,
    pub window: u64,
}

/// The effects of a compression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compressed {
    pub reason: CompressionReason,
    /// The configured name: `staged`, `summary`, `window`, `selective`.
    pub strategy: String,
    /// The size of the request that was due, including the tool definitions.
    pub tokens_before: u64,
    /// The size of the request that is sent instead.
    pub tokens_after: u64,
    /// The most tokens that a request may contain.
    pub budget: u64,
    /// Messages whose text was shortened.
    pub masked: usize,
    /// Messages that were replaced by a summary or a note.
    pub summarized: usize,
    /// Skills and files of skills whose text was removed.
    pub unloaded: usize,
    /// The tokens of the request for the summary.
    #[serde(default)]
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Compressed {
    /// True if the server refused what is left out; a warning tells a person.
    pub fn is_refusal(&self) -> bool {
        self.reason == CompressionReason::Refused
    }
}

/// The reason that a conversation was compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompressionReason {
    /// The next request would have passed `compress_at`.
    Threshold,
    /// A person asked for it.
    Manual,
    /// The server refused a request as too long.
    Overflow,
    /// The server refused a part of the conversation, which is left out.
    Refused,
}

/// The answer to a permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionVerdict {
    Allowed,
    Denied,
}

/// The source of the answer to a permission question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Person,
    /// Nobody was there to ask.
    Nobody,
    /// The approval mode.
    Policy,
    /// A rule of the configuration.
    Rule,
}

/// The end of a run. `--output json` prints only this.
#[derive(Debug, Clone, Serialize)]
pub struct RunCompleted {
    pub status: RunStatus,
    pub exit_code: u8,
    /// The reason of its end, in one sentence.
    pub reason: String,
    pub result: RunResult,
    /// The outputs of a flow, by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<serde_json::Value>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    /// Turns, steps and requests of the run with all its helpers, like tokens and cost.
    pub turns: u64,
    pub steps: u64,
    pub requests: u64,
    pub tool_calls: u64,
    pub denied: u64,
    pub duration_ms: u64,
}

/// The final answer of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RunResult {
    /// There is none.
    Missing,
    Text(String),
    /// Data under `--schema`, compact, its numbers as the model wrote them.
    Data(Box<RawValue>),
}

/// The state in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Completed,
    Limit,
    Error,
    Interrupted,
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;

    use serde_json::{Value, json};

    use super::plan::{
        Evaluation, PlanAuthor, PlanStep, ProgramCheck, Score, ScoreDecision, StepCheck, StepStatus,
    };
    use super::*;

    /// Objects with a table of their own.
    const SHARED: [&str; 2] = ["usage", "telemetry"];

    /// An event of every kind: with everything that may be absent, or without.
    #[expect(clippy::too_many_lines, reason = "one sample for each kind of event")]
    fn samples(full: bool) -> Vec<EventKind> {
        let text = || "x".to_owned();
        let name = || full.then(text);
        let cost_usd = full.then_some(0.1);
        let usage = Usage { cache_write_tokens: u64::from(full), cost_about: full, ..Usage::default() };
        let images =
            || if full { vec![Image { mime: text(), data: text(), ..Image::default() }] } else { Vec::new() };
        let call = ToolCall { id: text(), name: text(), arguments: text() };
        let score = || Score { score: 5, reason: text() };
        let reflection = |decision| {
            let evaluation = Evaluation { completeness: score(), correctness: score(), format: score() };
            EventKind::Reflection(Reflection { evaluation, overall_pass: true, decision, retries: 0 })
        };
        let planned = |check| {
            let step = PlanStep {
                step_id: 1,
                description: text(),
                tool_name: text(),
                check: Some(check).filter(|_| full),
                replaces: name(),
                ..PlanStep::default()
            };
            let kept = if full { vec![1] } else { Vec::new() };
            let (request, analysis) = (text(), text());
            let (author, steps) = (PlanAuthor::Planner, vec![step]);
            EventKind::PlanCreated(PlanCreated {
                request,
                revision: 1,
                analysis,
                author,
                approved: full,
                steps,
                kept,
            })
        };
        let telemetry = CallTelemetry {
            latency_ms: full.then_some(1.0),
            error_code: name(),
            error_message: name(),
            cpu_ms: full.then_some(1.0),
            peak_memory_bytes: full.then_some(1),
            metrics: full.then(|| ("NAME".to_owned(), 1.0)).into_iter().collect(),
            ..CallTelemetry::default()
        };
        let (call_id, tool) = (text, text);
        vec![
            EventKind::RunStarted(RunStarted {
                cwd: text(),
                agent: text(),
                model: text(),
                scripted: false,
                provider: text(),
                prompts: vec![PromptUsed { name: text(), version: text(), fingerprint: text() }],
                tools: vec![text()],
                limits: Value::Null,
                context: ContextSize { budget: 1, window: 1 },
            }),
            EventKind::TurnStarted { input: text() },
            EventKind::RequestStarted { step: 1, messages: 1, input_tokens: 1, prefix_tokens: 0 },
            EventKind::RequestFinished(RequestFinished {
                step: 1,
                attempt: 1,
                model: text(),
                provider: text(),
                role: text(),
                helper: name(),
                status: RequestStatus::Ok,
                finish_reason: full.then_some(FinishReason::Stop),
                usage,
                cost_usd,
                duration_ms: 1,
            }),
            EventKind::TextDelta { text: text() },
            EventKind::ReasoningDelta { text: text() },
            EventKind::Message(EventMessage::User {
                content: text(),
                author: if full { Author::Program } else { Author::Person },
                images: images(),
            }),
            EventKind::Message(EventMessage::Assistant(Reply {
                content: text(),
                reasoning: name().unwrap_or_default(),
                tool_calls: full.then_some(call).into_iter().collect(),
                finish_reason: FinishReason::Stop,
                usage,
                cost_usd,
                given: full,
            })),
            EventKind::Message(EventMessage::Tool {
                call_id: call_id(),
                name: tool(),
                content: text(),
                status: CallStatus::Ok,
                images: images(),
            }),
            EventKind::ToolStarted { call_id: call_id(), name: tool(), arguments: Value::Null, subject: text() },
            EventKind::ToolOutput { call_id: call_id(), chunk: text() },
            EventKind::ToolFinished {
                call_id: call_id(),
                name: tool(),
                status: CallStatus::Ok,
                summary: text(),
                telemetry,
                truncated: full,
                spill_id: name(),
            },
            EventKind::PermissionRequested { call_id: call_id(), name: tool(), why: text() },
            EventKind::PermissionResolved {
                call_id: call_id(),
                name: tool(),
                verdict: PermissionVerdict::Allowed,
                by: DecidedBy::Person,
            },
            EventKind::SkillLoaded { name: text(), path: text(), tokens: 1 },
            EventKind::SkillUnloaded { name: text(), path: text(), tokens: 1 },
            EventKind::SkillReferenced { name: text(), path: text(), tokens: 1 },
            EventKind::ContextCompressing { reason: CompressionReason::Manual, tokens: 1 },
            EventKind::ContextCompressed(Compressed {
                reason: CompressionReason::Manual,
                strategy: text(),
                tokens_before: 2,
                tokens_after: 1,
                budget: 2,
                masked: 0,
                summarized: 0,
                unloaded: 0,
                usage,
                cost_usd,
            }),
            EventKind::RoleStarted { role: text(), model: text(), input_tokens: 1 },
            EventKind::RoleReplied { role: text(), usage, cost_usd },
            EventKind::RouteDecided(Routed { kind: text(), name: text(), reasoning: text(), confidence: 1.0 }),
            planned(StepCheck::Command(text())),
            planned(StepCheck::File(text())),
            planned(StepCheck::Schema(Value::Null)),
            EventKind::StepStarted(StepStarted {
                step_id: 1,
                name: name(),
                attempt: 1,
                tool_name: tool(),
                description: text(),
            }),
            EventKind::StepFinished(StepFinished {
                step_id: 1,
                name: name(),
                attempt: 1,
                status: StepStatus::Ok,
                summary: text(),
                check: full.then(|| ProgramCheck { passed: true, detail: text() }),
                duration_ms: 1,
                cut: full,
                result: if full { json!(1) } else { Value::Null },
            }),
            reflection(ScoreDecision::Accept),
            reflection(ScoreDecision::RetryStep { step_id: 1, modification: text() }),
            reflection(ScoreDecision::Replan { modification: text() }),
            reflection(ScoreDecision::Escalate { why: text() }),
            EventKind::Retry { attempt: 2, attempts: 5, delay_ms: 1, cause: text() },
            EventKind::Warning { message: text() },
            EventKind::RunCompleted(RunCompleted {
                status: RunStatus::Completed,
                exit_code: 0,
                reason: text(),
                result: RunResult::Missing,
                outputs: full.then_some(Value::Null),
                usage,
                cost_usd,
                turns: 1,
                steps: 1,
                requests: 1,
                tool_calls: 0,
                denied: 0,
                duration_ms: 1,
            }),
        ]
    }

    /// The fields of an object, those of objects in it with dots.
    fn fields(value: &Value, above: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
                    let is_shared = SHARED.contains(&key.as_str());
                    fields(if is_shared { &Value::Null } else { value }, &path, found);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                for item in items {
                    fields(item, &format!("{above}[]"), found);
                }
            }
            _ => {
                found.insert(above.to_owned());
            }
        }
    }

    /// The rows of the page: the fields of each event, with `?` where they may be absent.
    fn written() -> BTreeMap<String, BTreeSet<String>> {
        type Samples = Vec<BTreeSet<String>>;
        fn note(name: &str, value: &Value, all: &mut BTreeMap<String, Samples>) {
            let mut found = BTreeSet::new();
            fields(value, "", &mut found);
            all.entry(name.to_owned()).or_default().push(found);
        }
        let mut all: BTreeMap<String, Samples> = BTreeMap::new();
        for full in [true, false] {
            for kind in samples(full) {
                let envelope = Event {
                    v: EVENT_VERSION,
                    kind,
                    seq: 0,
                    time: String::new(),
                    session_id: String::new(),
                    run_id: String::new(),
                    path: full.then(String::new).into_iter().collect(),
                };
                let mut kind = serde_json::to_value(&envelope.kind).expect("it is data");
                let mut around = serde_json::to_value(&envelope).expect("it is data");
                let of_kind = kind.as_object_mut().expect("an object");
                around
                    .as_object_mut()
                    .expect("an object")
                    .retain(|key, _| key == "type" || !of_kind.contains_key(key));
                note("every event", &around, &mut all);
                let name = of_kind.shift_remove("type").expect("it has a type");
                let name = name.as_str().unwrap_or_default().to_owned();
                let role = of_kind.get("role").and_then(Value::as_str).filter(|_| name == "message");
                let name = role.map_or(format!("`{name}`"), |role| format!("`{name}` ({role})"));
                note(&name, &kind, &mut all);
                for shared in SHARED {
                    if let Some(value) = kind.get(shared) {
                        note(&format!("`{shared}`"), value, &mut all);
                    }
                }
            }
        }
        let rows = |samples: &Samples| {
            let every: BTreeSet<&String> = samples.iter().flatten().collect();
            let is_always = |field: &&String| samples.iter().all(|sample| sample.contains(*field));
            every.iter().map(|field| format!("{field}{}", if is_always(field) { "" } else { "?" })).collect()
        };
        all.iter().map(|(name, samples)| (name.clone(), rows(samples))).collect()
    }

    /// The same, as docs/events.md has it.
    fn documented() -> BTreeMap<String, BTreeSet<String>> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events.md");
        let page = fs::read_to_string(page).expect("the page is there");
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut event = String::new();
        for line in page.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let ["", name, field, ..] = cells[..] else { continue };
            if let Some(field) = field.strip_prefix('`').and_then(|field| field.strip_suffix('`')) {
                event = if name.is_empty() { event } else { name.to_owned() };
                assert!(all.entry(event.clone()).or_default().insert(field.to_owned()), "twice: {line}");
            }
        }
        all
    }

    #[test]
    fn the_page_about_events_lists_every_field() {
        let (written, documented) = (written(), documented());
        for name in written.keys().chain(documented.keys()) {
            assert_eq!(documented.get(name), written.get(name), "{name} in docs/events.md, and as it is written");
        }
    }

    #[test]
    fn every_kind_of_event_has_a_sample() {
        let source = include_str!("event.rs");
        let (_, kinds) = source.split_once("pub enum EventKind {").expect("the kinds are here");
        let (kinds, _) = kinds.split_once("\n}").expect("the enum ends");
        let renamed = kinds.split("#[serde(rename = \"").skip(1).filter_map(|rest| rest.split('"').next());
        let written = written();
        for name in renamed {
            let is_there = written.keys().any(|key| key.starts_with(&format!("`{name}`")));
            assert!(is_there, "{name} needs a sample in this test, and rows in docs/events.md");
        }
    }
}
