//! What hooks have to say about a call: before it, before a person is asked about it, and after it.

use serde_json::{Value, json};

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::{Agent, HookReport};
use crate::base::output::ToolOutput;
use crate::config::HookEvent;
use crate::conversation::message::ToolCall;
use crate::conversation::spill::Spill;
use crate::safety::policy::{Grounds, Verdict};

use super::end::CallEnd;
use super::hooked::run_hooks;
use super::permission::PermissionDecision;
use super::prepare::{CallText, PreparedCall};

/// The most of a result that a hook reads, in bytes.
const MOST_RESULT: usize = 256 * 1024;

impl PreparedCall<'_> {
    fn tell(&mut self, text: String) {
        self.hooked.get_or_insert_default().texts.push(text);
    }
}

impl<'c, 't: 'c> Turn<'t> {
    /// Has the hooks say what they have to, before anything else decides about a call. Returns the reason for a refusal.
    pub(super) async fn heed_hooks(
        &mut self,
        prepared: &mut PreparedCall<'c>,
    ) -> Result<Option<(CallEnd, String)>, TurnStop> {
        let session = json!({ "session_id": self.conversation.session.id() });
        let call = (prepared.call.name.as_str(), &prepared.arguments);
        let said = run_hooks(self.agent, HookEvent::BeforeTool, call, session).await;
        self.run.emitter.report_hooks(said.report);
        if let Some(why) = said.deny {
            return match self.deny_by_policy(&prepared.call, &why, Grounds::Rule)? {
                PermissionDecision::Refuse(end, why) => Ok(Some((end, why))),
                _ => Ok(None),
            };
        }
        if let Some(arguments) = said.arguments {
            let call = ToolCall { arguments: arguments.to_string(), ..prepared.call.clone() };
            let anew = PreparedCall::of(self.agent, prepared.slot, &call, CallText::Whole, self.trust());
            let variables = std::mem::take(&mut prepared.variables);
            let anew = anew.give_values(self.agent, variables);
            *prepared = PreparedCall { time_limit: prepared.time_limit, start: prepared.start, ..anew };
            prepared.tell(format!("a hook changed the arguments to {arguments}"));
        }
        if let (Some(mut why), Ok(plan)) = (said.ask, &mut prepared.plan)
            && !matches!(plan.verdict, Verdict::Deny { .. })
        {
            if let Verdict::Ask { why: own, .. } = &plan.verdict {
                why.extend(["; ", own]);
            }
            plan.verdict = Verdict::Ask { why, always: None };
        }
        said.context.into_iter().for_each(|text| prepared.tell(text));
        Ok(None)
    }

    /// Has the hooks deny what a person would be asked about. Returns their reason.
    pub(super) async fn heed_permission_hooks(&self, call: &ToolCall) -> Option<String> {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let session = json!({ "session_id": self.conversation.session.id() });
        let said = run_hooks(self.agent, HookEvent::Permission, (&call.name, &arguments), session).await;
        self.run.emitter.report_hooks(said.report);
        said.deny
    }
}

/// Has the hooks see the result of a call, and change it. Returns the hooks that ran.
pub(super) async fn take_result(
    agent: &Agent,
    session: &str,
    prepared: &PreparedCall<'_>,
    spill: &Spill,
    output: &mut ToolOutput,
) -> HookReport {
    let text = &output.observation[..output.observation.floor_char_boundary(MOST_RESULT)];
    let facts = json!({ "session_id": session, "tool_response": text });
    let call = (prepared.call.name.as_str(), &prepared.arguments);
    let said = run_hooks(agent, HookEvent::AfterTool, call, facts).await;
    if let Some(result) = said.result {
        output.result = Value::Null;
        output.observation = result;
        // `recall` would read what was replaced.
        output.kept.take().iter().for_each(|kept| spill.discard(kept));
    }
    for text in said.deny.into_iter().chain(said.context) {
        output.observation += "\n[";
        output.observation += text.trim();
        output.observation += "]";
    }
    said.report
}
