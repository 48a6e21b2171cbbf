//! Prepares a call: parses and checks its arguments, finds its tool, and asks the policy for a verdict.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::base::json;
use crate::base::present;
use crate::conversation::message::ToolCall;
use crate::safety::net;
use crate::safety::policy::{self, Call, Configured, Invocation, Verdict};
use crate::safety::{Enclosure, Hold, Reach};
use crate::tools::Tool;

use super::flights::Slot;
use super::measure::Moment;
use super::{Agent, Found, Terms, arguments};

/// The most calls of one reply that run; the rest are refused.
pub(super) const MOST_CALLS: usize = 64;

/// A call that was checked and judged, but not run.
pub(super) struct Prepared<'a> {
    /// The call as the model wrote it; for `call_tool`, the call inside it.
    pub call: Cow<'a, ToolCall>,
    pub slot: Slot,
    pub taken_up: Moment,
    /// Values for a command, by the names of their variables.
    pub variables: Vec<(String, String)>,
    pub plan: CallPlan<'a>,
    /// The command line that a person wrote in place of the model's.
    pub edited: Option<String>,
}

pub(super) enum CallPlan<'a> {
    Run(Ready<'a>),
    /// The call cannot run; the text tells the model why.
    Refuse {
        arguments: Value,
        why: String,
    },
}

/// The circumstances that a call is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Footing<'t> {
    /// The outside content in the conversation.
    pub taint: Option<&'t str>,
    /// True if nothing may change: the turn explores, and no proposal was approved.
    pub is_exploring: bool,
}

/// A call that can run, if its verdict allows.
pub(super) struct Ready<'a> {
    pub tool: &'a dyn Tool,
    pub terms: &'a Terms,
    pub arguments: Value,
    pub verdict: Verdict,
    /// The files that it may open: those that were judged.
    pub reach: Arc<Reach>,
    /// True if it only reads, so similar calls may run at the same time.
    pub reads: bool,
    /// True if its command names something outside the sandbox.
    pub leaves: bool,
    /// The outside source whose content its result would introduce, if any.
    pub brings: Option<String>,
    /// The facts about the conversation for a helper.
    pub standing: Standing,
}

/// The facts that a helper needs about the conversation that calls it.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// The outside source whose content is in the conversation, if any.
    pub taint: Option<String>,
    /// Nothing may change.
    pub only_reads: bool,
}

impl<'a> Prepared<'a> {
    /// Puts a person's command line in place of the model's, and judges the call again.
    pub(super) fn edit(&mut self, agent: &'a Agent, line: String, footing: Footing<'_>) {
        let CallPlan::Run(ready) = &mut self.plan else { return };
        let (Some(name), Ok(found)) = (ready.tool.command_argument(), agent.tools.find(&self.call.name)) else {
            return;
        };
        let mut arguments = ready.arguments.clone();
        arguments[name] = line.as_str().into();
        *ready = judged(agent, found, arguments, footing);
        self.edited = Some(line);
    }

    /// The tool that runs it, if it can run, and the files that it may open.
    pub(super) fn tool(&self) -> Option<(&'a dyn Tool, &'a Terms, Arc<Reach>)> {
        match &self.plan {
            CallPlan::Run(ready) => Some((ready.tool, ready.terms, Arc::clone(&ready.reach))),
            CallPlan::Refuse { .. } => None,
        }
    }

    /// True if it only reads and nobody has to be asked, so that similar calls may run at the same time.
    pub(super) fn may_run_beside(&self) -> bool {
        let is_free = |ready: &Ready<'_>| {
            matches!(ready.verdict, Verdict::Allow(_)) && !ready.tool.waits_for_person() && ready.reads
        };
        matches!(&self.plan, CallPlan::Run(ready) if is_free(ready))
    }

    /// True if both calls are of the same kind. Helpers run only beside helpers: they may ask a person, and nothing
    /// else that could ask may run meanwhile.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_run = |of: &Self| matches!(&of.plan, CallPlan::Run(ready) if ready.tool.is_run());
        is_run(self) == is_run(other)
    }
}

/// Parses, checks and judges a call. `cut` is true if the reply ended at the output limit.
pub(super) fn prepare<'a>(
    agent: &'a Agent,
    (slot, call): (Slot, Cow<'a, ToolCall>),
    cut: bool,
    footing: Footing<'_>,
) -> Prepared<'a> {
    let taken_up = Moment::now();
    let (_, number) = slot;
    let variables = Vec::new();
    if number >= MOST_CALLS {
        let why = format!("Not run: too many calls in one reply: only the first {MOST_CALLS} run.");
        let arguments = json::object_or_unparsed(&call.arguments);
        let plan = CallPlan::Refuse { arguments, why };
        return Prepared { call, slot, taken_up, variables, plan, edited: None };
    }
    let (call, meant) = match meant(agent, &call) {
        Ok(Some(inner)) => (Cow::Owned(inner), Ok(())),
        Ok(None) => (call, Ok(())),
        Err(why) => (call, Err(why)),
    };
    let plan = meant
        .and_then(|()| plan(agent, &call, cut, footing))
        .unwrap_or_else(|why| CallPlan::Refuse { arguments: json::object_or_unparsed(&call.arguments), why });
    Prepared { call, slot, taken_up, variables, plan, edited: None }
}

/// The call inside a `call_tool`: judged, run, shown and recorded as if the model had written it directly. `None` for
/// any other call.
fn meant(agent: &Agent, call: &ToolCall) -> Result<Option<ToolCall>, String> {
    if !agent.tools.is_call_tool(&call.name) {
        return Ok(None);
    }
    let mut outer = json::object(&call.arguments).map_err(|why| {
        format!("The arguments are not usable JSON: {why}. Send {{\"name\": …, \"arguments\": {{…}}}}.")
    })?;
    let name = match outer.get("name") {
        Some(Value::String(name)) if !agent.tools.is_call_tool(name) => name.clone(),
        _ => return Err("`name` must be the name of a tool; find_tools finds it.".to_owned()),
    };
    let arguments = match outer.remove("arguments") {
        None | Some(Value::Null) => "{}".to_owned(),
        // Some models write the inner object as text.
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    Ok(Some(ToolCall { name, arguments, ..call.clone() }))
}

fn plan<'a>(agent: &'a Agent, call: &ToolCall, cut: bool, footing: Footing<'_>) -> Result<CallPlan<'a>, String> {
    if cut {
        return Err(
            "Not run: your reply was cut at the output limit before it was complete. Send the call again, \
                    with shorter arguments; write large files in several parts."
                .to_owned(),
        );
    }
    let found = agent.tools.find(&call.name)?;
    let mut arguments = arguments::read(&call.arguments, &found.tool.definition().parameters)?;
    restore(&mut arguments);
    arguments::complete(&mut arguments, &found.tool.definition().parameters);
    found.validator().check("The arguments do", &arguments)?;
    check_time(found.tool, &arguments, agent.limits.max_tool_timeout)?;
    Ok(CallPlan::Run(judged(agent, found, arguments, footing)))
}

/// Refuses a call that asks for more time than it can get: half-done work is worse than none.
fn check_time(tool: &dyn Tool, arguments: &Value, most: Duration) -> Result<(), String> {
    let Some(asked) = tool.time_asked(arguments).filter(|asked| *asked > most) else { return Ok(()) };
    let (asked, most) = (asked.as_secs_f64(), most.as_secs_f64());
    let hint = match tool.definition().parameters["properties"].get("background") {
        Some(_) => " What takes longer can run in the background.",
        None => "",
    };
    Err(format!(
        "Not run: a call may take up to {most} s (limits.max_tool_timeout), and this one asks for {asked} s.{hint}"
    ))
}

fn judged<'a>(
    agent: &'a Agent,
    Found { tool, terms, .. }: Found<'a>,
    arguments: Value,
    footing: Footing<'_>,
) -> Ready<'a> {
    let workspace = &agent.workspace;
    let definition = tool.definition();
    let mut reads = tool.reads(&arguments);
    let writes = tool.writes(&arguments);
    // A call that could name a path but does not works on the whole workspace.
    let takes_path = definition.parameters["properties"].get("path").is_some();
    if reads.is_empty() && writes.is_empty() && takes_path {
        reads.push(".");
    }
    let mut judged = Vec::new();
    let shell = tool.shell_line(&arguments);
    let hold = shell.as_ref().map_or(Hold::Nothing, |shell| shell.hold);
    let line = shell.map(|shell| {
        let dir = workspace.resolve(shell.workdir.as_deref().unwrap_or(".")).path;
        judged.extend(shell.workdir.map(|workdir| (workdir.into_owned(), dir.clone())));
        let invocation = Invocation { command: &shell.line, dir: &dir };
        let configured = shell.configured.map(|shown| Configured { arguments: arguments.to_string(), shown });
        policy::Line::new(invocation, workspace, &agent.readable, configured)
    });
    let call = Call {
        tool: &definition.name,
        permission: definition.permission,
        requires_confirmation: terms.requires_confirmation,
        effects: &definition.effects,
        has_network: tool.has_network(),
        reads: policy::targets(workspace, &reads, &agent.readable),
        writes: policy::targets(workspace, &writes, &[]),
        line,
        hold,
        host: tool.address(&arguments).map(host),
    };
    let judge = if footing.is_exploring { policy::judge_exploring } else { policy::judge };
    let verdict = judge(agent.approval, &agent.rules, &call, footing.taint);
    let is_reading = tool.runs_beside(&arguments) || verdict.enclosure() == Enclosure::Read;
    let (leaves, brings) = (call.leaves(), policy::brings_in(&call, &tool.subject(&arguments)));
    let written: Vec<String> = reads.iter().chain(&writes).map(|path| (*path).to_owned()).collect();
    judged
        .extend(written.into_iter().zip(call.reads.iter().chain(&call.writes).map(|target| target.real.clone())));
    let reach = Reach::new(workspace, judged, agent.rules.denied_to(&definition.name));
    let reach = if call.line.is_some() { reach.of_command(agent.rules.denied_to("write_file")) } else { reach };
    let reach = Arc::new(reach);
    let standing = Standing { taint: footing.taint.map(str::to_owned), only_reads: footing.is_exploring };
    Ready { tool, terms, arguments, verdict, reach, reads: is_reading, leaves, brings, standing }
}

/// The host of an address, with the port if it is not the default. Text that is not an address is returned as it is.
fn host(address: &str) -> String {
    let Ok(url) = net::parse_url(address) else { return address.to_owned() };
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Restores marks that were broken when the model read them.
fn restore(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(whole) = present::restore(text) {
                *text = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(restore),
        Value::Object(fields) => fields.values_mut().for_each(restore),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
