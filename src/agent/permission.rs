//! Asks whether a call may run, and tells the model if it may not. A person may also write another command in place of
//! the model's: it is judged again, but not asked about again.

use jiff::Timestamp;
use serde_json::Value;

use crate::conversation::event::{DecidedBy, EventKind, PermissionVerdict};
use crate::conversation::message::{CallStatus, ToolCall};
use crate::safety::policy::{Grant, Grants, Grounds, Verdict};
use crate::safety::{Approval, Enclosure, Question, Reach};
use crate::tools::Tool;

use super::prepare::{CallPlan, Prepared, Ready};
use super::turn::{Stop, Turn};

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    Run,
    /// The call runs with this command line, which a person wrote.
    Edit(String),
    /// The call ends without running, with this message for the model.
    Deny(CallStatus, String),
}

/// A permission question.
struct Asked<'q> {
    preview: &'q str,
    is_change: bool,
    why: &'q str,
    always: Option<&'q Grant>,
    enclosure: Option<Enclosure>,
    network: bool,
    /// The command line that a person may replace.
    line: Option<&'q str>,
}

impl<'c> Turn<'c> {
    /// Decides on a call by its verdict, and asks the person if the verdict says so. With `may_edit` they may write
    /// another command in its place.
    pub(super) async fn decide(
        &mut self,
        call: &ToolCall,
        tool: &dyn Tool,
        (arguments, reach): (&Value, &Reach),
        verdict: &Verdict,
        (enclosure, may_edit): (Enclosure, bool),
    ) -> Result<Decision, Stop> {
        let (why, always) = match verdict {
            Verdict::Allow(Grounds::Mode | Grounds::Reading) => return Ok(Decision::Run),
            Verdict::Allow(Grounds::Rule) => {
                self.resolve(call, PermissionVerdict::Allowed, DecidedBy::Rule)?;
                return Ok(Decision::Run);
            }
            Verdict::Deny { why, grounds } => {
                let (status, why) = self.deny(call, why, *grounds)?;
                return Ok(Decision::Deny(status, why));
            }
            Verdict::Ask { always: Some(grant), .. } if self.conversation.grants.cover(grant) => {
                self.resolve(call, PermissionVerdict::Allowed, DecidedBy::Person)?;
                return Ok(Decision::Run);
            }
            Verdict::Ask { why, always } => (why, always.as_ref()),
        };
        let preview = match tool.preview(arguments, reach, &self.conversation.shared.files) {
            // A call that would fail is not worth a question.
            Err(error) if self.agent.approver.present() => {
                return Ok(Decision::Deny(CallStatus::Error, error.message));
            }
            preview => preview.unwrap_or_else(|error| error.message),
        };
        let line = tool.command_argument().filter(|_| may_edit).and_then(|name| arguments[name].as_str());
        let (enclosure, network) = (tool.enclosure(enclosure), tool.has_network());
        let is_change = tool.previews_change();
        self.ask_permission(call, Asked { preview: &preview, is_change, why, always, enclosure, network, line })
            .await
    }

    /// Asks the person.
    async fn ask_permission(&mut self, call: &ToolCall, asked: Asked<'_>) -> Result<Decision, Stop> {
        let Asked { preview, is_change, why, always, enclosure, network, line } = asked;
        self.run.emitter.emit(EventKind::PermissionRequested {
            call_id: call.id.clone(),
            name: call.name.clone(),
            why: why.to_owned(),
        })?;
        let redactor = &self.agent.redactor;
        // Not redacted by shape, which could hide part of the command.
        let shown = redactor.redact_known(preview);
        let offered = always.map(|grant| redactor.redact_known(&grant.to_string()).into_owned());
        // Editing a masked line would replace the secret with the mask.
        let editable = line.filter(|line| redactor.redact_known(line) == *line);
        let question = Question {
            helper: None,
            tool: &call.name,
            preview: &shown,
            is_change,
            why,
            always: offered.as_deref(),
            workspace: self.agent.workspace.root(),
            enclosure,
            network,
            hidden: shown != preview,
            editable,
        };
        let approval = {
            let _pause = self.clock.pause();
            self.agent.approver.approve(question).await
        };
        let denial = match approval {
            // The edited call is judged again, and that verdict decides.
            Approval::Edited(line) if editable.is_some_and(|now| now != line) => return Ok(Decision::Edit(line)),
            Approval::Edited(line) if editable.is_none() => {
                Some(format!("The user did not allow this call and asked for this instead: {line}"))
            }
            Approval::Allow | Approval::Edited(_) => None,
            Approval::Always => {
                if let Some(grant) = always {
                    self.conversation.grants.add(grant);
                }
                None
            }
            Approval::Deny(reason) if reason.is_empty() => {
                Some("The user did not allow this call. Do something else, or ask.".to_owned())
            }
            Approval::Deny(reason) => Some(format!("The user did not allow this call and said: {reason}")),
            Approval::Nobody => {
                self.run.totals.unasked += 1;
                self.resolve(call, PermissionVerdict::Denied, DecidedBy::Nobody)?;
                let text = format!(
                    "Not run: {why}, and nobody is there to allow it. Go on without it, and say in your answer what \
                     could not be done."
                );
                return Ok(Decision::Deny(CallStatus::Denied, text));
            }
        };
        let verdict = if denial.is_none() { PermissionVerdict::Allowed } else { PermissionVerdict::Denied };
        self.resolve(call, verdict, DecidedBy::Person)?;
        Ok(denial.map_or(Decision::Run, |why| Decision::Deny(CallStatus::Denied, why)))
    }

    /// Puts a person's command line in place of the model's. A rule can still deny it; nothing else asks again, and the
    /// sandbox is that of the question or stricter. Returns the denial, if there is one.
    pub(super) fn take_edit<'p>(
        &mut self,
        prepared: &mut Prepared<'p>,
        line: String,
    ) -> Result<Option<(CallStatus, String)>, Stop>
    where
        'c: 'p,
    {
        prepared.edit(self.agent, line, self.footing());
        if let CallPlan::Run(Ready { verdict: Verdict::Deny { why, grounds }, .. }) = &prepared.plan {
            return self.deny(&prepared.call, why, *grounds).map(Some);
        }
        self.resolve(&prepared.call, PermissionVerdict::Allowed, DecidedBy::Person)?;
        Ok(None)
    }

    /// Denies a call in the name of a rule or of the policy.
    fn deny(&mut self, call: &ToolCall, why: &str, grounds: Grounds) -> Result<(CallStatus, String), Stop> {
        let by = if grounds == Grounds::Rule { DecidedBy::Rule } else { DecidedBy::Policy };
        self.resolve(call, PermissionVerdict::Denied, by)?;
        Ok((CallStatus::Denied, format!("Not run: {why}.")))
    }

    /// Marks the conversation as holding outside content: earlier grants no longer apply.
    pub(super) fn taint(&mut self, source: &str) {
        if self.conversation.session.mark_tainted(&self.agent.redactor.redact(source), Timestamp::now()) {
            self.conversation.grants = Grants::default();
        }
    }

    /// Reports the decision to the observers.
    fn resolve(&mut self, call: &ToolCall, verdict: PermissionVerdict, by: DecidedBy) -> Result<(), Stop> {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.run.emitter.emit(EventKind::PermissionResolved { call_id, name, verdict, by })?;
        Ok(())
    }
}
