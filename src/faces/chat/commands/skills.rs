//! `/skill`, `/unload`, `/skills`: load, unload and list skills.

use super::{Answer, Outcome};
use crate::agent::unload_skill;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;

/// Loads a skill with the next message, which is the task if there is one.
pub(super) fn skill(chat: &mut Chat, argument: &str) -> Answer {
    let (name, task) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    if name.is_empty() {
        return Err("name a skill. /skills lists them.".to_owned());
    }
    chat.services.catalogue.get(name).map_err(|error| error.message)?;
    let is_loaded = chat.conversation.skills().contains(name);
    if !is_loaded && !chat.skills.iter().any(|known| known == name) {
        chat.skills.push(name.to_owned());
    }
    Ok(match task.trim() {
        "" if is_loaded => Outcome::Tell(format!("{name} is already loaded.")),
        "" => Outcome::Tell(format!("{name} goes with your next message.")),
        task => Outcome::Turn(task.to_owned()),
    })
}

pub(super) fn unload(chat: &mut Chat, name: &str) -> Answer {
    if name.is_empty() {
        return Err("name a skill. /skills shows which are loaded.".to_owned());
    }
    let event = unload_skill(&mut chat.conversation, name).map_err(|error| format!("{error:#}"))?;
    chat.run.emitter.notify(event);
    Ok(Outcome::Tell(format!("{name} is no longer part of what is sent.")))
}

pub(super) fn skills(chat: &mut Chat, _: &str) -> Answer {
    Ok(Outcome::Tell(tables::skills(&chat.services.catalogue, chat.conversation.skills())))
}
