//! Skills that a person loads, whose instructions go along with what the person says, or unloads.
//!
//! A message with skills begins with a mark that names them. Nothing that came from a file or a pipe can stand there,
//! so a session that is opened again knows by it what it has loaded.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::agent::Agent;
use crate::config::SkillDisclosure;
use crate::event::EventKind;
use crate::json;
use crate::message::{Message, ToolMessage};
use crate::session::{Edit, EditReason, Session};
use crate::skills::{Body, SkillError, discloses};

const OPENING: &str = "[skills loaded: ";
const BETWEEN: &str = ", ";
const CLOSING: &str = "] ";

/// A message with the skills that go along with it.
#[derive(Debug, Default)]
pub struct WithSkills {
    pub text: String,
    /// What happened, for whoever watches.
    pub events: Vec<EventKind>,
}

/// Adds the instructions of skills to a message. Those that are loaded already are not given again; bodies that are
/// templates read the message as their arguments.
///
/// # Errors
/// When there is no such skill, or it cannot be read; nothing is loaded then.
pub fn with_skills(agent: &Agent, message: &str, names: &[String]) -> Result<WithSkills, SkillError> {
    let briefing = &agent.briefing;
    let mut bodies = Vec::new();
    for name in names {
        let body = briefing.catalogue.load(name, message)?;
        if !bodies.iter().any(|(known, _)| *known == name) {
            bodies.push((name, body));
        }
    }
    bodies.retain(|(name, body)| briefing.loaded.insert(name, &body.path, Some(body.fingerprint())));
    if bodies.is_empty() {
        return Ok(WithSkills { text: message.to_owned(), events: Vec::new() });
    }
    let names: Vec<&str> = bodies.iter().map(|(name, _)| name.as_str()).collect();
    let mut with =
        WithSkills { text: format!("{OPENING}{}{CLOSING}{message}", names.join(BETWEEN)), events: Vec::new() };
    for (name, body) in bodies {
        let (tokens, path) = (body.tokens(), body.path.clone());
        let instructions = body.instructions(agent.result_bytes());
        match briefing.disclosure {
            SkillDisclosure::Message => {
                with.text += "\n\n";
                with.text += &agent.redactor.redact(&instructions);
            }
            SkillDisclosure::System => briefing.loaded.show(name, instructions),
        }
        with.events.push(EventKind::SkillLoaded { name: name.clone(), path, tokens });
    }
    Ok(with)
}

/// Takes the instructions of a skill, and of its files, out of what is sent: a line stands in their place. What was
/// said stays in the log.
///
/// # Errors
/// When it is not loaded, or the session cannot be written.
pub fn unload(agent: &Agent, session: &mut Session, name: &str) -> anyhow::Result<EventKind> {
    let briefing = &agent.briefing;
    anyhow::ensure!(briefing.loaded.contains(name), "{name} is not loaded; /skills shows what is");
    let calls: HashSet<&str> = session.messages().iter().flat_map(|message| calls_about(message, name)).collect();
    let without = |message: &Message| match message {
        Message::Tool(answer) if calls.contains(answer.call_id.as_str()) && discloses(&answer.content) => {
            let content = format!("[The skill `{name}` was unloaded; load_skill loads it again.]");
            Some(Message::Tool(ToolMessage { content, ..answer.clone() }))
        }
        Message::User { content, origin } if origin.is_person() => {
            let content = without_skill(content, name)?;
            Some(Message::User { content, origin: *origin })
        }
        _ => None,
    };
    let (mut edits, mut freed) = (Vec::new(), 0);
    for (id, message) in session.ids().iter().zip(session.messages()) {
        if let Some(edited) = without(message) {
            freed += message.content().len().saturating_sub(edited.content().len());
            edits.push(Edit { number: id.number, message: Some(edited) });
        }
    }
    session.edit(&EditReason::Unloaded(vec![name.to_owned()]), edits, Timestamp::now())?;
    let path = briefing.loaded.forget(name).unwrap_or_default();
    Ok(EventKind::SkillUnloaded { name: name.to_owned(), path, tokens: freed as u64 / 4 })
}

/// The ids of the calls of a reply that load a skill or a file of it.
fn calls_about<'m>(message: &'m Message, name: &str) -> Vec<&'m str> {
    let Message::Assistant(reply) = message else { return Vec::new() };
    let about = |arguments: &str| json::object(arguments).is_ok_and(|read| read.get("name") == Some(&name.into()));
    let calls =
        reply.tool_calls.iter().filter(|call| call.name.starts_with("load_skill") && about(&call.arguments));
    calls.map(|call| call.id.as_str()).collect()
}

/// A message without one of the skills that it loaded; `None` where it did not.
fn without_skill(message: &str, name: &str) -> Option<String> {
    let (names, rest) = message.strip_prefix(OPENING)?.split_once(CLOSING)?;
    let others: Vec<&str> = names.split(BETWEEN).filter(|other| *other != name).collect();
    if others.len() == names.split(BETWEEN).count() {
        return None;
    }
    let rest = Body::take_out(rest, name);
    Some(match others.as_slice() {
        [] => rest,
        others => format!("{OPENING}{}{CLOSING}{rest}", others.join(BETWEEN)),
    })
}

/// The skills that a message says it loaded.
pub(super) fn announced(message: &str) -> impl Iterator<Item = &str> {
    let names = message.strip_prefix(OPENING).and_then(|rest| rest.split_once(CLOSING)).map(|(names, _)| names);
    names.into_iter().flat_map(|names| names.split(BETWEEN))
}
