//! What may follow `agent session`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List the sessions of this workspace, newest first
    List {
        /// Of all workspaces, with those of helpers
        #[arg(long)]
        all: bool,
    },
    /// Print a session
    Show {
        /// Its id, or the beginning of it
        id: String,
        /// What fills the window, instead of what was said
        #[arg(long)]
        context: bool,
    },
    /// Make room in a session's context, as /compact does
    Compact {
        /// Its id, or the beginning of it
        id: String,
        /// What a summary is to keep above all
        #[arg(long, value_name = "TEXT", default_value = "")]
        focus: String,
        /// Print what would go, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}
