//! What may follow `agent model`.

use clap::Subcommand;

use super::ReportFormat;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models that -m takes: configured ones, then those of the catalogue
    #[command(
        after_help = "Examples:\n  agent model list claude\n  agent model list -o json groq/ | jq -r '.models[].name'"
    )]
    List {
        /// Only those with this in their name
        #[arg(default_value = "", hide_default_value = true)]
        filter: String,
        /// What to print: text (a table), json
        #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = ReportFormat::Text, value_name = "FORMAT")]
        output: ReportFormat,
    },
    /// Take prices and windows from another catalogue: a newer one of this program, or the api.json of models.dev
    #[command(
        after_help = "Example:\n  agent model update https://models.dev/api.json\n\nIt is kept in the data directory as models.txt; remove that file to go back."
    )]
    Update {
        /// Its file or address
        #[arg(value_name = "FILE|URL")]
        source: String,
    },
}
