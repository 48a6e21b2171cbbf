//! Skills that a person loads: their instructions go along with what the person says.
//!
//! A message with skills begins with a line that names them. Nothing that came from a file or a pipe can stand there,
//! so a session that is opened again knows by it what it has loaded.

use crate::agent::Agent;
use crate::config::SkillDisclosure;
use crate::event::EventKind;
use crate::skills::SkillError;

const OPENING: &str = "[skills loaded: ";
const BETWEEN: &str = ", ";
const CLOSING: &str = "]\n";

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
    bodies.retain(|(name, body)| briefing.loaded.insert(name, Some(body.fingerprint())));
    if bodies.is_empty() {
        return Ok(WithSkills { text: message.to_owned(), events: Vec::new() });
    }
    let names: Vec<&str> = bodies.iter().map(|(name, _)| name.as_str()).collect();
    let mut with =
        WithSkills { text: format!("{OPENING}{}{CLOSING}\n{message}", names.join(BETWEEN)), events: Vec::new() };
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

/// The skills that a message says it loaded.
pub(super) fn announced(message: &str) -> impl Iterator<Item = &str> {
    let names = message.strip_prefix(OPENING).and_then(|rest| rest.split_once(CLOSING)).map(|(names, _)| names);
    names.into_iter().flat_map(|names| names.split(BETWEEN))
}
