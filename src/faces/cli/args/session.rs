//! The subcommands of `agent session`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::ReportFormat;
use super::values::{ArgumentValues, parse_one_of};
use crate::config::parse_age;
use crate::conversation::export::ExportForm;
use crate::conversation::session::WordsBy;

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List the sessions of this workspace, newest first
    List {
        /// List the sessions of all workspaces, and those of helpers
        #[arg(long)]
        all: bool,
        /// Show the size of each log
        #[arg(long)]
        size: bool,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Print a session
    Show {
        /// The session's id, or the start of it
        #[arg(add = ArgumentValues::Sessions)]
        id: String,
        /// Show what fills the context window, instead of the messages
        #[arg(long)]
        context: bool,
        /// Print the request of this step, as the provider was sent it
        #[arg(long, value_name = "STEP", conflicts_with = "context", value_parser = clap::value_parser!(u64).range(1..))]
        as_request: Option<u64>,
    },
    /// Compact a session, as /compact does
    Compact {
        /// The session's id, or the start of it
        #[arg(add = ArgumentValues::Sessions)]
        id: String,
        /// The topic that the summary must keep
        #[arg(long, value_name = "TEXT", default_value = "")]
        focus: String,
        /// Print what would be removed; change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Find the sessions that contain some words
    #[command(after_help = "Example:\n  agent session search \"retry\" --by user")]
    Search {
        /// The words, as they stand there; the case of letters does not matter
        words: String,
        /// Only what this side said: user, assistant, tool
        #[arg(long, hide_possible_values = true, value_name = "SIDE", value_parser = parse_one_of::<WordsBy>(&["user", "assistant", "tool"]))]
        by: Option<WordsBy>,
        /// Search the sessions of all workspaces
        #[arg(long)]
        all: bool,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Print a session in another form
    #[command(
        after_help = "Examples:\n  agent session export > chat.md\n  agent session export 20261127 --to atif > run.json"
    )]
    Export {
        /// The session's id, or the start of it [default: this workspace's latest]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(add = ArgumentValues::Sessions)]
        id: Option<String>,
        /// The form: markdown, html (one page without scripts), json, openai (a line of messages), atif (a trajectory)
        #[arg(long, hide_possible_values = true, default_value = "markdown", value_name = "FORM", value_parser = parse_one_of::<ExportForm>(&["markdown", "html", "json", "openai", "atif"]))]
        to: ExportForm,
        /// Print a recording, for --replay
        #[arg(long, conflicts_with = "to")]
        as_recording: bool,
    },
    /// Take over conversations of other programs, and print the ids of their sessions
    #[command(
        after_help = "Examples:\n  agent session import ~/.claude/projects/*/0f3a….jsonl\n  agent session import run.traj.json \
                      && agent --continue\n\nRead are: `agent session export --to json`, ATIF, the messages of chat \
                      completions and of mini-swe-agent, and the logs of Claude Code, codex and pi. Nothing runs: what the \
                      file says of calls is kept as text."
    )]
    Import {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Copy a session, and print the id of the copy
    #[command(
        after_help = "Examples:\n  agent session fork 20261127\n  agent chat --fork \"Retry logic\" --at m12\n\nThe copy \
                      goes on by itself. What the first one changed in files is not undone."
    )]
    Fork {
        /// The session's id, the start of it, or its title
        #[arg(add = ArgumentValues::Sessions)]
        id: String,
        /// End the copy before this message, by the id that `session show` prints: m12
        #[arg(long, value_name = "MESSAGE")]
        at: Option<String>,
    },
    /// Give a session a title
    #[command(after_help = "Example:\n  agent session rename 20261127 \"Retry logic\"")]
    Rename {
        /// The session's id, the start of it, or its title
        #[arg(add = ArgumentValues::Sessions)]
        id: String,
        /// The title; an empty one takes it back
        title: String,
    },
    /// Delete sessions, with those of their helpers
    Delete {
        /// The sessions' ids, or the starts of them
        #[arg(required = true, add = ArgumentValues::Sessions)]
        ids: Vec<String>,
    },
    /// Delete the sessions of this workspace that were not written for some time
    #[command(after_help = "Example:\n  agent session prune --older-than 90d --dry-run")]
    Prune {
        /// The time: 90d, 12h
        #[arg(long, value_name = "DURATION", value_parser = parse_age)]
        older_than: Duration,
        /// The sessions of all workspaces, and what was moved aside after commands
        #[arg(long)]
        all: bool,
        /// Keep those that you gave a title
        #[arg(long)]
        keep_named: bool,
        /// Print which; delete none
        #[arg(long)]
        dry_run: bool,
    },
    /// Take your last message and everything after it back, what it changed in files too, and print it
    #[command(
        after_help = "Examples:\n  agent session undo --dry-run\n  agent session undo > message.txt\n\nWhat commands changed \
                      is taken back like what file tools changed; `.git`, ignored files and files over 16 MiB stay as \
                      they are. What changed otherwise since is overwritten only with --force. Again, it goes one \
                      message further back; `agent session redo` takes it back. Exit codes: 1 when there is nothing to \
                      undo, or a file changed since."
    )]
    Undo {
        /// The session's id, or the start of it [default: this workspace's latest]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(add = ArgumentValues::Sessions)]
        id: Option<String>,
        /// Back to before this message, by the id that `session show` prints: m12
        #[arg(long, value_name = "MESSAGE")]
        to: Option<String>,
        #[command(flatten)]
        part: UndoPart,
    },
    /// Put the changes of a trial into the workspace
    #[command(
        after_help = "Examples:\n  agent session apply --dry-run\n  agent session apply 20261127 src/retry.rs\n\nWhat \
                      changed in the workspace meanwhile stays as it is there, and the trial's version is written \
                      beside it. `agent session undo` takes it back. Exit codes: 1 when something was not applied."
    )]
    Apply {
        /// The session's id, or the start of it [default: this workspace's latest]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(add = ArgumentValues::Sessions)]
        id: Option<String>,
        /// Only these files and directories [default: all]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        paths: Vec<PathBuf>,
        /// Print the diff, or what would happen to the paths; change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Forget the changes of a trial
    Discard {
        /// The session's id, or the start of it [default: this workspace's latest]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(add = ArgumentValues::Sessions)]
        id: Option<String>,
    },
    /// Take the last undo back
    #[command(
        after_help = "Example:\n  agent session redo\n\nExit codes: 1 when there is nothing to redo, or a file \
                            changed since."
    )]
    Redo {
        /// The session's id, or the start of it [default: this workspace's latest]
        #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
        #[arg(add = ArgumentValues::Sessions)]
        id: Option<String>,
        #[command(flatten)]
        part: UndoPart,
    },
}

/// What an undo or a redo touches, and how.
#[derive(Debug, Clone, Copy, Args)]
pub struct UndoPart {
    /// Only the files
    #[arg(long, conflicts_with = "conversation")]
    pub files: bool,
    /// Only the conversation
    #[arg(long)]
    pub conversation: bool,
    /// Overwrite what changed since; a copy is kept, which the reverse brings back
    #[arg(long)]
    pub force: bool,
    /// Print what would happen; change nothing
    #[arg(long)]
    pub dry_run: bool,
}
