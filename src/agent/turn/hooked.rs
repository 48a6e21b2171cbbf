//! Hooks of a turn and a conversation: what the person sent, the answer, a compression, and the end.

use serde_json::json;

use crate::agent::hooks::HookReport;
use crate::agent::{Agent, Conversation, Run};
use crate::config::HookEvent;
use crate::conversation::attachment::Attachment;
use crate::conversation::event::CompressionReason;
use crate::conversation::message::UserText;

use super::{Turn, TurnStop};

/// The most times that hooks have a turn go on.
const MOST_HELD: u32 = 5;

impl Turn<'_> {
    /// True if a hook has the model go on in place of this answer: its reason is said to the model.
    pub(super) async fn goes_on_for_hooks(&mut self, answer: &str) -> Result<bool, TurnStop> {
        if self.held_by_hooks == MOST_HELD || self.run.superior.is_some() {
            return Ok(false);
        }
        let facts = json!({
            "answer": answer,
            "stop_hook_active": self.held_by_hooks > 0,
        });
        let said = self.agent.hooks.run_in(HookEvent::Stop, &self.conversation.session, facts).await;
        self.run.emitter.report_hooks(said.report);
        let Some(why) = said.deny else { return Ok(false) };
        self.held_by_hooks += 1;
        let text = self.agent.redactor.redact_known(&why).into_owned();
        self.say(UserText::by_program(text))?;
        Ok(true)
    }

    /// Has the hooks hear that the conversation is about to be compressed. Returns what a summary must keep: `focus`, and
    /// what they add; `None` if one refuses what a person asked for.
    pub(super) async fn hear_before_compress(&mut self, reason: CompressionReason, focus: &str) -> Option<String> {
        let is_manual = reason == CompressionReason::Manual;
        let facts = json!({
            "trigger": if is_manual { "manual" } else { "auto" },
            "custom_instructions": focus,
        });
        let said = self.agent.hooks.run_in(HookEvent::BeforeCompress, &self.conversation.session, facts).await;
        self.run.emitter.report_hooks(said.report);
        if let Some(why) = said.deny.filter(|_| is_manual) {
            self.run.emitter.warn([why]);
            return None;
        }
        let parts = std::iter::once(focus.to_owned()).chain(said.context).filter(|part| !part.is_empty());
        Some(parts.collect::<Vec<_>>().join("; "))
    }
}

/// Has the hooks hear that a person is asked something.
pub(in crate::agent) async fn notify_hooks(agent: &Agent, session: &str, message: &str) -> HookReport {
    let facts = json!({ "session_id": session, "message": message });
    agent.hooks.run(HookEvent::Notify, None, facts).await.report
}

/// Has the hooks hear that a person leaves a conversation, or that its run is over. `reason` is a word of the hooks'
/// documents: `exit`, `clear`, `resume`. Returns the hooks that ran.
pub async fn end_session(agent: &Agent, conversation: &Conversation, reason: &str) -> HookReport {
    let facts = json!({ "reason": reason });
    agent.hooks.run_in(HookEvent::SessionEnd, &conversation.session, facts).await.report
}

/// Has the hooks hear that a conversation begins or goes on, and what the person says. Returns what they add to the
/// message. `warnings` are for those that fail: the run has not begun.
///
/// # Errors
/// A hook refuses the message: its reason.
pub(in crate::agent) async fn hear_hooks(
    agent: &Agent,
    conversation: &Conversation,
    run: &mut Run,
    said: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Attachment>, String> {
    let session = conversation.session.id().to_owned();
    let mut added = Vec::new();
    let source = if conversation.session.turns() == 0 { "startup" } else { "resume" };
    let events = [
        (run.heard.as_ref() != Some(&session), HookEvent::SessionStart, json!({ "source": source })),
        (said.is_some(), HookEvent::Prompt, json!({ "prompt": said })),
    ];
    for (_, event, facts) in events.into_iter().filter(|(happens, ..)| *happens) {
        let said = agent.hooks.run_in(event, &conversation.session, facts).await;
        run.emitter.note_hooks(&said.report.runs);
        warnings.extend(said.report.warnings);
        if let Some(why) = said.deny.filter(|_| event == HookEvent::Prompt) {
            return Err(why);
        }
        let name = event.names()[0];
        added.extend(said.context.into_iter().map(|content| Attachment { name: format!("hook {name}"), content }));
    }
    run.heard = Some(session);
    Ok(added)
}
