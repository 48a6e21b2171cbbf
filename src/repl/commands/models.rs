//! `/model`, `/tools`: the agent's model and its tools.

use super::{Answer, Outcome};
use crate::repl::chat::Chat;
use crate::repl::tables;

pub(super) fn model(chat: &mut Chat, name: &str) -> Answer {
    if name.is_empty() {
        return Ok(Outcome::Tell(tables::models(&chat.config, chat.services.agent.model.info())));
    }
    chat.switch_model(name).map_err(|error| error.to_string())?;
    Ok(Outcome::Tell(format!("The model is now {}.", chat.services.agent.model.info().id)))
}

pub(super) fn tools(chat: &mut Chat, _: &str) -> Answer {
    Ok(Outcome::Tell(tables::tools(chat.services.agent.tools.all())))
}
