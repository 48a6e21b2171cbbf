//! A configured command as a tool, described by `tools/NAME.yaml`: the arguments of a call become those of a program.
//!
//! Its exit is a result, as for `run_command`; exit 75 (`EX_TEMPFAIL`) says that the same call may succeed later.
//! A command that prints JSON returns its document as data, or all parts of its result.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::{present, text};
use crate::config::{CommandOutputFormat, Permission, ToolConfig, ToolEffect};
use crate::conversation::knowledge::Ledger;
use crate::conversation::session::Session;
use crate::model::ToolDefinition;
use crate::safety::{Enclosure, Reach, net::Proxies, process::Exit, sandbox::Sandbox};
use crate::template;

use super::commands::Environment;
use super::commands::command_line::{self, ReadyCommand};
use super::commands::confined::{Confined, ProgramOrder};
use super::run_command;
use super::{CallContext, ShellLine, Tool, ToolFuture, bytes_for, files, todo};

/// The exit code that asks for a retry, after sysexits.h.
const TEMPORARY_FAILURE: i32 = 75;
/// The longest JSON document that is read.
const LONGEST_DOCUMENT: usize = 8 * 1024 * 1024;

/// The largest change of the session's state, in bytes of JSON: the log holds each.
const LARGEST_CHANGE: usize = 64 * 1024;

/// What a command with the output format `result` prints.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CommandReport {
    /// The data of the result.
    result: Value,
    /// What the model reads; without it, the data.
    observation: Option<String>,
    /// One line for the person.
    summary: Option<String>,
    /// Keys of the session's state; `null` removes a key.
    state_update: Option<Map<String, Value>>,
    /// The name of this place in the conversation.
    checkpoint: Option<String>,
}

/// A configured command.
pub struct ConfiguredCommand {
    definition: ToolDefinition,
    config: ToolConfig,
    confined: Confined,
}

impl ConfiguredCommand {
    /// `env` is the environment of commands, `sandbox` the boundary around them, `proxies` the machine's.
    pub fn new(config: ToolConfig, env: Environment, sandbox: Option<Arc<Sandbox>>, proxies: Proxies) -> Self {
        let mut effects = config.effects.clone().unwrap_or_default();
        // Whatever effects it declares, a command runs a process.
        if !effects.contains(&ToolEffect::Process) {
            effects.push(ToolEffect::Process);
        }
        let definition = ToolDefinition {
            name: config.name.clone(),
            description: config.description.as_deref().unwrap_or_default().trim().to_owned(),
            parameters: Arc::new(config.schema()),
            permission: config.permission.unwrap_or(Permission::Write),
            effects,
            default: true,
            ..ToolDefinition::default()
        };
        Self { definition, config, confined: Confined::new(env, sandbox, proxies) }
    }

    /// Its working directory. A directory that the model can influence must be inside the workspace.
    fn dir(&self, ready: &ReadyCommand, reach: &Reach) -> Result<PathBuf, ToolError> {
        let Some(dir) = &ready.workdir else { return Ok(reach.workspace().root().to_path_buf()) };
        let has_a_say = self.config.workdir.as_deref().is_some_and(template::is_template);
        if has_a_say && !reach.find(dir)?.starts_with(reach.workspace().root()) {
            return Err(ToolError::parameter(format!("{dir} is outside the workspace")));
        }
        files::find_dir(reach, Some(dir))
    }

    async fn run(&self, arguments: &Value, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
        let ready = command_line::render_command(&self.config, arguments)?;
        let dir = self.dir(&ready, context.reach)?;
        let variables = [ready.env.as_slice(), context.variables].concat();
        let line: Vec<&str> = ready.line.iter().map(String::as_str).collect();
        let (program, arguments) = line.split_first().ok_or_else(|| ToolError::parameter("no program"))?;
        let order = ProgramOrder {
            program,
            arguments,
            dir: &dir,
            variables: &variables,
            patience: run_command::choose_patience(&context),
            input: None,
        };
        let format = self.config.output_format.unwrap_or_default();
        let reads_json = format != CommandOutputFormat::Text;
        let mut whole = String::new();
        let mut seen = |piece: &str| {
            if reads_json && whole.len() <= LONGEST_DOCUMENT {
                whole.push_str(piece);
            }
        };
        let (mut output, remarks) = run_command::execute_order(&self.confined, order, context, &mut seen).await?;
        if output.exit == Some(Exit::Code(TEMPORARY_FAILURE)) {
            return Err(ToolError::new(ToolErrorKind::Transient, output.observation));
        }
        if reads_json {
            let most = bytes_for(context.max_tokens);
            match find_document(&whole) {
                Some(data) if format == CommandOutputFormat::Result => with_report(&mut output, data, most)?,
                Some(data) => with_data(&mut output, data, most),
                None if output.exit == Some(Exit::Code(0)) => {
                    let why = format!("the command did not print one JSON document: {}", output.observation);
                    return Err(ToolError::permanent(why));
                }
                None => {}
            }
        }
        output.observation += &remarks;
        Ok(output)
    }
}

impl Tool for ConfiguredCommand {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn shell_line<'a>(&'a self, arguments: &'a Value) -> Option<ShellLine<'a>> {
        let ready = command_line::render_command(&self.config, arguments).ok()?;
        let mut shown = String::new();
        for (name, value) in &ready.env {
            let _ = write!(shown, "{name}={} ", text::shell_word(value));
        }
        shown += &ready.shown;
        if let Some(dir) = &ready.workdir {
            let _ = write!(shown, " (in {dir})");
        }
        Some(ShellLine {
            hold: self.confined.hold(),
            line: ready.judged.into(),
            workdir: ready.workdir.map(Cow::from),
            configured: Some(shown),
        })
    }

    fn prepare(&self) {
        self.confined.prepare();
    }

    fn enclosure(&self, wanted: Enclosure) -> Option<Enclosure> {
        Some(self.confined.enclosure(wanted))
    }

    /// True if the command has network access: without declared effects, it could have any effect.
    fn has_network(&self, _arguments: &Value) -> bool {
        match &self.config.effects {
            Some(effects) => effects.contains(&ToolEffect::Network),
            None => self.confined.has_network(),
        }
    }

    fn idempotent(&self) -> bool {
        self.config.idempotent.unwrap_or(self.definition.permission == Permission::Read)
    }

    fn subject(&self, arguments: &Value) -> String {
        command_line::render_command(&self.config, arguments)
            .map_or_else(|_| String::new(), |ready| text::one_line(&ready.shown, 100))
    }

    fn preview(&self, arguments: &Value, reach: &Reach, _: &Ledger) -> Result<String, ToolError> {
        let ready = command_line::render_command(&self.config, arguments)?;
        let (dir, workspace) = (self.dir(&ready, reach)?, reach.workspace());
        let mut shown = ready.shown;
        if dir != workspace.root() {
            let _ = write!(shown, "\n(in {})", workspace.display(&dir));
        }
        for (name, value) in &ready.env {
            let _ = write!(shown, "\n(with {name}={value})");
        }
        Ok(shown)
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move { self.run(&given, context).await })
    }
}

/// The JSON document that a command printed. Programs print other text before and after it (progress, warnings),
/// so it is searched for at the beginning of lines.
fn find_document(text: &str) -> Option<Value> {
    /// Text that is not JSON may have many such lines; parsing each to its end would take too long.
    const MOST_TRIES: usize = 20;
    if let Ok(whole) = serde_json::from_str(text) {
        return Some(whole);
    }
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let rest = starts.map(|at| &text[at..]).filter(|rest| rest.starts_with(['{', '[']));
    rest.take(MOST_TRIES)
        .find_map(|rest| serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok())
}

/// Takes the parts of a result that a command printed. A command that failed changes no state.
fn with_report(output: &mut ToolOutput, printed: Value, most: usize) -> Result<(), ToolError> {
    let wrong = |why: &str| ToolError::permanent(format!("the command printed a result that is none: {why}"));
    // A list would be read as the fields in their order.
    if !printed.is_object() {
        return Err(wrong("it is no object"));
    }
    let report: CommandReport = serde_json::from_value(printed).map_err(|error| wrong(&error.to_string()))?;
    let changes = report.state_update.unwrap_or_default();
    if changes.contains_key(todo::STATE) {
        return Err(wrong("the key `todo` of the state belongs to the tool `todo`"));
    }
    if serde_json::to_string(&changes).is_ok_and(|text| text.len() > LARGEST_CHANGE) {
        return Err(wrong("`state_update` has more than 64 KiB"));
    }
    if let Some(name) = &report.checkpoint {
        Session::check_checkpoint(name).map_err(wrong)?;
    }
    with_data(output, report.result, most);
    let has_failed = output.exit != Some(Exit::Code(0));
    if let Some(text) = report.observation {
        output.observation = if has_failed { format!("{}\n{text}", output.summary) } else { text };
    }
    if !has_failed {
        output.summary = report.summary.unwrap_or_else(|| std::mem::take(&mut output.summary));
        output.state_update = changes;
        output.checkpoint = report.checkpoint;
    }
    Ok(())
}

fn with_data(output: &mut ToolOutput, data: Value, most: usize) {
    let shown = present::fit_data(&data, most, output.kept.as_ref());
    output.truncated = shown != data;
    let text = match &shown {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    output.observation = match output.exit {
        Some(Exit::Code(0)) => text,
        _ => format!("{}\n{text}", output.summary),
    };
    output.result = data;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::find_document;

    #[test]
    fn a_document_is_found_among_other_words() {
        let table = [
            ("{\"a\": 1}\n", Some(json!({"a": 1}))),
            ("Compiling…\n[1, 2]\nwarning: slow\n", Some(json!([1, 2]))),
            ("[info] starting\n{\"a\":\n 1}\nbye", Some(json!({"a": 1}))),
            ("3", Some(json!(3))),
            ("nothing here {\"a\": 1}", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(find_document(text), expected, "{text}");
        }
    }
}
