//! `/prompt`: lists prompts, and changes the system prompt.

use super::{CommandAnswer, SlashOutcome};
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::prompt::{MODULES, Registry};

/// `/prompt` lists the prompts; `/prompt NAME[@VERSION]` changes the system prompt.
pub(super) fn change_prompt(chat: &mut Chat, reference: &str) -> CommandAnswer {
    let registry = Registry::new(&chat.config.prompt_dirs);
    if reference.is_empty() {
        return list_prompts(chat, &registry).map(SlashOutcome::Tell);
    }
    let prompt = registry.get(reference).map_err(|error| error.to_string())?;
    if prompt.has_messages() {
        return Err(format!(
            "{} opens a conversation: start one with agent chat --prompt {reference}",
            prompt.id()
        ));
    }
    chat.switch_prompt(reference).map_err(|error| error.to_string())?;
    let used = chat.services.agent.briefing.system_of(&chat.conversation).id();
    Ok(SlashOutcome::Tell(format!("The system prompt is now {used}.")))
}

fn list_prompts(chat: &Chat, registry: &Registry) -> Result<String, String> {
    let session = chat.conversation.session.id();
    let used: Vec<String> =
        chat.services.agent.briefing.list_prompts(session).into_iter().map(|used| used.to_string()).collect();
    let names = registry.names().map_err(|error| error.to_string())?;
    let names = names.iter().map(String::as_str).filter(|name| !name.starts_with(MODULES));
    let rows = registry.list(names).map_err(|error| error.to_string())?.into_iter().map(|listed| {
        let (id, about) = match &listed.prompt {
            Ok(prompt) => (prompt.id(), prompt.head.description.clone()),
            Err(error) => (format!("{}@{}", listed.name, listed.version), format!("error: {error}")),
        };
        let mark = if used.contains(&id) { "*" } else { "" };
        [mark.to_owned(), id, listed.labels.join(", "), about]
    });
    Ok(tables::lay_out_columns(&rows.collect::<Vec<_>>(), tables::find_edge()))
}
