//! The prompts about the run: the system prompt, rendered once per session, and the termination prompt, rendered
//! with the state at the moment a limit is reached.

mod system;
mod opening;

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::agent::Conversation;
use crate::agent::limits::ReachedLimit;
use crate::agent::turn::{Turn, TurnStop};
use crate::agent::window::{self, PARTS};
use crate::config::{Limits, SkillDisclosure};
use crate::conversation::event::PromptUsed;
use crate::conversation::message::Usage;
use crate::model::ledger::Spent;
use crate::prompt::chat::ChatMessage;
use crate::prompt::{
    EndingFacts, Prompt, PromptContext, Released, SessionFacts, SummaryPart, SummaryRequirements,
};
use crate::skills::SkillCatalogue;
use crate::template::{self, Value};

pub use system::PROMPT_BASIS;
pub(super) use system::{brief_conversation, list_changes_since};

/// The prompts of an agent and the facts that they read.
pub struct Briefing {
    /// The chosen prompt. It may bring messages along that open a conversation, and need not be a system prompt.
    pub system: Released,
    /// The agent's own system prompt, if the chosen prompt is not a system prompt.
    pub own: Option<Released>,
    pub termination: Released,
    pub compression: Released,
    /// The facts that stay the same while the agent runs. The session is filled in when a prompt is rendered.
    pub facts: PromptContext,
    pub catalogue: Arc<SkillCatalogue>,
    /// The place for the instructions of skills.
    pub disclosure: SkillDisclosure,
}

impl Briefing {
    /// Renders the system prompt for a session.
    ///
    /// # Errors
    /// The prompt reads an undefined variable.
    pub fn system(&self, conversation: &Conversation, run_id: &str) -> anyhow::Result<String> {
        let prompt = self.system_of(conversation);
        Ok(prompt.render(&self.context_of(prompt, conversation, run_id))?)
    }

    /// Renders the system prompt for a preview. If it reads variables that only the end of a turn or a compression
    /// defines, they get sample values.
    ///
    /// # Errors
    /// The prompt reads an undefined variable.
    pub fn preview(&self, conversation: &Conversation, run_id: &str, limits: &Limits) -> anyhow::Result<String> {
        let prompt = self.choose_prompt(conversation);
        Ok(prompt.show(&self.preview_context(prompt, conversation, run_id, limits))?)
    }

    /// The messages of the chosen prompt for a preview; a prompt without messages is one message.
    ///
    /// # Errors
    /// As [`Briefing::preview`].
    pub fn preview_messages(
        &self,
        conversation: &Conversation,
        run_id: &str,
        limits: &Limits,
    ) -> anyhow::Result<Vec<ChatMessage>> {
        let prompt = self.choose_prompt(conversation);
        Ok(prompt.messages(&self.preview_context(prompt, conversation, run_id, limits))?)
    }

    fn preview_context(
        &self,
        prompt: &Prompt,
        conversation: &Conversation,
        run_id: &str,
        limits: &Limits,
    ) -> Value {
        let mut context = self.context(conversation, run_id);
        if !prompt.undefined_in(&context.value_for(prompt)).is_empty() {
            let most = limits.max_turns.unwrap_or_default();
            let limit = ReachedLimit::Steps { most, spent: Spent::default() };
            context.ending = Some(EndingFacts {
                termination_reason: limit.to_string(),
                limits: serde_json::json!(limits),
                usage: Usage::default(),
            });
            let parts = list_summary_parts();
            context.summary = Some(SummaryRequirements { parts, ..SummaryRequirements::default() });
        }
        context.value_for(prompt)
    }

    /// The context for rendering the chosen prompt.
    pub(super) fn context_of(&self, prompt: &Prompt, conversation: &Conversation, run_id: &str) -> Value {
        self.context(conversation, run_id).value_for(prompt)
    }

    /// The parts of the system prompt that belong to the layer `context`: the text of its lists, and the project's
    /// instructions.
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

    pub(super) fn termination(&self, turn: &Turn<'_>, limit: &ReachedLimit) -> Result<String, TurnStop> {
        let ending = EndingFacts {
            termination_reason: limit.to_string(),
            limits: serde_json::json!(turn.agent.limits),
            usage: turn.run.ledger.spent().usage,
        };
        self.render_within(turn, &self.termination, |context| context.ending = Some(ending))
    }

    /// Renders the prompt that asks for a summary. `focus` is the topic that the person wants to keep.
    pub(super) fn compression(
        &self,
        turn: &Turn<'_>,
        facts: &window::SummaryFacts,
        focus: &str,
    ) -> Result<String, TurnStop> {
        let (focus, updates, tokens) = (focus.to_owned(), facts.updates(), facts.room.allow_tokens());
        let wanted = SummaryRequirements { parts: list_summary_parts(), focus, updates, tokens };
        self.render_within(turn, &self.compression, |context| context.summary = Some(wanted))
    }

    /// Renders a prompt with the state of a running turn, and with the facts that `add` fills in.
    fn render_within(
        &self,
        turn: &Turn<'_>,
        prompt: &Released,
        add: impl FnOnce(&mut PromptContext),
    ) -> Result<String, TurnStop> {
        let mut context = self.context(turn.conversation, &turn.run.emitter.run_id());
        context.session.step = turn.run.ledger.own_steps();
        add(&mut context);
        let prompt = prompt.of_session(turn.conversation.session.id());
        prompt.render(&context.value_for(prompt)).map_err(|error| TurnStop::Failed(error.into()))
    }

    /// The prompts of a session, as `run.started` names them.
    pub fn list_prompts(&self, session: &str) -> Vec<PromptUsed> {
        let (chosen, system) = (self.system.of_session(session), self.system_in(session));
        let opening = (!Arc::ptr_eq(chosen, system)).then_some(chosen);
        let others = [&self.termination, &self.compression].map(|prompt| prompt.of_session(session));
        std::iter::once(system).chain(others).chain(opening).map(|prompt| prompt.describe_use()).collect()
    }

    /// The system prompt of a conversation: that of its session.
    pub fn system_of(&self, conversation: &Conversation) -> &Arc<Prompt> {
        self.system_in(conversation.session.id())
    }

    /// The chosen prompt of a conversation: its system prompt, or the prompt whose messages open it.
    pub fn choose_prompt(&self, conversation: &Conversation) -> &Arc<Prompt> {
        self.system.of_session(conversation.session.id())
    }

    fn system_in(&self, session: &str) -> &Arc<Prompt> {
        let chosen = self.system.of_session(session);
        match &self.own {
            Some(own) if !chosen.has_system() => own.of_session(session),
            _ => chosen,
        }
    }

    fn context(&self, conversation: &Conversation, run_id: &str) -> PromptContext {
        let session = &conversation.session;
        let mut context = self.facts.clone();
        context.session = SessionFacts {
            id: session.id().to_owned(),
            session_id: session.id().to_owned(),
            run_id: run_id.to_owned(),
            turn: session.turns(),
            started_at: session.started_at().to_string(),
            ..context.session
        };
        // The clock does not advance, so a prompt that shows the time stays the same.
        context.datetime = template::make_clock(conversation.clock.to_zoned(TimeZone::system()));
        for skill in &mut context.agent.skills {
            skill.loaded = conversation.skills().contains(&skill.name);
        }
        context.state.clone_from(&session.state().keys);
        context
    }
}

/// The headings of a summary.
fn list_summary_parts() -> Vec<SummaryPart> {
    PARTS.iter().map(|(name, about)| SummaryPart { name, about }).collect()
}
