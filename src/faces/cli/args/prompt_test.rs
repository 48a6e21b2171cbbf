//! The arguments of `agent prompt test`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::{ArgumentValues, parse_approval};
use crate::config::ApprovalMode;

#[derive(Debug, Args)]
pub struct PromptTestArgs {
    /// Prompts, NAME[@VERSION] [default: every prompt that has a tests.yaml]
    #[allow(rustdoc::broken_intra_doc_links, reason = "a help text, not a link")]
    #[arg(value_name = "NAME", add = ArgumentValues::Prompts)]
    pub references: Vec<String>,
    /// Take the cases from this file: a tests.yaml, or a promptfoo configuration, whose prompts are tested if no NAME
    /// is given
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The model to ask (repeatable)
    #[arg(short, long = "model", value_name = "MODEL", add = ArgumentValues::Models)]
    pub models: Vec<String>,
    /// The agent whose settings and tools are used
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
    pub agent: Option<String>,
    /// Run each case N times, whatever it says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,
    /// Only cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Compare two versions on the same cases
    #[arg(long, num_args = 2, value_names = ["A", "B"], add = ArgumentValues::Prompts, conflicts_with_all = ["references", "file"])]
    pub compare: Vec<String>,
    /// The output format: text (tables), json, junit, html
    #[arg(short, long, value_enum, hide_possible_values = true, default_value_t = TestFormat::Text, value_name = "FORMAT")]
    pub output: TestFormat,
    /// Ask the model only if no reply is recorded, and record its replies
    #[arg(long, conflicts_with_all = ["replay", "update_recordings"])]
    pub record: bool,
    /// Ask no model: use the recorded replies
    #[arg(long, conflicts_with = "update_recordings")]
    pub replay: bool,
    /// Ask the model again, and record its replies
    #[arg(long)]
    pub update_recordings: bool,
    /// The directory of recordings [default: beside the prompt]
    #[arg(long, value_name = "DIR")]
    pub recordings: Option<PathBuf>,
    /// The number of runs at a time [default: limits.max_parallel of the agent]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Which calls of a case run without asking: edits (the default), all, never
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = parse_approval())]
    pub approve: Option<ApprovalMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    Text,
    Json,
    Junit,
    Html,
}
