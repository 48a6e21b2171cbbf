//! The arguments of `agent worker`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::agent::assembly::TaskIsolation;
use crate::config::parse_duration;

use super::ServingArgs;
use super::values::parse_one_of;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  agent worker init --queue nats://queue.local --store postgres://agent@db.local/agent\n  agent worker \
                  --queue nats://queue.local --store postgres://agent@db.local/agent --jobs 16\n\nAGENT_QUEUE and AGENT_STORE \
                  hold the addresses, where they contain passwords. SIGTERM lets running tasks end (--grace), and gives the \
                  rest back; the exit code is 143."
)]
pub struct WorkerArgs {
    #[command(subcommand)]
    pub command: Option<WorkerCommand>,
    /// The queue of tasks: a NATS server with JetStream [env: AGENT_QUEUE]
    #[arg(long, value_name = "URL", global = true)]
    pub queue: Option<String>,
    /// The database of results: PostgreSQL [env: AGENT_STORE]
    #[arg(long, value_name = "URL", global = true)]
    pub store: Option<String>,
    /// The most tasks at a time
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=512))]
    pub jobs: u16,
    /// How long running tasks may take to end after SIGTERM
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub grace: Duration,
    /// Let each task change files in a directory of its own, which goes with it: copy
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = parse_one_of::<TaskIsolation>(&["copy"]))]
    pub isolate: Option<TaskIsolation>,
    #[command(flatten)]
    pub serving: ServingArgs,
}

#[derive(Debug, Subcommand)]
pub enum WorkerCommand {
    /// Make the streams of the queue and the tables of the database, where they are missing
    Init,
    /// Print how many tasks wait, run and are done
    Status,
    /// Print the log of a session that a worker handed in, as it was written
    Session {
        /// The session's id
        id: String,
    },
}
