//! Hooks at the two ends of a turn: what the person sent, and the answer.

use serde_json::json;

use crate::agent::{Agent, Conversation, Run};
use crate::config::HookEvent;
use crate::conversation::attachment::Attachment;
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
            "session_id": self.conversation.session.id(),
            "answer": answer,
            "stop_hook_active": self.held_by_hooks > 0,
        });
        let said = self.agent.hooks.run(HookEvent::Stop, None, facts).await;
        self.run.emitter.warn(said.warnings);
        let Some(why) = said.deny else { return Ok(false) };
        self.held_by_hooks += 1;
        let text = self.agent.redactor.redact_known(&why).into_owned();
        self.say(UserText::by_program(text))?;
        Ok(true)
    }
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
        (
            run.heard.as_ref() != Some(&session),
            HookEvent::SessionStart,
            json!({ "session_id": session, "source": source }),
        ),
        (said.is_some(), HookEvent::Prompt, json!({ "session_id": session, "prompt": said })),
    ];
    for (_, event, facts) in events.into_iter().filter(|(happens, ..)| *happens) {
        let said = agent.hooks.run(event, None, facts).await;
        warnings.extend(said.warnings);
        if let Some(why) = said.deny.filter(|_| event == HookEvent::Prompt) {
            return Err(why);
        }
        let name = event.names()[0];
        added.extend(said.context.into_iter().map(|content| Attachment { name: format!("hook {name}"), content }));
    }
    run.heard = Some(session);
    Ok(added)
}
