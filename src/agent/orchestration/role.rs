//! Asks a role: one request beside the conversation, whose reply is data. A reply that cannot be used goes back once,
//! with everything that is wrong with it.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::agent::purpose::{Aside, Purpose};
use crate::agent::turn::{Stop, Turn};
use crate::agent::{Agent, Conversation};
use crate::builtin;
use crate::config::Reasoning;
use crate::contract::ChatModel;
use crate::event::EventKind;
use crate::message::{Item, Said, Step};
use crate::prompt::{PromptError, Released};
use crate::template::{self, layered};
use crate::tokens;
use crate::validator::Validator;

use super::reply;

/// A role that is asked beside the conversation.
pub struct Role {
    /// `router`, `planner`, `executor`, `reflector`.
    pub name: &'static str,
    pub model: Arc<dyn ChatModel>,
    pub prompt: Released,
    pub reasoning: Reasoning,
    form: OnceLock<Form>,
}

/// The roles of the modes `route` and `plan`.
pub struct Roles {
    pub router: Role,
    pub planner: Role,
    pub executor: Role,
    pub reflector: Role,
}

/// The form of a reply.
struct Form {
    schema: Arc<Value>,
    validator: Validator,
}

/// What came of a role: its decision, or what is wrong with its last reply.
pub(in crate::agent) type Decided<T> = Result<T, String>;

impl Role {
    #[must_use]
    pub fn new(name: &'static str, model: Arc<dyn ChatModel>, prompt: Released, reasoning: Reasoning) -> Self {
        Self { name, model, prompt, reasoning, form: OnceLock::new() }
    }

    /// Renders its prompt.
    pub(super) fn render(
        &self,
        agent: &Agent,
        (conversation, run_id): (&Conversation, &str),
        mut variables: Map<String, Value>,
    ) -> Result<String, PromptError> {
        let reasoning = match self.reasoning {
            Reasoning::Implicit => "implicit",
            Reasoning::Explicit => "explicit",
        };
        variables.insert("reasoning".to_owned(), reasoning.into());
        let prompt = self.prompt.of_session(conversation.session.id());
        let context = agent.briefing.context_of(prompt, conversation, run_id);
        prompt.render(&layered(template::value(&variables), context))
    }

    /// The schema to ask a provider for: none where thoughts come before the decision.
    pub(super) fn schema(&self) -> Option<Arc<Value>> {
        (self.reasoning == Reasoning::Implicit).then(|| Arc::clone(&self.form().schema))
    }

    fn form(&self) -> &Form {
        self.form.get_or_init(|| {
            let schema =
                builtin::prompt_file(self.name, "reply.json").expect("each role has the form of its reply");
            let schema: Value = serde_json::from_str(schema).expect("a test reads it");
            let validator = Validator::new(&schema).expect("a test compiles it");
            Form { schema: Arc::new(schema), validator }
        })
    }
}

impl Turn<'_> {
    /// Asks a role. `variables` are those of its prompt; `accept` takes the reply, or says all that is wrong with it.
    ///
    /// # Errors
    /// When the turn cannot go on: a limit, a failure of the model.
    pub(in crate::agent) async fn ask_role<T: DeserializeOwned, U>(
        &mut self,
        role: &Role,
        variables: Map<String, Value>,
        accept: impl Fn(T) -> Result<U, String>,
    ) -> Result<Decided<U>, Stop> {
        let run_id = self.run.emitter.run_id();
        let prompt = role.render(self.agent, (self.conversation, &run_id), variables);
        let prompt = prompt.map_err(|error| Stop::Failed(error.into()))?;
        let first = self.ask_beside(role, Vec::new(), prompt.clone()).await?;
        let mistake = match self.take(role, &first, &accept) {
            Ok(taken) => return Ok(Ok(taken)),
            Err(mistake) => mistake,
        };
        let items = vec![Item::Said(Said::by_program(prompt)), Item::Step(first)];
        let correction = format!(
            "That reply cannot be used.\n{mistake}\n\nReply once more, complete and in the same form, with all of this mended."
        );
        let second = self.ask_beside(role, items, correction).await?;
        Ok(self.take(role, &second, &accept))
    }

    /// One request to the model of a role, and its reply. Counts as a step of the turn.
    async fn ask_beside(&mut self, role: &Role, items: Vec<Item>, prompt: String) -> Result<Step, Stop> {
        let schema = role.schema();
        self.ask_as(role.name, (&role.model, schema), items, prompt).await
    }

    /// One request beside the conversation, in the name of a role or of a step. Counts as a step of the turn.
    pub(super) async fn ask_as(
        &mut self,
        name: &str,
        (model, schema): (&Arc<dyn ChatModel>, Option<Arc<Value>>),
        items: Vec<Item>,
        prompt: String,
    ) -> Result<Step, Stop> {
        if let Some(limit) = self.meter.reached(&self.agent.limits).or_else(|| self.out_of_time()) {
            return Err(Stop::Limit(limit));
        }
        let texts: u64 = items.iter().flat_map(Item::texts).map(tokens::estimate).sum();
        let tokens = texts + tokens::estimate(&prompt);
        self.run.emitter.emit(EventKind::RoleStarted {
            role: name.to_owned(),
            model: model.info().id.clone(),
            input_tokens: tokens,
        })?;
        let model = Some(Arc::clone(model));
        let aside = Aside { model, schema, items, prompt, with_tools: false, tokens };
        let step = self.ask(Purpose::Aside(aside)).await?;
        self.meter.steps += 1;
        self.run.totals.steps += 1;
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
    ) -> Decided<U> {
        if step.was_cut() {
            return Err("It was cut at the output limit: be shorter.".to_owned());
        }
        let text = self.agent.redactor.redact(&step.text()).into_owned();
        let read = reply::read::<T>(&text, &role.form().validator)?;
        accept(read.value)
    }
}
