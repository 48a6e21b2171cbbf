//! Skills that a person loads or unloads. Loaded instructions are sent with the person's text.

use jiff::Timestamp;

use crate::agent::{Agent, Cancel, Conversation};
use crate::config::SkillDisclosure;
use crate::conversation::event::EventKind;
use crate::conversation::knowledge::SkillChange;
use crate::conversation::message::{Item, SkillText, UserText};
use crate::conversation::session::{ItemChange, ViewEdit};
use crate::skills::SkillError;

/// Fetches what servers have of the skills that a person wants, and of those that the system prompt shows.
///
/// # Errors
/// A server does not give what a person wants, or they interrupted it.
pub async fn fetch_skills(
    agent: &Agent,
    conversation: &mut Conversation,
    names: &[String],
    cancel: &Cancel,
) -> Result<(), SkillError> {
    let catalogue = &agent.briefing.catalogue;
    let fetching = async {
        for name in names {
            catalogue.fetch(name, None).await?;
        }
        if agent.briefing.disclosure == SkillDisclosure::System && conversation.skills().lacks_instructions() {
            for change in &conversation.session.state().skills {
                let _ = match change {
                    SkillChange::Loaded { name, .. } => catalogue.fetch(name, None).await,
                    SkillChange::Referenced { name, file, .. } => catalogue.fetch(name, Some(file)).await,
                    SkillChange::Unloaded { .. } => Ok(()),
                };
            }
        }
        Ok(())
    };
    tokio::select! {
        fetched = fetching => fetched?,
        () = cancel.triggered() => return Ok(()),
    }
    for name in names.iter().filter(|name| catalogue.is_served(name)) {
        let source = format!("the skill `{name}`, which comes from a server,");
        conversation.session.mark_tainted(&source, Timestamp::now());
    }
    Ok(())
}

/// Adds the instructions of skills to a person's text, and returns the events that report it. Skills that are
/// loaded already are skipped; bodies that are templates receive the text as their arguments.
///
/// # Errors
/// There is no such skill, or it cannot be read; then nothing is loaded.
pub fn load_skills(
    agent: &Agent,
    conversation: &Conversation,
    said: &mut UserText,
    names: &[String],
) -> Result<Vec<EventKind>, SkillError> {
    let (briefing, loaded) = (&agent.briefing, conversation.skills());
    let mut bodies = Vec::new();
    for name in names {
        let body = briefing.catalogue.load(name, &said.text)?;
        if !bodies.iter().any(|(known, _)| *known == name) {
            bodies.push((name, body));
        }
    }
    bodies.retain(|(name, body)| loaded.insert(name, &body.path, body.fingerprint()));
    let mut events = Vec::new();
    for (name, body) in bodies {
        let (tokens, path) = (body.tokens(), body.path.clone());
        let instructions = body.instructions(agent.result_bytes());
        match briefing.disclosure {
            SkillDisclosure::Message => {
                let text = agent.redactor.redact(&instructions).into_owned();
                said.skills.push(SkillText { name: name.clone(), text });
            }
            SkillDisclosure::System => loaded.show(name, instructions),
        }
        events.push(EventKind::SkillLoaded { name: name.clone(), path, tokens });
    }
    Ok(events)
}

/// Warns about each `--skill` that the session had already loaded, because `events` do not load it again.
pub fn already_loaded<'a>(names: &'a [String], events: &'a [EventKind]) -> impl Iterator<Item = String> + 'a {
    let loads =
        |event: &EventKind, wanted: &str| matches!(event, EventKind::SkillLoaded { name, .. } if name == wanted);
    let known = names.iter().filter(move |name| !events.iter().any(|event| loads(event, name)));
    known.map(|name| format!("--skill {name} has no effect: this session has loaded it already"))
}

/// Removes the instructions of a skill and of its files from later requests; a line replaces them. The log keeps them.
/// Returns the event that reports it.
///
/// # Errors
/// The skill is not loaded, or the session cannot be written.
pub fn unload_skill(conversation: &mut Conversation, name: &str) -> anyhow::Result<EventKind> {
    anyhow::ensure!(conversation.skills().contains(name), "{name} is not loaded; /skills shows the loaded ones");
    let (mut edits, mut freed) = (Vec::new(), 0);
    let session = &mut conversation.session;
    for (id, item) in session.ids().iter().zip(session.items()) {
        for (change, bytes) in remove_skill(item, name) {
            freed += bytes;
            edits.push(ViewEdit { number: id.number, change });
        }
    }
    session.unload(&[name.to_owned()], &edits, Timestamp::now())?;
    let path = conversation.skills().forget(name).unwrap_or_default();
    conversation.note_knowledge(Timestamp::now());
    let tokens = (freed / crate::base::tokens::BYTES_PER_TOKEN) as u64;
    Ok(EventKind::SkillUnloaded { name: name.to_owned(), path, tokens })
}

/// The changes that remove a skill from an item, and the bytes that each frees.
fn remove_skill(item: &Item, name: &str) -> Vec<(ItemChange, usize)> {
    match item {
        Item::Said(said) => {
            let held = said.skills.iter().filter(|skill| skill.name == name);
            held.map(|skill| (ItemChange::Unload { skill: name.to_owned() }, skill.text.len())).collect()
        }
        Item::Step(step) => {
            let answers = step.calls().enumerate().filter_map(|(at, call)| Some((at, call.answer.as_ref()?)));
            let held = answers.filter(|(_, answer)| answer.skill.as_deref() == Some(name));
            let content = SkillText::stub(name);
            held.map(|(call, answer)| {
                (ItemChange::Answer { call, content: content.clone() }, answer.content.len())
            })
            .collect()
        }
        Item::Summary(_) => Vec::new(),
    }
}
