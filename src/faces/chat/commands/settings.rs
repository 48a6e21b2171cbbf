//! `/set`, `/approve`: change the configuration and the approval mode of the running chat.

use super::{CommandAnswer, SlashOutcome};
use crate::agent::assembly::RunOptions;
use crate::base::text;
use crate::config::{ApprovalMode, Changed, SettingFlag, SettingFlags};
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::screen::terminal;

/// Keys that are read only at startup.
const READ_AT_START: [&str; 6] =
    ["ui.theme", "ui.status", "ui.notify", "ui.edit_mode", "ui.reasoning", "telemetry."];

/// `/set KEY=VALUE` changes the configuration of this chat as `--set` does; `/set` lists the changed keys.
pub(super) fn change_setting(chat: &mut Chat, assignment: &str) -> CommandAnswer {
    if assignment.is_empty() {
        return Ok(SlashOutcome::Tell(set_here(chat)));
    }
    let (key, value) =
        assignment.split_once('=').ok_or("write it as KEY=VALUE, as in /set limits.max_turns=20")?;
    let (key, value) = (key.trim(), value.trim());
    let changed = chat.set(key, value)?;
    if !chat.sets.iter().any(|known| known == key) {
        chat.sets.push(key.to_owned());
    }
    if changed.is_empty() {
        let shown = chat.config.value_of(key).map(|value| format!(": {value}")).unwrap_or_default();
        return Ok(SlashOutcome::Tell(format!("Nothing that can be shown changes{shown}.")));
    }
    let mut lines: Vec<String> = changed.iter().map(format_change).collect();
    lines.extend(changed.iter().filter_map(|change| explain_change(change, chat.config.flags(), &chat.options)));
    Ok(SlashOutcome::Tell(lines.join("\n")))
}

/// `/approve MODE` changes which calls run without a question, as `--approve` does; `/approve` lists the modes.
pub(super) fn change_approval(chat: &mut Chat, name: &str) -> CommandAnswer {
    let current = chat.services.agent.approval;
    if name.is_empty() {
        let row = |mode: ApprovalMode| {
            let mark = if mode == current { "*" } else { " " };
            [mark.to_owned(), mode.name().to_owned(), mode.explain().to_owned()]
        };
        return Ok(SlashOutcome::Tell(tables::lay_out_columns(
            &ApprovalMode::ALL.map(row),
            terminal::measure_width(),
        )));
    }
    let mode = ApprovalMode::find(name).ok_or_else(|| {
        let known = ApprovalMode::ALL.map(ApprovalMode::name).join(", ");
        format!("there is no approval mode `{}`; there are {known}", text::one_line(name, 40))
    })?;
    chat.switch_approval(mode)?;
    let shown = |mode: ApprovalMode| format!("{} ({})", mode.name(), mode.explain());
    Ok(SlashOutcome::Tell(format!("approval: {} → {}", shown(current), shown(mode))))
}

/// Lists the keys that were set in this chat, with their current values.
fn set_here(chat: &Chat) -> String {
    if chat.sets.is_empty() {
        return "Nothing was set in this chat. /set KEY=VALUE does, until it ends; agent config show has all keys."
            .to_owned();
    }
    let row = |key: &String| [key.clone(), chat.config.value_of(key).unwrap_or_default(), chat.config.place(key)];
    let rows: Vec<[String; 3]> = chat.sets.iter().map(row).collect();
    tables::lay_out_columns(&rows, terminal::measure_width())
}

fn format_change(change: &Changed) -> String {
    let Changed { key, before, after, place } = change;
    let shown = |value: &str| if value.is_empty() { "(nothing)".to_owned() } else { value.to_owned() };
    format!("{key}: {} → {} ({place})", shown(before), shown(after))
}

/// Explains why a change has no effect yet, if it has none.
fn explain_change(change: &Changed, flags: &SettingFlags, options: &RunOptions) -> Option<String> {
    let key = &change.key;
    if READ_AT_START.iter().any(|known| key.starts_with(known)) {
        return Some(format!("{key} is read when the program starts: --set, or agent.yaml"));
    }
    let option = list_overrides(flags, options).into_iter().find(|(end, _)| key.ends_with(end.as_str()));
    Some(format!("but {}, which was chosen for this chat, overrides it", option?.1))
}

/// The choices that override values of the configuration, by the ends of their keys.
fn list_overrides(flags: &SettingFlags, options: &RunOptions) -> Vec<(String, String)> {
    let model = options.model.iter().map(|name| (".model".to_owned(), format!("/model {name}")));
    let prompt = options.prompt.iter().map(|name| (".system_prompt.ref".to_owned(), format!("/prompt {name}")));
    let flags = flags.iter().map(|(flag, value)| match flag {
        SettingFlag::Approve => (".approval".to_owned(), format!("/approve {value}")),
        SettingFlag::Mode => (".mode".to_owned(), format!("/mode {value}")),
        limit => (limit.key().to_owned(), format!("{} {value}", limit.name())),
    });
    model.chain(prompt).chain(flags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_not_seen_at_once_says_why() {
        let flags = SettingFlags::default()
            .with(SettingFlag::MaxTurns, Some("3".to_owned()))
            .with(SettingFlag::Approve, Some("never".to_owned()));
        for (key, expected) in [
            ("limits.max_turns", Some("but --max-turns 3, which was chosen for this chat, overrides it")),
            ("agents.default.approval", Some("but /approve never, which was chosen for this chat, overrides it")),
            ("ui.theme", Some("ui.theme is read when the program starts: --set, or agent.yaml")),
            ("ui.markdown", None),
            ("limits.max_time", None),
            ("agents.default.mode", None),
        ] {
            let change = Changed {
                key: key.to_owned(),
                before: String::new(),
                after: "1".to_owned(),
                place: String::new(),
            };
            assert_eq!(explain_change(&change, &flags, &RunOptions::default()).as_deref(), expected, "{key}");
        }
    }
}
