//! Running the calls of one reply: each is checked, judged, run and answered exactly once, in the order in which
//! the model wrote them. Calls that only read run side by side; all others wait their turn.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use serde_json::Value;

use crate::contract::{Approval, CallContext, CallRecord, Permission, Question, Tool};
use crate::event::{CallTelemetry, DecidedBy, EventKind, PermissionVerdict};
use crate::message::{AssistantMessage, CallStatus, Message, ToolCall, ToolMessage};
use crate::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::policy::{self, Facts, Verdict};
use crate::text;

use super::repeat::Repetition;
use super::turn::{Stop, Turn};
use super::{Agent, Emitter, Limit, arguments};

/// A call that was checked and judged, but not run.
struct Prepared<'a> {
    call: &'a ToolCall,
    plan: Plan<'a>,
}

enum Plan<'a> {
    Run {
        tool: &'a dyn Tool,
        arguments: Value,
        verdict: Verdict,
        reads: bool,
    },
    /// It cannot be run; the text tells the model why.
    Refuse {
        arguments: Value,
        why: String,
    },
}

/// A call that ended, whichever way.
struct Finished<'a> {
    call: &'a ToolCall,
    arguments: Value,
    status: CallStatus,
    output: ToolOutput,
    duration: Duration,
}

impl Turn<'_> {
    /// Runs all calls of a reply and records their answers.
    pub(super) async fn run_calls(&mut self, reply: &AssistantMessage) -> Result<(), Stop> {
        let agent = self.agent;
        let prepared: Vec<Prepared<'_>> =
            reply.tool_calls.iter().map(|call| prepare(agent, call, reply.was_cut())).collect();
        let mut waiting = prepared.into_iter().peekable();
        while let Some(first) = waiting.next() {
            let mut group = vec![first];
            while group[0].may_run_beside() && waiting.peek().is_some_and(Prepared::may_run_beside) {
                group.extend(waiting.next());
            }
            if group.len() == 1 {
                let alone = group.remove(0);
                let finished = self.run_alone(alone).await?;
                self.answer_call(finished)?;
                continue;
            }
            self.run_side_by_side(group).await?;
        }
        Ok(())
    }

    async fn run_side_by_side(&mut self, group: Vec<Prepared<'_>>) -> Result<(), Stop> {
        let (agent, emitter) = (self.agent, Arc::clone(&self.run.emitter));
        let calls: Vec<_> = group.into_iter().map(|prepared| prepared.run(agent, &emitter).boxed()).collect();
        let mut answers = futures_util::stream::iter(calls).buffered(agent.limits.max_parallel.max(1));
        while let Some(finished) = answers.next().await {
            self.answer_call(finished)?;
        }
        Ok(())
    }

    /// Asks where that is needed, then runs.
    async fn run_alone<'c>(&mut self, prepared: Prepared<'c>) -> Result<Finished<'c>, Stop>
    where
        Self: 'c,
    {
        let Plan::Run { tool, arguments, verdict, .. } = &prepared.plan else {
            return Ok(prepared.run(self.agent, &self.run.emitter).await);
        };
        let denial = match verdict {
            Verdict::Allow => None,
            Verdict::Deny(why) => Some(format!("Not run: {why}.")),
            Verdict::Ask(why) => match tool.preview(arguments, &self.agent.workspace) {
                // What would fail is not worth a question.
                Err(error) if self.agent.approver.present() => {
                    announce(&self.run.emitter, prepared.call, *tool, arguments);
                    let (call, arguments) = (prepared.call, arguments.clone());
                    return Ok(Finished::failed(call, arguments, CallStatus::Error, error.message));
                }
                preview => {
                    let preview = preview.unwrap_or_else(|error| error.message);
                    self.ask_permission(prepared.call, &preview, why).await?
                }
            },
        };
        match denial {
            Some(why) => {
                announce(&self.run.emitter, prepared.call, *tool, arguments);
                Ok(Finished::failed(prepared.call, arguments.clone(), CallStatus::Denied, why))
            }
            None => {
                if tool.waits_for_person() {
                    let _pause = self.clock.pause();
                    return Ok(prepared.run(self.agent, &self.run.emitter).await);
                }
                Ok(prepared.run(self.agent, &self.run.emitter).await)
            }
        }
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
            self.agent.approver.approve(Question { tool: &call.name, preview: &preview, why, workspace }).await
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
                self.run.totals.denied += 1;
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

    /// Records the one answer of a call, after looking for a loop.
    fn answer_call(&mut self, finished: Finished<'_>) -> Result<(), Stop> {
        let Finished { call, arguments, status, mut output, duration } = finished;
        let most = self.agent.tool_result_max_tokens * BYTES_PER_TOKEN;
        if let Cow::Owned(cut) = cut_to(&output.observation, most) {
            output.observation = cut;
            output.truncated = true;
        }
        output.observation = self.agent.redactor.redact(&output.observation).into_owned();
        let repetition = self.repeats.observe(&call.name, &arguments.to_string(), &output.observation);
        if let Repetition::Hint { times } = repetition {
            output.observation.push_str(&hint(times));
        }
        self.run.totals.tool_calls += 1;
        let telemetry = CallTelemetry {
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            output_bytes: output.observation.len() as u64,
        };
        self.run.emitter.emit(EventKind::ToolFinished {
            call_id: call.id.clone(),
            name: call.name.clone(),
            status,
            summary: self.agent.redactor.redact(&output.summary).into_owned(),
            telemetry,
            truncated: output.truncated,
        })?;
        if self.agent.model.info().scripted {
            self.run.results.push(CallRecord {
                name: call.name.clone(),
                arguments,
                status,
                result: output.result,
                observation: output.observation.clone(),
            });
        }
        self.record(Message::Tool(ToolMessage {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: output.observation,
            status,
        }))?;
        match repetition {
            Repetition::Stop { times } => Err(Stop::Limit(Limit::Loop { times })),
            _ => Ok(()),
        }
    }
}

/// The event for a call that was answered by settling the turn.
pub(super) fn cancelled(answer: &ToolMessage) -> EventKind {
    EventKind::ToolFinished {
        call_id: answer.call_id.clone(),
        name: answer.name.clone(),
        status: answer.status,
        summary: "cancelled".to_owned(),
        telemetry: CallTelemetry::default(),
        truncated: false,
    }
}

fn prepare<'a>(agent: &'a Agent, call: &'a ToolCall, cut: bool) -> Prepared<'a> {
    let plan = plan(agent, call, cut).unwrap_or_else(|why| Plan::Refuse {
        arguments: arguments::read(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone())),
        why,
    });
    Prepared { call, plan }
}

fn plan<'a>(agent: &'a Agent, call: &ToolCall, cut: bool) -> Result<Plan<'a>, String> {
    if cut {
        return Err(
            "Not run: your reply was cut at the output limit before it was complete. Send the call again, \
                    with shorter arguments; write large files in several parts."
                .to_owned(),
        );
    }
    let found = agent.tools.find(&call.name)?;
    let arguments = arguments::read(&call.arguments)?;
    arguments::validate("The arguments do", found.validator(), &arguments)?;
    let (permission, verdict) = judge(agent, found.tool, &arguments);
    let reads = permission == Permission::Read && verdict == Verdict::Allow && !found.tool.waits_for_person();
    Ok(Plan::Run { tool: found.tool, arguments, verdict, reads })
}

fn judge(agent: &Agent, tool: &dyn Tool, arguments: &Value) -> (Permission, Verdict) {
    let workspace = &agent.workspace;
    let permission = tool.permission(arguments, workspace);
    let reads = tool.reads(arguments);
    let writes = tool.writes(arguments);
    let outside = |path: &&&str| !workspace.resolve(path).inside;
    let readable = |path: &&&str| {
        let target = workspace.resolve(path).path;
        !agent.readable.iter().any(|dir| dir.canonicalize().is_ok_and(|dir| target.starts_with(dir)))
    };
    let facts = Facts {
        permission,
        effects: &tool.definition().effects,
        reads_outside: reads.iter().filter(outside).find(readable).copied(),
        writes_outside: writes.iter().find(outside).copied(),
        writes_protected: writes.iter().find(|path| workspace.is_protected(path)).copied(),
    };
    (permission, policy::judge(agent.approval, facts))
}

impl<'a> Prepared<'a> {
    fn may_run_beside(&self) -> bool {
        matches!(self.plan, Plan::Run { reads: true, .. })
    }

    /// Runs the call without asking any more.
    async fn run(self, agent: &'a Agent, emitter: &Emitter) -> Finished<'a> {
        let Self { call, plan } = self;
        let (tool, arguments) = match plan {
            Plan::Run { tool, arguments, .. } => (tool, arguments),
            Plan::Refuse { arguments, why } => {
                emitter.notify(started(call, String::new(), arguments.clone()));
                return Finished::failed(call, arguments, CallStatus::Error, why);
            }
        };
        announce(emitter, call, tool, &arguments);
        let start = Instant::now();
        let live = |chunk: &str| {
            let chunk = agent.redactor.redact(chunk).into_owned();
            emitter.notify(EventKind::ToolOutput { call_id: call.id.clone(), chunk });
        };
        let notify = |kind: EventKind| emitter.notify(kind);
        let context = CallContext {
            workspace: &agent.workspace,
            timeout: agent.limits.tool_timeout,
            max_tokens: agent.tool_result_max_tokens,
            live: &live,
            notify: &notify,
        };
        let outcome = bounded(tool, arguments.clone(), context).await;
        let duration = start.elapsed();
        match outcome {
            Ok(output) => Finished { call, arguments, status: CallStatus::Ok, output, duration },
            Err(error) => {
                let status = match error.kind {
                    ToolErrorKind::Timeout => CallStatus::Timeout,
                    _ => CallStatus::Error,
                };
                Finished { duration, ..Finished::failed(call, arguments, status, error.message) }
            }
        }
    }
}

/// Tools keep their own time, as they know what to say of what was seen until then. This bound is for one that
/// does not.
async fn bounded(tool: &dyn Tool, arguments: Value, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
    const GRACE: Duration = Duration::from_secs(10);
    if tool.waits_for_person() {
        return tool.call(arguments, context).await;
    }
    match tokio::time::timeout(context.timeout + GRACE, tool.call(arguments, context)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let limit = crate::config::format_duration(context.timeout);
            Err(ToolError::new(
                ToolErrorKind::Timeout,
                format!("The call took longer than {limit} and was stopped."),
            ))
        }
    }
}

fn announce(emitter: &Emitter, call: &ToolCall, tool: &dyn Tool, arguments: &Value) {
    emitter.notify(started(call, tool.subject(arguments), arguments.clone()));
}

fn started(call: &ToolCall, subject: String, arguments: Value) -> EventKind {
    EventKind::ToolStarted { call_id: call.id.clone(), name: call.name.clone(), subject, arguments }
}

impl<'a> Finished<'a> {
    fn failed(call: &'a ToolCall, arguments: Value, status: CallStatus, why: String) -> Self {
        let output = ToolOutput {
            result: Value::Null,
            summary: text::one_line(&why, 120),
            observation: why,
            truncated: false,
        };
        Self { call, arguments, status, output, duration: Duration::ZERO }
    }
}

/// The factor between the token limit of a result and its bytes.
const BYTES_PER_TOKEN: usize = 4;

/// Head and tail of a text that is too long, with what was left out between them.
fn cut_to(observation: &str, most: usize) -> Cow<'_, str> {
    if observation.len() <= most {
        return Cow::Borrowed(observation);
    }
    let (head, tail) = (text::head(observation, most * 2 / 3), text::tail(observation, most / 3));
    let left_out = observation.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}\n[… {left_out} bytes left out …]\n{tail}"))
}

fn hint(times: usize) -> String {
    format!(
        "\n[note: this call has now returned the same result {times} times. Repeating it will not change that: try \
         something else, or answer with what you have.]"
    )
}
