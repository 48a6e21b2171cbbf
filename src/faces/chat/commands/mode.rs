//! `/mode`, `/plan`: change how requests are carried out, and show the last plan.

use jiff::Timestamp;

use super::{CommandAnswer, SlashOutcome};
use crate::config::Mode;
use crate::conversation::event::plan::PlanEvent;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::{progress, tables};

pub(super) fn change_mode(chat: &mut Chat, name: &str) -> CommandAnswer {
    if name.is_empty() {
        return Ok(SlashOutcome::Tell(tables::list_modes(chat.services.agent.mode)));
    }
    let mode = Mode::find(name).ok_or_else(|| {
        let known = Mode::ALL.map(Mode::name).join(", ");
        format!("there is no mode `{}`; there are {known}", crate::base::text::one_line(name, 40))
    })?;
    chat.switch_mode(mode)?;
    Ok(SlashOutcome::Tell(format!("The mode is now {name}: {}.", tables::describe_mode(mode))))
}

/// `/plan` shows the last plan; `/plan drop` closes it, so the next message begins a new one.
pub(super) fn show_plan(chat: &mut Chat, what: &str) -> CommandAnswer {
    let happened = chat.conversation.session.progress();
    let shown =
        progress::format_table(happened).ok_or("there is no plan yet; /mode plan makes one for what follows")?;
    match what {
        "" => Ok(SlashOutcome::Tell(shown)),
        "drop" if matches!(happened.last(), Some(PlanEvent::Closed { .. })) => {
            Err("the plan is already over".to_owned())
        }
        "drop" => {
            let closed = PlanEvent::Closed { why: "dropped".to_owned() };
            chat.conversation
                .session
                .note_progress(closed, Timestamp::now())
                .map_err(|error| error.to_string())?;
            Ok(SlashOutcome::Tell(
                "The plan is dropped. What is done stays; the next message begins anew.".to_owned(),
            ))
        }
        _ => Err("write /plan, or /plan drop".to_owned()),
    }
}
