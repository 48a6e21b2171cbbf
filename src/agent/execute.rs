//! Runs one call: starts, times, bounds and ends it, whatever the tool does.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::secrets::Redacting;
use crate::base::text;
use crate::config::Permission;
use crate::conversation::event::EventKind;
use crate::conversation::message::{CallStatus, ToolCall};
use crate::safety::{Enclosure, Reach, Refused};
use crate::tools::{CallContext, Clocks, Keep, ModelAccess, Superior, Tool};

use super::clock::{Clock, calling_time};
use super::conversation::Shared;
use super::flights::{Flights, Slot};
use super::measure::{Measured, Moment, Stopwatch};
use super::prepare::{CallPlan, Prepared, Ready, Standing};
use super::request::CallRequests;
use super::superior::{CallerTerms, Desk};
use super::{Agent, Emitter, Terms, retry};

/// The surroundings that all calls of a step share.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub agent: &'a Agent,
    pub shared: &'a Shared,
    pub emitter: &'a Arc<Emitter>,
    pub clock: &'a Clock,
    pub flights: &'a Arc<Flights>,
    /// The terms of helpers in this step.
    pub helpers: &'a Arc<CallerTerms>,
    /// The most tokens that one result of this step may have.
    pub result_tokens: usize,
}

/// The part of a call that is the same in each of its runs.
pub(super) struct Carried<'a> {
    pub call: Cow<'a, ToolCall>,
    pub slot: Slot,
    pub arguments: Value,
    /// The outside source whose content the result introduces, if any.
    pub brings: Option<String>,
    /// Values for a command, by the names of their variables.
    pub variables: Vec<(String, String)>,
    /// The command line that a person wrote in place of the model's.
    pub edited: Option<String>,
}

/// A finished call, however it ended.
pub(super) struct Finished<'a> {
    pub carried: Carried<'a>,
    /// True if the result may direct the model.
    pub trusted: bool,
    pub status: CallStatus,
    pub output: ToolOutput,
    pub measured: Measured,
    /// Set if the sandbox may have stopped it.
    pub refused: Option<Refused>,
    /// True if it was restricted to reading.
    pub only_read: bool,
    /// A promised guarantee that is unavailable, if any; it ends the turn.
    pub unavailable: Option<String>,
}

/// The tool of a call, its terms, and the files that it may open.
type Means<'a> = (&'a dyn Tool, &'a Terms, Arc<Reach>);

impl<'a> Prepared<'a> {
    /// Runs the call without asking again.
    pub(super) async fn run(self, place: Place<'_>) -> Finished<'a> {
        let Self { call, slot, taken_up, variables, plan, edited } = self;
        let ready = match plan {
            CallPlan::Run(ready) => ready,
            CallPlan::Refuse { arguments, why } => {
                place.emitter.notify(started(&call, String::new(), arguments.clone()));
                place.flights.announce(slot);
                return Finished::without_run((call, slot), taken_up, arguments, CallStatus::Error, &why);
            }
        };
        announce(place, (&call, slot), ready.tool, &ready.arguments);
        let Ready { tool, terms, arguments, brings, standing, reach, verdict, .. } = ready;
        let carried = Carried { call, slot, arguments, brings, variables, edited };
        carried.run(place, taken_up, (tool, terms, reach), standing, verdict.enclosure()).await
    }
}

impl<'a> Finished<'a> {
    /// Runs the call again with fewer restrictions, as a person allowed.
    pub(super) async fn again(self, place: Place<'_>, means: Means<'a>, enclosure: Enclosure) -> Self {
        let mut carried = self.carried;
        if enclosure == Enclosure::Outside {
            let (name, subject) = (&carried.call.name, text::one_line(&means.0.subject(&carried.arguments), 80));
            let outside = format!("the output of {name} `{subject}`, which ran outside of the sandbox,");
            carried.brings = Some(outside);
        }
        // Only a command runs again, and a command begins no run.
        carried.run(place, Moment::now(), means, Standing::default(), enclosure).await
    }

    /// A call whose tool did not run; `why` is the program's own text.
    pub(super) fn without_run(
        (call, slot): (Cow<'a, ToolCall>, Slot),
        taken_up: Moment,
        arguments: Value,
        status: CallStatus,
        why: &str,
    ) -> Self {
        let (brings, variables, edited) = (None, Vec::new(), None);
        Self {
            carried: Carried { call, slot, arguments, brings, variables, edited },
            trusted: true,
            status,
            output: reason(why),
            measured: Measured::not_run(taken_up),
            refused: None,
            only_read: false,
            unavailable: None,
        }
    }
}

/// An output that consists of a reason only.
fn reason(why: &str) -> ToolOutput {
    ToolOutput { summary: text::one_line(why, 120), observation: why.to_owned(), ..ToolOutput::default() }
}

impl<'a> Carried<'a> {
    /// Runs the tool to its end.
    async fn run(
        self,
        place: Place<'_>,
        taken_up: Moment,
        (tool, terms, reach): Means<'a>,
        standing: Standing,
        enclosure: Enclosure,
    ) -> Finished<'a> {
        let Self { call, slot, arguments, brings, variables, edited } = self;
        let Place { agent, emitter, flights, .. } = place;
        flights.run(slot);
        let redacting = Mutex::new(Redacting::new(&agent.redactor));
        let live = |chunk: &str| {
            let chunk = redacting.lock().expect("redacting never panics").push(chunk);
            if !chunk.is_empty() {
                flights.output(slot, &chunk);
                emitter.notify(EventKind::ToolOutput { call_id: call.id.clone(), chunk });
            }
        };
        let notify = |kind: EventKind| emitter.notify(kind);
        let refused = Mutex::new(None);
        let desk = OnceLock::new();
        let superior = || {
            let desk = desk.get_or_init(|| Arc::new(place.desk(slot, standing.clone())));
            Arc::clone(desk) as Arc<dyn Superior>
        };
        let account = || flights.account(slot, &place.helpers.ledger);
        let step = place.helpers.ledger.own_steps();
        let models = CallRequests { ledger: &account, emitter, step };
        let context = CallContext {
            enclosure,
            variables: &variables,
            live: &live,
            refused: &|how| *refused.lock().expect("storing never panics") = Some(how),
            notify: &notify,
            superior: &superior,
            ..place.context(tool, terms, (&arguments, &reach), &models)
        };
        let stopwatch = Stopwatch::start(tool);
        let only_read = enclosure == Enclosure::Read;
        let may_change = tool.definition().permission != Permission::Read && !only_read;
        let (outcome, retries) = {
            let _paused = may_change.then(|| agent.jobs.pause_guard());
            persistent(tool, &arguments, context).await
        };
        let failure = outcome.as_ref().err().map(|error| error.kind);
        let mut measured = Measured::ran(taken_up, stopwatch, failure);
        measured.retries = retries;
        let refused = refused.into_inner().expect("storing never panics");
        // A call refused for its arguments returns only our own words.
        let ran = !matches!(failure, Some(ToolErrorKind::Parameter | ToolErrorKind::Unavailable));
        let (status, output, unavailable) = match outcome {
            Ok(output) => (CallStatus::Ok, output, None),
            Err(error) => {
                let timed_out = error.kind == ToolErrorKind::Timeout;
                let status = if timed_out { CallStatus::Timeout } else { CallStatus::Error };
                let unavailable = (error.kind == ToolErrorKind::Unavailable).then(|| error.message.clone());
                (status, reason(&told(error, retries)), unavailable)
            }
        };
        let brings = brings.filter(|_| ran).or_else(|| desk.get().and_then(|desk| desk.brought()));
        Finished {
            carried: Carried { call, slot, arguments, brings, variables, edited },
            // A tool's error may quote a file or a command.
            trusted: tool.trusted(),
            status,
            output,
            measured,
            refused,
            only_read,
            unavailable,
        }
    }
}

impl Place<'_> {
    /// The desk for a helper that a call starts.
    fn desk(&self, slot: Slot, standing: Standing) -> Desk {
        let Self { helpers, emitter, flights, clock, .. } = *self;
        Desk {
            terms: Arc::clone(helpers),
            emitter: Arc::clone(emitter),
            flights: Arc::clone(flights),
            slot,
            clock: clock.clone(),
            standing,
            brought: Mutex::default(),
        }
    }

    /// The context of a call whose effects nobody observes.
    fn context<'c>(
        &'c self,
        tool: &dyn Tool,
        terms: &Terms,
        (arguments, reach): (&Value, &'c Arc<Reach>),
        models: &'c dyn ModelAccess,
    ) -> CallContext<'c> {
        let agent = self.agent;
        let run = agent.limits.max_time.map(|most| calling_time(most).saturating_sub(self.clock.elapsed()));
        let keep = Keep { spill: &self.shared.spill, redactor: &agent.redactor };
        CallContext {
            workspace: &agent.workspace,
            reach,
            files: &self.shared.files,
            skills: &self.shared.skills,
            spill: &self.shared.spill,
            archive: self.shared.archive.as_ref(),
            timeout: tool.time_asked(arguments).or(terms.timeout).unwrap_or(agent.limits.tool_timeout),
            clocks: Clocks { most: agent.limits.max_tool_timeout, idle: agent.limits.tool_idle_timeout, run },
            max_tokens: terms.max_tokens.unwrap_or(self.result_tokens),
            live: &|_| {},
            keep: agent.tools.find("recall").ok().map(|_| keep),
            enclosure: Enclosure::Write,
            variables: &[],
            refused: &|_| {},
            models,
            notify: &|_| {},
            superior: &|| unreachable!("the context of a call that runs has its own"),
        }
    }
}

/// The text of a failure, for the model.
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

/// Makes the call, and retries it while that can help and is safe. Returns the number of retries.
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

/// Bounds a call in time. Tools normally keep their own time, since they can report partial results; this bound is
/// for those that do not.
async fn bounded(tool: &dyn Tool, arguments: Value, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
    const GRACE: Duration = Duration::from_secs(10);
    if tool.waits_for_person() || tool.is_run() {
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

/// Reports the start of a call to the observers.
pub(super) fn announce(place: Place<'_>, (call, slot): (&ToolCall, Slot), tool: &dyn Tool, arguments: &Value) {
    place.emitter.notify(started(call, tool.subject(arguments), arguments.clone()));
    place.flights.announce(slot);
}

/// The event for a call that begins.
pub(super) fn started(call: &ToolCall, subject: String, arguments: Value) -> EventKind {
    EventKind::ToolStarted { call_id: call.id.clone(), name: call.name.clone(), subject, arguments }
}
