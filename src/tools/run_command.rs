//! `run_command`: a command line, run by the shell in its own process group, inside the sandbox.
//!
//! The model reads first how it ended, then its output: all of it, or head and tail (mostly tail if it failed)
//! with an exact count of the rest. An exit other than 0 is a result, not an error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::text;
use crate::config::{Permission, ToolEffect};
use crate::conversation::knowledge::Ledger;
use crate::model::ToolDefinition;
use crate::safety::process::{ChildEnd, ChildPatience, Cut, Exit, choose_shell, shell_name};
use crate::safety::{Enclosure, Reach};

use super::commands::bounded::{BoundedInput, ShownText};
use super::commands::confined::{Confined, ProgramOrder};
use super::commands::jobs::{Jobs, Start};
use super::commands::plain::PlainState;
use super::commands::tests_run::tests_run;
use super::{CallContext, Clocks, ShellLine, Tool, ToolFuture};
use super::{background, bytes_for, define_tool, files, parse_arguments, text_of};

/// The name of the tool.
pub const RUN_COMMAND: &str = "run_command";
/// The share of the room for the head of the output.
const HEAD_PERCENT_OF_SUCCESS: usize = 40;
const HEAD_PERCENT_OF_FAILURE: usize = 15;

/// `run_command`: a command line for the shell.
pub struct RunCommand {
    definition: ToolDefinition,
    confined: Arc<Confined>,
    jobs: Arc<Jobs>,
}

#[derive(Debug, Deserialize)]
struct RunCommandArguments {
    command: String,
    workdir: Option<String>,
    #[serde(default)]
    background: bool,
}

impl RunCommand {
    pub fn new(confined: Confined, jobs: Arc<Jobs>) -> Self {
        let description = format!(
            "Runs a command with {} {}. Returns exit code, stdout and stderr, cut in the middle if long. No input; \
             what it leaves running ends with the call.{}",
            shell_name(),
            choose_shell()[1],
            confined.describe_boundary()
        );
        let definition = ToolDefinition {
            command: Some("command"),
            advice: "Example: {\"command\": \"cargo test 2>&1 | tail -n 40\"}. Each call starts anew in the workspace: `cd` and variables do not last.",
            returns: "{exit_code, output}",
            ..define_tool(
                RUN_COMMAND,
                &description,
                (Permission::Write, &[ToolEffect::Process]),
                json!({
                    "command": { "type": "string" },
                    "workdir": { "type": "string" },
                    "timeout": { "type": "integer", "minimum": 1, "description": "Seconds" },
                    "background": { "type": "boolean", "description": "Goes on; returns an id" },
                }),
                &["command"],
            )
        };
        Self { definition, confined: Arc::new(confined), jobs }
    }
}

impl Tool for RunCommand {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn shell_line<'a>(&'a self, arguments: &'a Value) -> Option<ShellLine<'a>> {
        let line = text_of(arguments, "command")?;
        Some(ShellLine {
            line: line.into(),
            workdir: text_of(arguments, "workdir").map(Cow::from),
            hold: self.confined.hold(),
            configured: None,
        })
    }

    fn prepare(&self) {
        self.confined.prepare();
    }

    fn enclosure(&self, wanted: Enclosure) -> Option<Enclosure> {
        Some(self.confined.enclosure(wanted))
    }

    fn has_network(&self, _arguments: &Value) -> bool {
        self.confined.has_network()
    }

    fn time_asked(&self, arguments: &Value) -> Option<Duration> {
        if goes_on(arguments) { None } else { find_timeout(arguments) }
    }

    fn subject(&self, arguments: &Value) -> String {
        text::one_line(text_of(arguments, "command").unwrap_or_default(), 100)
    }

    fn preview(&self, arguments: &Value, _reach: &Reach, _: &Ledger) -> Result<String, ToolError> {
        let command = text_of(arguments, "command").unwrap_or_default();
        let mut shown = command.to_owned();
        if let Some(dir) = text_of(arguments, "workdir") {
            let _ = write!(shown, "\n(in {dir})");
        }
        if goes_on(arguments) {
            shown += "\n(goes on in the background)";
        }
        Ok(shown)
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let lifetime = find_timeout(&given);
            let arguments: RunCommandArguments = parse_arguments(given)?;
            let dir = files::find_dir(context.reach, arguments.workdir.as_deref())?;
            let RunCommandArguments { command, background, .. } = &arguments;
            if command.trim().is_empty() || command.contains('\0') {
                return Err(ToolError::parameter("command is empty, or has a zero byte in it"));
            }
            if *background {
                return self.start(Start { command, dir: &dir, lifetime }, context).await;
            }
            self.run(command, &dir, context).await
        })
    }
}

impl RunCommand {
    async fn run(&self, command: &str, dir: &Path, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
        let [program, flag] = choose_shell();
        let arguments = [flag, command];
        let order = ProgramOrder {
            program,
            arguments: &arguments,
            dir,
            variables: context.variables,
            patience: choose_patience(&context),
            input: None,
        };
        let (mut output, remarks) = execute_order(&self.confined, order, context, &mut |_| {}).await?;
        output.observation += &remarks;
        Ok(output)
    }

    /// Starts a background command, and waits a moment: most failures occur at once.
    async fn start(&self, start: Start<'_>, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
        const MOMENT: Duration = Duration::from_secs(1);
        let id = self.jobs.start(&self.confined, start, &context)?;
        let look = self.jobs.look(&id, MOMENT.min(context.timeout), false).await?;
        (context.live)(&look.shown.text);
        if let Some(denied) = look.end.as_ref().and_then(|end| end.denied.as_ref()) {
            (context.refused)(denied.how.clone());
        }
        match look.end.as_ref().map(|end| end.outcome.clone()) {
            Some(Err(error)) => Err(error),
            Some(Ok(ended)) => Ok(ToolOutput { exit: Some(ended.exit), ..background::describe_job(&id, look) }),
            None => Ok(background::describe_job(&id, look)),
        }
    }
}

fn goes_on(arguments: &Value) -> bool {
    arguments.get("background").and_then(Value::as_bool) == Some(true)
}

fn find_timeout(arguments: &Value) -> Option<Duration> {
    arguments.get("timeout").and_then(Value::as_u64).map(|seconds| Duration::from_secs(seconds.max(1)))
}

/// The clocks of a command that runs as long as its call.
pub(super) fn choose_patience(context: &CallContext<'_>) -> ChildPatience<'static> {
    ChildPatience { call: Some(context.timeout), idle: context.clocks.idle, run: context.clocks.run, leash: None }
}

/// Runs a program to its end; returns its result, and remarks about the sandbox for the end of the observation. `seen`
/// receives all of its output as plain text.
pub(super) async fn execute_order(
    confined: &Confined,
    order: ProgramOrder<'_>,
    context: CallContext<'_>,
    seen: &mut (dyn FnMut(&str) + Send),
) -> Result<(ToolOutput, String), ToolError> {
    let mut plain = PlainState::default();
    let mut output = BoundedInput::new(bytes_for(context.max_tokens), context.keep);
    let mut piece = String::new();
    let mut take = |piece: &mut String| {
        if !piece.is_empty() {
            output.push(piece);
            seen(piece);
            (context.live)(piece);
            piece.clear();
        }
    };
    let heard = |bytes: &[u8]| {
        plain.push(bytes, &mut piece);
        take(&mut piece);
    };
    let outcome = confined.run(order, &context, heard).await?;
    plain.finish(&mut piece);
    take(&mut piece);
    let ended = &outcome.ended;
    let failed = ended.cut.is_some() || ended.exit != Exit::Code(0);
    let shown = output.show(if failed { HEAD_PERCENT_OF_FAILURE } else { HEAD_PERCENT_OF_SUCCESS });
    let remarks = Confined::remarks(&outcome, &shown.text, &context);
    if let Some(cut) = ended.cut {
        let mut error = timed_out(cut, &context, &shown);
        error.message += &remarks;
        return Err(error);
    }
    Ok((report_end(ended, &shown), remarks))
}

fn report_end(ended: &ChildEnd, shown: &ShownText) -> ToolOutput {
    let (code, signal, summary) = match &ended.exit {
        Exit::Code(code) => (Some(*code), None, format!("exit {code}")),
        Exit::Signal(name) => (None, Some(name.as_str()), format!("killed by {name}")),
    };
    let mut observation = summary.clone();
    if shown.text.trim().is_empty() {
        observation += ", no output";
    } else {
        let _ = write!(observation, "\n{}", shown.text.trim_end());
    }
    if ended.left_behind {
        observation += "\n[processes that were left in the background were ended with the call]";
    }
    // Counts in a part of an output would be mistaken for those of all tests.
    let tests = if shown.truncated { None } else { tests_run(&shown.text) };
    let mut metadata = Map::from_iter([("exit_code".to_owned(), json!(code))]);
    if let Some(tests) = tests {
        metadata.insert("tests_passed".to_owned(), json!(tests.passed));
        metadata.insert("tests_failed".to_owned(), json!(tests.failed));
    }
    ToolOutput {
        result: json!({
            "exit_code": code, "signal": signal, "output": shown.text, "truncated": shown.truncated,
        }),
        observation,
        summary,
        truncated: shown.truncated,
        kept: shown.kept.clone(),
        metadata,
        exit: Some(ended.exit.clone()),
        ..ToolOutput::default()
    }
}

/// The error of a clock that ran out, with advice and the output until then.
fn timed_out(cut: Cut, context: &CallContext<'_>, shown: &ShownText) -> ToolError {
    let Clocks { most, idle, run } = context.clocks;
    let seconds = |limit: Duration| format!("{} s", limit.as_secs_f64());
    let ended = |limit: Duration| format!("the command was ended after {}", seconds(limit));
    let mut message = match cut {
        Cut::Call if context.timeout < most => {
            format!("{}; timeout may be up to {}", ended(context.timeout), seconds(most))
        }
        Cut::Call => format!("{}, the most that a command may take", ended(context.timeout)),
        Cut::Idle => {
            let idle = seconds(idle.unwrap_or_default());
            format!("the command was ended: it had written nothing for {idle} (limits.tool_idle_timeout)")
        }
        Cut::Asked => "the command was stopped".to_owned(),
        Cut::Run => {
            let left = Duration::from_secs(run.unwrap_or_default().as_secs());
            format!("{}: the time of the whole run is out (limits.max_time)", ended(left))
        }
    };
    match shown.text.trim_end() {
        "" => message += ". It wrote nothing.",
        text => {
            let _ = write!(message, ". Until then it wrote:\n{text}");
        }
    }
    ToolError::new(ToolErrorKind::Timeout, message)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::testing::Place;
    use super::*;
    use crate::safety::net::Proxies;

    fn make_tool() -> RunCommand {
        RunCommand::new(
            Confined::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())], None, Proxies::default()),
            Arc::default(),
        )
    }

    #[test]
    fn the_exit_comes_first_and_is_no_error() {
        let place = Place::with(&[("sub/a.txt", "x")]);
        let run = |arguments| place.read(&make_tool(), arguments);
        assert_eq!(run(json!({ "command": "echo out; echo err >&2; exit 3" })), "exit 3\nout\nerr");
        assert_eq!(run(json!({ "command": "true" })), "exit 0, no output");
        assert_eq!(run(json!({ "command": "ls", "workdir": "sub" })), "exit 0\na.txt");
        assert_eq!(run(json!({ "command": "printf '\\033[31m中文\\033[0m 1%%\\r2%%\\n'" })), "exit 0\n2%");
        let output = place.call(&make_tool(), json!({ "command": "kill -KILL $$" })).expect("it can be run");
        assert_eq!((output.summary.as_str(), &output.result["signal"]), ("killed by SIGKILL", &json!("SIGKILL")));
    }

    #[test]
    fn long_output_is_cut_in_the_middle_and_counted() {
        let place = Place { max_tokens: 500, ..Place::new() };
        let success = place.call(&make_tool(), json!({ "command": "seq 100000" })).expect("it can be run");
        assert!(
            success.observation.starts_with("exit 0\n1\n2\n3\n")
                && success.observation.ends_with("\n99999\n100000")
        );
        assert!(success.observation.contains(" lines, ") && success.observation.len() <= 2000);
        assert!(success.truncated);
        let failure = place.read(&make_tool(), json!({ "command": "seq 100000; exit 1" }));
        let cut = |text: &str| text.find("[…").expect("something was cut");
        assert!(cut(&failure) < cut(&success.observation), "a failure is mostly tail");
    }

    #[test]
    fn a_flood_is_bounded() {
        let place = Place { max_tokens: 500, ..Place::new() };
        let output = place.read(&make_tool(), json!({ "command": "head -c 30000000 /dev/zero | tr '\\0' x" }));
        assert!(output.len() <= 2000 && output.contains("bytes left out"), "{}", output.len());
    }

    #[test]
    fn a_timeout_tells_which_clock_ran_out_and_what_was_seen() {
        let milliseconds = |count| Some(Duration::from_millis(count));
        let most = Duration::from_mins(1);
        let clocks = |idle, run| Clocks { most, idle, run };
        let of = |timeout, clocks, arguments| {
            let place = Place { timeout, clocks, ..Place::new() };
            let error = place.call(&make_tool(), arguments).expect_err("it takes too long");
            assert_eq!(error.kind, ToolErrorKind::Timeout);
            error.message
        };
        let second = Duration::from_secs(1);
        let slow = |timeout| json!({ "command": "echo begun; sleep 1000", "timeout": timeout });
        let table = [
            (
                of(most, clocks(None, None), slow(1)),
                "the command was ended after 1 s; timeout may be up to 60 s. Until then it wrote:\nbegun",
            ),
            (
                of(second, Clocks { most: second, ..clocks(None, None) }, json!({ "command": "sleep 1000" })),
                "the command was ended after 1 s, the most that a command may take. It wrote nothing.",
            ),
            (
                of(most, clocks(milliseconds(200), None), slow(60)),
                "the command was ended: it had written nothing for 0.2 s (limits.tool_idle_timeout). Until then it \
                 wrote:\nbegun",
            ),
            (
                of(most, clocks(None, milliseconds(1200)), slow(60)),
                "the command was ended after 1 s: the time of the whole run is out (limits.max_time). Until then it \
                 wrote:\nbegun",
            ),
        ];
        for (message, expected) in table {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn a_command_that_goes_on_writing_is_not_idle() {
        let clocks = Clocks { idle: Some(Duration::from_secs(2)), ..Place::new().clocks };
        let place = Place { clocks, ..Place::new() };
        let slow = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done";
        assert_eq!(place.read(&make_tool(), json!({ "command": slow })), "exit 0\n1\n2\n3\n4\n5\n6");
    }

    #[test]
    fn what_stays_behind_is_ended_and_named() {
        let observation = Place::new().read(&make_tool(), json!({ "command": "sleep 1000 & echo ok" }));
        assert!(observation.starts_with("exit 0\nok\n[processes that were left"), "{observation}");
    }

    #[test]
    fn output_is_seen_while_it_runs() {
        let seen = Mutex::new(String::new());
        let live = |piece: &str| seen.lock().expect("nobody panics").push_str(piece);
        let outcome =
            Place::new().watched(&make_tool(), json!({ "command": "echo a; echo b >&2; printf c" }), &live);
        assert!(outcome.is_ok());
        assert_eq!(*seen.lock().expect("nobody panics"), "a\nb\nc");
    }

    #[test]
    fn what_cannot_be_run_says_why() {
        let place = Place::with(&[("file", "")]);
        let fail = |arguments| place.fail(&make_tool(), arguments);
        assert!(fail(json!({ "command": " " })).contains("is empty"));
        assert_eq!(fail(json!({ "command": "ls", "workdir": "file" })), "file is not a directory");
        assert!(fail(json!({ "command": "ls", "workdir": "nowhere" })).contains("does not exist"));
        assert!(place.read(&make_tool(), json!({ "command": "no-such-command" })).starts_with("exit 127\n"));
    }
}
