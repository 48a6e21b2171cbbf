//! Opening the session that a run goes on with, and what of it the services must know.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::{Agent, Run};
use crate::config::Config;
use crate::json;
use crate::message::{CallStatus, Message, ToolCall, ToolMessage};
use crate::session::{About, Session, Store};
use crate::workspace::Workspace;

use super::SetupError;

/// Which session a run is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    New,
    /// In memory only.
    Ephemeral,
    /// This workspace's latest.
    Latest,
    /// By its id, or by the beginning of it.
    Id(String),
}

/// Where sessions live.
#[must_use]
pub fn store(config: &Config) -> Store {
    Store::new(config.session_dir())
}

/// Opens or begins a session. The warnings say what had to be repaired.
///
/// # Errors
/// When there is no such session, or it cannot be read or locked.
pub fn open_session(
    config: &Config,
    workspace: &Workspace,
    choice: &SessionChoice,
    agent: &Agent,
) -> Result<(Session, Vec<String>), SetupError> {
    let now = Timestamp::now();
    let info = agent.model.info();
    let about = About { workspace: workspace.root(), agent: &agent.name, model: &info.id };
    let store = store(config);
    agent.spill.attach(None);
    let id = match choice {
        SessionChoice::Ephemeral => return Ok((Session::ephemeral(about, now), Vec::new())),
        SessionChoice::New => {
            let session = store.create(about, now);
            agent.spill.attach(session.path());
            return Ok((session, Vec::new()));
        }
        SessionChoice::Id(id) => id.clone(),
        SessionChoice::Latest => {
            let latest = store.latest(workspace.root()).map_err(SetupError::failed)?;
            let latest = latest.ok_or_else(|| {
                SetupError::usage("there is no session in this workspace to continue; leave --continue out")
            })?;
            latest.id
        }
    };
    let opened = store.open(&id, now).map_err(SetupError::session)?;
    agent.spill.attach(opened.0.path());
    remember_loaded(&opened.0, agent);
    Ok(opened)
}

/// Gives the session its system prompt, or a new one where agent or model are not those it was rendered for: the
/// prompt of a session that goes on unchanged stays byte for byte. Returns what in a new prompt contradicts the tools,
/// one sentence each.
///
/// # Errors
/// When the prompt cannot be rendered or the session not be written.
pub fn brief(agent: &Agent, session: &mut Session, run: &Run) -> anyhow::Result<Vec<String>> {
    let model = &agent.model.info().id;
    let about = session.about();
    let unchanged = about.agent == agent.name && about.model == model;
    let has_prompt = matches!(session.messages().first(), Some(Message::System { .. }));
    if has_prompt && unchanged {
        return Ok(Vec::new());
    }
    if !unchanged {
        session.switch(&agent.name, model, Timestamp::now());
    }
    let content = agent.briefing.system(session, &run.emitter.run_id())?;
    if session.messages().first().is_some_and(|first| first.content() == content) {
        return Ok(Vec::new());
    }
    let tools: Vec<(&str, &str)> =
        agent.tools.all().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect();
    let contradictions =
        agent.briefing.system.contradictions(&content, &agent.briefing.facts.instructions, &tools);
    session.record(Message::System { content }, Timestamp::now())?;
    Ok(contradictions)
}

/// Marks the skills whose instructions are in the conversation, so that loading one again costs one line. What an edit
/// of the view put in their place is none.
pub fn remember_loaded(session: &Session, agent: &Agent) {
    const MARK: &str = "Skill directory: ";
    let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
    for (id, message) in session.ids().iter().zip(session.messages()) {
        match message {
            Message::Assistant(reply) => {
                let loading = reply.tool_calls.iter().filter(|call| call.name == "load_skill");
                calls.extend(loading.map(|call| (call.id.as_str(), call)));
            }
            Message::Tool(ToolMessage { call_id, status: CallStatus::Ok, content, .. }) if id.pass == 0 => {
                let arguments = calls.get(call_id.as_str()).map(|call| json::object(&call.arguments));
                let Some(Ok(arguments)) = arguments else { continue };
                let Some(name) = arguments.get("name").and_then(Value::as_str) else { continue };
                let directory = content.lines().find_map(|line| line.strip_prefix(MARK));
                let path = directory.map(|directory| Path::new(directory).join("SKILL.md").display().to_string());
                agent.briefing.loaded.insert(name, &path.unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// A name for what one process, or one turn of a chat, does.
#[must_use]
pub fn new_run_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(12).map(|c| c.to_ascii_lowercase()).collect()
}
