//! The shape of `agent.yaml` and of `agents/NAME.yaml`: what may stand there, with which defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration;
use super::narrowed::Narrowed;
use super::permissions::{ApprovalMode, PermissionSettings};
use super::profile::ProfileChoice;
use super::prompt_source::PromptSource;
use super::roles::{Mode, RoleSettings};
use super::selection::ToolsSettings;
use super::ui::UiSettings;
use crate::output::{Encoding, ResponseFormat};
use crate::secrets::Secret;

/// `agent.yaml`: the defaults of every agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The agent that runs when none is named.
    pub default_agent: String,
    pub limits: Limits,
    pub context: ContextSettings,
    pub tool_output: ToolOutputSettings,
    #[serde(default)]
    pub sandbox: SandboxSettings,
    #[serde(default)]
    pub permissions: PermissionSettings,
    #[serde(default)]
    pub prompts: PromptSettings,
    #[serde(default)]
    pub telemetry: TelemetrySettings,
    #[serde(default)]
    pub fetch: FetchSettings,
    #[serde(default)]
    pub skills: SkillSettings,
    #[serde(default)]
    pub tools: ToolsSettings,
    #[serde(default)]
    pub ui: UiSettings,
}

/// `agents/NAME.yaml`, with the settings' `limits`, `context`, `tool_output`, `sandbox` and `permissions` already
/// merged under its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// The name of a configured model; `null`: `default`, and for a helper the model of the agent that calls it.
    #[serde(default)]
    pub model: Option<String>,
    /// A template of the run, never rendered while the configuration is read.
    #[serde(default = "PromptSource::system")]
    pub system_prompt: PromptSource,
    /// The same, for the closing answer when a limit was reached.
    #[serde(default = "PromptSource::termination")]
    pub termination_summary_prompt: PromptSource,
    /// The same, for the summary that a compression asks for.
    #[serde(default = "PromptSource::compression")]
    pub compression_prompt: PromptSource,
    /// Names and globs; `!` takes out; `*` is the built-in tools marked as default.
    #[serde(default = "everything")]
    pub tools: Vec<String>,
    #[serde(default = "everything")]
    pub skills: Vec<String>,
    #[serde(default)]
    pub skill_disclosure: SkillDisclosure,
    /// How much the built-in prompts and the definitions of tools spell out; `auto`: by the model.
    #[serde(default)]
    pub profile: ProfileChoice,
    #[serde(default)]
    pub approval: ApprovalMode,
    /// How a request is carried out.
    #[serde(default)]
    pub mode: Mode,
    /// Mode `plan`: a person sees the plan before it runs.
    #[serde(default = "yes")]
    pub plan_approval: bool,
    /// Models, prompts and reasoning of the roles of the modes `route` and `plan`.
    #[serde(default)]
    pub roles: RoleSettings,
    #[serde(default)]
    pub permissions: PermissionSettings,
    pub limits: Limits,
    pub context: ContextSettings,
    pub tool_output: ToolOutputSettings,
    #[serde(default)]
    pub sandbox: SandboxSettings,
    /// Where it works when another agent calls it.
    #[serde(default)]
    pub isolation: Isolation,
    /// What a project takes of `tools` and `skills`.
    #[serde(skip)]
    pub narrowed: Narrowed,
}

/// The keys of an agent that hold prompts.
pub const PROMPT_KEYS: [&str; 3] = ["system_prompt", "termination_summary_prompt", "compression_prompt"];

fn yes() -> bool {
    true
}

fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

impl AgentConfig {
    /// The name of its model.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or("default")
    }
}

/// Where a helper works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the workspace of the agent that calls it.
    #[default]
    None,
    /// In a git worktree of its own; what it changes comes back as a branch.
    Worktree,
}

/// Where the instructions of a loaded skill stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillDisclosure {
    /// In the result of the call that loads it: everything before stays as it was, and so does a provider's cache.
    #[default]
    Message,
    /// In the system prompt, which is made anew when a skill or a file of one is loaded.
    System,
}

/// Where skills are looked for besides the places that everybody uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillSettings {
    /// Directories that hold folders of skills, later wins: absolute, or `~/` for the home directory.
    #[serde(default)]
    pub dirs: Vec<String>,
}

/// When a run is stopped. `null`: no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model requests in one turn.
    pub max_turns: Option<u64>,
    /// Wall clock of one turn, waiting for a person excluded.
    #[serde(with = "duration::optional")]
    #[schemars(with = "Option<duration::DurationText>")]
    pub max_time: Option<Duration>,
    /// Input and output tokens of one turn in sum.
    pub max_tokens: Option<u64>,
    /// USD of one turn.
    pub max_cost: Option<f64>,
    /// The longest that one call may take that does not ask for another time.
    #[serde(with = "duration")]
    #[schemars(with = "duration::DurationText")]
    pub tool_timeout: Duration,
    /// The most that a call may ask for (`timeout` of `run_command`), or a tool's own file.
    #[serde(with = "duration")]
    #[schemars(with = "duration::DurationText")]
    pub max_tool_timeout: Duration,
    /// How long a command may run without writing anything.
    #[serde(with = "duration::optional")]
    #[schemars(with = "Option<duration::DurationText>")]
    pub tool_idle_timeout: Option<Duration>,
    /// Read-only calls that run side by side.
    pub max_parallel: usize,
    /// How deep helpers may call helpers; 0: no helpers.
    pub max_depth: usize,
    /// How many of the last calls are looked at for a loop.
    pub loop_window: usize,
    /// How often the same call may return the same result before the model is told; at twice that it is stopped.
    pub loop_threshold: usize,
}

/// How much a request may hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextSettings {
    /// Tokens of a request; `null`: the model's window less the reserve.
    pub budget: Option<u64>,
    /// The share of the budget at which a conversation is compressed.
    pub compress_at: Share,
    /// The share of the budget at or under which a compression lands.
    pub compress_to: Share,
    /// The share of the budget that the most recent steps may fill and stay whole as long as a compression can help
    /// it; 0 keeps none but the last.
    pub keep_recent: Share,
    /// How a compression chooses what goes.
    pub strategy: Strategy,
    /// How much of the budget the layers of a request may take, each.
    pub layers: LayerShares,
    /// Tokens kept free for the reply; `null`: the model's `max_output_tokens`.
    pub reserve_output: Option<u64>,
    /// The most tokens that one result may bring in.
    pub tool_result_max_tokens: usize,
}

/// The most that each layer may take of the budget. History takes what is left and gives way first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerShares {
    /// Who the agent is, its rules, the form of its answers.
    pub system: Share,
    /// Definitions of tools, the list of skills, project instructions.
    pub context: Share,
    /// One message of the user, attachments included.
    pub input: Share,
    /// Text that this program adds in between, such as the termination prompt.
    pub reminders: Share,
}

/// A share of a whole: more than 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Share(f64);

impl Share {
    /// True if it is a share at all.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self.0 > 0.0 && self.0 <= 1.0
    }

    /// True if it is a share, or nothing.
    #[must_use]
    pub fn is_sound_or_zero(self) -> bool {
        self.0 == 0.0 || self.is_sound()
    }

    /// True if it is the smaller one.
    #[must_use]
    pub fn is_under(self, other: Self) -> bool {
        self.0 < other.0
    }

    /// As a number, 0 to 1.
    #[must_use]
    pub fn value(self) -> f64 {
        self.0
    }

    /// So much of `whole`.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of tokens are far below 2^52, and a share is not negative"
    )]
    pub fn of(self, whole: u64) -> u64 {
        (whole as f64 * self.0) as u64
    }
}

/// How a compression chooses what goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Old results are shortened, then idle skills let go, then old turns summarised, as far as each is needed.
    #[default]
    Staged,
    /// Old turns are summarised.
    Summary,
    /// The newest stays.
    Window,
    /// The most important stays.
    Selective,
}

impl Strategy {
    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Summary => "summary",
            Self::Window => "window",
            Self::Selective => "selective",
        }
    }
}

/// How results of tools are written for the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutputSettings {
    pub format: ResponseFormat,
    pub encoding: Encoding,
}

/// The boundary around commands. The default is the narrowest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxSettings {
    #[serde(default)]
    pub mode: SandboxMode,
    /// Directories that commands may write besides the workspace and their temporary directory. `~/` is the home
    /// directory; a relative one lies in the workspace.
    #[serde(default)]
    pub write: Vec<String>,
    /// The hosts that commands reach, through a proxy on their loopback: `crates.io`, `*.example.com`,
    /// `localhost:8080`. `["*"]`: the network of this machine, its loopback included.
    #[serde(default)]
    pub network: Vec<String>,
    /// Variables that commands get besides the harmless ones, also with the sandbox off: names, or globs over names
    /// that neither look like secrets nor make programs run other code.
    #[serde(default)]
    pub env: Vec<String>,
}

impl SandboxSettings {
    /// The entry of `network` that opens it, and the only one allowed.
    pub const ANY_HOST: &str = "*";
}

/// Whether there is a boundary around commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Where the system has none, no command runs.
    #[default]
    On,
    Off,
}

/// The part of the environment that prompts see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptSettings {
    /// Variables that prompts may read although their names look like secrets.
    #[serde(default)]
    pub allow_env: Vec<String>,
}

/// Where the figures of runs are sent, if anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// The base URL of an OpenTelemetry collector (OTLP over HTTP); `/v1/traces` and `/v1/metrics` are added. `null`:
    /// nothing is sent.
    #[serde(default)]
    pub otlp_endpoint: Option<String>,
    /// Sent along with each export.
    #[serde(default)]
    pub otlp_headers: BTreeMap<String, Secret>,
}

/// Where `fetch_url` may go besides the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchSettings {
    /// Hosts of this machine or of a private network: `localhost`, `wiki.internal`, `10.0.0.7:8080`.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// `storages/session_stores/NAME.yaml`: where sessions live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionStoreConfig {
    pub name: String,
    /// The directory of the session logs. A relative one lies in the data directory (`$XDG_DATA_HOME/agent`); `~/`
    /// is the home directory.
    pub dir: String,
}

/// `limits` of the run as JSON, for `run.started`.
impl From<&Limits> for serde_json::Value {
    fn from(limits: &Limits) -> Self {
        serde_json::to_value(limits).unwrap_or_default()
    }
}

/// Configured things by name.
pub type Named<T> = BTreeMap<String, T>;
