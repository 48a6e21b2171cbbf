//! Makes the call of a step: fills its input with the results that it refers to. If that is not enough, or a retry
//! should change it, the executor fills it in; it may not name another tool.

use serde_json::{Map, Value, json};

use crate::agent::call::GivenCall;
use crate::agent::turn::Turn;
use crate::conversation::event::plan::PlanStep;
use crate::tools::{RUN_COMMAND, TASK};

use super::command;
use super::graph::AGENT;
use super::progress::PlanProgress;
use super::reference::{self, Results};
use super::reply::ExecutorReply;
use super::role::StepFailure;
use super::shown::{self, RoleResultSize};

impl Turn<'_> {
    /// The call of a step that is about to run.
    pub(super) async fn job(&mut self, machine: &PlanProgress, step: &PlanStep) -> Result<GivenCall, StepFailure> {
        let results = machine.results();
        let modification = machine.modification(step.step_id);
        let id = self.call_id(step.step_id, machine.next_attempt(step.step_id));
        machine.find_cut(step).map_or(Ok(()), Err)?;
        let filled = fill_call(&id, step, &results).and_then(|job| self.check_call(job));
        let mistake = match (filled, modification) {
            (Ok(job), None) => return Ok(job),
            (Ok(_), Some(_)) => String::new(),
            (Err(mistake), _) => mistake,
        };
        if self.agent.orchestration.roles.is_none() {
            return Err(mistake.into());
        }
        self.ask_executor(step, id, &results, modification, &mistake).await
    }

    /// The call, unless there is a mistake in it that shows before it runs.
    fn check_call(&self, job: GivenCall) -> Result<GivenCall, String> {
        self.judge_given(&job).plan.map(|_| job)
    }

    /// Asks the executor to fill in the call of a step.
    async fn ask_executor(
        &mut self,
        step: &PlanStep,
        id: String,
        results: &Results<'_>,
        modification: Option<&str>,
        mistake: &str,
    ) -> Result<GivenCall, StepFailure> {
        let shown = RoleResultSize::share_among(self.agent.result_bytes(), results.len());
        let tool = if step.tool_name.starts_with(AGENT) { TASK } else { step.tool_name.as_str() };
        let mut told = json!({
            "step_id": step.step_id, "description": step.description, "tool_name": tool, "tool_input": step.tool_input,
        });
        if let Some(modification) = modification {
            told["modification"] = modification.into();
        }
        if !mistake.is_empty() {
            told["mistake"] = mistake.into();
        }
        let named = |(step, value): (&u32, &&Value)| (format!("$step_{step}_result"), shown.show_value(value));
        let variables = json!({
            "step": told,
            "tools": shown::list_tools(self.agent, |name| name == tool),
            "results": results.iter().map(named).collect::<Map<_, _>>(),
        });
        let accept = |reply: ExecutorReply| match reply.tool_call {
            None => Ok(Err(reply.explanation)),
            Some(call) if call.name != tool => Err(format!("The step's tool is `{tool}`, not `{}`.", call.name)),
            Some(call) => Ok(Ok(call.arguments)),
        };
        let decided = self.ask_role(&self.agent.orchestration.roles()?.executor, variables, accept).await;
        let decided = decided.map_err(|failure| failure.explain("the executor gave no usable call: "))?;
        let arguments = decided.map_err(|why| format!("the executor handed it back: {why}"))?;
        let given = PlanStep { tool_input: arguments, ..step.clone() };
        let mut job = fill_call(&id, &given, results)?;
        if tool == TASK {
            // The executor wrote the whole call, that of an agent included.
            job.arguments = agent_job(step, &given.tool_input);
        }
        Ok(self.check_call(job)?)
    }

    /// An id for the call of a step that no other call of the session has.
    pub(super) fn call_id(&self, step: u32, attempt: u32) -> String {
        let turn = self.conversation.session.turns();
        format!("plan_{turn}_{}_{step}_{attempt}", self.plans)
    }
}

/// The call of a step with its references filled in.
pub(super) fn fill_call(id: &str, step: &PlanStep, results: &Results<'_>) -> Result<GivenCall, String> {
    let mut call = GivenCall {
        id: id.to_owned(),
        tool: step.tool_name.clone(),
        arguments: Value::Null,
        variables: Vec::new(),
    };
    let mut input = step.tool_input.clone();
    if step.tool_name.starts_with(AGENT) {
        TASK.clone_into(&mut call.tool);
        call.arguments = agent_job(step, &reference::fill_references(&input, results)?);
    } else if let Some(line) = input["command"].as_str().filter(|_| call.tool == RUN_COMMAND) {
        let (command, variables) = command::for_command(line, results)?;
        input["command"] = Value::Null;
        call.arguments = reference::fill_references(&input, results)?;
        call.arguments["command"] = command.into();
        call.variables = variables;
    } else {
        call.arguments = reference::fill_references(&input, results)?;
    }
    Ok(call)
}

/// The arguments of the call that gives an agent its job.
fn agent_job(step: &PlanStep, input: &Value) -> Value {
    let agent = step.tool_name.strip_prefix(AGENT).unwrap_or_default();
    json!({ "agent": agent, "prompt": input["prompt"] })
}
