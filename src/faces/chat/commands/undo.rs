//! `/undo`, `/redo` and `/diff`.

use crate::base::text;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::undo::{explain_unkept, format_diff, restore_files};
use crate::files::history::Direction;

use super::{CommandAnswer, SlashMistake, SlashOutcome, tell_text};

const FORCE: &str = "--force";

/// `/undo [N] [--force]` takes the last N messages back, and what they changed in files; `/undo NAME` those since a
/// checkpoint.
pub(super) fn undo_messages(chat: &mut Chat, words: &str) -> CommandAnswer {
    let session = &chat.conversation.session;
    let checkpoint = words.split_whitespace().find(|word| session.list_checkpoints().any(|name| name == *word));
    let since = checkpoint.map(|name| session.count_since(name)).transpose()?;
    let rest: Vec<&str> = words.split_whitespace().filter(|word| Some(*word) != checkpoint).collect();
    let (messages, forced) = parse_words(&rest.join(" "), FORCE)?;
    let messages = since.unwrap_or(messages);
    if messages == 0 {
        return Err("nothing was said since that checkpoint".into());
    }
    let from = find_message(chat, messages)?;
    let put_back = put_files_back(chat, Direction::Undo(from), forced)?;
    let unkept = || explain_unkept(&chat.conversation.session, from).map(str::to_owned);
    let mut told = put_back.or_else(unkept).unwrap_or_default();
    let said = chat.undo(messages)?.unwrap_or_default();
    told.extend(["Taken back: ", &text::one_line(&said, 200), "\n/redo brings it back."]);
    tell_text(told)
}

/// `/redo [--force]` takes the last undo back.
pub(super) fn redo_messages(chat: &mut Chat, words: &str) -> CommandAnswer {
    let (_, forced) = parse_words(words, FORCE)?;
    let files = put_files_back(chat, Direction::Redo, forced)?;
    let has_messages = chat.conversation.session.can_redo();
    if files.is_none() && !has_messages {
        return Err("there is no undo to take back".into());
    }
    let mut told = files.unwrap_or_default();
    if has_messages {
        chat.redo()?;
        told += "The conversation is as it was before the undo.";
    }
    tell_text(told.trim_end())
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

const UNKEPT: &str = "nothing is kept of this conversation, so nothing can be taken back";

fn find_message(chat: &Chat, messages: usize) -> Result<u64, SlashMistake> {
    if chat.is_ephemeral {
        return Err(UNKEPT.into());
    }
    chat.conversation.session.find_undo(messages).ok_or_else(|| "there are not so many messages of yours".into())
}

/// Puts files back; `None` if there are none to put back.
fn put_files_back(chat: &Chat, direction: Direction, forced: bool) -> Result<Option<String>, SlashMistake> {
    let Some(history) = chat.conversation.file_history() else { return Err(UNKEPT.into()) };
    Ok(restore_files(history, direction, forced, false)?)
}

/// A number, 1 if there is none, and whether the flag is there.
fn parse_words(words: &str, flag: &str) -> Result<(usize, bool), SlashMistake> {
    let (mut number, mut has_flag) = (1, false);
    for word in words.split_whitespace() {
        match word.parse::<usize>() {
            Ok(parsed) if parsed > 0 => number = parsed,
            _ if word == flag => has_flag = true,
            _ => return Err(format!("write a number of messages, a checkpoint, or {flag}").into()),
        }
    }
    Ok((number, has_flag))
}
