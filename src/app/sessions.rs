//! Opening the session that a run goes on with, and what of it the services must know.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::{Agent, Run};
use crate::config::{Config, SkillDisclosure};
use crate::json;
use crate::message::{CallStatus, Message, ToolCall};
use crate::session::{About, Session, Store};
use crate::skills::{Content, Skill, Window, discloses};
use crate::workspace::Workspace;

use super::{SetupError, skills_by_hand as skills};

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
    let content = agent.system_prompt(session, &run.emitter.run_id())?;
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

/// Marks the skills whose instructions are in the conversation, so that loading one again costs one line; and where
/// the system prompt shows them, reads them anew. What an edit of the view put in their place is none.
pub fn remember_loaded(session: &Session, agent: &Agent) {
    let messages = session.messages();
    let answers: HashMap<&str, &str> = session
        .ids()
        .iter()
        .zip(messages)
        .filter_map(|(id, message)| match message {
            Message::Tool(answer) if answer.status == CallStatus::Ok && id.pass == 0 => {
                Some((answer.call_id.as_str(), answer.content.as_str()))
            }
            _ => None,
        })
        .collect();
    for message in messages {
        match message {
            Message::User { content, origin } if origin.is_person() => {
                skills::announced(content).for_each(|name| remember(agent, name));
            }
            Message::Assistant(reply) => {
                let disclosed = |call: &&ToolCall| answers.get(call.id.as_str()).is_some_and(|a| discloses(a));
                for call in reply.tool_calls.iter().filter(disclosed) {
                    let arguments = json::object(&call.arguments).map(Value::Object).unwrap_or_default();
                    remember_call(agent, &call.name, &arguments);
                }
            }
            Message::System { .. } | Message::User { .. } | Message::Tool(_) => {}
        }
    }
}

fn remember_call(agent: &Agent, tool: &str, arguments: &Value) {
    let Some(name) = arguments["name"].as_str() else { return };
    let briefing = &agent.briefing;
    match (tool, arguments["path"].as_str()) {
        ("load_skill", _) => remember(agent, name),
        ("load_skill_reference", Some(path)) if briefing.disclosure == SkillDisclosure::System => {
            let number = |key: &str| arguments[key].as_u64().and_then(|number| usize::try_from(number).ok());
            let window = Window::new(number("offset"), number("limit"), agent.result_bytes());
            if let Ok(page) = briefing.catalogue.reference(name, path, window)
                && let Content::Lines { text, .. } = &page.content
            {
                briefing.loaded.show_reference(name, &page.title(), text);
            }
        }
        _ => {}
    }
}

/// A skill that is gone by now, and was shown in the system prompt, is not loaded any more.
fn remember(agent: &Agent, name: &str) {
    let briefing = &agent.briefing;
    if briefing.disclosure == SkillDisclosure::Message {
        let path = briefing.catalogue.get(name).map(Skill::path).unwrap_or_default();
        briefing.loaded.insert(name, &path, None);
    } else if let Ok(body) = briefing.catalogue.load(name, "") {
        briefing.loaded.insert(name, &body.path, Some(body.fingerprint()));
        briefing.loaded.show(name, body.instructions(agent.result_bytes()));
    }
}

/// A name for what one process, or one turn of a chat, does.
#[must_use]
pub fn new_run_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric).take(12).map(|c| c.to_ascii_lowercase()).collect()
}
