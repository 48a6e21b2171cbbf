//! `/context`, `/compact`, `/uncompact`, `/pin`, `/recall`: show and change the context.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{CommandAnswer, SlashOutcome};
use crate::agent::{pin_items as pin_messages, run_compression};
use crate::base::text;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::context as tables;

pub(super) fn show_context(chat: &mut Chat, _: &str) -> CommandAnswer {
    chat.table(tables::format_window).map(SlashOutcome::Tell)
}

/// Compresses the conversation. Dropping the future leaves the conversation as it was.
pub(super) fn compact_history<'c>(chat: &'c mut Chat, focus: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        if focus == "--dry-run" {
            return chat.table(tables::format_plan).map(SlashOutcome::Tell);
        }
        chat.begin_run();
        let (agent, cancel) = (&chat.services.agent, chat.cancel());
        match run_compression(agent, &mut chat.conversation, &mut chat.run, focus, &cancel).await {
            // The event of the compression reports the result.
            Ok(Some(_)) => Ok(SlashOutcome::Tell(String::new())),
            Ok(None) => Ok(SlashOutcome::Tell(
                "Nothing to compact: recent steps and pinned messages stay whole.".to_owned(),
            )),
            Err(ending) => Err(ending.reason),
        }
    }
    .boxed()
}

pub(super) fn undo_compaction(chat: &mut Chat, _: &str) -> CommandAnswer {
    let restored = chat.conversation.session.restore(Timestamp::now()).map_err(|error| error.to_string())?;
    let done = match restored {
        0 => "Everything is already sent as it was said.".to_owned(),
        1 => "1 message is sent again as it was said.".to_owned(),
        count => format!("{count} messages are sent again as they were said."),
    };
    Ok(SlashOutcome::Tell(format!("{done} Compressions stay off until /compact, unless a request would not fit.")))
}

/// Shows the person what the `recall` tool finds.
pub(super) fn recall_text(chat: &mut Chat, id_or_words: &str) -> CommandAnswer {
    if id_or_words.is_empty() {
        return Err("name an id, such as r1 or m12, or words to find in text that is no longer sent".to_owned());
    }
    chat.conversation.recall(id_or_words).map(SlashOutcome::Page)
}

pub(super) fn pin_text(chat: &mut Chat, text: &str) -> CommandAnswer {
    let pinned = pin_messages(&mut chat.conversation.session, text, Timestamp::now());
    match pinned.map_err(|error| error.to_string())?.as_slice() {
        [] if text.is_empty() => Err("there is nothing to pin yet".to_owned()),
        [] => Err(format!("no message contains `{}`", text::one_line(text, 60))),
        pinned => Ok(SlashOutcome::Tell(format!("Pinned:\n{}", pinned.join("\n")))),
    }
}
