//! Calls that no model wrote: the steps of plans and flows. They take the same path as a model's calls: checked,
//! judged, asked about, run, measured and recorded.

use serde_json::Value;

use crate::agent::request::purpose::open_call;
use crate::agent::turn::{Turn, TurnStop};
use crate::conversation::message::{FinishReason, Step, ToolCall};

use super::end::CallEnd;
use super::prepare::{CallText, PreparedCall};

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

/// A reply that is one call, whose answer is still missing.
pub(super) fn wrap_call(call: &ToolCall) -> Step {
    Step { parts: vec![open_call(call.clone())], finish_reason: FinishReason::ToolCalls, ..Step::default() }
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
        self.answer_call(outcome, services.limits)
    }

    /// Checks and judges a call without making it.
    pub(in crate::agent) fn judge_given(&self, given: &GivenCall) -> PreparedCall<'t> {
        self.prepare_given(0, given)
    }

    fn prepare_given(&self, number: u64, given: &GivenCall) -> PreparedCall<'t> {
        PreparedCall::of(self.agent, (number, 0), &given.request(), CallText::Whole, self.trust())
            .give_values(self.agent, given.variables.clone())
    }

    /// Records a call, and checks and judges it. It is open until [`Turn::answer_call`].
    pub(in crate::agent) fn begin_given(&mut self, given: GivenCall) -> Result<PreparedCall<'t>, TurnStop> {
        let call = given.request();
        let number = self.keep_reply(Step { given: true, ..wrap_call(&call) })?;
        Ok(self.prepare_given(number, &given))
    }
}
