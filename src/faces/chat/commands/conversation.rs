//! `/cost`, `/stats`, `/clear`, `/exit`: commands for the conversation as a whole.

use super::{CommandAnswer, SlashOutcome};
use crate::conversation::telemetry;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::screen::terminal;

pub(super) fn show_stats(chat: &mut Chat, _: &str) -> CommandAnswer {
    let session = &chat.conversation.session;
    Ok(SlashOutcome::Tell(telemetry::format_report(
        &tables::sum_costs(session),
        session.describe().model,
        terminal::measure_width(),
    )))
}

/// Shows the figures of `/stats` in one line.
pub(super) fn show_cost(chat: &mut Chat, _: &str) -> CommandAnswer {
    Ok(SlashOutcome::Tell(telemetry::format_line(&tables::sum_costs(&chat.conversation.session))))
}

pub(super) fn clear_chat(chat: &mut Chat, _: &str) -> CommandAnswer {
    let before = chat.clear().map_err(|error| error.to_string())?;
    Ok(SlashOutcome::Tell(if chat.is_ephemeral {
        "A new conversation.".to_owned()
    } else {
        format!("A new conversation. The one before is kept: agent chat --session {}", before.session.id())
    }))
}

pub(super) fn exit_chat(_: &mut Chat, _: &str) -> CommandAnswer {
    Ok(SlashOutcome::Leave)
}
