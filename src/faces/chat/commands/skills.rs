//! `/skill`, `/unload`, `/skills`: load, unload and list skills.

use super::{CommandAnswer, SlashOutcome};
use crate::agent::unload_skill;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;

/// Loads a skill with the next message, which is the task if there is one.
pub(super) fn load_skill(chat: &mut Chat, argument: &str) -> CommandAnswer {
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
        "" if is_loaded => SlashOutcome::Tell(format!("{name} is already loaded.")),
        "" => SlashOutcome::Tell(format!("{name} goes with your next message.")),
        task => SlashOutcome::Turn(task.to_owned()),
    })
}

pub(super) fn drop_skill(chat: &mut Chat, name: &str) -> CommandAnswer {
    if name.is_empty() {
        return Err("name a skill. /skills shows which are loaded.".to_owned());
    }
    let event = unload_skill(&mut chat.conversation, name).map_err(|error| format!("{error:#}"))?;
    chat.run.emitter.notify(event);
    Ok(SlashOutcome::Tell(format!("{name} is no longer part of what is sent.")))
}

pub(super) fn show_skills(chat: &mut Chat, _: &str) -> CommandAnswer {
    Ok(SlashOutcome::Tell(tables::list_skills(&chat.services.catalogue, chat.conversation.skills())))
}
