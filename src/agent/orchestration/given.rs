//! Calls that no model wrote: the steps of plans and flows. They take the same path as a model's calls: checked,
//! judged, asked about, run, measured and recorded.

use std::borrow::Cow;

use serde_json::Value;

use crate::agent::dispatch::Deck;
use crate::agent::execute::Finished;
use crate::agent::prepare::{Prepared, prepare};
use crate::agent::purpose::open;
use crate::agent::turn::{Stop, Turn};
use crate::conversation::message::{CallStatus, FinishReason, Step, ToolCall};

/// A call that no model wrote.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agent) struct Given {
    /// Unique in the conversation.
    pub id: String,
    pub tool: String,
    pub arguments: Value,
    /// Values for a command, by the names of their variables.
    pub variables: Vec<(String, String)>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agent) struct Outcome {
    pub status: CallStatus,
    /// One line for a person.
    pub summary: String,
    /// The whole result as data, or the text of a result without data.
    pub value: Value,
}

impl Turn<'_> {
    /// Makes one call and records it.
    ///
    /// # Errors
    /// The turn cannot go on; a failure of the tool is an outcome.
    pub(in crate::agent) async fn run_given(&mut self, given: Given) -> Result<Outcome, Stop> {
        let deck = self.deck_of_plan(1);
        let prepared = self.begin_given(given)?;
        let finished = self.run_alone(prepared, &deck).await?;
        self.end_given(finished, &deck)
    }

    /// Records a call, and checks and judges it. It is open until [`Turn::end_given`].
    pub(in crate::agent) fn begin_given<'c>(&mut self, given: Given) -> Result<Prepared<'c>, Stop>
    where
        Self: 'c,
    {
        let Given { id, tool, arguments, variables } = given;
        let call = ToolCall { id, name: tool, arguments: arguments.to_string() };
        let step = Step {
            parts: vec![open(call.clone())],
            finish_reason: FinishReason::ToolCalls,
            given: true,
            ..Step::default()
        };
        let number = self.keep_reply(step)?;
        let prepared = prepare(self.agent, ((number, 0), Cow::Owned(call)), false, self.footing());
        Ok(Prepared { variables, ..prepared })
    }

    /// Records the answer to a call.
    pub(in crate::agent) fn end_given(&mut self, finished: Finished<'_>, deck: &Deck) -> Result<Outcome, Stop> {
        let status = finished.status;
        let redactor = &self.agent.redactor;
        let mut value = match &finished.output.result {
            Value::Null => Value::String(finished.output.observation.clone()),
            data => data.clone(),
        };
        redactor.redact_value(&mut value);
        let words = if status == CallStatus::Ok { &finished.output.summary } else { &finished.output.observation };
        let summary = redactor.redact(words).into_owned();
        self.answer_call(finished, deck)?;
        Ok(Outcome { status, summary, value })
    }
}
