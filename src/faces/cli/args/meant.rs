//! Command lines without a command, or with options before it, as people write them.

use std::ffi::{OsStr, OsString};

use clap::CommandFactory;

use super::Cli;

/// The command line that one without a command, or with its options before it, means: `agent -m NAME` and `agent -m NAME chat`
/// are `agent chat -m NAME`, `agent "fix the bug"` is a task for the default command, `-p TASK` is `run TASK` and `-r` a
/// chat that begins with `/resume`, as in other agents. A single word is a mistyped command.
pub(super) fn find_meant(args: &[OsString], default: &str, error: &clap::Error) -> Option<Vec<OsString>> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match error.kind() {
        ErrorKind::UnknownArgument if args.iter().any(|arg| arg == "-p") => {
            let args: Vec<OsString> = args.iter().filter(|arg| *arg != "-p").cloned().collect();
            Some(with_command(&args, "run"))
        }
        ErrorKind::UnknownArgument if args.iter().any(|arg| arg == "-r") => Some(with_command(args, "chat")),
        ErrorKind::UnknownArgument => {
            let (commands, mut args) = (Cli::command(), args.to_vec());
            let is_command = |words: &[OsString]| {
                commands.find_subcommand(&words[1]).is_some() && !takes_value(&commands, &words[0])
            };
            match args.windows(2).position(is_command) {
                Some(at) => args[1..=at + 1].rotate_right(1),
                None => args = with_command(&args, default),
            }
            Some(args)
        }
        ErrorKind::InvalidSubcommand => match error.get(ContextKind::InvalidSubcommand) {
            Some(ContextValue::String(task)) if task.contains(char::is_whitespace) => {
                Some(with_command(args, default))
            }
            _ => None,
        },
        _ => None,
    }
}

/// True for an option of any command, as it is written, whose value is the next word.
fn takes_value(commands: &clap::Command, word: &OsStr) -> bool {
    let Some(word) = word.to_str().filter(|word| word.starts_with('-')) else { return false };
    let is_it = |arg: &clap::Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => word.chars().next_back() == arg.get_short(),
    };
    let mut args =
        commands.get_subcommands().flat_map(clap::Command::get_arguments).chain(commands.get_arguments());
    args.any(|arg| {
        is_it(arg)
            && arg.get_action().takes_values()
            && arg.get_num_args().is_none_or(|many| many.min_values() > 0)
    })
}

pub(super) fn with_command(args: &[OsString], command: &str) -> Vec<OsString> {
    let mut args = args.to_vec();
    args.insert(args.len().min(1), command.into());
    args
}
