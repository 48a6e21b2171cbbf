//! Runs custom commands: the text with its arguments is a message for the model that the command's file names.

use super::{CommandAnswer, SlashOutcome};
use crate::config::OwnCommand;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::own;

/// Runs a custom command.
pub fn run_own_command(chat: &mut Chat, command: &OwnCommand, arguments: &str) -> CommandAnswer {
    let message = own::write_message(command, arguments)?;
    if let Some(model) = &command.model {
        chat.lend_model(model).map_err(|error| format!("{}: {error}", command.origin))?;
    }
    Ok(SlashOutcome::Turn(message))
}
