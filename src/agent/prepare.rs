//! What becomes of a call before anything runs: its arguments are read and checked, its tool is found, and the policy
//! says what may happen to it.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::Value;

use crate::contract::{Permission, Tool};
use crate::json;
use crate::message::ToolCall;
use crate::policy::{self, Call, Configured, Invocation, Verdict};
use crate::present;

use super::measure::Moment;
use super::{Agent, Found, Terms, arguments};

/// A call that was checked and judged, but not run.
pub(super) struct Prepared<'a> {
    /// As the model wrote it; where it goes through `call_tool`, the call that it means.
    pub call: Cow<'a, ToolCall>,
    pub taken_up: Moment,
    pub plan: Plan<'a>,
}

pub(super) enum Plan<'a> {
    Run {
        tool: &'a dyn Tool,
        terms: &'a Terms,
        arguments: Value,
        verdict: Verdict,
        reads: bool,
        /// What of the outside its result brings in.
        brings: Option<String>,
    },
    /// It cannot be run; the text tells the model why.
    Refuse { arguments: Value, why: String },
}

impl Prepared<'_> {
    /// Whether it only reads and nobody has to be asked, so that others of its kind may run at the same time.
    pub(super) fn may_run_beside(&self) -> bool {
        matches!(self.plan, Plan::Run { reads: true, .. })
    }
}

/// Reads, checks and judges a call. `cut` says that the reply ended at the output limit; `taint` what of the outside
/// has entered the conversation.
pub(super) fn prepare<'a>(agent: &'a Agent, call: &'a ToolCall, cut: bool, taint: Option<&str>) -> Prepared<'a> {
    let taken_up = Moment::now();
    let (call, meant) = match meant(agent, call) {
        Ok(call) => (call, Ok(())),
        Err(why) => (Cow::Borrowed(call), Err(why)),
    };
    let plan = meant.and_then(|()| plan(agent, &call, cut, taint)).unwrap_or_else(|why| Plan::Refuse {
        arguments: json::object(&call.arguments)
            .map_or_else(|_| Value::String(call.arguments.clone()), Value::Object),
        why,
    });
    Prepared { call, taken_up, plan }
}

/// The call that `call_tool` stands for: judged, run, shown and recorded as if the model had written it.
fn meant<'a>(agent: &Agent, call: &'a ToolCall) -> Result<Cow<'a, ToolCall>, String> {
    if !agent.tools.is_call_tool(&call.name) {
        return Ok(Cow::Borrowed(call));
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
    Ok(Cow::Owned(ToolCall { name, arguments, ..call.clone() }))
}

fn plan<'a>(agent: &'a Agent, call: &ToolCall, cut: bool, taint: Option<&str>) -> Result<Plan<'a>, String> {
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
    found.validator().check("The arguments do", &arguments)?;
    check_time(found.tool, &arguments, agent.limits.max_tool_timeout)?;
    let (permission, verdict, brings) = judge(agent, found, &arguments, taint);
    let reads =
        permission == Permission::Read && matches!(verdict, Verdict::Allow(_)) && !found.tool.waits_for_person();
    Ok(Plan::Run { tool: found.tool, terms: found.terms, arguments, verdict, reads, brings })
}

/// What cannot be granted is refused before it runs: work that is ended half done is worse than none.
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

fn judge(
    agent: &Agent,
    Found { tool, terms, .. }: Found<'_>,
    arguments: &Value,
    taint: Option<&str>,
) -> (Permission, Verdict, Option<String>) {
    let workspace = &agent.workspace;
    let definition = tool.definition();
    let permission = tool.permission(arguments, workspace);
    let mut reads = tool.reads(arguments);
    let writes = tool.writes(arguments);
    // What could be given a path and was not works on the workspace at large.
    let takes_path = definition.parameters["properties"].get("path").is_some();
    if reads.is_empty() && writes.is_empty() && takes_path {
        reads.push(".");
    }
    let line = tool.shell_line(arguments).map(|shell| {
        let dir = workspace.resolve(shell.workdir.as_deref().unwrap_or(".")).path;
        let invocation = Invocation { command: &shell.line, dir: &dir, env: &shell.env };
        let configured = shell.configured.map(|shown| Configured { arguments: arguments.to_string(), shown });
        policy::Line::new(invocation, workspace, &agent.readable, configured)
    });
    let call = Call {
        tool: &definition.name,
        permission,
        requires_confirmation: terms.requires_confirmation,
        effects: &definition.effects,
        has_network: tool.has_network(),
        reads: policy::targets(workspace, &reads, &agent.readable),
        writes: policy::targets(workspace, &writes, &[]),
        line,
    };
    let verdict = policy::judge(agent.approval, &agent.rules, &call, taint);
    (permission, verdict, policy::brings_in(&call, &tool.subject(arguments)))
}

/// Marks that were broken when the model read them are whole again in what it writes.
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
