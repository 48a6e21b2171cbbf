//! `/model`, `/agent`, `/tools`: choose the model and the agent, and list the tools.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{CommandAnswer, SlashOutcome};
use crate::agent::assembly::{self, ListedModel};
use crate::base::text;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::model::effort::Effort;

/// `/model NAME`, `/model NAME LEVEL` and `/model LEVEL` change the model and its reasoning effort. Without a word the
/// person picks a model; if nobody is present the models are listed.
pub(super) fn change_model<'c>(chat: &'c mut Chat, words: &'c str) -> BoxFuture<'c, CommandAnswer> {
    async move {
        if !words.is_empty() {
            return switch_model(chat, words);
        }
        let models = list_configured(chat);
        if !chat.approver.present() {
            return Ok(SlashOutcome::Tell(tables::list_models(&models, chat.services.agent.model.info())));
        }
        let labels = tables::label_models(&models, &chat.services.agent.model.info().name);
        let question = "Which model? Type PROVIDER/ID or a level of reasoning for another one.";
        let Some(answer) = chat.approver.answer(question, &labels).await else {
            return Ok(SlashOutcome::Tell("The model stays.".to_owned()));
        };
        let picked = labels.iter().position(|label| *label == answer);
        let words = picked.map_or(answer.as_str(), |index| models[index].name.as_str());
        if words == chat.services.agent.model.info().name {
            return Ok(SlashOutcome::Tell("The model stays.".to_owned()));
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
    let (name, level) = match Effort::read(level) {
        Some(level) => (name.trim(), Some(level)),
        None => (words, None),
    };
    chat.switch_model(Some(name).filter(|name| !name.is_empty()), level).map_err(|error| error.to_string())?;
    let reasons = level.map(|level| format!(", reasoning_effort `{}`", level.word())).unwrap_or_default();
    Ok(SlashOutcome::Tell(format!("The model is now {}{reasons}.", chat.services.agent.model.info().id)))
}

/// `/agent NAME` changes the agent; `/agent` lists the agents.
pub(super) fn change_agent(chat: &mut Chat, name: &str) -> CommandAnswer {
    if name.is_empty() {
        return Ok(SlashOutcome::Tell(tables::list_agents(&chat.config, &chat.services.agent.name)));
    }
    chat.switch_agent(name)?;
    let agent = &chat.services.agent;
    let model = text::make_visible(&agent.model.info().id);
    Ok(SlashOutcome::Tell(format!("The agent is now {}, with the model {model}.", agent.name)))
}

pub(super) fn show_tools(chat: &mut Chat, _: &str) -> CommandAnswer {
    Ok(SlashOutcome::Tell(tables::list_tools(chat.services.agent.tools.all())))
}
