//! `/context`, `/compact`, `/uncompact`, `/pin`, `/unpin`, `/recall`, `/skill`, `/unload`, `/skills`: show and change what is sent.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{CommandAnswer, SlashOutcome, tell_text};
use crate::agent::{pin_items, run_compression, unload_skill, unpin_items};
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::{context, tables};

pub(super) fn show_context(chat: &mut Chat, _: &str) -> CommandAnswer {
    tell_text(chat.table(context::format_window)?)
}

/// Compresses the conversation. Dropping the future leaves the conversation as it was.
pub(super) fn compact_history<'c>(chat: &'c mut Chat, focus: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        if focus == "--dry-run" {
            return tell_text(chat.table(context::format_plan)?);
        }
        chat.begin_run();
        let (agent, cancel) = (&chat.services.agent, chat.cancel());
        match run_compression(agent, &mut chat.conversation, &mut chat.run, focus, &cancel).await {
            // The event of the compression reports the result.
            Ok(Some(_)) => tell_text(String::new()),
            Ok(None) => tell_text("Nothing to compact: recent steps and pinned messages stay whole."),
            Err(ending) => Err(ending.reason.into()),
        }
    }
    .boxed()
}

pub(super) fn undo_compaction(chat: &mut Chat, _: &str) -> CommandAnswer {
    let restored = chat.conversation.session.restore(Timestamp::now())?;
    let done = match restored {
        0 => "Everything is already sent as it was said.".to_owned(),
        1 => "1 message is sent again as it was said.".to_owned(),
        count => format!("{count} messages are sent again as they were said."),
    };
    tell_text(format!("{done} Compressions stay off until /compact, unless a request would not fit."))
}

/// Shows the person what the `recall` tool finds.
pub(super) fn recall_text(chat: &mut Chat, id_or_words: &str) -> CommandAnswer {
    if id_or_words.is_empty() {
        return Err("name an id, such as r1 or m12, or words to find in text that is no longer sent".into());
    }
    Ok(SlashOutcome::Page(chat.conversation.recall(id_or_words)?))
}

pub(super) fn pin_text(chat: &mut Chat, which: &str) -> CommandAnswer {
    let pinned = pin_items(&mut chat.conversation.session, which, Timestamp::now())
        .map_err(|error| format!("{error:#}"))?;
    tell_text(format!("Pinned:\n{}", pinned.join("\n")))
}

pub(super) fn unpin_text(chat: &mut Chat, which: &str) -> CommandAnswer {
    let unpinned = unpin_items(&mut chat.conversation.session, which, Timestamp::now())
        .map_err(|error| format!("{error:#}"))?;
    tell_text(format!("No longer pinned:\n{}", unpinned.join("\n")))
}

/// Loads a skill with the next message, which is the task if there is one.
pub(super) fn load_skill(chat: &mut Chat, argument: &str) -> CommandAnswer {
    let (name, task) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    if name.is_empty() {
        return Err("name a skill. /skills lists them.".into());
    }
    chat.services.catalogue.get(name)?;
    let is_loaded = chat.conversation.skills().contains(name);
    if !is_loaded && !chat.skills.iter().any(|known| known == name) {
        chat.skills.push(name.to_owned());
    }
    match task.trim() {
        "" if is_loaded => tell_text(format!("{name} is already loaded.")),
        "" => tell_text(format!("{name} goes with your next message.")),
        task => Ok(SlashOutcome::Turn(task.to_owned())),
    }
}

pub(super) fn drop_skill(chat: &mut Chat, name: &str) -> CommandAnswer {
    if name.is_empty() {
        return Err("name a skill. /skills shows which are loaded.".into());
    }
    let event = unload_skill(&mut chat.conversation, name).map_err(|error| format!("{error:#}"))?;
    chat.run.emitter.notify(event);
    tell_text(format!("{name} is no longer part of what is sent."))
}

pub(super) fn show_skills(chat: &mut Chat, _: &str) -> CommandAnswer {
    tell_text(tables::list_skills(&chat.services.catalogue, chat.conversation.skills()))
}
