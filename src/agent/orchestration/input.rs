//! Makes the call of a step: fills its input with the results that it refers to. If that is not enough, or a retry
//! should change it, the executor fills it in; it may not name another tool.

use serde_json::{Map, Value, json};

use crate::agent::call::GivenCall;
use crate::agent::turn::{Turn, TurnStop};
use crate::conversation::event::plan::PlanStep;
use crate::tools::{RUN_COMMAND, TASK};

use super::Orchestration;
use super::command;
use super::graph::AGENT;
use super::progress::PlanProgress;
use super::reference::{self, Results};
use super::reply::ExecutorReply;
use super::shown::{self, RoleResultSize};

/// The result of filling in a step.
pub(super) enum FilledInput {
    Ready(GivenCall),
    /// The step cannot be made, for this reason.
    Impossible(String),
}

impl Turn<'_> {
    /// The call of a step that is about to run.
    pub(super) async fn job(
        &mut self,
        orchestration: &Orchestration,
        machine: &PlanProgress,
        step: &PlanStep,
    ) -> Result<FilledInput, TurnStop> {
        let results = machine.results();
        let modification = machine.modification(step.step_id);
        let id = self.call_id(machine, step.step_id, machine.next_attempt(step.step_id));
        let mistake = match (fill_call(&id, step, &results), modification) {
            (Ok(job), None) => match self.mistake(&job) {
                None => return Ok(FilledInput::Ready(job)),
                Some(mistake) => mistake,
            },
            (Err(mistake), _) => mistake,
            (Ok(_), Some(_)) => String::new(),
        };
        self.ask_executor(orchestration, step, id, &results, modification, &mistake).await
    }

    /// The mistake in a call before it runs, if there is one.
    fn mistake(&self, job: &GivenCall) -> Option<String> {
        self.judge_given(job).plan.err()
    }

    /// Asks the executor to fill in the call of a step.
    async fn ask_executor(
        &mut self,
        orchestration: &Orchestration,
        step: &PlanStep,
        id: String,
        results: &Results<'_>,
        modification: Option<&str>,
        mistake: &str,
    ) -> Result<FilledInput, TurnStop> {
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
        let mut variables = Map::new();
        variables.insert("step".to_owned(), told);
        variables.insert("tools".to_owned(), shown::list_tools(self.agent, |name| name == tool));
        variables.insert("results".to_owned(), Value::Object(results.iter().map(named).collect()));
        let accept = |reply: ExecutorReply| match reply.tool_call {
            None => Ok(Err(reply.explanation)),
            Some(call) if call.name != tool => Err(format!("The step's tool is `{tool}`, not `{}`.", call.name)),
            Some(call) => Ok(Ok(call.arguments)),
        };
        let decided = self.ask_role(&orchestration.roles.executor, variables, accept).await?;
        let arguments = match decided {
            Ok(Ok(arguments)) => arguments,
            Ok(Err(why)) => return Ok(FilledInput::Impossible(format!("the executor handed it back: {why}"))),
            Err(mistake) => {
                return Ok(FilledInput::Impossible(format!("the executor gave no usable call: {mistake}")));
            }
        };
        let given = PlanStep { tool_input: arguments, ..step.clone() };
        let job = match fill_call(&id, &given, results) {
            // The executor wrote the whole call, that of an agent included.
            Ok(job) if tool == TASK => GivenCall { arguments: agent_job(step, &given.tool_input), ..job },
            Ok(job) => job,
            Err(mistake) => return Ok(FilledInput::Impossible(mistake)),
        };
        Ok(match self.mistake(&job) {
            None => FilledInput::Ready(job),
            Some(mistake) => FilledInput::Impossible(mistake),
        })
    }

    /// An id for the call of a step that no other call of the session has.
    pub(super) fn call_id(&self, machine: &PlanProgress, step: u32, attempt: u32) -> String {
        let (turn, revision) = (self.conversation.session.turns(), machine.plan().map_or(0, |plan| plan.revision));
        format!("plan_{turn}_{revision}_{step}_{attempt}")
    }
}

/// The call of a step with its references filled in.
pub(super) fn fill_call(id: &str, step: &PlanStep, results: &Results<'_>) -> Result<GivenCall, String> {
    let id = id.to_owned();
    if step.tool_name.starts_with(AGENT) {
        let input = reference::fill_references(&step.tool_input, results)?;
        return Ok(GivenCall {
            id,
            tool: TASK.to_owned(),
            arguments: agent_job(step, &input),
            variables: Vec::new(),
        });
    }
    let tool = step.tool_name.clone();
    let line = if tool == RUN_COMMAND { step.tool_input["command"].as_str() } else { None };
    let Some(line) = line else {
        return Ok(GivenCall {
            id,
            tool,
            arguments: reference::fill_references(&step.tool_input, results)?,
            variables: Vec::new(),
        });
    };
    let (command, variables) = command::for_command(line, results)?;
    let mut input = step.tool_input.clone();
    input["command"] = Value::Null;
    let mut arguments = reference::fill_references(&input, results)?;
    arguments["command"] = command.into();
    Ok(GivenCall { id, tool, arguments, variables })
}

/// The arguments of the call that gives an agent its job.
fn agent_job(step: &PlanStep, input: &Value) -> Value {
    let agent = step.tool_name.strip_prefix(AGENT).unwrap_or_default();
    json!({ "agent": agent, "prompt": input["prompt"] })
}
