//! Running one call: started, timed, bounded, ended, whatever the tool does.

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::config::Redacting;
use crate::contract::{CallContext, Clocks, Keep, Permission, Tool};
use crate::event::EventKind;
use crate::message::{CallStatus, ToolCall, ToolMessage, Usage};
use crate::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::present;
use crate::text;

use super::clock::{Clock, calling_time};
use super::measure::{self, Measured, Moment, Stopwatch};
use super::prepare::{Plan, Prepared};
use super::{Agent, Emitter, Terms, retry};

/// What every call of a turn runs in.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub agent: &'a Agent,
    pub emitter: &'a Emitter,
    pub clock: &'a Clock,
}

/// A call that ended, whichever way.
pub(super) struct Finished<'a> {
    pub call: Cow<'a, ToolCall>,
    /// Whether what came may direct the model.
    pub trusted: bool,
    pub arguments: Value,
    pub status: CallStatus,
    pub output: ToolOutput,
    pub measured: Measured,
    /// Tokens that it spent on asking the model.
    pub spent: Usage,
    /// The sandbox may have kept it from working.
    pub refused: bool,
    /// What of the outside its result brings in.
    pub brings: Option<String>,
    /// What the run was promised and is not to be had.
    pub unavailable: Option<String>,
}

impl<'a> Prepared<'a> {
    /// Runs the call without asking any more.
    pub(super) async fn run(self, place: Place<'_>) -> Finished<'a> {
        let Self { call, taken_up, plan } = self;
        let (tool, terms, arguments, brings) = match plan {
            Plan::Run { tool, terms, arguments, brings, .. } => (tool, terms, arguments, brings),
            Plan::Refuse { arguments, why } => {
                place.emitter.notify(started(&call, String::new(), arguments.clone()));
                return Finished::failed(call, taken_up, arguments, CallStatus::Error, why);
            }
        };
        announce(place.emitter, &call, tool, &arguments);
        execute(place, (call, taken_up), (tool, terms), arguments, (brings, false)).await
    }
}

impl<'a> Finished<'a> {
    /// Runs the call once more, outside of the sandbox, as a person allowed.
    pub(super) async fn again_outside(self, place: Place<'_>, tool: (&dyn Tool, &Terms)) -> Self {
        let (name, subject) = (&self.call.name, text::one_line(&tool.0.subject(&self.arguments), 80));
        let brings = format!("the output of {name} `{subject}`, which ran outside of the sandbox,");
        let outside = (Some(brings), true);
        execute(place, (self.call, Moment::now()), tool, self.arguments, outside).await
    }

    /// A call that gave nothing but a reason, in our own words.
    pub(super) fn failed(
        call: Cow<'a, ToolCall>,
        taken_up: Moment,
        arguments: Value,
        status: CallStatus,
        why: String,
    ) -> Self {
        let output = ToolOutput {
            result: Value::Null,
            summary: text::one_line(&why, 120),
            // It may quote a path or a name that was put there to be quoted.
            observation: present::neutralise(&why).into_owned(),
            truncated: false,
            ..ToolOutput::default()
        };
        let measured = Measured::not_run(taken_up);
        Self {
            call,
            trusted: true,
            arguments,
            status,
            output,
            measured,
            spent: Usage::default(),
            refused: false,
            brings: None,
            unavailable: None,
        }
    }
}

async fn execute<'a>(
    Place { agent, emitter, clock }: Place<'_>,
    (call, taken_up): (Cow<'a, ToolCall>, Moment),
    (tool, terms): (&dyn Tool, &Terms),
    arguments: Value,
    (brings, unconfined): (Option<String>, bool),
) -> Finished<'a> {
    let redacting = Mutex::new(Redacting::new(&agent.redactor));
    let live = |chunk: &str| {
        let chunk = redacting.lock().expect("redacting never panics").push(chunk);
        if !chunk.is_empty() {
            emitter.notify(EventKind::ToolOutput { call_id: call.id.clone(), chunk });
        }
    };
    let notify = |kind: EventKind| emitter.notify(kind);
    let refused = AtomicBool::new(false);
    let spent = Mutex::new(Usage::default());
    let context = CallContext {
        workspace: &agent.workspace,
        timeout: tool.time_asked(&arguments).or(terms.timeout).unwrap_or(agent.limits.tool_timeout),
        clocks: Clocks {
            most: agent.limits.max_tool_timeout,
            idle: agent.limits.tool_idle_timeout,
            run: agent.limits.max_time.map(|most| calling_time(most).saturating_sub(clock.elapsed())),
        },
        max_tokens: terms.max_tokens.unwrap_or(agent.context.tool_result_max_tokens),
        live: &live,
        keep: agent.tools.find("recall").ok().map(|_| Keep { spill: &agent.spill, redactor: &agent.redactor }),
        unconfined,
        refused: &|| refused.store(true, Ordering::Relaxed),
        spent: &|usage| *spent.lock().expect("adding never panics") += usage,
        notify: &notify,
    };
    let stopwatch = Stopwatch::start(tool);
    let may_change = tool.permission(&arguments, &agent.workspace) != Permission::Read;
    let (outcome, retries) = {
        let _paused = may_change.then(|| agent.jobs.pause_guard());
        persistent(tool, &arguments, context).await
    };
    let failure = outcome.as_ref().err().map(|error| error.kind);
    let mut measured = Measured::ran(taken_up, stopwatch, failure);
    measured.retries = retries;
    let refused = refused.into_inner();
    let spent = spent.into_inner().expect("adding never panics");
    // A call that was refused for its arguments tells nothing but our own words.
    let ran = !matches!(failure, Some(ToolErrorKind::Parameter | ToolErrorKind::Unavailable));
    let brings = brings.filter(|_| ran);
    // A tool's error may quote a file or a command.
    let trusted = tool.trusted();
    let finished = match outcome {
        Ok(output) => {
            let ended = Finished::failed(call, taken_up, arguments, CallStatus::Ok, String::new());
            Finished { output, ..ended }
        }
        Err(error) => {
            let status = match error.kind {
                ToolErrorKind::Timeout => CallStatus::Timeout,
                _ => CallStatus::Error,
            };
            let unavailable = (error.kind == ToolErrorKind::Unavailable).then(|| error.message.clone());
            let ended = Finished::failed(call, taken_up, arguments, status, told(error, retries));
            Finished { unavailable, ..ended }
        }
    };
    Finished { trusted, measured, spent, refused, brings, ..finished }
}

/// What the model reads of a failure.
fn told(error: ToolError, retries: u32) -> String {
    let ToolError { kind, message } = error;
    match (kind, retries) {
        (ToolErrorKind::Transient, 0) => format!("{message}\n[the same call may succeed later]"),
        (ToolErrorKind::Transient, retries) => {
            format!("{message}\n[tried {} times; the same call may succeed later]", retries + 1)
        }
        _ => message,
    }
}

/// Makes the call, and makes it again while that can help and does nothing twice. How often it was made again.
async fn persistent(
    tool: &dyn Tool,
    arguments: &Value,
    context: CallContext<'_>,
) -> (Result<ToolOutput, ToolError>, u32) {
    let start = Instant::now();
    let mut retries = 0;
    loop {
        let outcome = bounded(tool, arguments.clone(), context).await;
        let failure = match &outcome {
            Err(error) => error.kind,
            Ok(_) => return (outcome, retries),
        };
        let left = context.timeout.saturating_sub(start.elapsed());
        let Some(delay) = retry::of_call(failure, tool.idempotent(), retries, left, fastrand::f64()) else {
            return (outcome, retries);
        };
        tokio::time::sleep(delay).await;
        retries += 1;
    }
}

/// Tools keep their own time, as they know what to say of what was seen until then. This bound is for one that
/// does not.
async fn bounded(tool: &dyn Tool, arguments: Value, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
    const GRACE: Duration = Duration::from_secs(10);
    if tool.waits_for_person() {
        return tool.call(arguments, context).await;
    }
    match tokio::time::timeout(context.timeout + GRACE, tool.call(arguments, context)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let limit = crate::config::format_duration(context.timeout);
            Err(ToolError::new(
                ToolErrorKind::Timeout,
                format!("The call took longer than {limit} and was stopped."),
            ))
        }
    }
}

/// Tells whoever watches that a call begins.
pub(super) fn announce(emitter: &Emitter, call: &ToolCall, tool: &dyn Tool, arguments: &Value) {
    emitter.notify(started(call, tool.subject(arguments), arguments.clone()));
}

fn started(call: &ToolCall, subject: String, arguments: Value) -> EventKind {
    EventKind::ToolStarted { call_id: call.id.clone(), name: call.name.clone(), subject, arguments }
}

/// The event for a call that was answered by settling the turn.
pub(super) fn cancelled(answer: &ToolMessage) -> EventKind {
    EventKind::ToolFinished {
        call_id: answer.call_id.clone(),
        name: answer.name.clone(),
        status: answer.status,
        summary: "cancelled".to_owned(),
        telemetry: measure::cancelled(&answer.name),
        truncated: false,
        spill_id: None,
    }
}
