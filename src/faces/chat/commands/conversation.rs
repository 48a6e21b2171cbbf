//! `/cost`, `/stats`, `/clear`, `/exit`: commands for the conversation as a whole.

use super::{Answer, Outcome};
use crate::conversation::telemetry;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::screen::terminal;

pub(super) fn stats(chat: &mut Chat, _: &str) -> Answer {
    let session = &chat.conversation.session;
    Ok(Outcome::Tell(telemetry::table(&tables::costs(session), session.about().model, terminal::width())))
}

/// Shows the figures of `/stats` in one line.
pub(super) fn cost(chat: &mut Chat, _: &str) -> Answer {
    Ok(Outcome::Tell(telemetry::line(&tables::costs(&chat.conversation.session))))
}

pub(super) fn clear(chat: &mut Chat, _: &str) -> Answer {
    let before = chat.clear().map_err(|error| error.to_string())?;
    Ok(Outcome::Tell(if chat.is_ephemeral {
        "A new conversation.".to_owned()
    } else {
        format!("A new conversation. The one before is kept: agent chat --session {}", before.session.id())
    }))
}

pub(super) fn exit(_: &mut Chat, _: &str) -> Answer {
    Ok(Outcome::Leave)
}
