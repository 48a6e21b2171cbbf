//! The command line: arguments in, exit code out. Each command is a file; `dispatch` lists them.

mod args;
mod acp;
mod attachments;
mod chat;
mod completions;
mod config;
mod doctor;
mod github;
mod import;
mod init;
mod key;
mod browser;
mod login;
mod map;
mod mcp;
mod model;
mod plugin;
mod prompt;
mod review;
mod run;
mod session;
mod setup;
mod signals;
mod skill;
mod stats;
mod stdin;
mod tool;
#[cfg(feature = "scale")]
mod worker;

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::agent::assembly::{SetupError, SetupErrorKind};
use crate::agent::exit;
use crate::base::text::make_visible;
use crate::config::{ConfigError, Env, InitCopies, InitSkills};
use crate::faces::chat::tables;
use crate::faces::collector::CollectorExport;
use crate::prompt::PromptError;
use crate::safety::sandbox;
use crate::screen::ink::ColourWishes;
use crate::screen::terminal;
use crate::skills::SkillError;
use args::{Cli, CliCommand};
use setup::CliSetup;

/// The failure of a command outside a run: the error to print, and the exit code.
#[derive(Debug)]
struct CommandFailure {
    code: u8,
    error: anyhow::Error,
}

type CommandOutcome = Result<u8, CommandFailure>;

/// Runs the program. A closed stdout is success.
pub fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(served) = sandbox::serve_part(&args) {
        if let Err(error) = &served {
            // Only a program that was to run in place of this one has somebody who reads it.
            let _ = writeln!(io::stderr(), "{error}");
        }
        return ExitCode::from(if served.is_ok() { exit::DONE } else { exit::FAILED });
    }
    sandbox::guard_templates();
    let interactive = terminal::stdin_is_terminal() && terminal::stdout_is_terminal();
    let env = Env::capture();
    if let Some(shell) = env.get(args::COMPLETE) {
        return ExitCode::from(completions::answer_script(shell, &args).unwrap_or_else(CommandFailure::report));
    }
    let code = match args::parse_cli(&args, interactive) {
        Ok(cli) => dispatch_command(cli, env).unwrap_or_else(CommandFailure::report),
        Err(usage) => {
            let (colour, wishes) = (args::find_colour(&args), ColourWishes::read(|name| env.get(name)));
            usage.print(|terminal| colour.allows(terminal, wishes))
        }
    };
    ExitCode::from(code)
}

fn dispatch_command(cli: Cli, env: Env) -> CommandOutcome {
    let env = env.with_stored_keys();
    let setup = CliSetup { global: cli.global, env };
    match cli.command.expect("parsing fills in the default command") {
        CliCommand::Chat(args) => chat::run_chat(&setup, args),
        CliCommand::Run(args) => run::run_once(setup, args),
        CliCommand::Map(args) => map::run_map(setup, args),
        #[cfg(feature = "scale")]
        CliCommand::Worker(args) => worker::run_worker(setup, args),
        CliCommand::Review(args) => review::run_review(&setup, args),
        CliCommand::Plugin(command) => plugin::run_plugin(&setup, command),
        CliCommand::Import { source, project, dry_run } => import::import_setup(&setup, source, project, dry_run),
        CliCommand::Init { dir, prompts, skills, examples, all } => {
            let skills = match skills {
                _ if all => InitSkills::All,
                None => InitSkills::None,
                Some(name) if name.is_empty() => InitSkills::All,
                Some(name) => InitSkills::One(name),
            };
            let copies = InitCopies { configs: all, prompts: prompts || all, skills, examples };
            init::run_init(&setup, dir, &copies)
        }
        CliCommand::Config(command) => config::run_config(&setup, command),
        CliCommand::Prompt(command) => prompt::run_prompt(&setup, command),
        CliCommand::Skill(command) => skill::run_skill(&setup, command),
        CliCommand::Login { provider } => login::log_in(&setup, &provider),
        CliCommand::Key(action) => key::run_key(&setup, action),
        CliCommand::Model(command) => model::run_model(&setup, command),
        CliCommand::Tool(command) => tool::run_tool(&setup, command),
        CliCommand::Mcp(command) => mcp::run_mcp(setup, command),
        CliCommand::Acp(args) => acp::run_acp(setup, args),
        CliCommand::Session(command) => session::run_session(&setup, command),
        CliCommand::Stats { by: Some(_), all, output, .. } => stats::by_prompt(&setup, all, output),
        CliCommand::Stats { session, output, .. } => stats::run_stats(&setup, session, output),
        CliCommand::Doctor { online } => doctor::run_doctor(&setup, online),
        CliCommand::Completions { shell } => print_text(args::write_completion_script(shell)?),
        CliCommand::Man => print_text(args::write_manual()?),
    }
}

impl CommandFailure {
    fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    fn word(code: u8, message: impl std::fmt::Display) -> Self {
        Self { code, error: anyhow::anyhow!("{message}") }
    }

    fn usage(message: impl std::fmt::Display) -> Self {
        Self::word(exit::USAGE, message)
    }

    /// A list of what is wrong, such as `doubts`: its first line tells how many there are, and the first of them.
    fn listed(code: u8, noun: &str, all: &[String]) -> Self {
        let list = all.join("\n");
        let first = list.lines().next().unwrap_or_default();
        let count = all.len();
        Self::word(code, if count > 1 { format!("{count} {noun}, the first: {first}\n\n{list}") } else { list })
    }

    /// The reason in one line, and lines that explain it.
    fn word_reason(&self) -> String {
        exit::word_failure(&self.error)
    }

    /// Prints the reason as the last line, after what explains it, unless the reader of our output is gone.
    fn report(self) -> u8 {
        let left = self.error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
        if left {
            return exit::DONE;
        }
        let told = self.word_reason();
        let told = make_visible(&told);
        let (reason, more) = told.split_once('\n').unwrap_or((&told, ""));
        let more = more.trim_matches('\n');
        let blank = if more.is_empty() { "" } else { "\n\n" };
        let _ = writeln!(io::stderr(), "{more}{blank}error: {reason}");
        self.code
    }
}

/// The kind of an error decides the exit code.
impl<E: Into<anyhow::Error>> From<E> for CommandFailure {
    fn from(error: E) -> Self {
        let error = error.into();
        let code = if let Some(SetupError { kind, .. }) = error.downcast_ref() {
            match kind {
                SetupErrorKind::Usage => exit::USAGE,
                SetupErrorKind::Configuration => exit::CONFIGURATION,
                SetupErrorKind::Authentication => exit::AUTHENTICATION,
                SetupErrorKind::Failed => exit::FAILED,
            }
        } else if let Some(PromptError { file, .. }) = error.downcast_ref() {
            if file.is_some() { exit::CONFIGURATION } else { exit::USAGE }
        } else if let Some(SkillError { kind, .. }) = error.downcast_ref() {
            exit::of_skill(*kind)
        } else if error.is::<ConfigError>() {
            exit::CONFIGURATION
        } else {
            exit::FAILED
        };
        Self { code, error }
    }
}

/// A run that has ended or did not begin.
impl From<exit::Ending> for CommandFailure {
    fn from(ending: exit::Ending) -> Self {
        Self::word(ending.code, ending.reason)
    }
}

impl args::UsageError {
    /// Prints the help or the error. `colours` decides for a stream, given whether it is a terminal.
    fn print(&self, colours: impl Fn(bool) -> bool) -> u8 {
        let choose = |is_terminal: bool| if colours(is_terminal) { &self.styled } else { &self.plain };
        // If writing fails, the reader is gone and nobody is left to report it to.
        if self.is_error {
            let _ = io::stderr().write_all(choose(terminal::stderr_is_terminal()).as_bytes());
            exit::USAGE
        } else {
            let _ = io::stdout().write_all(choose(terminal::stdout_is_terminal()).as_bytes());
            exit::DONE
        }
    }
}

/// Writes one line of progress to stderr.
fn note_progress(message: &str) {
    let _ = writeln!(io::stderr(), "{}", make_visible(message));
}

/// Sends the remaining telemetry. Stays silent after a failed run: its last line must be the reason of the failure.
fn close_export(export: CollectorExport, code: u8) {
    if let Err(why) = export.close()
        && code == exit::DONE
    {
        warn_person(&why);
    }
}

/// Writes one warning to stderr.
fn warn_person(message: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", make_visible(message));
}

/// Writes all of `text` to stdout. [`CommandFailure::report`] treats a reader that is gone as success.
fn print_text(text: impl AsRef<[u8]>) -> CommandOutcome {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    out.flush()?;
    Ok(exit::DONE)
}

/// Writes a value as JSON to stdout.
fn print_json(value: &impl Serialize) -> CommandOutcome {
    print_text(serde_json::to_string_pretty(value)? + "\n")
}

/// Writes rows to stdout as a table.
fn print_table<const N: usize>(rows: &[[String; N]]) -> CommandOutcome {
    print_visible(&tables::lay_out_columns(rows, tables::find_edge()))
}

/// Writes text of a model or a file to stdout: visible on a terminal, as it is into a pipe.
fn print_visible(text: &str) -> CommandOutcome {
    if terminal::stdout_is_terminal() { print_text(make_visible(text).as_bytes()) } else { print_text(text) }
}
