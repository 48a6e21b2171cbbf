//! The options of `agent map`.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use crate::agent::assembly::TaskIsolation;

use super::turn::TurnArgs;
use super::values::parse_one_of;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agent map \"Translate to French: {{ item }}\" < lines.txt\n  agent map \"Label this issue: {{ \
                  item.title }}\" --schema label.json --output-file labels.jsonl < issues.jsonl\n\nThe same command goes \
                  on with an --output-file that is not complete. Exit codes: 0 when all are done, 1 when some failed, 8 at \
                  --max-cost.",
    mut_args(hide_for_many)
)]
pub struct MapArgs {
    /// The task of each line: {{ item }} is the line, {{ item.FIELD }} a field of its JSON object
    pub task: Option<String>,
    #[command(flatten)]
    pub turn: TurnArgs,
    /// The most tasks at a time [default: 8]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub jobs: Option<u16>,
    /// The form of the lines: auto (by the first), jsonl, text
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, value_name = "FORM")]
    pub input: InputForm,
    /// Let each task change files in a directory of its own: worktree (a branch keeps them, and its result names it),
    /// trial (a copy, for `agent session apply`), copy (they go with the task)
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = parse_one_of::<TaskIsolation>(&["worktree", "trial", "copy"]), conflicts_with = "trial")]
    pub isolate: Option<TaskIsolation>,
    /// Write results as they come, not in the order of the input
    #[arg(long)]
    pub unordered: bool,
    /// Write the results to this file, and go on with what is in it
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Run again what failed
    #[arg(long, requires = "output_file")]
    pub retry_failed: bool,
    /// Go on with results of another task
    #[arg(long, requires = "output_file")]
    pub force: bool,
    #[cfg(feature = "scale")]
    #[command(flatten)]
    pub queue: QueueArgs,
    /// A JSON Schema that each answer must match
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
}

/// Hides the options of one run, which `agent map` refuses.
fn hide_for_many(arg: Arg) -> Arg {
    let is_of_one = ["files", "session", "fork", "at", "continue_latest"].contains(&arg.get_id().as_str());
    if is_of_one { arg.hide(true) } else { arg }
}

/// Where tasks run, if it is not here.
#[cfg(feature = "scale")]
#[derive(Debug, Args)]
pub struct QueueArgs {
    /// Publish the tasks for `agent worker`, to this NATS server; - takes the address from AGENT_QUEUE
    #[arg(long, value_name = "URL", allow_hyphen_values = true, conflicts_with_all = ["isolate", "retry_failed"])]
    pub queue: Option<String>,
    /// With --queue: wait for the results, and write them as usual
    #[arg(long, requires = "queue")]
    pub collect: bool,
}

/// The form of the lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum InputForm {
    /// By the first line: JSON lines if it is a JSON object, else text.
    #[default]
    Auto,
    Jsonl,
    Text,
}
