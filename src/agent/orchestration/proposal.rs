//! A plan that the model of the conversation proposes with a tool, and a plan that waits because its work was
//! interrupted.
//!
//! The person's next message always comes first: nothing of a waiting plan runs until the model proposes it again, or
//! the person types `/plan go`. The steps of a proposed plan run once the reply that proposes it is answered, and the
//! model goes on from their results.

use serde_json::Value;

use crate::agent::call::{CallEnd, CallFailure};
use crate::agent::turn::{ProposedPlan, Turn, TurnEnd, TurnStop};
use crate::base::text;
use crate::config::Mode;
use crate::conversation::event::plan::{PlanAuthor, PlanCreated, PlanEvent as Happened, PlanStep};
use crate::conversation::event::{DecidedBy, EventKind};
use crate::conversation::message::{Item, UserText};
use crate::tools::PROPOSE_PLAN;

use super::graph;
use super::progress::{PlanProgress, PlanStepState};
use super::reply::PlanReply;

impl Turn<'_> {
    /// Answers an input in the way of the agent's mode. A plan that waits goes on only if somebody says so.
    pub(in crate::agent) async fn take_input(
        &mut self,
        input: UserText,
        request: String,
    ) -> Result<TurnEnd, TurnStop> {
        if let Some(chosen) = &self.agent.orchestration.flows.chosen {
            self.say(input)?;
            return self.by_flow(chosen, &request).await;
        }
        let known = PlanProgress::replay(self.conversation.session.progress());
        if known.waits_for_word() {
            if std::mem::take(&mut self.run.resumes_plan) {
                self.say(input)?;
                return Box::pin(self.go_on(known, &request)).await;
            }
            self.show_waiting(&known)?;
            self.say(input)?;
            return self.converse().await;
        }
        self.say(input)?;
        match self.agent.mode {
            Mode::Plan => self.by_plan(PlanProgress::default(), request).await,
            Mode::Route => Box::pin(self.by_route(&request)).await,
            Mode::Direct | Mode::Explore => self.converse().await,
        }
    }

    /// Checks a proposed plan and lets a person review it. The error is the end of the call and the reason, for the
    /// model.
    pub(in crate::agent) async fn review_proposal(
        &mut self,
        arguments: &Value,
    ) -> Result<Result<(), (CallEnd, String)>, TurnStop> {
        let invalid = |why: String| Ok(Err((CallEnd::Failed(CallFailure::Invalid), why)));
        if self.proposed.is_some() {
            return invalid("Not run: one plan at a time.".to_owned());
        }
        let read = serde_json::from_value::<Vec<PlanStep>>(arguments["steps"].clone());
        let plan = match read {
            Ok(plan) => plan,
            Err(error) => return invalid(format!("The steps cannot be read: {error}.")),
        };
        let known = PlanProgress::replay(self.conversation.session.progress());
        let waiting = Some(&known).filter(|known| known.waits_for_word());
        let created = if plan.is_empty() {
            match waiting.and_then(|known| known.plan()) {
                Some(plan) => plan.clone(),
                None => return invalid("No plan waits: write its steps.".to_owned()),
            }
        } else {
            let analysis = arguments["why"].as_str().unwrap_or_default().to_owned();
            let reply = PlanReply { analysis, plan, ..PlanReply::default() };
            let steps = match graph::check_plan(&reply, &self.agent.choices()) {
                Ok(steps) => steps,
                Err(mistakes) => return invalid(mistakes.join("\n")),
            };
            let kept = waiting.map(|known| known.find_kept(&steps)).unwrap_or_default();
            let (request, author) = (self.find_request(), PlanAuthor::Model);
            let analysis = reply.analysis;
            PlanCreated { request, analysis, author, steps, kept, ..PlanCreated::default() }
        };
        let created = match self.review(created).await? {
            Ok(created) => created,
            Err(why) => {
                let said = if why.is_empty() { ".".to_owned() } else { format!(" and says: {why}") };
                return Ok(Err((
                    CallEnd::Denied(DecidedBy::Person),
                    format!("The user did not approve the plan{said}"),
                )));
            }
        };
        self.proposed = Some(if waiting.and_then(|known| known.plan()) == Some(&created) {
            ProposedPlan::Waiting
        } else {
            let kept = waiting.map(|known| known.find_kept(&created.steps)).unwrap_or_default();
            ProposedPlan::New(PlanCreated { revision: known.next_revision(), kept, ..created })
        });
        Ok(Ok(()))
    }

    /// Carries out a plan that the last reply proposed, if there is one.
    pub(in crate::agent) async fn carry_out_proposal(&mut self) -> Result<(), TurnStop> {
        let Some(proposed) = self.proposed.take() else { return Ok(()) };
        let mut machine = PlanProgress::replay(self.conversation.session.progress());
        match proposed {
            ProposedPlan::New(created) => self.note(&mut machine, Happened::Planned(created))?,
            ProposedPlan::Waiting => self.announce_waiting(&machine)?,
        }
        self.finish_steps(machine).await
    }

    /// Goes on with a plan that waits, as the person asked.
    pub(in crate::agent) async fn go_on(
        &mut self,
        machine: PlanProgress,
        said: &str,
    ) -> Result<TurnEnd, TurnStop> {
        self.announce_waiting(&machine)?;
        match machine
            .plan()
            .filter(|plan| plan.author != PlanAuthor::Model && self.agent.orchestration.roles.is_some())
        {
            Some(plan) => {
                let request = format!("{}\n\n{said}", plan.request);
                self.by_plan(machine, request).await
            }
            None => {
                self.finish_steps(machine).await?;
                self.converse().await
            }
        }
    }

    /// Tells the model about a plan that waits, unless it was told already, and nothing has changed.
    pub(in crate::agent) fn show_waiting(&mut self, machine: &PlanProgress) -> Result<(), TurnStop> {
        let how = match self.agent.tools.get(PROPOSE_PLAN) {
            Some(_) => "call propose_plan with no steps; steps that are done are not repeated",
            None => "the user types /plan go",
        };
        let note = format!(
            "A plan was interrupted and waits:\n{}\nThe user's next message comes first. Nothing of the plan runs \
             unless that message wants it. To go on with it: {how}.",
            list_states(machine)
        );
        let is_told = |item: &Item| matches!(item, Item::Said(said) if said.text == note);
        if self.conversation.session.items().iter().any(is_told) {
            return Ok(());
        }
        self.say(UserText::by_program(note))
    }

    /// Tells the person that a plan waits, if one does.
    pub(in crate::agent) fn warn_of_waiting(&mut self) -> Result<(), TurnStop> {
        let machine = PlanProgress::replay(self.conversation.session.progress());
        let (all, done) = (machine.steps().len(), machine.results().len());
        if !machine.waits_for_word() {
            return Ok(());
        }
        let message = format!("a plan waits, {done} of {all} steps done: /plan go or /plan drop in a chat");
        Ok(self.run.emitter.emit(EventKind::Warning { message })?)
    }

    /// Reports a plan that goes on, with the steps that are done.
    fn announce_waiting(&mut self, machine: &PlanProgress) -> Result<(), TurnStop> {
        let Some(plan) = machine.plan().cloned() else { return Ok(()) };
        let kept = machine.results().into_keys().collect();
        Ok(self.run.emitter.emit(EventKind::PlanCreated(PlanCreated { kept, ..plan }))?)
    }

    /// Runs the steps of a plan to their end, and tells the model what became of them.
    async fn finish_steps(&mut self, mut machine: PlanProgress) -> Result<(), TurnStop> {
        self.run_plan(&mut machine).await?;
        let told = list_states(&machine);
        self.close_plan(&mut machine, "carried out")?;
        self.say(UserText::by_program(format!("The plan has ended:\n{told}\nGo on from the results above.")))
    }

    /// The last message of the person.
    fn find_request(&self) -> String {
        let items = self.conversation.session.items();
        items.iter().rev().find_map(Item::said_by_person).unwrap_or_default().to_owned()
    }
}

/// The steps of a plan, a line for each.
fn list_states(machine: &PlanProgress) -> String {
    let line = |step: &PlanStep| {
        let state = match machine.state(step.step_id) {
            None | Some(PlanStepState::Waiting | PlanStepState::Running) => "not run".to_owned(),
            Some(PlanStepState::Interrupted) => "may have run in part".to_owned(),
            Some(PlanStepState::Ended(ended)) => {
                let word = if machine.has_succeeded(step.step_id) { "done" } else { ended.status.word() };
                let word = if word.is_empty() { "its check failed" } else { word };
                format!("{word}: {}", text::one_line(&ended.summary, 200))
            }
        };
        format!("{}. {} · {}: {state}", step.step_id, text::one_line(&step.description, 120), step.tool_name)
    };
    machine.steps().iter().map(line).collect::<Vec<_>>().join("\n")
}
