//! Runs a case once with a model: a separate agent in a temporary workspace.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::{Agent, AnswerSchema, Cancel, Emitter, Run, RunInput, exit, run_input};
use crate::config::{Config, Permission};
use crate::conversation::message::{FinishReason, Item, Step, UserText};
use crate::files::workspace::Workspace;
use crate::model::ToolDefinition;
use crate::prompt::test::{Case, RunReply, Speaker, with_vars};
use crate::prompt::{Prompt, PromptContext, PromptError, Released};
use crate::safety::Nobody;
use crate::template;

use super::super::paced::{Gate, Paced};
use super::super::sessions::unsaved_conversation;
use super::super::{RunOptions, SetupError, assemble_services, new_run_id};
use super::watch::CallWatch;

/// The variable with the rendered prompt: as a value it is not rendered again.
const RENDERED: &str = "rendered";
/// Tools that change files: they reach only the workspace of the case.
const FILE_TOOLS: &[&str] = &["apply_patch", "edit_file", "write_file"];

/// The parts that all runs share.
#[derive(Clone, Copy)]
pub(super) struct AttemptContext<'a> {
    pub config: &'a Arc<Config>,
    pub options: &'a RunOptions,
    pub gate: &'a Gate,
    pub cancel: &'a Cancel,
}

/// Runs a case once.
///
/// # Errors
/// No agent can be assembled, or the case names an unknown tool.
pub(super) async fn attempt_case(
    around: AttemptContext<'_>,
    prompt: &Arc<Prompt>,
    case: &Case,
) -> Result<RunReply, SetupError> {
    let dir = tempfile::tempdir().map_err(SetupError::from_failure)?;
    lay_out(dir.path(), case).map_err(|error| SetupError::from_failure(anyhow::Error::from(error)))?;
    let mut agent = assemble_agent(around, dir.path())?;
    restrict_tools(&mut agent, case)?;
    let facts = &mut agent.briefing.facts;
    let sample = PromptContext::sample();
    (facts.session, facts.ending, facts.summary) = (sample.session, sample.ending, sample.summary);
    let context = with_vars(&facts.value_for(prompt), &case.vars);
    let (system, opening) = match open_case(&agent, prompt, case, &context) {
        Ok(opened) => opened,
        Err(error) => {
            return Ok(fail_case(error.to_string()));
        }
    };
    if !matches!(opening.last(), Some(Item::Said(_))) {
        let why = "nothing is left to answer: give the case `messages` that end with one of the user";
        return Ok(fail_case(why.to_owned()));
    }
    ask_agent(agent, system, RunInput { opening: Some(opening), ..RunInput::default() }, around.cancel).await
}

/// The reply of a case that cannot be asked.
fn fail_case(why: String) -> RunReply {
    RunReply { code: exit::CONFIGURATION, failure: Some(why), ..RunReply::default() }
}

/// Returns the system prompt and the messages up to the one to answer. If the case has no messages and neither has the
/// prompt, the prompt itself is that message; otherwise it is the system prompt.
fn open_case(
    agent: &Agent,
    prompt: &Prompt,
    case: &Case,
    context: &template::Value,
) -> Result<(String, Vec<Item>), PromptError> {
    let text = prompt.render(context)?;
    let (system, mut items) = match (prompt.has_messages(), case.messages.is_empty()) {
        (true, _) => (text, agent.items_of(prompt, context)?),
        (false, true) => (String::new(), vec![Item::Said(UserText::by_person(text))]),
        (false, false) => (text, Vec::new()),
    };
    items.extend(case.messages.iter().map(|said| match said.role {
        Speaker::User => Item::Said(UserText::by_person(&said.content)),
        Speaker::Assistant => Item::Step(Step::of_text(&said.content, FinishReason::Stop)),
    }));
    Ok((system, items))
}

/// Asks a model one question, without tools, for an answer that matches a schema.
pub(super) async fn ask_once(
    around: AttemptContext<'_>,
    question: String,
    schema: Value,
) -> Result<RunReply, SetupError> {
    let dir = tempfile::tempdir().map_err(SetupError::from_failure)?;
    let mut agent = assemble_agent(around, dir.path())?;
    retain_tools(&mut agent, |_| false);
    agent.schema = Some(AnswerSchema::new(schema).map_err(SetupError::configuration)?);
    let input = RunInput { said: Some(UserText::by_person(question)), ..RunInput::default() };
    ask_agent(agent, String::new(), input, around.cancel).await
}

/// The name of the model in recordings and reports.
pub(super) fn model_of(around: AttemptContext<'_>) -> Result<String, SetupError> {
    let dir = tempfile::tempdir().map_err(SetupError::from_failure)?;
    assemble_agent(around, dir.path()).map(|agent| agent.model.info().name.clone())
}

fn assemble_agent(around: AttemptContext<'_>, dir: &Path) -> Result<Agent, SetupError> {
    let workspace = Workspace::open(dir).map_err(SetupError::from_failure)?;
    let options = RunOptions { prompt: None, ..around.options.clone() };
    let mut agent = assemble_services(around.config, &workspace, &options, Arc::new(Nobody))?.agent;
    agent.model = Arc::new(Paced { model: Arc::clone(&agent.model), gate: around.gate.clone() });
    Ok(agent)
}

/// Keeps the tools that the case names; without names, those that only read (without network or commands) and those
/// that write files.
fn restrict_tools(agent: &mut Agent, case: &Case) -> Result<(), SetupError> {
    let Some(named) = &case.tools else {
        let reads = |tool: &ToolDefinition| tool.permission == Permission::Read && tool.effects.is_empty();
        let harmless: Vec<String> = agent
            .tools
            .all()
            .filter(|tool| reads(tool) || FILE_TOOLS.contains(&tool.name.as_str()))
            .map(|tool| tool.name.clone())
            .collect();
        retain_tools(agent, |name| harmless.iter().any(|harmless| harmless == name));
        return Ok(());
    };
    if let Some(unknown) = named.iter().find(|name| agent.tools.get(name).is_none()) {
        let known: Vec<&str> = agent.tools.names().collect();
        return Err(SetupError::configuration(format!(
            "the case `{}` names the tool `{unknown}`, which the agent `{}` does not have; known: {}",
            case.name,
            agent.name,
            known.join(", ")
        )));
    }
    retain_tools(agent, |name| named.iter().any(|named| named == name));
    Ok(())
}

fn retain_tools(agent: &mut Agent, keep: impl Fn(&str) -> bool) {
    let gone: Vec<String> = agent.tools.names().filter(|name| !keep(name)).map(str::to_owned).collect();
    for name in gone {
        agent.tools.unregister(&name);
    }
    agent.briefing.facts.agent.tools.retain(|tool| keep(&tool.name));
}

async fn ask_agent(
    mut agent: Agent,
    system: String,
    input: RunInput<'_>,
    cancel: &Cancel,
) -> Result<RunReply, SetupError> {
    let prompt = Prompt::inline(&format!("{{{{ vars.{RENDERED} }}}}"), "the prompt under test");
    agent.briefing.system = Released::only(Arc::new(prompt.map_err(SetupError::configuration)?));
    agent.briefing.own = None;
    agent.briefing.facts.vars.insert(RENDERED.to_owned(), system.into());
    let mut conversation = unsaved_conversation(&agent, Timestamp::now());
    let watch = CallWatch::default();
    let id = conversation.session.id().to_owned();
    let mut run = Run::new(Emitter::new(id, new_run_id(), Box::new(watch.clone())));
    let end = Box::pin(run_input(&agent, &mut conversation, &mut run, input, cancel)).await;
    let (answer, ending) = match end {
        Ok(end) => (end.answer, end.ending),
        Err(refused) => (String::new(), refused),
    };
    let mut noted = watch.take();
    let skills = std::mem::take(&mut noted.skills);
    Ok(RunReply {
        output: answer,
        calls: noted.calls(),
        skills,
        tokens: run.ledger.spent().usage.total(),
        cost: run.ledger.spent().cost.usd(),
        judging_cost: None,
        latency_ms: u64::try_from(run.ledger.elapsed().as_millis()).unwrap_or(u64::MAX),
        code: ending.code,
        failure: (ending.code != exit::DONE).then_some(ending.reason),
    })
}

fn lay_out(dir: &Path, case: &Case) -> std::io::Result<()> {
    for (path, text) in &case.files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}
