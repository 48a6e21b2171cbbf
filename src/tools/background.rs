//! `background`: reads, feeds and stops commands that `run_command` started in the background.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::config::Permission;
use crate::conversation::knowledge::Ledger;
use crate::model::ToolDefinition;
use crate::safety::Reach;
use crate::safety::process::Exit;

use super::commands::confined::bracket_remarks;
use super::commands::jobs::{JobLook, Jobs};
use super::{CallContext, ShellLine, Tool, ToolFuture, define_tool, parse_arguments, text_of};

/// The name of the tool.
pub const BACKGROUND: &str = "background";
/// The default wait for the end of a command, in seconds.
const WAIT: u64 = 5;
/// The same after an input: most commands answer at once.
const ANSWER: u64 = 1;
/// The argument with what a command is to read.
const INPUT: &str = "input";

/// `background`: the state of a running command.
pub struct Background {
    definition: ToolDefinition,
    jobs: Arc<Jobs>,
}

#[derive(Debug, Deserialize)]
struct BackgroundArguments {
    id: String,
    #[serde(default)]
    action: BackgroundAction,
    wait: Option<u64>,
    input: Option<String>,
}

#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum BackgroundAction {
    #[default]
    Read,
    Stop,
}

impl Background {
    /// True if a call gives input to a command. To one that has ended nothing is given, which needs no judgement.
    fn feeds(&self, arguments: &Value) -> bool {
        text_of(arguments, INPUT).is_some() && !self.jobs.has_ended(text_of(arguments, "id").unwrap_or_default())
    }

    pub fn new(jobs: Arc<Jobs>) -> Self {
        let definition = ToolDefinition {
            advice: "Only for an id that run_command returned. `input` goes to its stdin, and an empty one ends that.",
            ..define_tool(
                BACKGROUND,
                "Reads, stops or feeds a background command. Returns state and new output.",
                (Permission::Read, &[]),
                json!({
                    "id": { "type": "string" },
                    "action": { "enum": ["read", "stop"] },
                    "wait": { "type": "integer", "description": "Seconds" },
                    "input": { "type": "string" },
                }),
                &["id"],
            )
        };
        Self { definition, jobs }
    }
}

impl Tool for Background {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// False: output that was read is not returned again.
    fn idempotent(&self) -> bool {
        false
    }

    fn waits_for_time(&self, arguments: &Value) -> bool {
        text_of(arguments, "action") != Some("stop")
    }

    /// What a command reads can make it do anything that it may do.
    fn permission(&self, arguments: &Value) -> Permission {
        if self.feeds(arguments) { Permission::Write } else { Permission::Read }
    }

    fn runs_beside(&self, arguments: &Value) -> bool {
        text_of(arguments, INPUT).is_none()
    }

    /// The input is judged like a line for the shell: the command may be one.
    fn shell_line<'a>(&'a self, arguments: &'a Value) -> Option<ShellLine<'a>> {
        let input = text_of(arguments, INPUT).filter(|_| self.feeds(arguments))?;
        let (command, hold) = self.jobs.find(text_of(arguments, "id")?)?;
        let configured = Some(format!("{input} (read by `{command}`)"));
        Some(ShellLine { line: input.into(), workdir: None, hold, configured })
    }

    fn preview(&self, arguments: &Value, _: &Reach, _: &Ledger) -> Result<String, ToolError> {
        let Some(input) = text_of(arguments, INPUT) else { return Ok(self.subject(arguments)) };
        let command = self.jobs.find(text_of(arguments, "id").unwrap_or_default()).map(|(command, _)| command);
        Ok(format!("{input}\n(read by `{}`)", command.unwrap_or_default()))
    }

    fn time_asked(&self, arguments: &Value) -> Option<Duration> {
        arguments.get("wait").and_then(Value::as_u64).map(Duration::from_secs)
    }

    fn subject(&self, arguments: &Value) -> String {
        let action = match (text_of(arguments, INPUT), text_of(arguments, "action")) {
            (Some(_), None | Some("read")) => "feed",
            (_, action) => action.unwrap_or("read"),
        };
        format!("{action} {}", text_of(arguments, "id").unwrap_or_default())
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let BackgroundArguments { id, action, wait, input } = parse_arguments(given)?;
            if let Some(input) = &input {
                self.jobs.give_input(&id, input).await?;
            }
            let wait = Duration::from_secs(wait.unwrap_or(if input.is_some() { ANSWER } else { WAIT }));
            let wait = wait.min(context.timeout).min(context.clocks.run.unwrap_or(wait));
            let look = self.jobs.look(&id, wait, action == BackgroundAction::Stop).await?;
            Ok(describe_job(&id, look))
        })
    }
}

/// The state of a command, for the model.
pub fn describe_job(id: &str, look: JobLook) -> ToolOutput {
    let JobLook { command, shown, running_for, end } = look;
    let (state, denied) = match &end {
        Some(end) => (end.describe(), end.denied.as_ref().map(|denied| denied.why.clone())),
        None => (format!("running for {} s", running_for.as_secs()), None),
    };
    let code = end.and_then(|end| match end.outcome.ok()?.exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(_) => None,
    });
    let mut observation = format!("{id}: {state}");
    match shown.text.trim_end() {
        "" => observation += ", nothing new",
        text => {
            let _ = write!(observation, "\n{text}");
        }
    }
    observation += &bracket_remarks(denied);
    ToolOutput {
        result: json!({
            "id": id, "command": command, "state": state, "exit_code": code, "output": shown.text,
            "truncated": shown.truncated,
        }),
        observation,
        summary: state,
        truncated: shown.truncated,
        kept: shown.kept.filter(|_| shown.truncated),
        ..ToolOutput::default()
    }
}
