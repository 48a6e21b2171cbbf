//! Judges the results of a plan: first the checks that steps name, then the reflector. `verdict` decides from scores
//! and checks.

use futures_util::future::FutureExt;
use serde_json::{Value, json};

use crate::agent::call::GivenCall;
use crate::agent::turn::{Turn, TurnStop};
use crate::base::text;
use crate::base::validator::Validator;
use crate::conversation::event::plan::{
    PlanEvent as Happened, PlanStep, ProgramCheck, Reflection, ScoreDecision, StepCheck,
};
use crate::files::disk;
use crate::tools::RUN_COMMAND;

use super::command;
use super::progress::{PlanFacts, PlanProgress};
use super::reference::{self, as_text};
use super::reply::ReflectorReply;
use super::role::{RoleQuestion, StepFailure};
use super::verdict;

impl<'c, 't: 'c> Turn<'t> {
    /// Asks for a judgement of the results, and records the decision.
    pub(super) async fn reflect(&mut self, machine: &mut PlanProgress, request: &str) -> Result<(), StepFailure> {
        let facts = machine.facts();
        // The plan holds what each step was given.
        let results = self.list_outcomes(machine, false);
        let told = json!({ "user_request": request, "plan": machine.steps(), "results": results });
        let retries = facts.retries;
        let judged = self.prepare_reflector(told, facts)?.await;
        self.record_beside();
        let (ReflectorReply { evaluation, overall_pass, .. }, decision) = judged?;
        let reflection = Reflection { evaluation, overall_pass, decision, retries };
        Ok(self.note(machine, Happened::Reflected(reflection))?)
    }

    /// Prepares the question to the reflector. The decision follows from its scores and the facts.
    pub(super) fn prepare_reflector(
        &mut self,
        mut told: Value,
        facts: PlanFacts,
    ) -> RoleQuestion<'c, (ReflectorReply, ScoreDecision)> {
        told["retry_count"] = facts.retries.into();
        let role = &self.agent.orchestration.roles()?.reflector;
        let asking = self.prepare_role(role, told)?;
        let asked = async move {
            let accept = |reply: ReflectorReply| {
                let decision = verdict::decide_step(&reply, &facts);
                Ok((reply, decision))
            };
            let judged = asking.ask_role(role, accept).await;
            judged.map_err(|failure| failure.explain("the reflector gave no usable judgement: "))
        };
        Ok(asked.boxed())
    }

    /// Runs the check of a step.
    pub(super) async fn check_step(
        &mut self,
        machine: &PlanProgress,
        step: &PlanStep,
        attempt: u32,
        check: &StepCheck,
        value: &Value,
    ) -> Result<ProgramCheck, TurnStop> {
        let mut results = machine.results();
        results.insert(step.step_id, value);
        let filled = |text: &str| reference::fill_references(&text.into(), &results).map(|value| as_text(&value));
        let (passed, detail) = match check {
            StepCheck::Command(line) => match command::for_command(line, &results) {
                Err(why) => (false, why),
                Ok((command, variables)) => {
                    let id = format!("{}_check", self.call_id(step.step_id, attempt));
                    let arguments = json!({ "command": command });
                    let given = GivenCall { id, tool: RUN_COMMAND.to_owned(), arguments, variables };
                    let outcome = self.run_given(given).await?;
                    let exit = outcome.value.get("exit_code").and_then(Value::as_i64);
                    let passed = outcome.end.has_result() && exit == Some(0);
                    (passed, format!("{}: {}", text::one_line(line, 60), outcome.summary))
                }
            },
            StepCheck::File(path) => match filled(path) {
                Err(why) => (false, why),
                Ok(path) => {
                    let found = self.agent.workspace.resolve(&path);
                    let is_there = found.inside && disk::read_facts(&found.path).is_ok();
                    let said = if is_there { "exists" } else { "does not exist in the workspace" };
                    (is_there, format!("{} {said}", text::one_line(&path, 60)))
                }
            },
            StepCheck::Schema(schema) => {
                match Validator::new(schema).and_then(|schema| schema.check("The result does", value)) {
                    Ok(()) => (true, "the result matches its schema".to_owned()),
                    Err(mistakes) => (false, mistakes),
                }
            }
        };
        Ok(ProgramCheck { passed, detail })
    }
}
