//! What the model is told of the run: the system prompt, rendered once a session, and the termination prompt with
//! what is true at the moment a limit is reached.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::config::{Limits, SkillDisclosure};
use crate::context::PARTS;
use crate::event::PromptUsed;
use crate::message::Usage;
use crate::prompt::{Ending, Prompt, PromptContext, SessionFacts, SummaryFacts, SummaryPart};
use crate::session::Session;
use crate::skills::{Catalogue, Loaded};
use crate::template;

use super::limits::Limit;
use super::turn::{Stop, Turn};

/// The prompts of an agent and the facts that they read.
pub struct Briefing {
    pub system: Arc<Prompt>,
    pub termination: Arc<Prompt>,
    pub compression: Arc<Prompt>,
    /// What does not change while the agent runs. Its session is filled in when a prompt is rendered.
    pub facts: PromptContext,
    pub catalogue: Arc<Catalogue>,
    /// Which skills the session has loaded.
    pub loaded: Arc<Loaded>,
    /// Where their instructions stand.
    pub disclosure: SkillDisclosure,
}

impl Briefing {
    /// Renders the system prompt for a session.
    ///
    /// # Errors
    /// When the prompt reads what nothing defines.
    pub fn system(&self, session: &Session, run_id: &str) -> anyhow::Result<String> {
        Ok(self.system.render(&self.context(session, run_id, 0, None).value())?)
    }

    /// Renders the system prompt of this briefing as the end of a turn would: with a reason, limits and no usage.
    ///
    /// # Errors
    /// When the prompt reads what nothing defines.
    pub fn ending(&self, session: &Session, run_id: &str, limits: &Limits) -> anyhow::Result<String> {
        let ending = Ending {
            termination_reason: Limit::Turns(limits.max_turns.unwrap_or_default()).to_string(),
            limits: limits.into(),
            usage: Usage::default(),
        };
        Ok(self.system.render(&self.context(session, run_id, 0, Some(ending)).value())?)
    }

    /// What of the system prompt belongs to the layer `context`: the text of its lists, and the project's instructions.
    #[must_use]
    pub fn elastic(&self) -> (String, &str) {
        let agent = &self.facts.agent;
        let skills = agent.skills.iter().map(|skill| format!("- [○] {}: {}\n", skill.name, skill.description));
        let tools = agent.tools.iter().map(|tool| {
            if tool.listed {
                format!("- {}: {}\n", tool.name, tool.description)
            } else {
                format!("{}, ", tool.name)
            }
        });
        (skills.chain(tools).collect(), &self.facts.instructions)
    }

    pub(super) fn termination(&self, turn: &Turn<'_>, limit: &Limit) -> Result<String, Stop> {
        let ending = Ending {
            termination_reason: limit.to_string(),
            limits: (&turn.agent.limits).into(),
            usage: turn.meter.usage,
        };
        let run_id = turn.run.emitter.run_id();
        let context = self.context(turn.session, &run_id, turn.meter.steps, Some(ending));
        self.termination.render(&context.value()).map_err(|error| Stop::Failed(error.into()))
    }

    /// Asks for a summary. `focus` is what the person wants kept above all, `updates` whether there is one already.
    pub(super) fn compression(&self, turn: &Turn<'_>, focus: &str, updates: bool) -> Result<String, Stop> {
        let run_id = turn.run.emitter.run_id();
        let mut context = self.context(turn.session, &run_id, turn.meter.steps, None);
        let parts = PARTS.iter().map(|(name, about)| SummaryPart { name, about }).collect();
        context.summary = Some(SummaryFacts { parts, focus: focus.to_owned(), updates });
        self.compression.render(&context.value()).map_err(|error| Stop::Failed(error.into()))
    }

    /// How `run.started` names the prompts.
    #[must_use]
    pub fn used(&self) -> Vec<PromptUsed> {
        vec![self.system.used(), self.termination.used(), self.compression.used()]
    }

    fn context(&self, session: &Session, run_id: &str, step: u64, ending: Option<Ending>) -> PromptContext {
        let mut context = self.facts.clone();
        context.session = SessionFacts {
            id: session.id().to_owned(),
            session_id: session.id().to_owned(),
            run_id: run_id.to_owned(),
            user_id: context.session.user_id,
            turn: session.turns(),
            step,
            started_at: session.started_at().to_string(),
        };
        // The clock stands still at the session's start: a prompt that tells the time stays the same.
        context.datetime = template::clock(session.started_at().to_zoned(TimeZone::system()));
        for skill in &mut context.agent.skills {
            skill.loaded = self.loaded.contains(&skill.name);
        }
        context.state.clone_from(session.state());
        context.ending = ending;
        context
    }
}
