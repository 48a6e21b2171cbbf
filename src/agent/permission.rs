//! Asking whether a call may run, and telling the model when it may not.

use serde_json::Value;

use crate::contract::{Approval, Question, Tool};
use crate::event::{DecidedBy, EventKind, PermissionVerdict};
use crate::message::{CallStatus, ToolCall};
use crate::policy::Verdict;

use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// How the call ends without being run, and what to tell the model; `None` when it may run.
    pub(super) async fn denial(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        arguments: &Value,
        verdict: &Verdict,
    ) -> Result<Option<(CallStatus, String)>, Stop> {
        let denial = match verdict {
            Verdict::Allow => None,
            Verdict::Deny(why) => Some(self.refuse(call, why)?),
            Verdict::Ask(why) => match tool.preview(arguments, &self.agent.workspace) {
                // What would fail is not worth a question.
                Err(error) if self.agent.approver.present() => {
                    return Ok(Some((CallStatus::Error, error.message)));
                }
                preview => {
                    let preview = preview.unwrap_or_else(|error| error.message);
                    self.ask_permission(call, &preview, why).await?
                }
            },
        };
        Ok(denial.map(|why| (CallStatus::Denied, why)))
    }

    /// Tells whoever watches that the policy said no, and what to tell the model.
    fn refuse(&mut self, call: &ToolCall, why: &str) -> Result<String, Stop> {
        self.run.emitter.emit(EventKind::PermissionResolved {
            call_id: call.id.clone(),
            name: call.name.clone(),
            verdict: PermissionVerdict::Denied,
            by: DecidedBy::Policy,
        })?;
        Ok(format!("Not run: {why}."))
    }

    /// What to tell the model when the answer is no.
    async fn ask_permission(&mut self, call: &ToolCall, preview: &str, why: &str) -> Result<Option<String>, Stop> {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.run.emitter.emit(EventKind::PermissionRequested {
            call_id: call_id.clone(),
            name: name.clone(),
            why: why.to_owned(),
        })?;
        let preview = self.agent.redactor.redact(preview).into_owned();
        let workspace = self.agent.workspace.root();
        let approval = {
            let _pause = self.clock.pause();
            self.agent.approver.approve(Question { tool: &name, preview: &preview, why, workspace }).await
        };
        let (denial, by) = match approval {
            Approval::Allow => (None, DecidedBy::Person),
            Approval::Deny(reason) if reason.is_empty() => (
                Some("The user did not allow this call. Do something else, or ask.".to_owned()),
                DecidedBy::Person,
            ),
            Approval::Deny(reason) => {
                (Some(format!("The user did not allow this call and said: {reason}")), DecidedBy::Person)
            }
            Approval::Nobody => {
                self.run.totals.unasked += 1;
                let text = format!(
                    "Not run: {why}, and nobody is there to allow it. Go on without it, and say in your answer what \
                     could not be done."
                );
                (Some(text), DecidedBy::Nobody)
            }
        };
        let verdict = if denial.is_none() { PermissionVerdict::Allowed } else { PermissionVerdict::Denied };
        self.run.emitter.emit(EventKind::PermissionResolved { call_id, name, verdict, by })?;
        Ok(denial)
    }
}
