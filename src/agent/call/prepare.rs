//! Prepares a call: parses and checks its arguments, finds its tool, and asks the policy for a verdict.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::agent::live_calls::CallSlot;
use crate::agent::{Agent, ToolEntry, ToolTerms};
use crate::base::json;
use crate::base::present;
use crate::config::ApprovalMode;
use crate::conversation::message::ToolCall;
use crate::safety::net;
use crate::safety::policy::{self, Configured, Grounds, Invocation, ProposedCall, Verdict};
use crate::safety::{Enclosure, Hold, Reach};
use crate::tools::Tool;

use super::arguments;
use super::hooked::{HookedCall, concern_call};
use super::measure::CallStart;
use super::superior::TrustState;

/// The most calls of one reply that run; the rest are refused.
pub(super) const MOST_CALLS: usize = 64;

/// A call that was checked and judged.
pub(in crate::agent) struct PreparedCall<'a> {
    /// The call as the model wrote it; for `call_tool`, the call inside it.
    pub call: ToolCall,
    pub slot: CallSlot,
    pub(super) start: CallStart,
    pub arguments: Value,
    /// Values for a command, by the names of their variables.
    pub variables: Vec<(String, String)>,
    /// The command line that a person wrote in place of the model's.
    pub edited: Option<String>,
    /// The longest that it may take, if its step says so.
    pub time_limit: Option<Duration>,
    /// If hooks run before or after it: what they say to the model.
    pub hooked: Option<Box<HookedCall>>,
    /// The way to run it; or the reason, for the model, that it cannot run.
    pub plan: Result<CallPlan<'a>, String>,
}

/// The way to run a call, if its verdict allows.
pub(in crate::agent) struct CallPlan<'a> {
    pub tool: &'a dyn Tool,
    pub terms: &'a ToolTerms,
    pub verdict: Verdict,
    /// The walls around its command, once it may run.
    pub enclosure: Enclosure,
    /// The files that it may open: those that were judged.
    pub reach: Arc<Reach>,
    /// True if it changes nothing that another call of its kind could meet.
    pub(super) reads: bool,
    /// True if its command names something outside the sandbox.
    pub leaves: bool,
    /// True if its command, once held to reading, may write as well without a question.
    pub frees_writing: bool,
    /// The outside source whose content its result would introduce, if any.
    pub brings: Option<String>,
    /// The state of the conversation that it was judged by.
    pub trust: TrustState,
}

/// The company in which a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum CallLane {
    /// Beside other calls that only read and that nobody is asked about.
    Reading,
    /// Beside other helpers only: a helper may ask a person, and nothing else that could ask may run meanwhile.
    Helpers,
    /// By itself: it may change something, or a person has to be asked or told.
    Alone,
}

impl<'a> PreparedCall<'a> {
    /// Parses, checks and judges a call.
    pub(super) fn of(
        agent: &'a Agent,
        slot: CallSlot,
        call: &ToolCall,
        written: CallText,
        trust: TrustState,
    ) -> Self {
        let start = CallStart::now();
        let meant = match written {
            CallText::Beyond(most) => {
                Err(format!("Not run: too many calls in one reply: only the first {most} run."))
            }
            CallText::Whole | CallText::Cut => unwrap_call(agent, call),
        };
        let (call, checked) = match meant {
            Ok(inner) => {
                let call = inner.unwrap_or_else(|| call.clone());
                let checked = check_call(agent, &call, written);
                (call, checked)
            }
            Err(why) => (call.clone(), Err(why)),
        };
        let (arguments, plan) = match checked {
            Ok((found, arguments)) => {
                let plan = judge(agent, found, &arguments, &[], trust);
                (arguments, Ok(plan))
            }
            Err(why) => (json::object_or_unparsed(&call.arguments), Err(why)),
        };
        let is_hooked = plan.is_ok() && concern_call(agent, &call.name, &arguments);
        let hooked = is_hooked.then(Box::default);
        Self { call, slot, start, arguments, variables: Vec::new(), edited: None, time_limit: None, hooked, plan }
    }

    /// Gives its command the values of variables, and judges it with them.
    pub(super) fn give_values(mut self, agent: &'a Agent, variables: Vec<(String, String)>) -> Self {
        self.variables = variables;
        if let Some(trust) = self.plan.as_ref().ok().map(|plan| plan.trust.clone()) {
            self.judge_again(agent, trust);
        }
        self
    }

    /// Judges the call by another state of the conversation.
    pub(super) fn judge_again(&mut self, agent: &'a Agent, trust: TrustState) {
        if let (Ok(plan), Ok(found)) = (&mut self.plan, agent.tools.find(&self.call.name)) {
            *plan = judge(agent, found, &self.arguments, &self.variables, trust);
        }
    }

    /// Puts a person's command line in place of the model's, and judges the call again.
    pub(super) fn edit(&mut self, agent: &'a Agent, line: String, trust: TrustState) {
        let Ok(plan) = &mut self.plan else { return };
        let (Some(name), Ok(found)) = (plan.tool.definition().command, agent.tools.find(&self.call.name)) else {
            return;
        };
        self.arguments[name] = line.as_str().into();
        let shown = plan.reach.opening.clone();
        *plan = judge(agent, found, &self.arguments, &self.variables, trust);
        if plan.enclosure == Enclosure::Opened && plan.reach.opening != shown {
            plan.enclosure = Enclosure::Write;
        }
        self.edited = Some(line);
    }

    /// True if its tool waits for a person.
    pub(super) fn waits_for_person(&self) -> bool {
        self.plan.as_ref().is_ok_and(|plan| plan.tool.definition().waits_for_person)
    }

    /// The company in which it may run.
    pub(in crate::agent) fn lane(&self) -> CallLane {
        let allowed = self.plan.as_ref().ok().filter(|plan| matches!(plan.verdict, Verdict::Allow(_)));
        let allowed = allowed.filter(|_| self.hooked.is_none());
        match allowed.filter(|plan| plan.reads && !plan.tool.definition().waits_for_person) {
            Some(plan) if plan.tool.definition().is_run => CallLane::Helpers,
            Some(_) => CallLane::Reading,
            None => CallLane::Alone,
        }
    }
}

/// How a call stands in the model's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum CallText {
    Whole,
    /// The reply ended at the output limit.
    Cut,
    /// It comes after as many calls as run of one reply.
    Beyond(usize),
}

/// The call inside a `call_tool`: judged, run, shown and recorded as if the model had written it directly. `None` for
/// any other call.
fn unwrap_call(agent: &Agent, call: &ToolCall) -> Result<Option<ToolCall>, String> {
    if !agent.tools.is_call_tool(&call.name) {
        return Ok(None);
    }
    let mut outer = json::parse_object(&call.arguments).map_err(|why| {
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

/// The tool of a call, and its arguments, which fit the schema.
fn check_call<'a>(agent: &'a Agent, call: &ToolCall, written: CallText) -> Result<(&'a ToolEntry, Value), String> {
    if written == CallText::Cut {
        let why = "Not run: your reply was cut at the output limit before it was complete. Send the call again, with \
                   shorter arguments; write large files in several parts.";
        return Err(why.to_owned());
    }
    if let Some(why) = agent.workspace.find_loss() {
        return Err(format!("Not run: {why}."));
    }
    let found = agent.tools.find(&call.name)?;
    let mut arguments = arguments::parse_arguments(&call.arguments, &found.tool.definition().parameters)?;
    // Marks were broken when the model read them.
    json::change_texts(&mut arguments, &mut |text| {
        if let Cow::Owned(whole) = present::restore_text_marks(text) {
            *text = whole;
        }
    });
    arguments::complete_by_schema(&mut arguments, &found.tool.definition().parameters);
    found.validator().check("The arguments do", &arguments)?;
    check_time(found.tool.as_ref(), &arguments, *agent.limits.max_tool_timeout)?;
    Ok((found, arguments))
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

fn judge<'a>(
    agent: &'a Agent,
    found: &'a ToolEntry,
    arguments: &Value,
    variables: &[(String, String)],
    trust: TrustState,
) -> CallPlan<'a> {
    let (tool, terms) = (found.tool.as_ref(), &found.terms);
    let workspace = &agent.workspace;
    let definition = tool.definition();
    let mut reads = tool.reads(arguments);
    let writes = tool.writes(arguments);
    // A call that could name a path but does not works on the whole workspace.
    let takes_path = definition.parameters["properties"].get("path").is_some();
    if reads.is_empty() && writes.is_empty() && takes_path {
        reads.push(".");
    }
    let mut judged = Vec::new();
    let shell = tool.shell_line(arguments);
    let hold = shell.as_ref().map_or(Hold::Nothing, |shell| shell.hold);
    let line = shell.map(|shell| {
        let dir = workspace.resolve(shell.workdir.as_deref().unwrap_or(".")).path;
        judged.extend(shell.workdir.map(|workdir| (workdir.into_owned(), dir.clone())));
        let invocation = Invocation { command: &policy::fill_variables(&shell.line, variables), dir: &dir };
        let configured = shell.configured.map(|shown| Configured { arguments: arguments.to_string(), shown });
        policy::ParsedLine::new(invocation, workspace, &agent.readable, configured)
    });
    let call = ProposedCall {
        tool: &definition.name,
        permission: tool.permission(arguments),
        always_asked: terms
            .requires_confirmation
            .then_some("it is set to be asked about every time")
            .or_else(|| tool.asks_always()),
        effects: &definition.effects,
        has_network: tool.has_network(arguments),
        reads: policy::look_up_targets(workspace, &reads, &agent.readable),
        writes: policy::look_up_targets(workspace, &writes, &[]),
        line,
        hold,
        host: tool.address(arguments).map(find_host),
    };
    let judge = if trust.only_reads { policy::judge_exploring } else { policy::judge_call };
    let approval = if trust.loses_changes { ApprovalMode::Ask } else { agent.approval };
    let verdict = judge(approval, &agent.rules, &call, trust.taint.as_deref());
    let opening = call.find_opening(workspace);
    let enclosure = match &verdict {
        Verdict::Allow(Grounds::Reading) => Enclosure::Read,
        // Whoever is asked is told what is opened.
        Verdict::Ask { .. } if !opening.is_empty() => Enclosure::Opened,
        _ => Enclosure::Write,
    };
    let is_reading = tool.runs_beside(arguments) || enclosure == Enclosure::Read;
    let frees_writing = policy::frees_writing(approval, &call, trust.taint.as_deref());
    let (leaves, brings) = (call.leaves(), policy::brings_in(&call, &tool.subject(arguments)));
    let written: Vec<String> = reads.iter().chain(&writes).map(|path| (*path).to_owned()).collect();
    judged
        .extend(written.into_iter().zip(call.reads.iter().chain(&call.writes).map(|target| target.real.clone())));
    let reach = Reach::new(workspace, judged, agent.rules.denied_to(&definition.name));
    let reach =
        if call.line.is_some() { reach.of_command(agent.rules.denied_to("write_file"), opening) } else { reach };
    let reach = Arc::new(reach);
    CallPlan { tool, terms, verdict, enclosure, reach, reads: is_reading, leaves, frees_writing, brings, trust }
}

/// The host of an address, with the port if it is not the default. Text that is not an address is returned as it is.
fn find_host(address: &str) -> String {
    let Ok(url) = net::parse_url(address) else { return address.to_owned() };
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
