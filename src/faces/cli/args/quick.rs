//! A fast path for the usual command lines: it builds the parser of the one command that they name. Building the parser
//! of all commands takes longer than the rest of most startups.
//!
//! The fast path only accepts. Everything else (a mistake, a request for help, another command) goes to the parser of
//! all commands, so messages and help are always the same.

use std::ffi::OsString;

use clap::{Args, FromArgMatches};

use super::{ChatArgs, Cli, CliCommand, GlobalArgs, RunArgs};

/// Parses `args` if it is a valid command line of `run` or `chat`. Without arguments it is one of `default`.
pub(super) fn parse_quickly(args: &[OsString], default: &str) -> Option<Cli> {
    if args.len() < 2 {
        // Nothing is left to read, so no parser is made.
        let command = match default {
            "chat" => CliCommand::Chat(ChatArgs::default()),
            _ => CliCommand::Run(RunArgs::default()),
        };
        return Some(Cli { global: GlobalArgs::default(), command: Some(command) });
    }
    // If the word were the value of an option, the rest would not parse.
    args.iter().skip(1).find_map(|arg| match arg.to_str() {
        Some("run") => Some(read_arguments::<RunArgs>(args, "run", CliCommand::Run)),
        Some("chat") => Some(read_arguments::<ChatArgs>(args, "chat", CliCommand::Chat)),
        _ => None,
    })?
}

fn read_arguments<T: Args>(args: &[OsString], name: &'static str, command: fn(T) -> CliCommand) -> Option<Cli> {
    let of_command = T::augment_args(clap::Command::new(name));
    let mut parser = GlobalArgs::augment_args(clap::Command::new("agent")).subcommand(of_command);
    let mut matches = parser.try_get_matches_from_mut(args).ok()?;
    let (_, mut matches_of_command) = matches.remove_subcommand()?;
    let command = command(T::from_arg_matches_mut(&mut matches_of_command).ok()?);
    let global = GlobalArgs::from_arg_matches_mut(&mut matches).ok()?;
    Some(Cli { global, command: Some(command) })
}

#[cfg(test)]
mod tests {
    use super::super::{parse_all, parse_cli};
    use super::*;

    /// Combines the pieces of command lines of every kind in all ways.
    #[test]
    fn both_parsers_read_the_same() {
        let befores =
            ["", "-q", "-c run", "--set a=b -C chat", "--color never -v", "--bogus", "-m demo", "--trust"];
        let commands = ["", "run", "chat", "config show", "help run", "runs"];
        let afters = [
            "",
            "task",
            "-",
            "-- --help",
            "-h",
            "--help",
            "-V",
            "task -o json -q",
            "-q -v",
            "-o yaml x",
            "--max-turns 0 x",
            "--max-turns 5 x --set limits.x=1 --stdin=none",
            "chat",
            "run chat",
            "-f a -f b --skill s --var k=v --var bad x",
            "--var k=@f --var n:=[1] --prompt p",
            "--var n:=[1 x",
            "--ephemeral --continue x",
            "--session a --approve edits x --sandbox off",
            "x y",
            "--prompt",
        ];
        let mut quick = 0;
        for before in befores {
            for command in commands {
                for after in afters {
                    let line = format!("agent {before} {command} {after}");
                    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
                    for (interactive, default) in [(true, "chat"), (false, "run")] {
                        let told = |read: Result<Cli, super::super::UsageError>| format!("{read:?}");
                        assert_eq!(told(parse_cli(&args, interactive)), told(parse_all(&args, default)), "{line}");
                        quick += usize::from(parse_quickly(&args, default).is_some());
                    }
                }
            }
        }
        assert!(quick > 100, "only {quick} lines were read quickly");
    }
}
