//! Commands of one's own: their text with the arguments is a message, asked of the model that their file names.

use super::{Answer, Outcome};
use crate::config::OwnCommand;
use crate::repl::chat::Chat;
use crate::repl::own;

/// Runs a command of the person's or the project's.
pub fn run(chat: &mut Chat, command: &OwnCommand, arguments: &str) -> Answer {
    let message = own::message(command, arguments)?;
    if let Some(model) = &command.model {
        chat.lend_model(model).map_err(|error| format!("{}: {error}", command.origin))?;
    }
    Ok(Outcome::Turn(message))
}
