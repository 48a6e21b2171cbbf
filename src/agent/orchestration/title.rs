//! The title of a conversation, from a model that `ui.title_model` names: asked once, after the first turn.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::agent::request::beside::BesideQuestion;
use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::base::text;
use crate::conversation::message::{Item, Step};
use crate::model::ChatModel;
use crate::prompt::Released;
use crate::template::{self, layer_values};

/// The person's next message waits for it: a title that takes longer is not worth it.
const MOST_TIME: Duration = Duration::from_secs(10);
/// The task and the answer are cut to this, in bytes: a title needs no more of them.
const MOST_BYTES: usize = 4000;

/// What gives titles.
pub struct Titler {
    pub model: Arc<dyn ChatModel>,
    pub prompt: Released,
}

/// Asks for a title after the first turn of a conversation that nobody has named. Returns a warning if there is none.
pub async fn title_conversation(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    cancel: &Cancel,
) -> Option<String> {
    let titler = agent.titler.as_ref().filter(|_| conversation.session.awaits_title())?;
    let mut turn = Turn::new(agent, conversation, run);
    let asked = tokio::select! {
        biased;
        () = cancel.triggered() => return None,
        () = tokio::time::sleep(MOST_TIME) => Err(format!("no reply within {} s", MOST_TIME.as_secs())),
        asked = turn.ask_title(titler) => asked.map_err(|stop| word_stop(&stop)),
    };
    turn.record_beside();
    let session = &mut turn.conversation.session;
    let set =
        asked.and_then(|title| session.set_title(&title, Timestamp::now()).map_err(|error| error.to_string()));
    set.err().map(|why| format!("the title of this session is its first message: `ui.title_model`: {why}"))
}

fn word_stop(stop: &TurnStop) -> String {
    match stop {
        TurnStop::Model(error) => error.to_string(),
        TurnStop::Limit(limit) => limit.to_string(),
        TurnStop::Failed(error) => error.to_string(),
        other => format!("{other:?}"),
    }
}

impl Turn<'_> {
    async fn ask_title(&mut self, titler: &Titler) -> Result<String, TurnStop> {
        let cut = |words: &str| text::take_head(words, MOST_BYTES).to_owned();
        let items = self.conversation.session.items();
        let task = items.iter().find_map(Item::said_by_person).map(cut);
        let answer = items.iter().rev().filter_map(Item::as_step).map(Step::text).find(|text| !text.is_empty());
        let prompt = titler.prompt.of_session(self.conversation.session.id());
        let context = self.agent.briefing.context_of(prompt, self.conversation, &self.run.emitter.run_id());
        let variables = json!({ "task": task, "answer": answer.as_deref().map(cut) });
        let prompt = prompt.render(&layer_values(template::convert_value(&variables), context));
        let question = BesideQuestion {
            name: "title".to_owned(),
            model: Arc::clone(&titler.model),
            schema: None,
            items: Vec::new(),
            prompt: prompt.map_err(|error| TurnStop::Failed(error.into()))?,
        };
        let mut asking = self.prepare_question(question)?;
        let step = asking.desk.ask(&asking.question).await?;
        Ok(self.agent.redactor.redact(clean_title(&step.text())).into_owned())
    }
}

/// The title in a reply: its first line, without the marks that models put around it.
fn clean_title(reply: &str) -> &str {
    let line = reply.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.trim_matches(|c: char| matches!(c, '"' | '\'' | '*' | '#' | '“' | '”' | '「' | '」') || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::clean_title;

    #[test]
    fn marks_around_a_title_are_left_out() {
        let table = [
            ("Login test: mend the timeout", "Login test: mend the timeout"),
            ("\n  \"Mend `x`\"\nBecause it is short.", "Mend `x`"),
            ("## **修复登录测试**", "修复登录测试"),
            ("", ""),
        ];
        for (reply, title) in table {
            assert_eq!(clean_title(reply), title, "{reply}");
        }
    }
}
