//! Runs custom commands: the text with its arguments is a message for the model that the command's file names.

use super::{Answer, Outcome};
use crate::config::OwnCommand;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::own;

/// Runs a custom command.
pub fn run(chat: &mut Chat, command: &OwnCommand, arguments: &str) -> Answer {
    let message = own::message(command, arguments)?;
    if let Some(model) = &command.model {
        chat.lend_model(model).map_err(|error| format!("{}: {error}", command.origin))?;
    }
    Ok(Outcome::Turn(message))
}
