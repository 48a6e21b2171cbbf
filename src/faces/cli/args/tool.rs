//! The subcommands of `agent tool`.

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use super::parse_approval;
use crate::base::output::{Encoding, ResponseFormat};
use crate::config::{ApprovalMode, Permission};

#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// List the tools of the agent: permission, effects and origin of each
    List {
        /// Only these tools: names and globs; ! excludes
        names: Vec<String>,
        /// Only tools up to this permission: read, write, admin
        #[arg(long, value_name = "LEVEL", value_parser = parse_permission)]
        permission: Option<Permission>,
        /// The agent whose tools to list
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Print the definition of a tool as the model sees it
    Show {
        name: String,
        /// The agent whose tool to print
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Call a tool under the same policy as the model, and print what the model would read
    #[command(
        after_help = "Example:\n  agent tool call grep '{\"pattern\": \"main\"}' --format standard --encoding json"
    )]
    Call(CallArgs),
}

#[derive(Debug, Args)]
pub struct CallArgs {
    pub name: String,
    /// The arguments: one JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub arguments: String,
    /// The parts of the result: concise, standard, detailed, raw
    #[arg(long, value_name = "FORMAT", value_parser = response_format)]
    pub format: Option<ResponseFormat>,
    /// The notation: text, json, yaml, xml, compact
    #[arg(long, value_name = "ENCODING", value_parser = parse_encoding)]
    pub encoding: Option<Encoding>,
    /// Which calls run without asking: ask, edits, all, never
    #[arg(long, value_name = "MODE", value_parser = parse_approval)]
    pub approve: Option<ApprovalMode>,
    /// The agent whose tool to call
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
}

fn parse_permission(text: &str) -> Result<Permission, String> {
    parse_word(text, "read, write, admin")
}

fn response_format(text: &str) -> Result<ResponseFormat, String> {
    parse_word(text, "concise, standard, detailed, raw")
}

fn parse_encoding(text: &str) -> Result<Encoding, String> {
    parse_word(text, "text, json, yaml, xml, compact")
}

/// Parses a word as the configuration files spell it.
fn parse_word<T: DeserializeOwned>(text: &str, words: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("one of {words}"))
}
