//! Shows a plan to the person before it runs. An edited plan is checked like a planner's, and shown again.

use std::collections::BTreeMap;

use crate::agent::turn::{Turn, TurnStop};
use crate::conversation::event::plan::{PlanCreated, PlanStep};
use crate::safety::{PlanReview, PlanSheet, read_form};

use super::Orchestration;
use super::graph;
use super::input::fill_call;
use super::reference::Results;
use super::reply::PlanReply;

impl Turn<'_> {
    /// Asks the person to review a plan, if one is present and the configuration asks for it. A refusal is the reason;
    /// empty if none was given.
    pub(super) async fn review(
        &mut self,
        orchestration: &Orchestration,
        mut plan: PlanCreated,
    ) -> Result<Result<PlanCreated, String>, TurnStop> {
        if !orchestration.plan_approval || !self.agent.approver.present() {
            return Ok(Ok(plan));
        }
        let (mut mistakes, mut draft) = (Vec::new(), None);
        loop {
            let previews = self.previews(&plan.steps);
            let edited = draft.as_deref();
            let sheet = PlanSheet::Plan { plan: &plan, previews: &previews, mistakes: &mistakes, draft: edited };
            let review = {
                let _pause = self.clock.pause();
                self.agent.approver.review_plan(sheet).await
            };
            match review {
                PlanReview::Run => return Ok(Ok(plan)),
                PlanReview::Refuse(why) => return Ok(Err(why)),
                PlanReview::Edited(text) => {
                    let text = self.agent.redactor.redact_known(&text).into_owned();
                    match self.read_edited(orchestration, &text) {
                        Ok(steps) => (plan.steps, mistakes, draft) = (steps, Vec::new(), None),
                        Err(wrong) => (mistakes, draft) = (wrong, Some(text)),
                    }
                }
            }
        }
    }

    /// The steps of an edited plan, or all mistakes in it.
    fn read_edited(&self, orchestration: &Orchestration, text: &str) -> Result<Vec<PlanStep>, Vec<String>> {
        let plan = read_form(text).map_err(|mistake| vec![mistake])?;
        graph::check_plan(&PlanReply { plan, ..PlanReply::default() }, &orchestration.choices(self.agent))
    }

    /// Previews of steps, as far as they are known before the plan runs: commands and diffs.
    fn previews(&self, steps: &[PlanStep]) -> BTreeMap<u32, String> {
        let preview = |step: &PlanStep| {
            let job = fill_call("", step, &Results::new()).ok()?;
            let prepared = self.judge_given(&job);
            let plan = prepared.plan.as_ref().ok()?;
            let files = &self.conversation.shared.files;
            let shown = plan.tool.preview(&prepared.arguments, &plan.reach, files).ok()?;
            Some((step.step_id, self.agent.redactor.redact_known(&shown).into_owned()))
        };
        steps.iter().filter_map(preview).collect()
    }
}
