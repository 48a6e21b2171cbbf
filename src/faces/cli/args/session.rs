//! The subcommands of `agent session`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List the sessions of this workspace, newest first
    List {
        /// List the sessions of all workspaces, and those of helpers
        #[arg(long)]
        all: bool,
    },
    /// Print a session
    Show {
        /// The session's id, or the start of it
        id: String,
        /// Show what fills the context window, instead of the messages
        #[arg(long)]
        context: bool,
    },
    /// Compact a session, as /compact does
    Compact {
        /// The session's id, or the start of it
        id: String,
        /// The topic that the summary must keep
        #[arg(long, value_name = "TEXT", default_value = "")]
        focus: String,
        /// Print what would be removed; change nothing
        #[arg(long)]
        dry_run: bool,
    },
}
