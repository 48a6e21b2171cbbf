//! Calls that no model wrote: the steps of plans and flows. They take the same path as a model's calls: checked,
//! judged, asked about, run, measured and recorded.

use serde_json::Value;

use crate::agent::purpose::open_call;
use crate::agent::turn::{Turn, TurnStop};
use crate::conversation::message::{FinishReason, Step, ToolCall};

use super::end::CallEnd;
use super::execute::{CallLimits, CallOutcome};
use super::prepare::{CallText, PreparedCall};
use super::settle::AnsweredCall;

/// A call that no model wrote.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agent) struct GivenCall {
    /// Unique in the conversation.
    pub id: String,
    pub tool: String,
    pub arguments: Value,
    /// Values for a command, by the names of their variables.
    pub variables: Vec<(String, String)>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::agent) struct GivenOutcome {
    pub end: CallEnd,
    /// One line for a person; of a failure, the whole reason.
    pub summary: String,
    /// The whole result as data, or the text of a result without data.
    pub value: Value,
}

impl GivenCall {
    fn request(&self) -> ToolCall {
        ToolCall { id: self.id.clone(), name: self.tool.clone(), arguments: self.arguments.to_string() }
    }
}

impl<'t> Turn<'t> {
    /// Makes one call and records it.
    ///
    /// # Errors
    /// The turn cannot go on; a failure of the tool is an outcome.
    pub(in crate::agent) async fn run_given(&mut self, given: GivenCall) -> Result<GivenOutcome, TurnStop> {
        let services = self.plan_services(1);
        let prepared = self.begin_given(given)?;
        let outcome = self.run_alone(prepared, &services).await?;
        self.end_given(outcome, services.limits)
    }

    /// Checks and judges a call without making it.
    pub(in crate::agent) fn judge_given(&self, given: &GivenCall) -> PreparedCall<'t> {
        PreparedCall::of(self.agent, (0, 0), &given.request(), CallText::Whole, self.trust())
    }

    /// Records a call, and checks and judges it. It is open until [`Turn::end_given`].
    pub(in crate::agent) fn begin_given(&mut self, given: GivenCall) -> Result<PreparedCall<'t>, TurnStop> {
        let call = given.request();
        let step = Step {
            parts: vec![open_call(call.clone())],
            finish_reason: FinishReason::ToolCalls,
            given: true,
            ..Step::default()
        };
        let number = self.keep_reply(step)?;
        let prepared = PreparedCall::of(self.agent, (number, 0), &call, CallText::Whole, self.trust());
        Ok(PreparedCall { variables: given.variables, ..prepared })
    }

    /// Records the answer to a call.
    pub(in crate::agent) fn end_given(
        &mut self,
        outcome: CallOutcome<'_>,
        limits: CallLimits,
    ) -> Result<GivenOutcome, TurnStop> {
        let AnsweredCall { end, summary, value, observation } = self.answer_call(outcome, limits)?;
        let summary = if end.has_result() { summary } else { observation };
        Ok(GivenOutcome { end, summary, value })
    }
}
