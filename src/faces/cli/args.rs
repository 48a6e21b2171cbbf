//! The definition of the command line, and the only place that uses clap. Help, completions and the manual page are
//! generated from it; clap's types stay behind [`parse_cli`], [`complete_words`] and [`write_manual`].

mod colour;
mod completed;
mod map;
mod meant;
mod prompt_test;
mod quick;
mod review;
mod session;
mod subcommands;
mod servers;
mod turn;
mod usage;
mod values;
mod var;
#[cfg(feature = "scale")]
mod worker;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::config::ForeignAgent;
use crate::screen::ink::Colour;

pub use clap_complete::Shell;
pub use colour::find_colour;
pub use completed::{COMPLETE, OfferedValue, complete_words, write_completion_script};
pub use map::{InputForm, MapArgs};
use meant::{find_meant, with_command};
pub use prompt_test::{PromptTestArgs, TestFormat};
pub use review::{ReviewArgs, ReviewFormat};
pub use servers::{AcpArgs, McpAddArgs, McpCommand, ServingArgs};
pub use session::{SessionCommand, UndoPart};
pub use subcommands::{
    CallArgs, ConfigCommand, KeyAction, ModelCommand, PluginCommand, PromptCommand, SkillCommand, ToolCommand,
};
pub use turn::{RecordingArgs, TurnArgs};
pub use usage::UsageError;
pub use values::ArgumentValues;
use values::{check_assignment, parse_agent};
pub use var::{Var, VarValue};
#[cfg(feature = "scale")]
pub use worker::{WorkerArgs, WorkerCommand};

const GLOBAL: &str = "Global options";

/// A terminal agent: chat, one task, or a step in a pipeline.
#[derive(Debug, Parser)]
#[command(
    name = "agent",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
        agent                                   chat in this directory\n  \
        agent run \"why does the build fail?\"    one task, answer on stdout\n  \
        cargo test 2>&1 | agent run \"explain\"   what is piped in is attached as data\n  \
        agent run -m demo \"show me around\"      a scripted model: no key, no network"
)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Option<CliCommand>,
}

/// Options that every command takes.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalArgs {
    /// Use this config directory in place of the user's and the project's [env: AGENT_CONFIG]
    #[arg(short, long, global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub config: Option<PathBuf>,
    /// The workspace [default: the current directory]
    #[arg(short = 'C', long, global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub directory: Option<PathBuf>,
    /// Set a configuration key: limits.max_turns=5 (repeatable)
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = check_assignment, add = ArgumentValues::SettingKeys, help_heading = GLOBAL)]
    pub sets: Vec<String>,
    /// Use colours [env: NO_COLOR, CLICOLOR, CLICOLOR_FORCE]
    #[arg(long, global = true, value_enum, default_value_t, help_heading = GLOBAL)]
    pub color: Colour,
    /// No progress on stderr, only warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub quiet: bool,
    /// Show more: reasoning, the output of running commands, what each answer cost
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
    /// Use the workspace's own configuration (.agent/) for this run
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub trust: bool,
}

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Talk with the agent in the terminal
    Chat(ChatArgs),
    /// Do one task: print the answer and exit
    Run(RunArgs),
    /// Do one task for each line of stdin: print one JSON line for each
    Map(MapArgs),
    /// Work off tasks of a queue, which agent map --queue fills
    #[cfg(feature = "scale")]
    Worker(WorkerArgs),
    /// Review a change: print findings with file, line, severity and confidence
    Review(ReviewArgs),
    /// Write one small file for the model of your choice, or copies of what is built in; overwrite nothing
    Init {
        /// The directory to write to [default: your config directory]
        dir: Option<PathBuf>,
        /// Copy the prompts, to edit them
        #[arg(long)]
        prompts: bool,
        /// Copy the skills, or the one of this name
        #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        skills: Option<String>,
        /// Copy the example skills; the agent then offers them
        #[arg(long)]
        examples: bool,
        /// Copy the settings, prompts and skills
        #[arg(long)]
        all: bool,
    },
    /// Take over what you set up for another agent: a table first, then what is new is written
    #[command(
        after_help = "Examples:\n  agent import --dry-run\n  agent import claude\n  agent import --project\n\nRead are the files of Claude Code, codex, \
                      Gemini CLI, opencode, crush, goose and aider in your home, and by name the .mcp.json here: instructions, \
                      skills, commands, agents, servers of tools, rules, hooks and endpoints. Keys are not copied, nothing of \
                      theirs is changed, and what you have here already stays."
    )]
    Import {
        /// One of them: claude, codex, gemini, opencode, crush, goose, aider, mcp.json [default: all but mcp.json]
        #[arg(value_name = "AGENT", hide_possible_values = true, value_parser = parse_agent())]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        source: Option<ForeignAgent>,
        /// Take over what this workspace brings along (.claude, .codex, .gemini, .opencode), to .agent in it
        #[arg(long)]
        project: bool,
        /// Print the table and the files; write nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Add plugins of Claude Code and codex, and keep them
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Inspect the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Inspect, test and release prompts
    #[command(subcommand)]
    Prompt(PromptCommand),
    /// Inspect and check skills
    #[command(subcommand)]
    Skill(SkillCommand),
    /// Keep keys of providers: each stands in for its environment variable where that is not set
    #[command(subcommand)]
    Key(KeyAction),
    /// Get a key from a provider in the browser, and keep it
    #[command(after_help = "Example:\n  agent login openrouter")]
    Login {
        /// The provider
        #[arg(add = ArgumentValues::LoginProviders)]
        provider: String,
    },
    /// List and check models, or update their prices and windows
    #[command(subcommand)]
    Model(ModelCommand),
    /// Inspect the tools, or call one yourself
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Add, check and use servers of tools (Model Context Protocol)
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Inspect and compact the sessions of this workspace
    #[command(subcommand)]
    Session(SessionCommand),
    /// Serve an editor, or a program, by the Agent Client Protocol on stdin and stdout
    #[command(after_help = "docs/editors.md says what to write into which editor.")]
    Acp(AcpArgs),
    /// Report what a session cost: calls, latencies, errors, tokens
    #[command(
        after_help = "Examples:\n  agent stats\n  agent stats -o json | jq .total\n  agent stats --by prompt"
    )]
    Stats {
        /// The session's id, or the start of it [default: the latest of this workspace]
        #[arg(add = ArgumentValues::Sessions)]
        session: Option<String>,
        /// Compare the sessions of this workspace by the version of their system prompt
        #[arg(long, value_name = "prompt", value_parser = ["prompt"], hide_possible_values = true, conflicts_with = "session")]
        by: Option<String>,
        /// With --by: the sessions of every workspace
        #[arg(long, requires = "by")]
        all: bool,
        /// The output format: text (a table), json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Check what a run needs: the configuration, the model (one short request), the sandbox, the terminal, the disk,
    /// git
    #[command(after_help = "Exit codes: 0 when all is well, 1 when something needs fixing.")]
    Doctor {
        /// Ask where releases lie whether there is a newer version
        #[arg(long)]
        online: bool,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  agent completions bash > ~/.local/share/bash-completion/completions/agent"
    )]
    Completions { shell: Shell },
    /// Print the manual page
    #[command(after_help = "Example:\n  agent man | man -l -")]
    Man,
}

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Examples:\n  agent chat -m gpt-5 --approve edits\n  agent chat --continue \"and now the tests\""
)]
pub struct ChatArgs {
    /// The first message
    pub message: Option<String>,
    /// Begin with the choice of an earlier conversation
    #[arg(short = 'r', hide = true, conflicts_with = "message")]
    pub resume: bool,
    #[command(flatten)]
    pub turn: TurnArgs,
}

#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  \
        agent run \"summarise README.md\"\n  \
        git diff | agent run \"review this\" -o json | jq -r .result\n  \
        agent run --schema person.json \"who wrote this?\" -f letter.txt")]
pub struct RunArgs {
    /// The task [default: the question at the end of the prompt, else stdin]; - reads stdin
    pub task: Option<String>,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// The output format: text (the final answer), json (one object at the end), jsonl (every event, one per line),
    /// github (text, with a summary of the step)
    #[arg(short, long, value_enum, hide_possible_values = true, default_value_t, value_name = "FORMAT")]
    pub output: OutputFormat,
    /// Also write the final answer to this file
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// A JSON Schema that the final answer must match
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// Attach stdin: auto (when another program pipes into it), none, require (wait; empty is an error)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "MODE")]
    pub stdin: StdinMode,
    /// Print text as it arrives, even into a pipe
    #[arg(long)]
    pub stream: bool,
    /// Print the request instead of sending it
    #[arg(long)]
    pub dry_run: bool,
}

// The help of the option explains its values: help for each value would space out the whole page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    #[default]
    Text,
    Json,
    Jsonl,
    /// The answer, an annotation for a failure, and a summary of the step.
    Github,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum StdinMode {
    #[default]
    Auto,
    None,
    Require,
}

/// Parses the command line. Without a command, `interactive` chooses between chat and run.
///
/// # Errors
/// Also returned for `--help` and `--version`, which are not errors.
pub fn parse_cli(args: &[OsString], interactive: bool) -> Result<Cli, UsageError> {
    let default = if interactive { "chat" } else { "run" };
    quick::parse_quickly(args, default).map_or_else(|| parse_all(args, default), |cli| Ok(with_sandbox(cli)))
}

/// Does the same as [`parse_cli`] with the parser of all commands.
fn parse_all(args: &[OsString], default: &str) -> Result<Cli, UsageError> {
    let parsed = Cli::try_parse_from(args).and_then(|cli| match cli.command {
        Some(_) => Ok(cli),
        None => Cli::try_parse_from(with_command(args, default)),
    });
    // What is wrong in the line that is meant is what is wrong.
    let parsed = parsed.or_else(|error| match find_meant(args, default, &error) {
        Some(meant) => Cli::try_parse_from(meant),
        None => Err(error),
    });
    parsed.map(with_sandbox).map_err(UsageError::from)
}

/// `--sandbox off` is short for `--set sandbox.mode=off`.
fn with_sandbox(mut cli: Cli) -> Cli {
    let turn = match &cli.command {
        Some(CliCommand::Run(args)) => Some(&args.turn),
        Some(CliCommand::Map(args)) => Some(&args.turn),
        Some(CliCommand::Chat(args)) => Some(&args.turn),
        _ => None,
    };
    let mode = turn.and_then(|turn| turn.sandbox.as_deref()).map(|mode| format!("sandbox.mode={mode}"));
    cli.global.sets.extend(mode);
    cli
}

/// Generates the manual page in roff: one page for the program and all of its commands.
pub fn write_manual() -> std::io::Result<Vec<u8>> {
    let root = Cli::command();
    let page = clap_mangen::Man::new(root.clone());
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    for command in root.get_subcommands() {
        describe_command(command, root.get_name(), &mut out)?;
    }
    page.render_extra_section(&mut out)?;
    Ok(out)
}

/// Writes the section of a command, then those of its subcommands.
fn describe_command(command: &clap::Command, parent: &str, out: &mut Vec<u8>) -> std::io::Result<()> {
    let name = format!("{parent} {}", command.get_name());
    let page = clap_mangen::Man::new(command.clone().bin_name(name.clone()));
    let mut section = Vec::new();
    page.render_synopsis_section(&mut section)?;
    page.render_description_section(&mut section)?;
    page.render_options_section(&mut section)?;
    page.render_extra_section(&mut section)?;
    // The sections of a page become subsections.
    let section = String::from_utf8_lossy(&section).replace("\n.SH ", "\n.SS ").replacen(".SH ", ".SS ", 1);
    let section = section.replace(".SS EXTRA\n", ".SS EXAMPLES\n");
    writeln!(out, ".SH \"{}\"\n{section}", name.to_uppercase())?;
    for inner in command.get_subcommands() {
        describe_command(inner, &name, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_a_terminal_chats_and_a_pipe_runs() {
        let chat = parse_cli(&args("agent -m demo"), true).expect("it parses").command;
        assert!(
            matches!(chat, Some(CliCommand::Chat(ChatArgs { turn, .. })) if turn.model.as_deref() == Some("demo"))
        );
        assert!(matches!(parse_cli(&args("agent"), false).expect("it parses").command, Some(CliCommand::Run(_))));
        assert!(matches!(
            parse_cli(&args("agent -C x"), true).expect("it parses").command,
            Some(CliCommand::Chat(_))
        ));
    }

    #[test]
    fn a_task_needs_no_command_but_a_word_is_one() {
        let parse = |words: &[&str], interactive| {
            let words = words.iter().map(OsString::from).collect::<Vec<_>>();
            parse_cli(&words, interactive).map(|cli| cli.command)
        };
        let task = |words: &[&str]| match parse(words, false).expect("it parses") {
            Some(CliCommand::Run(args)) => args.task,
            other => panic!("{other:?}"),
        };
        assert_eq!(task(&["agent", "fix the bug"]).as_deref(), Some("fix the bug"));
        assert_eq!(task(&["agent", "-q", "-m", "demo", "fix the bug"]).as_deref(), Some("fix the bug"));
        assert_eq!(task(&["agent", "-p", "fix"]).as_deref(), Some("fix"));
        assert_eq!(task(&["agent", "-m", "demo", "-p", "fix it"]).as_deref(), Some("fix it"));
        let picker = parse(&["agent", "-q", "-r"], false).expect("it parses");
        assert!(matches!(picker, Some(CliCommand::Chat(args)) if args.resume));
        let chat = parse(&["agent", "fix the bug"], true).expect("it parses");
        assert!(matches!(chat, Some(CliCommand::Chat(args)) if args.message.as_deref() == Some("fix the bug")));
        let chat = parse(&["agent", "-m", "demo", "chat", "hello"], true).expect("it parses");
        assert!(matches!(chat, Some(CliCommand::Chat(args)) if args.message.as_deref() == Some("hello")));
        assert_eq!(task(&["agent", "--stream", "run", "fix the bug"]).as_deref(), Some("fix the bug"));
        // What stands after an option that takes a value is no command.
        for words in
            [["agent", "-m", "chat", "hi"], ["agent", "--agent", "review", "hi"], ["agent", "-qm", "map", "hi"]]
        {
            assert_eq!(task(&words).as_deref(), Some("hi"), "{words:?}");
        }
        assert!(parse(&["agent", "fxi"], true).is_err());
        // What is wrong is named, and not the option before it.
        for (args, named) in [
            (&["agent", "-m", "s", "--max-time", "5x"][..], "5x"),
            (&["agent", "--continue", "--nosuch"], "--nosuch"),
        ] {
            let error = parse(args, true).expect_err("it is wrong").plain;
            assert!(error.contains(named) && !error.contains("'-m'"), "{error}");
        }
    }

    #[test]
    fn an_option_that_nothing_knows_is_an_error() {
        let usage = parse_cli(&args("agent --nonsense"), true).expect_err("it is unknown");
        assert!(usage.is_error && usage.plain.contains("--nonsense"), "{}", usage.plain);
    }
}
