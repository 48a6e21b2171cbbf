//! Shows a plan to the person before it runs. An edited plan is checked like a planner's, and shown again.

use std::collections::BTreeMap;

use crate::agent::turn::{Turn, TurnStop};
use crate::conversation::event::plan::{PlanAuthor, PlanCreated, PlanStep};
use crate::conversation::knowledge::Ledger;
use crate::files::regular::{self, Links};
use crate::safety::{PlanReview, PlanSheet, read_form};

use super::graph;
use super::input::fill_call;
use super::reference::Results;
use super::reply::PlanReply;

/// The most bytes of a file that a step may replace.
const MOST_REPLACED: u64 = 64 << 20;

impl Turn<'_> {
    /// Asks the person to review a plan, if one is present and the configuration asks for it. A refusal is the reason;
    /// empty if none was given.
    pub(super) async fn review(&mut self, mut plan: PlanCreated) -> Result<Result<PlanCreated, String>, TurnStop> {
        if !self.agent.orchestration.plan_approval || plan.approved || !self.agent.approver.present() {
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
                PlanReview::Run => return Ok(Ok(PlanCreated { approved: true, ..plan })),
                PlanReview::Refuse(why) => return Ok(Err(why)),
                PlanReview::Edited(text) => {
                    let text = self.agent.redactor.redact_known(&text).into_owned();
                    match self.read_edited(&text) {
                        Ok(steps) => {
                            plan.author = PlanAuthor::Person;
                            (plan.steps, mistakes, draft) = (steps, Vec::new(), None);
                        }
                        Err(wrong) => (mistakes, draft) = (wrong, Some(text)),
                    }
                }
            }
        }
    }

    /// The steps of an edited plan, or all mistakes in it.
    fn read_edited(&self, text: &str) -> Result<Vec<PlanStep>, Vec<String>> {
        let plan = read_form(text).map_err(|mistake| vec![mistake])?;
        graph::check_plan(&PlanReply { plan, ..PlanReply::default() }, &self.agent.choices())
    }

    /// Takes note of a file of the workspace that a step may replace, as if it had been read.
    pub(super) fn learn_file(&self, path: &str, files: &Ledger) {
        let found = self.agent.workspace.resolve(path);
        let bytes = regular::read_bytes(&found.path, Links::Refuse, MOST_REPLACED).ok().flatten();
        if let Some(bytes) = bytes.filter(|_| found.inside) {
            files.remember(&found.path, &bytes);
        }
    }

    /// Previews of steps, as far as they are known before the plan runs: commands and diffs.
    fn previews(&self, steps: &[PlanStep]) -> BTreeMap<u32, String> {
        let preview = |step: &PlanStep| {
            let job = fill_call("", step, &Results::new()).ok()?;
            let prepared = self.judge_given(&job);
            let plan = prepared.plan.as_ref().ok()?;
            let replaced = Ledger::default();
            let files = match &step.replaces {
                None => &*self.conversation.shared.files,
                Some(path) => {
                    self.learn_file(path, &replaced);
                    &replaced
                }
            };
            let shown = plan.tool.preview(&prepared.arguments, &plan.reach, files).ok()?;
            Some((step.step_id, self.agent.redactor.redact_known(&shown).into_owned()))
        };
        steps.iter().filter_map(preview).collect()
    }
}
