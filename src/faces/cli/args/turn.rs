//! The options of a turn.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::config::{ApprovalMode, Mode, parse_duration};
use crate::model::ToolRename;

use super::values::{ArgumentValues, parse_approval, parse_dollars, parse_mode};
use super::var::{Var, parse_var};

const LIMITS: &str = "Limits (chat: of each turn)";
const SESSIONS: &str = "Sessions";
const RECORDINGS: &str = "Recordings";

/// The options of a turn, in `chat`, `run` and `map`.
#[derive(Debug, Clone, Default, Args)]
pub struct TurnArgs {
    /// The agent to use
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Agents)]
    pub agent: Option<String>,
    /// A configured model, PROVIDER/ID (agent model list), or another id at the agent's own provider
    #[arg(short, long, value_name = "NAME", add = ArgumentValues::Models)]
    pub model: Option<String>,
    /// Attach a file; - is stdin (repeatable)
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Load a skill at the start (repeatable)
    #[arg(long = "skill", value_name = "SKILL", add = ArgumentValues::Skills)]
    pub skills: Vec<String>,
    /// Give the prompts a value, {{ vars.K }}: K=TEXT, K=@FILE, K:=JSON (repeatable)
    #[arg(long = "var", value_name = "K=V", value_parser = parse_var)]
    pub vars: Vec<Var>,
    /// The prompt to use: the system prompt, and the messages that open the conversation
    #[arg(long, value_name = "NAME[@VERSION]", add = ArgumentValues::Prompts)]
    pub prompt: Option<String>,
    /// Which calls run without asking: ask (those that only read), edits (also changes in the workspace), all (almost
    /// all), never (those that only read; the rest is refused), auto (edits in a chat where it is safe, else ask)
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = parse_approval())]
    pub approve: Option<ApprovalMode>,
    /// Run this flow (flows/NAME.yaml): --var gives its inputs, the task is its input `task`
    #[arg(long, value_name = "NAME", add = ArgumentValues::Flows)]
    pub flow: Option<String>,
    /// How the task is carried out: direct (by the model and its tools), route, plan, explore (reads and proposes)
    #[arg(long, value_name = "MODE", hide_possible_values = true, value_parser = parse_mode())]
    pub mode: Option<Mode>,
    /// Run commands in the sandbox: on, off (with your own permissions)
    #[arg(long, value_name = "on|off", hide_possible_values = true, value_parser = ["on", "off"])]
    pub sandbox: Option<String>,
    /// Append each request and answer to this file as it went over the wire, without keys
    #[arg(long, value_name = "FILE")]
    pub log_wire: Option<PathBuf>,
    #[command(flatten)]
    pub recording: RecordingArgs,
    /// The most requests to the model in a conversation
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,
    /// The most requests of the run with its helpers [default: ten times --max-turns]
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_requests: Option<u64>,
    /// The longest time: 90s, 10m
    #[arg(long, help_heading = LIMITS, value_name = "DURATION", value_parser = parse_duration)]
    pub max_time: Option<Duration>,
    /// The most tokens, input and output together
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
    /// The highest cost
    #[arg(long, help_heading = LIMITS, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<f64>,
    /// Continue this session: its id, the start of it, or its title
    #[arg(long, help_heading = SESSIONS, value_name = "ID", add = ArgumentValues::Sessions, conflicts_with = "continue_latest")]
    pub session: Option<String>,
    /// Go on with a copy of this session
    #[arg(long, help_heading = SESSIONS, value_name = "ID", add = ArgumentValues::Sessions, conflicts_with_all = ["session", "continue_latest"])]
    pub fork: Option<String>,
    /// With --fork: end the copy before this message, by the id that `session show` prints: m12
    #[arg(long, help_heading = SESSIONS, value_name = "MESSAGE", requires = "fork")]
    pub at: Option<String>,
    /// Continue the latest session of this workspace
    #[arg(long = "continue", help_heading = SESSIONS)]
    pub continue_latest: bool,
    /// Work in a copy of the workspace: nothing reaches it until `agent session apply`
    #[arg(long, help_heading = SESSIONS, conflicts_with_all = ["session", "continue_latest", "fork", "ephemeral"])]
    pub trial: bool,
    /// Keep no session on disk
    #[arg(long, help_heading = SESSIONS, conflicts_with_all = ["session", "continue_latest", "fork"])]
    pub ephemeral: bool,
}

/// The options of recordings.
#[derive(Debug, Clone, Default, Args)]
pub struct RecordingArgs {
    /// Record the replies of the model to this file
    #[arg(long, help_heading = RECORDINGS, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// With --record: the results of calls too
    #[arg(long, help_heading = RECORDINGS, requires = "record")]
    pub record_tools: bool,
    /// Give the replies of a recording back, and its results; nothing is sent
    #[arg(long, help_heading = RECORDINGS, value_name = "FILE", conflicts_with = "record")]
    pub replay: Option<PathBuf>,
    /// With --replay of another program's conversation: which tool of ours does what theirs did, and under which name its
    /// one argument goes (repeatable)
    #[arg(long, help_heading = RECORDINGS, requires = "replay", value_name = "THEIRS=OURS[:ARGUMENT]", value_parser = ToolRename::parse)]
    pub map: Vec<ToolRename>,
    /// With --replay: fail at a request that differs from the recorded one
    #[arg(long, help_heading = RECORDINGS, requires = "replay")]
    pub replay_strict: bool,
}
