//! The subcommands of `agent skill`.

use std::path::PathBuf;

use clap::Subcommand;

use super::ReportFormat;

#[derive(Debug, Subcommand)]
pub enum SkillCommand {
    /// List the skills: where each comes from, what it is for
    List {
        /// Print only the names, one per line, without those that a shell could misread
        #[arg(long, conflicts_with = "output")]
        names: bool,
        /// The agent whose skills to list
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Print a skill: its location, its requirements, its files and its instructions
    Show {
        #[arg(value_name = "SKILL")]
        skill: String,
        /// The agent whose skill to print
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Check skills against the standard; exit with 100 if one is invalid
    #[command(after_help = "Examples:\n  agent skill check                 those found here\n  \
        agent skill check skills/brew     one, or all in a directory")]
    Check {
        /// A skill, or a directory of skills [default: those found here]
        #[arg(value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
}
