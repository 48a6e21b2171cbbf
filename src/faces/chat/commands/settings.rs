//! `/model`, `/agent`, `/mode`, `/plan`, `/prompt`, `/tools`, `/approve`, `/set`: who answers, and how.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{CommandAnswer, SlashOutcome, tell_text};
use crate::agent::assembly::{self, ListedModel, RunOptions};
use crate::base::text;
use crate::config::{ApprovalMode, Changed, Mode, SettingFlag, SettingFlags};
use crate::conversation::event::plan::PlanEvent;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::{progress, tables};
use crate::model::effort::Effort;
use crate::prompt::{MODULES, PromptError, Registry};
use crate::screen::terminal;
use crate::tools::McpServer;

/// Keys that are read only at startup.
const READ_AT_START: [&str; 6] =
    ["ui.theme", "ui.status", "ui.notify", "ui.edit_mode", "ui.reasoning", "telemetry."];

/// `/model NAME`, `/model NAME LEVEL` and `/model LEVEL` change the model and its reasoning effort. Without a word the
/// person picks a model; if nobody is present the models are listed.
pub(super) fn change_model<'c>(chat: &'c mut Chat, words: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        if !words.is_empty() {
            return switch_model(chat, words);
        }
        let models = list_configured(chat);
        if !chat.approver.present() {
            return tell_text(tables::list_models(&models, chat.services.agent.model.info()));
        }
        let labels = tables::label_models(&models, &chat.services.agent.model.info().name);
        let question = "Which model? Type PROVIDER/ID or a level of reasoning for another one.";
        let Some(answer) = chat.approver.answer(question, &labels).await else {
            return tell_text("The model stays.");
        };
        let picked = labels.iter().position(|label| *label == answer);
        let words = picked.map_or(answer.as_str(), |index| models[index].name.as_str());
        if words == chat.services.agent.model.info().name {
            return tell_text("The model stays.");
        }
        switch_model(chat, words)
    }
    .boxed()
}

/// Lists the configured models, and the model in use even if it is not configured.
fn list_configured(chat: &Chat) -> Vec<ListedModel> {
    let mut models = assembly::list_models(&chat.config, "").models;
    let used = chat.services.agent.model.info();
    models.retain(|model| model.is_configured || model.name == used.name);
    if let Some(model) = models.iter_mut().find(|model| model.name == used.name)
        && model.id.as_deref() != Some(&used.id)
        && !used.scripted
    {
        // `/model ID` keeps only the server of a configured model.
        model.id = Some(used.id.clone());
        model.window = Some(used.context_window);
        model.prices.clone_from(&used.prices);
    }
    models
}

fn switch_model(chat: &mut Chat, words: &str) -> CommandAnswer {
    let (name, level) = words.rsplit_once(char::is_whitespace).unwrap_or(("", words));
    let (name, level) = Effort::read(level).map_or((words, None), |level| (name.trim(), Some(level)));
    chat.switch_model(Some(name).filter(|name| !name.is_empty()), level)?;
    let reasons = level.map(|level| format!(", reasoning_effort `{}`", level.word())).unwrap_or_default();
    let info = chat.services.agent.model.info();
    let has_id = |listed: &ListedModel| listed.id.as_ref() == Some(&info.id);
    let is_listed = info.scripted || assembly::list_models(&chat.config, &info.id).models.iter().any(has_id);
    let unknown = if is_listed { "" } else { " No list has it: its server is asked for it by this name." };
    tell_text(format!("The model is now {}{reasons}.{unknown}", info.id))
}

/// `/agent NAME` changes the agent; `/agent` lists the agents.
pub(super) fn change_agent(chat: &mut Chat, name: &str) -> CommandAnswer {
    if name.is_empty() {
        return tell_text(tables::list_agents(&chat.config, &chat.services.agent.name));
    }
    chat.switch_agent(name)?;
    let agent = &chat.services.agent;
    let model = text::make_visible(&agent.model.info().id);
    tell_text(format!("The agent is now {}, with the model {model}.", agent.name))
}

pub(super) fn show_servers(chat: &mut Chat, _: &str) -> CommandAnswer {
    let Some(servers) = chat.services.agent.tools.servers() else {
        return tell_text("No server of tools is configured; `agent mcp add` in a shell adds one.");
    };
    let row = |server: &Arc<McpServer>| {
        let (state, tools) = server.status();
        [server.name().to_owned(), text::count_noun(tools as u64, "tool", "tools"), state]
    };
    tell_text(tables::lay_out_columns(&servers.iter().map(row).collect::<Vec<_>>(), tables::find_edge()))
}

/// `/SERVER:PROMPT WORDS`: what the server writes is the message.
pub(super) fn send_server_prompt<'c>(chat: &'c mut Chat, typed: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        let (name, words) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let (server, prompt) = name.split_once(':').unwrap_or((name, ""));
        let message = chat.servers()?.write_prompt(server, prompt, words).await?;
        chat.take_from_outside(&format!("the server {server}"));
        Ok(SlashOutcome::Turn(message))
    }
    .boxed()
}

pub(super) fn change_mode(chat: &mut Chat, name: &str) -> CommandAnswer {
    if name.is_empty() {
        let row = |mode: Mode| (mode == chat.services.agent.mode, mode.name(), tables::describe_mode(mode));
        return tell_text(tables::list_words(Mode::ALL.map(row)));
    }
    let mode = Mode::find(name).ok_or_else(|| tables::refuse_word("mode", name, &Mode::ALL.map(Mode::name)))?;
    chat.switch_flag(SettingFlag::Mode, name)?;
    tell_text(format!("The mode is now {name}: {}.", tables::describe_mode(mode)))
}

/// `/plan` shows the last plan. `/plan go` lets one that waits go on, `/plan edit` after it was edited, and `/plan drop`
/// ends it.
pub(super) fn show_plan(chat: &mut Chat, what: &str) -> CommandAnswer {
    let happened = chat.conversation.session.progress();
    let shown =
        progress::format_table(happened).ok_or("there is no plan yet; /mode plan makes one for what follows")?;
    match what {
        "" => tell_text(shown),
        "go" | "drop" if matches!(happened.last(), Some(PlanEvent::Closed { .. })) => {
            Err("the plan is already over".into())
        }
        "go" => {
            chat.run.resumes_plan = true;
            Ok(SlashOutcome::Turn("Go on with the plan.".to_owned()))
        }
        "drop" => {
            let closed = PlanEvent::Closed { why: "dropped".to_owned() };
            chat.conversation.session.note_progress(closed, Timestamp::now())?;
            tell_text("The plan is dropped. What is done stays.")
        }
        _ => Err("write /plan, /plan go or /plan drop".into()),
    }
}

/// `/prompt` lists the prompts; `/prompt NAME[@VERSION]` changes the system prompt.
pub(super) fn change_prompt(chat: &mut Chat, reference: &str) -> CommandAnswer {
    let registry = Registry::new(&chat.config.prompt_dirs);
    if reference.is_empty() {
        return tell_text(list_prompts(chat, &registry)?);
    }
    let prompt = registry.get(reference)?;
    if prompt.has_messages() {
        let id = prompt.id();
        return Err(format!("{id} opens a conversation: start one with agent chat --prompt {reference}").into());
    }
    chat.assemble_again(RunOptions { prompt: Some(reference.to_owned()), ..chat.options.clone() })?;
    let used = chat.services.agent.briefing.system_of(&chat.conversation).id();
    tell_text(format!("The system prompt is now {used}."))
}

fn list_prompts(chat: &Chat, registry: &Registry) -> Result<String, PromptError> {
    let session = chat.conversation.session.id();
    let used: Vec<String> =
        chat.services.agent.briefing.list_prompts(session).into_iter().map(|used| used.to_string()).collect();
    let names = registry.names()?;
    let names = names.iter().map(String::as_str).filter(|name| !name.starts_with(MODULES));
    let rows = registry.list(names)?.into_iter().map(|listed| {
        let (id, about) = match &listed.prompt {
            Ok(prompt) => (prompt.id(), prompt.head.description.clone()),
            Err(error) => (format!("{}@{}", listed.name, listed.version), format!("error: {error}")),
        };
        let mark = if used.contains(&id) { "*" } else { "" };
        [mark.to_owned(), id, listed.labels.join(", "), about]
    });
    Ok(tables::lay_out_columns(&rows.collect::<Vec<_>>(), tables::find_edge()))
}

/// `/set KEY=VALUE` changes the configuration of this chat as `--set` does; `/set` lists the changed keys.
pub(super) fn change_setting(chat: &mut Chat, assignment: &str) -> CommandAnswer {
    if assignment.is_empty() {
        return tell_text(set_here(chat));
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
        return tell_text(format!("Nothing that can be shown changes{shown}."));
    }
    let mut lines: Vec<String> = changed.iter().map(format_change).collect();
    lines.extend(changed.iter().filter_map(|change| explain_change(change, chat.config.flags(), &chat.options)));
    tell_text(lines.join("\n"))
}

/// `/approve MODE` changes which calls run without a question, as `--approve` does; `/approve` lists the modes.
pub(super) fn change_approval(chat: &mut Chat, name: &str) -> CommandAnswer {
    let current = chat.services.agent.approval;
    if name.is_empty() {
        let row = |mode: ApprovalMode| (mode == current, mode.name(), mode.explain());
        return tell_text(tables::list_words(ApprovalMode::ALL.map(row)));
    }
    let known = ApprovalMode::ALL.map(ApprovalMode::name);
    let mode = ApprovalMode::find(name).ok_or_else(|| tables::refuse_word("approval mode", name, &known))?;
    chat.switch_flag(SettingFlag::Approve, name)?;
    let shown = |mode: ApprovalMode| format!("{} ({})", mode.name(), mode.explain());
    tell_text(format!("approval: {} → {}", shown(current), shown(mode)))
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
