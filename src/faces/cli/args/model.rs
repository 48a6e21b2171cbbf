//! The subcommands of `agent model`.

use std::path::PathBuf;

use clap::Subcommand;

use super::ReportFormat;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models that -m takes: configured ones, then those of the catalogue
    #[command(
        after_help = "Examples:\n  agent model list claude\n  agent model list -o json groq/ | jq -r '.models[].name'"
    )]
    List {
        /// Only models whose name contains this
        #[arg(default_value = "", hide_default_value = true)]
        filter: String,
        /// The output format: text (a table), json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Find out what a model's server supports: tools, schemas, pictures, caching; send seven small requests
    #[command(
        after_help = "Examples:\n  agent model check anthropic/claude-sonnet-5-5\n  agent model check local -o json | jq .file\n\nExit codes: 0 when it answers at all, else that of the failure (4: key, 5: server, 6: rate limit)."
    )]
    Check {
        /// The model, named as for -m [default: that of the default agent]
        name: Option<String>,
        /// Append each request and answer to this file as it went over the wire, without keys
        #[arg(long, value_name = "FILE")]
        log_wire: Option<PathBuf>,
        /// The output format: text (a table), json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Update prices and windows from another catalogue: a newer one of this program, or the api.json of models.dev
    #[command(
        after_help = "Example:\n  agent model update https://models.dev/api.json\n\nIt is kept in the data directory as models.txt; remove that file to go back."
    )]
    Update {
        /// Its file or address
        #[arg(value_name = "FILE|URL")]
        source: String,
    },
}
