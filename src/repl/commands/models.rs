//! `/model`, `/tools`: the agent's model and its tools.

use super::{Answer, Outcome};
use crate::llm::effort::Effort;
use crate::repl::chat::Chat;
use crate::repl::tables;

/// `/model NAME`, `/model NAME LEVEL`, `/model LEVEL`: another model, and how much it reasons.
pub(super) fn model(chat: &mut Chat, words: &str) -> Answer {
    if words.is_empty() {
        return Ok(Outcome::Tell(tables::models(&chat.config, chat.services.agent.model.info())));
    }
    let (name, level) = words.rsplit_once(char::is_whitespace).unwrap_or(("", words));
    let (name, level) = match Effort::read(level) {
        Some(level) => (name.trim(), Some(level)),
        None => (words, None),
    };
    chat.switch_model(Some(name).filter(|name| !name.is_empty()), level).map_err(|error| error.to_string())?;
    let reasons = level.map(|level| format!(", reasoning_effort `{}`", level.word())).unwrap_or_default();
    Ok(Outcome::Tell(format!("The model is now {}{reasons}.", chat.services.agent.model.info().id)))
}

pub(super) fn tools(chat: &mut Chat, _: &str) -> Answer {
    Ok(Outcome::Tell(tables::tools(chat.services.agent.tools.all())))
}
