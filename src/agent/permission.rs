//! Asks whether a call may run, and tells the model when it may not.

use jiff::Timestamp;
use serde_json::Value;

use crate::contract::{Approval, Enclosure, Question, Reach, Tool};
use crate::event::{DecidedBy, EventKind, PermissionVerdict};
use crate::message::{CallStatus, ToolCall};
use crate::policy::{Grant, Grants, Grounds, Verdict};

use super::turn::{Stop, Turn};

impl Turn<'_> {
    /// How the call ends without running, and the message for the model; `None` when it may run.
    pub(super) async fn denial(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        (arguments, reach): (&Value, &Reach),
        verdict: &Verdict,
        enclosure: Enclosure,
    ) -> Result<Option<(CallStatus, String)>, Stop> {
        let (why, always) = match verdict {
            Verdict::Allow(Grounds::Mode | Grounds::Reading) => return Ok(None),
            Verdict::Allow(Grounds::Rule) => {
                self.resolve(call, PermissionVerdict::Allowed, DecidedBy::Rule)?;
                return Ok(None);
            }
            Verdict::Deny { why, grounds } => {
                let by = if *grounds == Grounds::Rule { DecidedBy::Rule } else { DecidedBy::Policy };
                self.resolve(call, PermissionVerdict::Denied, by)?;
                return Ok(Some((CallStatus::Denied, format!("Not run: {why}."))));
            }
            Verdict::Ask { always: Some(grant), .. } if self.conversation.grants.cover(grant) => {
                self.resolve(call, PermissionVerdict::Allowed, DecidedBy::Person)?;
                return Ok(None);
            }
            Verdict::Ask { why, always } => (why, always.as_ref()),
        };
        let preview = match tool.preview(arguments, reach, &self.conversation.shared.files) {
            // A call that would fail is not worth a question.
            Err(error) if self.agent.approver.present() => return Ok(Some((CallStatus::Error, error.message))),
            preview => preview.unwrap_or_else(|error| error.message),
        };
        let walls = (tool.enclosure(enclosure), tool.has_network());
        let denial = self.ask_permission(call, (&preview, walls), why, always).await?;
        Ok(denial.map(|why| (CallStatus::Denied, why)))
    }

    /// Asks the person; returns the message for the model when the answer is no.
    async fn ask_permission(
        &mut self,
        call: &ToolCall,
        (preview, (enclosure, network)): (&str, (Option<Enclosure>, bool)),
        why: &str,
        always: Option<&Grant>,
    ) -> Result<Option<String>, Stop> {
        self.run.emitter.emit(EventKind::PermissionRequested {
            call_id: call.id.clone(),
            name: call.name.clone(),
            why: why.to_owned(),
        })?;
        let redactor = &self.agent.redactor;
        // Never by shape: that could swallow a part of what would run.
        let shown = redactor.redact_known(preview);
        let offered = always.map(|grant| redactor.redact_known(&grant.to_string()).into_owned());
        let question = Question {
            helper: None,
            tool: &call.name,
            preview: &shown,
            why,
            always: offered.as_deref(),
            workspace: self.agent.workspace.root(),
            enclosure,
            network,
            hidden: shown != preview,
        };
        let approval = {
            let _pause = self.clock.pause();
            self.agent.approver.approve(question).await
        };
        let (denial, by) = match approval {
            Approval::Allow => (None, DecidedBy::Person),
            Approval::Always => {
                if let Some(grant) = always {
                    self.conversation.grants.add(grant);
                }
                (None, DecidedBy::Person)
            }
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
        self.resolve(call, verdict, by)?;
        Ok(denial)
    }

    /// Outside content enters the conversation: earlier grants no longer hold.
    pub(super) fn taint(&mut self, source: &str) {
        if self.conversation.session.mark_tainted(&self.agent.redactor.redact(source), Timestamp::now()) {
            self.conversation.grants = Grants::default();
        }
    }

    /// Tells the observers how the question was decided.
    fn resolve(&mut self, call: &ToolCall, verdict: PermissionVerdict, by: DecidedBy) -> Result<(), Stop> {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.run.emitter.emit(EventKind::PermissionResolved { call_id, name, verdict, by })?;
        Ok(())
    }
}
