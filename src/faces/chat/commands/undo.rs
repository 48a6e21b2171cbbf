//! `/undo`, `/redo` and `/diff`.

use crate::agent::Conversation;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::undo::{UNKEPT, UndoGround, bring_back, format_diff, parse_undo, take_back};

use super::{CommandAnswer, SlashMistake, SlashOutcome, tell_text};

/// `/undo [N] [--force]` takes the last N messages back, and what they changed in files; `/undo NAME` those since a
/// checkpoint.
pub(super) fn undo_messages(chat: &mut Chat, words: &str) -> CommandAnswer {
    let (messages, forced) = parse_undo(&chat.conversation.session, words)?;
    let (conversation, ground) = split_for_undo(chat);
    tell_text(take_back(conversation, &ground, messages, forced)?)
}

/// `/redo [--force]` takes the last undo back.
pub(super) fn redo_messages(chat: &mut Chat, words: &str) -> CommandAnswer {
    let (_, forced) = parse_undo(&chat.conversation.session, words)?;
    let (conversation, ground) = split_for_undo(chat);
    tell_text(bring_back(conversation, &ground, forced)?)
}

fn split_for_undo(chat: &mut Chat) -> (&mut Conversation, UndoGround<'_>) {
    let ground = UndoGround { config: &chat.config, workspace: &chat.origin, agent: &chat.services.agent };
    (&mut chat.conversation, ground)
}

/// `/diff` shows what the last message changed; `/diff --since N` what the last N did.
pub(super) fn show_diff(chat: &mut Chat, words: &str) -> CommandAnswer {
    let messages = match words.trim() {
        "" => 1,
        words => words
            .strip_prefix("--since")
            .map_or(words, str::trim)
            .parse()
            .map_err(|_| "write /diff, or /diff --since N")?,
    };
    let from = find_message(chat, messages)?;
    let history = chat.conversation.file_history().ok_or(UNKEPT)?;
    let diff = format_diff(history, from)?;
    if diff.is_empty() { tell_text("Nothing in files changed since.") } else { Ok(SlashOutcome::Page(diff)) }
}

fn find_message(chat: &Chat, messages: usize) -> Result<u64, SlashMistake> {
    if chat.is_ephemeral {
        return Err(UNKEPT.into());
    }
    chat.conversation.session.find_undo(messages).ok_or_else(|| "there are not so many messages of yours".into())
}
