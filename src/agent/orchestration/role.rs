//! Asks a role: one request beside the conversation, whose reply is data. An unusable reply goes back once, with all
//! mistakes in it.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::request::beside::{BesideDesk, BesideQuestion, BesideSpending};
use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, Conversation};
use crate::base::builtin;
use crate::base::text;
use crate::base::validator::Validator;
use crate::config::Reasoning;
use crate::conversation::message::{FinishReason, Item, Step, UserText};
use crate::model::ChatModel;
use crate::model::ledger::ClosingNeed;
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

/// A prepared question to a role: a future that borrows nothing of the turn.
pub(super) type RoleQuestion<'c, Reply> = Result<BoxFuture<'c, Result<Reply, StepFailure>>, StepFailure>;

/// A question that is asked again once if its reply is unusable.
pub(super) struct Asking<'a> {
    pub desk: BesideDesk<'a>,
    pub question: BesideQuestion,
}

impl Asking<'_> {
    /// Asks. `accept` takes the reply, or returns all mistakes in it; `correct` writes the message about them.
    ///
    /// # Errors
    /// The mistakes in the last reply; or the turn cannot go on: a limit, or a failure of the model.
    pub async fn ask<U>(
        self,
        accept: impl Fn(&Step) -> Result<U, String> + Sync,
        correct: impl Fn(&str) -> String + Sync,
    ) -> Result<U, StepFailure> {
        let step = self.ask_until_usable(&|step| accept(step).err(), &correct).await?;
        Ok(accept(&step)?)
    }

    /// Asks once more if `find_mistakes` finds any in the first reply. Returns the last one.
    async fn ask_until_usable(
        mut self,
        find_mistakes: &(dyn Fn(&Step) -> Option<String> + Sync),
        correct: &(dyn Fn(&str) -> String + Sync),
    ) -> Result<Step, TurnStop> {
        let first = self.desk.ask(&self.question).await?;
        let Some(mistakes) = find_mistakes(&first) else { return Ok(first) };
        let asked = std::mem::replace(&mut self.question.prompt, correct(&mistakes));
        self.question.items.extend([Item::Said(UserText::by_program(asked)), Item::Step(first)]);
        self.desk.ask(&self.question).await
    }

    /// Asks a role.
    pub async fn ask_role<T: DeserializeOwned, U>(
        self,
        role: &Role,
        accept: impl Fn(T) -> Result<U, String> + Sync,
    ) -> Result<U, StepFailure> {
        let agent = self.desk.agent;
        let take = |step: &Step| {
            if step.was_cut() {
                return Err("It was cut at the output limit: be shorter.".to_owned());
            }
            let text = agent.redactor.redact(&step.text()).into_owned();
            accept(reply::read_reply::<T>(&text, &role.form().validator)?.value)
        };
        let correct = |mistake: &str| {
            format!(
                "That reply cannot be used.\n{mistake}\n\nReply once more, complete and in the same form, with all of this \
                 fixed."
            )
        };
        self.ask(take, correct).await
    }
}

impl<'t> Turn<'t> {
    /// Asks a role. `variables` are those of its prompt; `accept` takes the reply, or returns all mistakes in it.
    ///
    /// # Errors
    /// As [`Asking::ask`].
    pub(super) async fn ask_role<T: DeserializeOwned, U>(
        &mut self,
        role: &Role,
        variables: Value,
        accept: impl Fn(T) -> Result<U, String> + Sync,
    ) -> Result<U, StepFailure> {
        let answered = self.prepare_role(role, variables)?.ask_role(role, accept).await;
        self.record_beside();
        answered
    }

    /// Prepares a question to a role.
    pub(super) fn prepare_role(&mut self, role: &Role, variables: Value) -> Result<Asking<'t>, TurnStop> {
        let run_id = self.run.emitter.run_id();
        let prompt = role.render(self.agent, self.conversation, &run_id, variables);
        let prompt = prompt.map_err(|error| TurnStop::Failed(error.into()))?;
        let items = if role.hears_before { select_history(self.conversation.session.items()) } else { Vec::new() };
        let (name, model, schema) = (role.name.to_owned(), Arc::clone(&role.model), role.schema());
        self.prepare_question(BesideQuestion { name, model, schema, items, prompt })
    }

    /// Prepares a question beside the conversation.
    pub(super) fn prepare_question(&mut self, question: BesideQuestion) -> Result<Asking<'t>, TurnStop> {
        let is_scripted = question.model.info().scripted;
        let desk = BesideDesk {
            agent: self.agent,
            ledger: self.run.ledger.clone(),
            emitter: Arc::clone(&self.run.emitter),
            clock: self.clock.clone(),
            session_id: self.conversation.session.id().to_owned(),
            results: if is_scripted { self.conversation.results.clone() } else { Vec::new() },
            rates: self.conversation.ruler.rates(),
            closing: if self.is_flow { ClosingNeed::Nothing } else { self.find_closing_need() },
            counts_steps: !self.is_flow,
            syncing: self.conversation.session.begin_sync().map_err(anyhow::Error::from)?,
            record: Arc::clone(&self.conversation.beside),
            is_dry: self.run.is_dry,
        };
        Ok(Asking { desk, question })
    }

    /// Writes to the session what requests beside the conversation took.
    pub(in crate::agent) fn record_beside(&mut self) {
        for BesideSpending { reply, usage, cost_usd } in self.conversation.beside.take() {
            let session = &mut self.conversation.session;
            match reply {
                Some((name, text)) => session.note_role((&name, &text), (usage, cost_usd), Timestamp::now()),
                None => session.spend(usage, cost_usd, Timestamp::now()),
            }
        }
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
