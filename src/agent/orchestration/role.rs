//! Asks a role: one request beside the conversation, whose reply is data. An unusable reply goes back once, with all
//! mistakes in it.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::request::purpose::{Aside, Purpose};
use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Conversation};
use crate::base::builtin;
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::Reasoning;
use crate::conversation::event::EventKind;
use crate::conversation::message::{FinishReason, Item, Step, UserText};
use crate::model::ChatModel;
use crate::prompt::{PromptError, Released};
use crate::template::{self, layer_values};

use super::reply;

/// A role that is asked beside the conversation.
pub struct Role {
    /// `router`, `planner`, `executor`, `reflector`.
    pub name: &'static str,
    pub model: Arc<dyn ChatModel>,
    pub prompt: Released,
    pub reasoning: Reasoning,
    /// True if it gets the conversation before the request, because a request like "now do it" means nothing alone.
    hears_before: bool,
    form: OnceLock<ReplyForm>,
}

/// The roles of the modes `route` and `plan`.
pub struct Roles {
    pub router: Role,
    pub planner: Role,
    pub executor: Role,
    pub reflector: Role,
}

/// The form of a reply.
struct ReplyForm {
    schema: Arc<Value>,
    validator: Validator,
}

/// The reason that a role or a step gives no result.
pub(super) enum StepFailure {
    /// Only this fails; the text says why.
    Here(String),
    /// The turn cannot go on.
    Turn(TurnStop),
}

impl StepFailure {
    /// Puts words before the reason.
    pub(super) fn explain(self, before: &str) -> Self {
        match self {
            Self::Here(why) => Self::Here(format!("{before}{why}")),
            stop @ Self::Turn(_) => stop,
        }
    }

    /// Takes out the failures that end the turn.
    pub(super) fn settle<T>(worked: Result<T, Self>) -> Result<Result<T, String>, TurnStop> {
        match worked {
            Ok(done) => Ok(Ok(done)),
            Err(Self::Here(why)) => Ok(Err(why)),
            Err(Self::Turn(stop)) => Err(stop),
        }
    }
}

impl From<String> for StepFailure {
    fn from(why: String) -> Self {
        Self::Here(why)
    }
}

impl<Stop: Into<TurnStop>> From<Stop> for StepFailure {
    fn from(stop: Stop) -> Self {
        Self::Turn(stop.into())
    }
}

impl Role {
    pub fn new(name: &'static str, model: Arc<dyn ChatModel>, prompt: Released, reasoning: Reasoning) -> Self {
        let hears_before = matches!(name, "router" | "planner");
        Self { name, model, prompt, reasoning, hears_before, form: OnceLock::new() }
    }

    /// Renders its prompt.
    pub(super) fn render(
        &self,
        agent: &Agent,
        conversation: &Conversation,
        run_id: &str,
        mut variables: Value,
    ) -> Result<String, PromptError> {
        variables["reasoning"] = json!(self.reasoning);
        let prompt = self.prompt.of_session(conversation.session.id());
        let context = agent.briefing.context_of(prompt, conversation, run_id);
        prompt.render(&layer_values(template::convert_value(&variables), context))
    }

    /// The schema to send to a provider; `None` if reasoning comes before the decision.
    pub(super) fn schema(&self) -> Option<Arc<Value>> {
        (self.reasoning == Reasoning::Implicit).then(|| Arc::clone(&self.form().schema))
    }

    fn form(&self) -> &ReplyForm {
        self.form.get_or_init(|| {
            let schema =
                builtin::prompt_file(self.name, "reply.json").expect("each role has the form of its reply");
            let schema: Value = serde_json::from_str(schema).expect("a test reads it");
            let validator = Validator::new(&schema).expect("a test compiles it");
            ReplyForm { schema: Arc::new(schema), validator }
        })
    }
}

impl Turn<'_> {
    /// Asks a role. `variables` are those of its prompt; `accept` takes the reply, or returns all mistakes in it.
    ///
    /// # Errors
    /// The mistakes in its last reply; or the turn cannot go on: a limit, or a failure of the model.
    pub(super) async fn ask_role<T: DeserializeOwned, U>(
        &mut self,
        role: &Role,
        variables: Value,
        accept: impl Fn(T) -> Result<U, String>,
    ) -> Result<U, StepFailure> {
        let run_id = self.run.emitter.run_id();
        let prompt = role.render(self.agent, self.conversation, &run_id, variables);
        let prompt = prompt.map_err(|error| TurnStop::Failed(error.into()))?;
        let before =
            if role.hears_before { select_history(self.conversation.session.items()) } else { Vec::new() };
        let model = (&role.model, role.schema());
        let first = self.ask_as(role.name, model.clone(), before.clone(), prompt.clone()).await?;
        let mistake = match self.take(role, &first, &accept) {
            Ok(taken) => return Ok(taken),
            Err(mistake) => mistake,
        };
        let items = [before, vec![Item::Said(UserText::by_program(prompt)), Item::Step(first)]].concat();
        let correction = format!(
            "That reply cannot be used.\n{mistake}\n\nReply once more, complete and in the same form, with all of this fixed."
        );
        let second = self.ask_as(role.name, model, items, correction).await?;
        Ok(self.take(role, &second, &accept)?)
    }

    /// One request beside the conversation, in the name of a role or of a step. Counts as a step of the turn.
    pub(super) async fn ask_as(
        &mut self,
        name: &str,
        (model, schema): (&Arc<dyn ChatModel>, Option<Arc<Value>>),
        items: Vec<Item>,
        prompt: String,
    ) -> Result<Step, TurnStop> {
        if let Some(limit) = self.reached_limit() {
            return Err(TurnStop::Limit(limit));
        }
        let ruler = &self.conversation.ruler;
        let texts: u64 = items.iter().flat_map(Item::texts).map(|text| ruler.weigh(text)).sum();
        let tokens = texts + ruler.weigh(&prompt);
        self.run.emitter.emit(EventKind::RoleStarted {
            role: name.to_owned(),
            model: model.info().id.clone(),
            input_tokens: tokens,
        })?;
        let model = Some(Arc::clone(model));
        let role = name.to_owned();
        let aside = Aside { role, model, schema, items, prompt, with_tools: false, tokens };
        let step = self.ask(Purpose::Aside(aside)).await?;
        self.run.ledger.count_step();
        let text = self.agent.redactor.redact(&step.text()).into_owned();
        let spent = (step.usage, step.cost_usd);
        self.conversation.session.note_role((name, &text), spent, Timestamp::now());
        self.run.emitter.emit(EventKind::RoleReplied {
            role: name.to_owned(),
            usage: step.usage,
            cost_usd: step.cost_usd,
        })?;
        Ok(step)
    }

    fn take<T: DeserializeOwned, U>(
        &self,
        role: &Role,
        step: &Step,
        accept: &impl Fn(T) -> Result<U, String>,
    ) -> Result<U, String> {
        if step.was_cut() {
            return Err("It was cut at the output limit: be shorter.".to_owned());
        }
        let text = self.agent.redactor.redact(&step.text()).into_owned();
        let read = reply::read_reply::<T>(&text, &role.form().validator)?;
        accept(read.value)
    }
}

/// The conversation before the request of this turn, for roles that need it: the last messages of both sides, without
/// calls and results, each cut to its beginning.
fn select_history(items: &[Item]) -> Vec<Item> {
    const MOST: usize = 8;
    const MOST_BYTES: usize = 2000;
    let shortened = |text: &str| match text::take_head(text, MOST_BYTES) {
        head if head.len() < text.len() => format!("{head} […]"),
        whole => whole.to_owned(),
    };
    let request = items.iter().rposition(|item| item.said_by_person().is_some()).unwrap_or(items.len());
    let told = |item: &Item| match item {
        Item::Said(said) if said.author.is_person() => {
            Some(Item::Said(UserText::by_person(shortened(&said.text))))
        }
        Item::Step(step) if !step.text().trim().is_empty() => {
            Some(Item::Step(Step::of_text(shortened(&step.text()), FinishReason::Stop)))
        }
        Item::Summary(summary) => Some(Item::Said(UserText::by_program(shortened(&summary.text)))),
        Item::Said(_) | Item::Step(_) => None,
    };
    let mut last: Vec<Item> = items[..request].iter().rev().filter_map(told).take(MOST).collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_hears_the_last_words_before_the_request() {
        let said = |text: &str| Item::Said(UserText::by_person(text));
        let replied = |text: &str| Item::Step(Step::of_text(text, FinishReason::Stop));
        assert_eq!(select_history(&[said("the request")]), []);
        let note = Item::Said(UserText::by_program("a note"));
        let items = [said("one"), replied(""), note, replied("two"), said("the request"), replied("later")];
        assert_eq!(select_history(&items), [said("one"), replied("two")]);
        let long: Vec<Item> = (0..20).map(|_| said(&"x".repeat(5000))).chain([said("the request")]).collect();
        let heard = select_history(&long);
        assert_eq!(heard.len(), 8);
        assert!(heard.iter().flat_map(Item::texts).all(|text| text.len() < 2100 && text.ends_with("[…]")));
    }
}
