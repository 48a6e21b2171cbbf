//! Asks whether a call may run, and tells the model if it may not. A person may also write another command in place of
//! the model's: it is judged again, but not asked about again.

use jiff::Timestamp;

use crate::agent::turn::{Turn, TurnStop, notify_hooks};
use crate::conversation::event::{DecidedBy, EventKind, PermissionVerdict};
use crate::conversation::message::ToolCall;
use crate::safety::policy::{EXPLORING, Grant, Grounds, SessionGrants, Verdict};
use crate::safety::sandbox::MovedAside;
use crate::safety::{Approval, Enclosure, Question};
use crate::tools::PROPOSE_PLAN;

use super::end::{CallEnd, CallFailure};
use super::prepare::{CallPlan, PreparedCall};
use super::superior::TrustState;

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PermissionDecision {
    Run,
    /// The call runs with this command line, which a person wrote.
    Edit(String),
    /// The call ends so without running, with this message for the model.
    Refuse(CallEnd, String),
}

/// The question about what is kept apart.
const TAKE_OVER: &str =
    "the command made this, which decides what runs later, so it is kept apart; put it in its place?";

/// The run that is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunAsked {
    /// The walls around a command.
    pub enclosure: Enclosure,
    /// True if a person may write another command in place of the model's.
    pub may_edit: bool,
}

impl<'c, 't: 'c> Turn<'t> {
    /// Decides whether a call may run, and takes in what a person edited. Returns the reason for a refusal.
    pub(super) async fn find_refusal(
        &mut self,
        prepared: &mut PreparedCall<'c>,
    ) -> Result<Option<(CallEnd, String)>, TurnStop> {
        if prepared.hooked.is_some()
            && let Some(refusal) = Box::pin(self.heed_hooks(prepared)).await?
        {
            return Ok(Some(refusal));
        }
        let is_allowed = prepared.plan.as_ref().is_ok_and(|plan| plan.verdict == Verdict::Allow(Grounds::Mode));
        if is_allowed && self.loses_changes().await {
            prepared.judge_again(self.agent, TrustState { loses_changes: true, ..self.trust() });
        }
        prepared.look_at_editor(self.agent).await;
        let Ok(plan) = &prepared.plan else { return Ok(None) };
        let run = RunAsked { enclosure: plan.enclosure, may_edit: true };
        let decision = match self.decide(prepared, &plan.verdict, run).await? {
            PermissionDecision::Edit(line) => self.take_edit(prepared, line)?,
            decision => decision,
        };
        Ok(match decision {
            PermissionDecision::Refuse(end, why) => Some((end, why)),
            PermissionDecision::Run | PermissionDecision::Edit(_) => None,
        })
    }

    /// True if what calls change cannot be undone, and the approval mode rests on that.
    pub(super) async fn loses_changes(&self) -> bool {
        if !self.agent.needs_undo {
            return false;
        }
        let Some(history) = self.find_history() else { return true };
        // The first look at a large workspace takes seconds.
        let looked = tokio::task::spawn_blocking(move || (history.is_followed(), history.take_warning())).await;
        let (is_followed, warning) = looked.unwrap_or_default();
        self.run.emitter.warn(warning);
        !is_followed
    }

    /// Decides on a call by a verdict, its own or that on another run of it, and asks the person if the verdict says
    /// so.
    pub(super) async fn decide(
        &mut self,
        prepared: &PreparedCall<'_>,
        verdict: &Verdict,
        run: RunAsked,
    ) -> Result<PermissionDecision, TurnStop> {
        let PreparedCall { call, arguments, plan: Ok(CallPlan { tool, reach, .. }), .. } = prepared else {
            return Ok(PermissionDecision::Run);
        };
        let is_plan = call.name == PROPOSE_PLAN && !matches!(verdict, Verdict::Deny { .. });
        if is_plan && self.is_exploring {
            return self.deny_by_policy(call, EXPLORING, Grounds::Mode);
        }
        if is_plan {
            let reviewed = self.review_proposal(arguments).await?;
            return Ok(reviewed
                .err()
                .map_or(PermissionDecision::Run, |(end, why)| PermissionDecision::Refuse(end, why)));
        }
        let (why, always) = match verdict {
            Verdict::Allow(Grounds::Mode | Grounds::Reading) => return Ok(PermissionDecision::Run),
            Verdict::Allow(Grounds::Rule) => {
                self.report_verdict(call, PermissionVerdict::Allowed, DecidedBy::Rule)?;
                return Ok(PermissionDecision::Run);
            }
            Verdict::Deny { why, grounds } => return self.deny_by_policy(call, why, *grounds),
            Verdict::Ask { always: Some(grant), .. } if self.conversation.grants.cover(grant) => {
                self.report_verdict(call, PermissionVerdict::Allowed, DecidedBy::Person)?;
                return Ok(PermissionDecision::Run);
            }
            Verdict::Ask { why, always } => (why, always.as_ref()),
        };
        let preview = match tool.preview(arguments, reach, &self.conversation.shared.files) {
            // A call that would fail is not worth a question.
            Err(error) if self.agent.approver.present() => {
                return Ok(PermissionDecision::Refuse(CallEnd::Failed(CallFailure::Invalid), error.message));
            }
            preview => preview.unwrap_or_else(|error| error.message),
        };
        let line = tool.definition().command.filter(|_| run.may_edit).and_then(|name| arguments[name].as_str());
        let redactor = &self.agent.redactor;
        // Not redacted by shape, which could hide part of the command.
        let shown = redactor.redact_known(&preview);
        let offered = always.map(|grant| redactor.redact_known(&grant.to_string()).into_owned());
        // Editing a masked line would replace the secret with the mask.
        let editable = line.filter(|line| redactor.redact_known(line) == *line);
        let opening = Some(&reach.opening).filter(|_| run.enclosure == Enclosure::Opened);
        let protected = opening.into_iter().flat_map(|opening| &opening.protected);
        let protected = protected.map(|path| self.agent.workspace.relative(path).to_path_buf());
        let dirs = opening.into_iter().flat_map(|opening| &opening.dirs).cloned();
        let opened: Vec<_> = dirs.chain(protected).collect();
        let question = Question {
            helper: None,
            tool: &call.name,
            preview: &shown,
            is_change: tool.definition().previews_change,
            why,
            always: offered.as_deref(),
            enclosure: tool.enclosure(run.enclosure),
            network: tool.has_network(arguments) || (run.enclosure == Enclosure::Opened && reach.opening.network),
            opened: &opened,
            hidden: shown != preview,
            editable,
        };
        self.ask_permission(call, question, always).await
    }

    /// Offers to take over what a command made or changed under protected names; returns a remark about what came of it.
    pub(super) async fn offer_taking_over(
        &mut self,
        call: &ToolCall,
        made: &[MovedAside],
    ) -> Result<Option<String>, TurnStop> {
        let preview: String = made.iter().map(MovedAside::preview).collect();
        let preview = self.agent.redactor.redact_known(&preview);
        let question = Question { why: TAKE_OVER, ..Question::about(&call.name, &preview) };
        let decision = self.ask_permission(call, question, None).await?;
        let is_wanted = matches!(decision, PermissionDecision::Run);
        let put = |aside: &MovedAside| match aside.put_back() {
            Ok(()) => format!("{} was taken over: the user agreed", aside.name),
            Err(error) => format!("{} could not be taken over: {error}", aside.name),
        };
        Ok(is_wanted.then(|| made.iter().map(put).collect::<Vec<_>>().join("; ")))
    }

    /// Asks the person. `always` is what they may grant for the rest of the conversation.
    async fn ask_permission(
        &mut self,
        call: &ToolCall,
        question: Question<'_>,
        always: Option<&Grant>,
    ) -> Result<PermissionDecision, TurnStop> {
        let Question { why, editable, .. } = question;
        if let Some(why) = Box::pin(self.heed_permission_hooks(call)).await {
            return self.deny_by_policy(call, &why, Grounds::Rule);
        }
        self.run.emitter.emit(EventKind::PermissionRequested {
            call_id: call.id.clone(),
            name: call.name.clone(),
            why: why.to_owned(),
        })?;
        let approval = {
            let _pause = self.clock.pause();
            let message = format!("{} asks: {why}", call.name);
            let notified = notify_hooks(self.agent, self.conversation.session.id(), &message);
            // The question waits for no hook.
            let beside = async {
                self.run.emitter.report_hooks(notified.await);
                std::future::pending().await
            };
            tokio::select! {
                approval = self.agent.approver.approve(question) => approval,
                approval = beside => approval,
            }
        };
        let denial = match approval {
            // The edited call is judged again, and that verdict decides.
            Approval::Edited(line) if editable.is_some_and(|now| now != line) => {
                return Ok(PermissionDecision::Edit(line));
            }
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
                self.report_verdict(call, PermissionVerdict::Denied, DecidedBy::Nobody)?;
                let text = format!(
                    "Not run: {why}, and nobody is there to allow it. Go on without it, and say in your answer what \
                     could not be done."
                );
                return Ok(PermissionDecision::Refuse(CallEnd::Denied(DecidedBy::Nobody), text));
            }
        };
        let verdict = if denial.is_none() { PermissionVerdict::Allowed } else { PermissionVerdict::Denied };
        self.report_verdict(call, verdict, DecidedBy::Person)?;
        let refuse = |why| PermissionDecision::Refuse(CallEnd::Denied(DecidedBy::Person), why);
        Ok(denial.map_or(PermissionDecision::Run, refuse))
    }

    /// Puts a person's command line in place of the model's. A rule can still deny it; nothing else asks again, and the
    /// sandbox is that of the question or stricter.
    pub(super) fn take_edit(
        &mut self,
        prepared: &mut PreparedCall<'c>,
        line: String,
    ) -> Result<PermissionDecision, TurnStop> {
        prepared.edit(self.agent, line, self.trust());
        if let Ok(CallPlan { verdict: Verdict::Deny { why, grounds }, .. }) = &prepared.plan {
            return self.deny_by_policy(&prepared.call, why, *grounds);
        }
        self.report_verdict(&prepared.call, PermissionVerdict::Allowed, DecidedBy::Person)?;
        Ok(PermissionDecision::Run)
    }

    /// Denies a call in the name of a rule or of the policy.
    pub(super) fn deny_by_policy(
        &mut self,
        call: &ToolCall,
        why: &str,
        grounds: Grounds,
    ) -> Result<PermissionDecision, TurnStop> {
        let by = if grounds == Grounds::Rule { DecidedBy::Rule } else { DecidedBy::Policy };
        self.report_verdict(call, PermissionVerdict::Denied, by)?;
        Ok(PermissionDecision::Refuse(CallEnd::Denied(by), format!("Not run: {why}.")))
    }

    /// Marks the conversation as holding outside content: earlier grants no longer apply.
    pub(in crate::agent) fn taint(&mut self, source: &str) {
        if self.conversation.session.mark_tainted(&self.agent.redactor.redact(source), Timestamp::now()) {
            self.conversation.grants = SessionGrants::default();
        }
    }

    /// Reports the decision to the observers.
    fn report_verdict(
        &mut self,
        call: &ToolCall,
        verdict: PermissionVerdict,
        by: DecidedBy,
    ) -> Result<(), TurnStop> {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        self.run.emitter.emit(EventKind::PermissionResolved { call_id, name, verdict, by })?;
        Ok(())
    }
}
