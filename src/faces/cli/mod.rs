//! The command line: arguments in, exit code out. Each command is a file; `dispatch` lists them.

mod args;
mod attachments;
mod chat;
mod collector;
mod completions;
mod config;
mod doctor;
mod init;
mod model;
mod prompt;
mod run;
mod session;
mod setup;
mod signals;
mod skill;
mod stats;
mod stdin;
mod tool;
mod vars;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use crate::agent::exit;
use crate::config::Env;
use crate::faces::chat::tables;
use crate::safety::sandbox;
use crate::screen::ink::Wishes;
use args::{Cli, Command, StatsBy};
use setup::Setup;

/// The failure of a command outside a run: the error to print, and the exit code.
#[derive(Debug)]
struct Failure {
    code: u8,
    error: anyhow::Error,
}

type Outcome = Result<u8, Failure>;

/// Runs the program. A closed stdout is success.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if let Some(served) = sandbox::serve(&args) {
        return ExitCode::from(if served.is_ok() { exit::DONE } else { exit::FAILED });
    }
    let interactive = io::stdin().is_terminal() && io::stdout().is_terminal();
    let env = Env::capture();
    let code = match args::parse(&args, interactive) {
        Ok(cli) => dispatch(cli, env).unwrap_or_else(Failure::report),
        Err(usage) => {
            let (colour, wishes) = (args::colour(&args), Wishes::read(|name| env.get(name)));
            usage.print(|terminal| colour.allowed(terminal, wishes))
        }
    };
    ExitCode::from(code)
}

fn dispatch(cli: Cli, env: Env) -> Outcome {
    let setup = Setup::new(cli.global, env);
    match cli.command.expect("parsing fills in the default command") {
        Command::Chat(args) => chat::run(&setup, args),
        Command::Run(args) => run::run(setup, args),
        Command::Init { dir, examples } => init::run(&setup, dir, examples),
        Command::Config(command) => config::run(&setup, command),
        Command::Prompt(command) => prompt::run(&setup, command),
        Command::Skill(command) => skill::run(&setup, command),
        Command::Model(command) => model::run(&setup, command),
        Command::Tool(command) => tool::run(&setup, command),
        Command::Session(command) => session::run(&setup, command),
        Command::Stats { by: Some(StatsBy::Prompt), all, output, .. } => stats::by_prompt(&setup, all, output),
        Command::Stats { session, output, .. } => stats::run(&setup, session.as_deref(), output),
        Command::Doctor => doctor::run(&setup),
        Command::Completions { shell } => completions::shell(shell),
        Command::Man => completions::manual(),
    }
}

impl Failure {
    fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    fn usage(message: impl std::fmt::Display) -> Self {
        Self::new(exit::USAGE, anyhow::anyhow!("{message}"))
    }

    /// A run that has ended or did not begin.
    fn ended(ending: exit::Ending) -> Self {
        Self::new(ending.code, anyhow::anyhow!(ending.reason))
    }

    /// A list of what is wrong, such as `doubts`: its first line tells how many there are, and the first of them.
    fn listed(code: u8, noun: &str, all: &[String]) -> Self {
        let list = all.join("\n");
        let first = list.lines().next().unwrap_or_default();
        let text =
            if all.len() > 1 { format!("{} {noun}, the first: {first}\n\n{list}", all.len()) } else { list };
        Self::new(code, anyhow::anyhow!(text))
    }

    /// The reason in one line, and lines that explain it.
    fn told(&self) -> String {
        exit::told(&self.error)
    }

    /// Prints the reason as the last line, after what explains it, unless the reader of our output is gone.
    fn report(self) -> u8 {
        let left = self.error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
        if left {
            return exit::DONE;
        }
        let told = self.told();
        let (reason, more) = told.split_once('\n').unwrap_or((&told, ""));
        let more = more.trim_matches('\n');
        let blank = if more.is_empty() { "" } else { "\n\n" };
        let _ = writeln!(io::stderr(), "{more}{blank}error: {reason}");
        self.code
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(exit::FAILED, error)
    }
}

impl args::Usage {
    /// Prints the help or the error. `colours` decides for a stream, given whether it is a terminal.
    fn print(&self, colours: impl Fn(bool) -> bool) -> u8 {
        let strip = |text: &str, tty: bool| if colours(tty) { text.to_owned() } else { args::without_style(text) };
        let (result, code) = if self.is_error {
            let text = strip(&self.text, io::stderr().is_terminal());
            (io::stderr().write_all(text.as_bytes()), exit::USAGE)
        } else {
            let text = strip(&self.text, io::stdout().is_terminal());
            (io::stdout().write_all(text.as_bytes()), exit::DONE)
        };
        // If writing fails, the reader is gone and nobody is left to report it to.
        let _ = result;
        code
    }
}

/// Writes one line of progress to stderr.
fn note(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Writes one warning to stderr.
fn warn(message: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", crate::base::text::visible(message));
}

/// Writes all of `text` to stdout. [`Failure::report`] treats a reader that is gone as success.
fn print(text: impl AsRef<[u8]>) -> Outcome {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref())?;
    out.flush()?;
    Ok(exit::DONE)
}
