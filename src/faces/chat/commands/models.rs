//! `/model`, `/agent`, `/tools`: choose the model and the agent, and list the tools.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Answer, Outcome};
use crate::agent::assembly::{self, Listed};
use crate::base::text;
use crate::faces::chat::chat_session::Chat;
use crate::faces::chat::tables;
use crate::model::effort::Effort;

/// `/model NAME`, `/model NAME LEVEL` and `/model LEVEL` change the model and its reasoning effort. Without a word the
/// person picks a model; if nobody is present the models are listed.
pub(super) fn model<'c>(chat: &'c mut Chat, words: &'c str) -> BoxFuture<'c, Answer> {
    async move {
        if !words.is_empty() {
            return switch(chat, words);
        }
        let models = configured(chat);
        if !chat.approver.present() {
            return Ok(Outcome::Tell(tables::models(&models, chat.services.agent.model.info())));
        }
        let labels = tables::labels(&models, &chat.services.agent.model.info().name);
        let question = "Which model? Type PROVIDER/ID or a level of reasoning for another one.";
        let Some(answer) = chat.approver.answer(question, &labels).await else {
            return Ok(Outcome::Tell("The model stays.".to_owned()));
        };
        let picked = labels.iter().position(|label| *label == answer);
        let words = picked.map_or(answer.as_str(), |index| models[index].name.as_str());
        if words == chat.services.agent.model.info().name {
            return Ok(Outcome::Tell("The model stays.".to_owned()));
        }
        switch(chat, words)
    }
    .boxed()
}

/// Lists the configured models, and the model in use even if it is not configured.
fn configured(chat: &Chat) -> Vec<Listed> {
    let mut models = assembly::listing(&chat.config, "").models;
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

fn switch(chat: &mut Chat, words: &str) -> Answer {
    let (name, level) = words.rsplit_once(char::is_whitespace).unwrap_or(("", words));
    let (name, level) = match Effort::read(level) {
        Some(level) => (name.trim(), Some(level)),
        None => (words, None),
    };
    chat.switch_model(Some(name).filter(|name| !name.is_empty()), level).map_err(|error| error.to_string())?;
    let reasons = level.map(|level| format!(", reasoning_effort `{}`", level.word())).unwrap_or_default();
    Ok(Outcome::Tell(format!("The model is now {}{reasons}.", chat.services.agent.model.info().id)))
}

/// `/agent NAME` changes the agent; `/agent` lists the agents.
pub(super) fn agent(chat: &mut Chat, name: &str) -> Answer {
    if name.is_empty() {
        return Ok(Outcome::Tell(tables::agents(&chat.config, &chat.services.agent.name)));
    }
    chat.switch_agent(name)?;
    let agent = &chat.services.agent;
    let model = text::visible(&agent.model.info().id);
    Ok(Outcome::Tell(format!("The agent is now {}, with the model {model}.", agent.name)))
}

pub(super) fn tools(chat: &mut Chat, _: &str) -> Answer {
    Ok(Outcome::Tell(tables::tools(chat.services.agent.tools.all())))
}
