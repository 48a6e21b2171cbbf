//! Completion in shells: a script that asks the program, and its answer. Arguments say which names they take; the names
//! come from the caller.

use std::ffi::OsString;
use std::io;

use clap::{Args, Command, CommandFactory, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;

use super::values::ArgumentValues;
use super::{Cli, GlobalArgs, Shell, TurnArgs};

/// The variable in which a script names its shell when it asks.
pub const COMPLETE: &str = "AGENT_COMPLETE";

/// A name that is offered, and what a shell may show beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedValue {
    pub value: String,
    pub about: String,
}

/// The source of names, for a command line with these global options.
pub type ListValues = fn(&GlobalArgs, ArgumentValues) -> Vec<OfferedValue>;

/// The script of a shell, which asks the `agent` of the path for each word.
///
/// # Errors
/// The shell has no such script.
pub fn write_completion_script(shell: Shell) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or_else(|| unknown_shell(&shell.to_string()))?;
    completer.write_registration(COMPLETE, "agent", "agent", "agent", &mut out)?;
    Ok(out)
}

/// The answer to a script: the continuations of the word that it asks for. `words` are what it gave after `--`.
///
/// # Errors
/// The shell is none of those with a script.
pub fn complete_words(shell: &str, words: Vec<OsString>, list: ListValues) -> io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(|| unknown_shell(shell))?;
    let mut command = Cli::command().ignore_errors(true);
    let parsed = command.try_get_matches_from_mut(&words).ok();
    let global = parsed.as_ref().and_then(|parsed| GlobalArgs::from_arg_matches(parsed).ok()).unwrap_or_default();
    // Without a command, the options are those of a chat or a run.
    let has_command = parsed.as_ref().is_some_and(|parsed| parsed.subcommand_name().is_some());
    let command = if has_command { Cli::command() } else { TurnArgs::augment_args(Cli::command()) };
    let mut command = with_values(command, &global, list);
    let mut out = Vec::new();
    completer.write_complete(&mut command, words, global.directory.as_deref(), &mut out)?;
    Ok(out)
}

fn unknown_shell(name: &str) -> io::Error {
    io::Error::other(format!("no completion for the shell `{name}`: bash, elvish, fish, powershell, zsh"))
}

/// Gives each argument the names that it takes.
fn with_values(command: Command, global: &GlobalArgs, list: ListValues) -> Command {
    let command = command.mut_args(|arg| match arg.get::<ArgumentValues>().copied() {
        None => arg,
        Some(values) => {
            let global = global.clone();
            arg.add(ArgValueCandidates::new(move || offer_plain(list(&global, values))))
        }
    });
    command.mut_subcommands(|command| with_values(command, global, list))
}

/// The names that no shell takes for syntax: bash inserts them as they are.
fn offer_plain(offered: Vec<OfferedValue>) -> Vec<CompletionCandidate> {
    let is_plain = |name: &str| {
        let plain = |c: char| c.is_alphanumeric() || "._-/:@+=".contains(c);
        !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
    };
    let plain = offered.into_iter().filter(|offered| is_plain(&offered.value)).enumerate();
    plain
        .map(|(at, OfferedValue { value, about })| {
            let about = Some(about).filter(|about| !about.is_empty());
            CompletionCandidate::new(value).help(about.map(Into::into)).display_order(Some(at))
        })
        .collect()
}
