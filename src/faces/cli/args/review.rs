//! The options of `agent review`.

use clap::{Args, ValueEnum};

use super::values::{ArgumentValues, parse_dollars};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agent review\n  agent review main..HEAD -o github\n  agent review HEAD~3 --focus \"error handling\" \
                  -o json | jq .findings\n\nExit codes: 0 without findings, 1 with some."
)]
pub struct ReviewArgs {
    /// The commits: main..HEAD, HEAD~3 [default: what is not committed]
    pub range: Option<String>,
    /// What matters above all
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub focus: String,
    /// The most findings
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub max_findings: u16,
    /// The agent to use
    #[arg(short, long, value_name = "NAME", default_value = "review", add = ArgumentValues::Agents)]
    pub agent: String,
    /// The model to use, as for run
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Models)]
    pub model: Option<String>,
    /// The highest cost
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<f64>,
    /// Keep no session on disk
    #[arg(long)]
    pub ephemeral: bool,
    /// The output format: text, json, github (annotations, and a summary of the step)
    #[arg(short, long, value_enum, hide_possible_values = true, default_value_t, value_name = "FORMAT")]
    pub output: ReviewFormat,
}

/// How findings are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReviewFormat {
    #[default]
    Text,
    Json,
    Github,
}
