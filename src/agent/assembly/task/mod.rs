//! The tool `task`: an agent of `agents/` does a bounded job for the agent that calls it, and reports.
//!
//! A helper has its own context, tools and session. It runs within the run that called it: its settings are narrowed by
//! the caller's ([`narrow`]), it spends from the caller's limits, outside content taints both, its questions carry its
//! name ([`asking`]), and it ends with its call ([`errand`]).

mod asking;
mod errand;
mod narrow;
mod worktree;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::{Conversation, RunEnd, TurnStop};
use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::text;
use crate::config::{AgentConfig, Config, Isolation, Permission};
use crate::conversation::session::{About, Session};
use crate::model::ToolDefinition;
use crate::prompt::AnswerReader;
use crate::tools::{CallContext, Superior, TASK, Tool};

use super::ground::{AgentInputs, SharedServices};
use super::sessions::describe_session;
use super::{RunOptions, assemble_on, new_run_id, open_store};

use asking::ThroughCaller;
use errand::Errand;
use narrow::{Caller, narrow_helper, only_reads};
pub(super) use worktree::Worktree;

pub(super) use worktree::recover_worktrees;

/// The helper for a call that names none.
const USUAL: &str = "explore";

/// The tool that calls helpers.
pub(super) struct Task {
    definition: ToolDefinition,
    /// The ground of the calling agent.
    ground: AgentInputs,
    /// The names of the calling agent's tools.
    tools: Vec<String>,
    /// The number of calls of each agent.
    calls: Mutex<BTreeMap<String, u32>>,
    /// Held by the helper whose question is open.
    floor: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Deserialize)]
struct TaskArguments {
    prompt: String,
    agent: Option<String>,
}

/// The definition of the tool for an agent; `None` if it has no helpers to call.
pub(super) fn define_tool(config: &Config, agent: &AgentConfig) -> Option<ToolDefinition> {
    const LONGEST: usize = 160;
    if agent.limits.max_depth == 0 {
        return None;
    }
    let about = |helper: &AgentConfig| {
        let description = text::one_line(helper.description.trim(), LONGEST);
        format!("{} ({})", helper.name, description.trim_end_matches('.'))
    };
    let list: Vec<String> = list_helpers(config, agent).map(about).collect();
    if list.is_empty() {
        return None;
    }
    let list = list.join(", ");
    Some(ToolDefinition {
        name: TASK.to_owned(),
        description: format!("A helper does a job and reports; it knows only the prompt. Agents: {list}."),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": {
                "prompt": { "type": "string" },
                "agent": { "type": "string" },
            },
            "required": ["prompt"],
            "additionalProperties": false,
        })),
        permission: Permission::Read,
        default: true,
        is_run: true,
        ..ToolDefinition::default()
    })
}

/// The agents that another agent may call: those with a description.
pub(super) fn list_helpers<'c>(
    config: &'c Config,
    agent: &AgentConfig,
) -> impl Iterator<Item = &'c AgentConfig> + use<'c> {
    let own = agent.name.clone();
    config.agents.values().filter(move |helper| helper.name != own && !helper.description.trim().is_empty())
}

impl Task {
    pub(super) fn new(definition: ToolDefinition, ground: AgentInputs, tools: Vec<String>) -> Self {
        Self { definition, ground, tools, calls: Mutex::default(), floor: Arc::default() }
    }

    /// The agent that a call names.
    fn helper(&self, name: Option<&str>) -> Result<&AgentConfig, ToolError> {
        let own = self.own()?;
        let name = name.unwrap_or(USUAL);
        let helpers = || list_helpers(&self.ground.config, own);
        helpers().find(|helper| helper.name == name).ok_or_else(|| {
            let known: Vec<&str> = helpers().map(|helper| helper.name.as_str()).collect();
            let name = text::one_line(name, 60);
            ToolError::parameter(format!("There is no helper `{name}`. The agents are: {}.", known.join(", ")))
        })
    }

    /// The settings of the calling agent.
    fn own(&self) -> Result<&AgentConfig, ToolError> {
        self.ground.settings().map_err(|error| ToolError::permanent(error.message))
    }

    /// Makes a name for a helper: `explore#2`.
    fn name_of(&self, agent: &str) -> String {
        let mut calls = self.calls.lock().expect("counting never panics");
        let number = calls.entry(agent.to_owned()).or_default();
        *number += 1;
        format!("{agent}#{number}")
    }

    /// The ground that a helper is assembled from.
    fn ground_of(
        &self,
        settings: AgentConfig,
        name: &str,
        superior: &Arc<dyn Superior>,
    ) -> Result<AgentInputs, ToolError> {
        let AgentInputs { config, workspace, options, approver, shared, unfinished, .. } = &self.ground;
        let own = self.own()?;
        let has_callers_model = settings.model_name() == own.model_name();
        let options = RunOptions {
            model: options.model.clone().filter(|_| has_callers_model),
            effort: options.effort.clone().filter(|_| has_callers_model),
            vars: options.vars.clone(),
            output: AnswerReader::Pipe,
            is_undoable: options.is_undoable,
            ..RunOptions::default()
        };
        let approver = Arc::new(ThroughCaller {
            person: Arc::clone(approver),
            name: name.to_owned(),
            superior: Arc::clone(superior),
            floor: Arc::clone(&self.floor),
        });
        let shared = shared.as_ref().map(|shared| SharedServices {
            around: Arc::clone(&shared.around),
            sandbox: shared.sandbox.clone().filter(|_| settings.sandbox == own.sandbox),
            servers: shared.servers.clone(),
        });
        Ok(AgentInputs {
            config: Arc::clone(config),
            narrowed: Some(Arc::new(settings)),
            workspace: workspace.clone(),
            options,
            approver,
            shared,
            unfinished: Arc::clone(unfinished),
        })
    }

    /// Prepares a helper in the workspace of `ground`.
    fn begin(&self, name: &str, ground: AgentInputs, superior: Arc<dyn Superior>) -> Result<Errand, ToolError> {
        let failed = |why: &str| ToolError::permanent(format!("The helper could not begin: {why}"));
        let services = assemble_on(ground).map_err(|error| failed(&error.message))?;
        let info = services.agent.model.info();
        if superior.ledger().limits_cost() && info.prices.is_none() && !info.scripted {
            return Err(failed(&format!(
                "a cost limit is set, but no prices are known for the model `{}`",
                info.id
            )));
        }
        let now = Timestamp::now();
        // The session belongs to the workspace, because a worktree is removed with its helper.
        let about = describe_session(&services.agent, self.ground.workspace.root());
        // A trial is its caller's.
        let about = About { copy: None, is_layer: false, ..about };
        let session = match superior.session() {
            Some(parent) => open_store(&self.ground.config).create_child(about, parent, now),
            None => Session::ephemeral(about, now),
        };
        let errand = Errand::new(name, services.agent, Conversation::new(session, now), superior, new_run_id());
        errand.run.emitter.warn(services.catalogue.warnings());
        Ok(errand)
    }

    async fn run(&self, given: Value, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
        let TaskArguments { prompt, agent } =
            serde_json::from_value(given).map_err(|error| ToolError::parameter(error.to_string()))?;
        let (own, config) = (self.own()?, self.helper(agent.as_deref())?);
        let superior = (context.superior)();
        let caller = Caller { settings: own, tools: &self.tools, time: context.clocks.run };
        let mut settings = narrow_helper(config, &caller);
        if superior.only_reads() {
            settings.permissions.max = Permission::Read;
        }
        let is_isolated =
            settings.isolation == Isolation::Worktree && settings.permissions.max != Permission::Read;
        let name = self.name_of(&config.name);
        let mut ground = self.ground_of(settings, &name, &superior)?;
        let mut worktree = None;
        if is_isolated {
            let own = worktree.insert(Worktree::add(&self.ground, &name).await?);
            ground.workspace = own.workspace(&ground.workspace)?;
            ground.shared = ground.shared.map(|shared| SharedServices { sandbox: None, ..shared });
        }
        let mut errand = self.begin(&name, ground, Arc::clone(&superior))?;
        let session = errand.conversation.session.path().map(|_| errand.conversation.session.id().to_owned());
        if let Some(session) = &session {
            (context.live)(&format!("{name} works in session {session}\n"));
        }
        let end = errand.work(prompt).await;
        let end = end.map_err(|refused| ToolError::permanent(format!("The helper failed: {}", refused.reason)))?;
        let branch = match worktree {
            Some(worktree) => worktree.keep().await?,
            None => None,
        };
        report_end(name, session, end, branch, &errand)
    }
}

impl Tool for Task {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn runs_beside(&self, arguments: &Value) -> bool {
        let agent = arguments["agent"].as_str();
        let helper = self.helper(agent).and_then(|helper| Ok((helper, self.own()?)));
        // A call of an unknown helper changes nothing.
        helper.map_or(true, |(helper, own)| helper.isolation == Isolation::Worktree || only_reads(helper, own))
    }

    fn idempotent(&self) -> bool {
        false
    }

    fn subject(&self, arguments: &Value) -> String {
        let agent = arguments["agent"].as_str().unwrap_or(USUAL);
        text::one_line(&format!("{agent}: {}", arguments["prompt"].as_str().unwrap_or_default()), 80)
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(arguments, context))
    }
}

/// The result of a helper.
fn report_end(
    name: String,
    session: Option<String>,
    end: RunEnd,
    branch: Option<String>,
    errand: &Errand,
) -> Result<ToolOutput, ToolError> {
    let reason = end.ending.reason;
    let answer = end.answer.trim();
    let mut notes = vec![name];
    notes.extend(session.as_ref().map(|session| format!("session {session}")));
    notes.extend(branch.as_ref().map(|branch| format!("its changes are on the branch {branch}, not merged")));
    let notes = notes.join("; ");
    match end.stop {
        TurnStop::Answered | TurnStop::Limit(_) => {}
        TurnStop::Unavailable(why) => return Err(ToolError::new(ToolErrorKind::Unavailable, why)),
        _ => {
            let words = if answer.is_empty() { String::new() } else { format!("\nIts last words: {answer}") };
            return Err(ToolError::permanent(format!("The helper failed: {reason} ({notes}){words}")));
        }
    }
    let is_whole = matches!(end.stop, TurnStop::Answered);
    let stopped = if is_whole { String::new() } else { format!("The helper did not finish: {reason}\n\n") };
    let steps = errand.run.ledger.own_steps();
    let counts = [(steps, "step"), (errand.run.totals.tool_calls, "call")];
    let counts = counts.map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    let mut result = json!({ "report": answer, "complete": is_whole });
    for (key, value) in [("session", session), ("branch", branch)] {
        if let Some(value) = value {
            result[key] = value.into();
        }
    }
    Ok(ToolOutput {
        result,
        observation: format!("{stopped}{answer}\n\n({notes})"),
        summary: if is_whole { counts.join(", ") } else { reason },
        unfinished: !is_whole,
        ..ToolOutput::default()
    })
}
