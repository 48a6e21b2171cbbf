//! What may follow `agent skill`.

use std::path::PathBuf;

use clap::Subcommand;

use super::ReportFormat;

#[derive(Debug, Subcommand)]
pub enum SkillCommand {
    /// List the skills: where each comes from, what it is for
    List {
        /// Print only the names, one a line, without those that a shell could misread
        #[arg(long, conflicts_with = "output")]
        names: bool,
        /// The agent whose skills
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Print a skill: where it lies, what it asks for, its files and its instructions
    Show {
        #[arg(value_name = "SKILL")]
        skill: String,
        /// The agent whose skill
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Check skills against the standard; exit with 100 if one is not valid
    #[command(after_help = "Examples:\n  agent skill check                 those that are found here\n  \
        agent skill check skills/brew     one, or all in a directory")]
    Check {
        /// A skill, or a directory of skills [default: those that are found here]
        #[arg(value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// The output format: text, json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
}
