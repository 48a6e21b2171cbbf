//! Runs one call: starts, times, bounds and ends its tool, whatever the tool does.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::agent::clock::{PausableClock, calling_time};
use crate::agent::conversation::SharedConversation;
use crate::agent::live_calls::{CallSlot, LiveCalls};
use crate::agent::request::retry;
use crate::agent::window::Rates;
use crate::agent::{Agent, Emitter};
use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::secrets::Redacting;
use crate::base::text;
use crate::config::{Limits, Permission, ToolEffect};
use crate::conversation::event::EventKind;
use crate::conversation::message::ToolCall;
use crate::safety::process::ChildWatch;
use crate::safety::sandbox::Undone;
use crate::safety::{Approver, Enclosure, Refused};
use crate::tools::{AskPerson, CallContext, Clocks, Keep, Superior, Tool, describe_undone};

use super::end::{CallEnd, CallFailure};
use super::hooks;
use super::measure::{CallMeasurement, CallStart};
use super::prepare::{CallPlan, PreparedCall};
use super::superior::{CallerTerms, HelperLink, TrustState};

/// The services and limits that the calls of a step share with the turn that runs them.
pub(in crate::agent) struct CallServices<'a> {
    pub agent: &'a Agent,
    pub clock: PausableClock,
    pub shared: Arc<SharedConversation>,
    pub emitter: Arc<Emitter>,
    pub live: Arc<LiveCalls>,
    /// The terms of helpers in this step.
    pub helpers: Arc<CallerTerms>,
    pub limits: CallLimits,
}

/// The limits of the results of a step.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct CallLimits {
    /// The most tokens that the model reads of one result.
    pub shown_tokens: usize,
    /// The most tokens that a tool gives back: later steps of a plan refer to whole results.
    pub held_tokens: usize,
    /// What texts have in tokens.
    pub rates: Rates,
    /// True if a plan or a flow makes the calls: these are bounded, so repetition is not a loop.
    pub of_plan: bool,
}

/// The person, with the clocks that stop while they think.
struct WaitingPerson<'a> {
    approver: &'a dyn Approver,
    clocks: [PausableClock; 2],
}

impl AskPerson for WaitingPerson<'_> {
    fn ask(&self, question: String, choices: Vec<String>) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            let _pauses = self.clocks.each_ref().map(PausableClock::pause);
            if self.approver.present() { self.approver.answer(&question, &choices).await } else { None }
        })
    }
}

/// What became of a call, not yet shaped for the model.
pub(in crate::agent) struct CallOutcome<'a> {
    pub prepared: PreparedCall<'a>,
    pub end: CallEnd,
    pub output: ToolOutput,
    /// True if the result may direct the model.
    pub trusted: bool,
    /// Remarks of this program for the end of the result.
    pub remarks: Vec<String>,
    /// The outside source whose content the result introduces, if any.
    pub brings: Option<String>,
    pub(super) measured: CallMeasurement,
    /// Set if the sandbox may have stopped it.
    pub refused: Option<Refused>,
    /// True if it was restricted to reading.
    pub only_read: bool,
}

impl<'a> PreparedCall<'a> {
    /// Runs the call without asking again.
    pub(super) async fn run(self, services: &CallServices<'_>) -> CallOutcome<'a> {
        services.announce(&self);
        if let Ok(plan) = &self.plan
            && let Err(why) = plan.save_unsaved(services.agent, &self.arguments).await
        {
            return self.end_without_run(CallEnd::Failed(CallFailure::Tool(ToolErrorKind::Permanent)), &why);
        }
        let enclosure = self.plan.as_ref().map_or(Enclosure::Read, |plan| plan.enclosure);
        let start = self.start;
        Box::pin(self.run_tool(start, enclosure, services)).await
    }

    /// Ends the call before its tool runs.
    pub(super) fn refuse(self, end: CallEnd, why: &str, services: &CallServices<'_>) -> CallOutcome<'a> {
        services.announce(&self);
        self.end_without_run(end, why)
    }

    /// `why` is the program's own text.
    fn end_without_run(self, end: CallEnd, why: &str) -> CallOutcome<'a> {
        CallOutcome {
            measured: CallMeasurement::not_run(self.start),
            prepared: self,
            end,
            output: output_of_reason(why),
            trusted: true,
            remarks: Vec::new(),
            brings: None,
            refused: None,
            only_read: false,
        }
    }

    /// Runs the tool, unless a recording has the result; returns it and the number of retries.
    async fn call_or_replay(
        &self,
        tool: &dyn Tool,
        context: CallContext<'_>,
        services: &CallServices<'_>,
        clock: &PausableClock,
    ) -> (Result<ToolOutput, ToolError>, u32) {
        let (name, arguments) = (&self.call.name, &self.arguments);
        let Some(tape) = &services.agent.tape else {
            return call_persistently(tool, arguments, context, self.time_limit, clock).await;
        };
        let ended = match tape.give_call(name, arguments) {
            Some(result) => (result, 0),
            None => call_persistently(tool, arguments, context, self.time_limit, clock).await,
        };
        services.emitter.warn(tape.keep_call(name, arguments, &ended.0));
        ended
    }

    /// The time limit of the call: what it asks for, else that of its tool, else that of all; never above its step's.
    fn choose_timeout(&self, plan: &CallPlan<'_>, limits: &Limits) -> Duration {
        let of_tool = plan.terms.timeout.map(|most| most.min(*limits.max_tool_timeout));
        let timeout = plan.tool.time_asked(&self.arguments).or(of_tool).unwrap_or(*limits.tool_timeout);
        self.time_limit.map_or(timeout, |limit| limit.min(timeout))
    }

    /// Runs the tool to its end, if the call can run.
    async fn run_tool(
        self,
        start: CallStart,
        enclosure: Enclosure,
        services: &CallServices<'_>,
    ) -> CallOutcome<'a> {
        let plan = match &self.plan {
            Ok(plan) => plan,
            Err(why) => {
                let why = why.clone();
                return self.end_without_run(CallEnd::Failed(CallFailure::Invalid), &why);
            }
        };
        let CallServices { agent, emitter, live, shared, limits, .. } = services;
        let (slot, tool) = (self.slot, plan.tool);
        live.run(slot);
        let redacting = Mutex::new(Redacting::new(&agent.redactor));
        let report = |chunk: &str| {
            let chunk = redacting.lock().expect("redacting never panics").push(chunk);
            if !chunk.is_empty() {
                live.output(slot, &chunk);
                emitter.notify(EventKind::ToolOutput { call_id: self.call.id.clone(), chunk });
            }
        };
        let (refused, desk) = (Mutex::new(None), OnceLock::new());
        let superior = || {
            let desk = desk.get_or_init(|| Arc::new(services.link_helper(slot, plan.trust.clone())));
            Arc::clone(desk) as Arc<dyn Superior>
        };
        let clock = PausableClock::start();
        let person =
            WaitingPerson { approver: agent.approver.as_ref(), clocks: [services.clock.clone(), clock.clone()] };
        let Limits { max_time, max_tool_timeout, tool_idle_timeout, .. } = &agent.limits;
        let run = max_time.map(|most| calling_time(*most).saturating_sub(services.clock.elapsed()));
        let context = CallContext {
            workspace: &agent.workspace,
            reach: &plan.reach,
            files: &shared.files,
            skills: &shared.skills,
            spill: &shared.spill,
            archive: shared.archive.as_ref(),
            timeout: self.choose_timeout(plan, &agent.limits),
            clocks: Clocks { most: **max_tool_timeout, idle: tool_idle_timeout.map(Into::into), run },
            max_tokens: plan.terms.max_tokens.filter(|_| !limits.of_plan).unwrap_or(limits.held_tokens),
            whole: limits.of_plan,
            live: &report,
            keep: agent.tools.get("recall").map(|_| Keep { spill: &shared.spill, redactor: &agent.redactor }),
            enclosure,
            variables: &self.variables,
            person: &person,
            refused: &|how| *refused.lock().expect("storing never panics") = Some(how),
            notify: &|kind| emitter.notify(kind),
            superior: &superior,
        };
        let starts_processes = tool.definition().effects.contains(&ToolEffect::Process);
        let (begun, processes) = (Instant::now(), starts_processes.then(ChildWatch::begin));
        let only_read = enclosure == Enclosure::Read;
        let may_change = tool.definition().permission != Permission::Read && !only_read;
        let change = if may_change || (tool.definition().is_run && !plan.reads) {
            Box::pin(services.begin_change(&self, plan)).await
        } else {
            None
        };
        let (mut result, retries) = {
            let _paused = may_change.then(|| agent.jobs.pause_guard());
            self.call_or_replay(tool, context, services, &clock).await
        };
        if let (true, Ok(output)) = (self.hooked.is_some(), &mut result) {
            let said = hooks::take_result(agent, &services.helpers.session, &self, &shared.spill, output);
            emitter.report_hooks(Box::pin(said).await);
        }
        let undone = match change {
            Some(change) => Box::pin(services.end_change(change, tool.enclosure(enclosure))).await,
            None => Undone::default(),
        };
        let (latency, spent) = (Some(begun.elapsed()), processes.and_then(ChildWatch::end));
        let measured = CallMeasurement { latency, retries, spent, ..CallMeasurement::not_run(start) };
        let refused = refused.into_inner().expect("storing never panics").or_else(|| undone.refusal());
        let (end, output) = match result {
            Ok(output) => (CallEnd::of_output(&output), output),
            Err(error) => {
                let end = CallEnd::Failed(CallFailure::Tool(error.kind));
                (end, output_of_reason(&explain_error(error, retries)))
            }
        };
        // A call refused for its arguments returns only our own words.
        let ran = !matches!(
            end,
            CallEnd::Failed(CallFailure::Tool(ToolErrorKind::Parameter | ToolErrorKind::Unavailable))
        );
        let has_more = match enclosure {
            Enclosure::Outside => Some("ran outside of the sandbox"),
            Enclosure::Opened if plan.reach.opening.network => Some("had network"),
            _ => None,
        };
        let brings = has_more.map(|what| {
            let subject = text::one_line(&tool.subject(&self.arguments), 80);
            format!("the output of {} `{subject}`, which {what},", self.call.name)
        });
        let of_helper = || desk.get()?.brought.lock().expect("storing never panics").clone();
        let brings = brings.or_else(|| plan.brings.clone()).filter(|_| ran).or_else(of_helper);
        // A tool's error may quote a file or a command.
        let trusted = tool.definition().is_trusted;
        let hooked = self.hooked.iter().flat_map(|hooked| hooked.texts.iter().cloned());
        let remarks = hooked.chain(plan.describe_unsaved(agent)).chain(describe_undone(&undone)).collect();
        CallOutcome { prepared: self, end, output, trusted, remarks, brings, measured, refused, only_read }
    }
}

impl CallOutcome<'_> {
    /// Runs the call again with fewer restrictions, as a person allowed.
    pub(super) async fn run_again(self, enclosure: Enclosure, services: &CallServices<'_>) -> Self {
        Box::pin(self.prepared.run_tool(CallStart::now(), enclosure, services)).await
    }

    /// The guarantee that is unavailable, if that is why the call failed: it ends the turn.
    pub(super) fn unavailable(&self) -> Option<&str> {
        let is_unavailable = self.end == CallEnd::Failed(CallFailure::Tool(ToolErrorKind::Unavailable));
        is_unavailable.then_some(self.output.observation.as_str())
    }
}

/// An output that consists of a reason only.
fn output_of_reason(why: &str) -> ToolOutput {
    ToolOutput { summary: text::one_line(why, 120), observation: why.to_owned(), ..ToolOutput::default() }
}

impl CallServices<'_> {
    /// Reports the start of a call to the observers.
    fn announce(&self, prepared: &PreparedCall<'_>) {
        let subject = prepared.plan.as_ref().map_or(String::new(), |plan| plan.tool.subject(&prepared.arguments));
        let redactor = &self.agent.redactor;
        let (subject, mut arguments) = (redactor.redact(&subject).into_owned(), prepared.arguments.clone());
        redactor.redact_value(&mut arguments);
        self.emitter.notify(started_event(&prepared.call, subject, arguments));
        self.live.announce(prepared.slot);
    }

    /// The place of a helper that a call starts.
    fn link_helper(&self, slot: CallSlot, standing: TrustState) -> HelperLink {
        HelperLink {
            terms: Arc::clone(&self.helpers),
            emitter: Arc::clone(&self.emitter),
            live: Arc::clone(&self.live),
            slot,
            clock: self.clock.clone(),
            standing,
            brought: Mutex::default(),
        }
    }
}

/// The text of a failure, for the model.
fn explain_error(error: ToolError, retries: u32) -> String {
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
async fn call_persistently(
    tool: &dyn Tool,
    arguments: &Value,
    context: CallContext<'_>,
    time_limit: Option<Duration>,
    clock: &PausableClock,
) -> (Result<ToolOutput, ToolError>, u32) {
    let mut retries = 0;
    loop {
        let outcome = call_in_time(tool, arguments.clone(), context, time_limit, clock).await;
        let left = context.timeout.saturating_sub(clock.elapsed());
        let delay =
            |error: &ToolError| retry::of_call(error.kind, tool.idempotent(), retries, left, fastrand::f64());
        let Some(delay) = outcome.as_ref().err().and_then(delay) else { return (outcome, retries) };
        tokio::time::sleep(delay).await;
        retries += 1;
    }
}

/// Bounds a call in time. Tools normally keep their own time, since they can report partial results; this bound is
/// for those that do not.
async fn call_in_time(
    tool: &dyn Tool,
    arguments: Value,
    context: CallContext<'_>,
    time_limit: Option<Duration>,
    clock: &PausableClock,
) -> Result<ToolOutput, ToolError> {
    const GRACE: Duration = Duration::from_secs(10);
    let bound = match time_limit {
        _ if tool.definition().waits_for_person => None,
        limit if tool.definition().is_run => limit,
        _ => Some(context.timeout + GRACE),
    };
    let Some(bound) = bound else { return tool.call(arguments, context).await };
    let end = clock.elapsed() + bound;
    tokio::select! {
        biased;
        outcome = tool.call(arguments, context) => outcome,
        () = clock.reach(Some(end)) => {
            let limit = crate::config::format_duration(time_limit.unwrap_or(context.timeout));
            let why = format!("The call took longer than {limit} and was stopped.");
            Err(ToolError::new(ToolErrorKind::Timeout, why))
        }
    }
}

/// The event for a call that begins.
pub(super) fn started_event(call: &ToolCall, subject: String, arguments: Value) -> EventKind {
    EventKind::ToolStarted { call_id: call.id.clone(), name: call.name.clone(), subject, arguments }
}
