//! The shape of `agent.yaml` and of `agents/NAME.yaml`, with the defaults.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::WrittenDuration;
use super::narrowed::Narrowed;
use super::permissions::{ApprovalMode, PermissionSettings};
use super::profile::ProfileChoice;
use super::prompt_source::PromptSource;
use super::roles::{Mode, RoleSettings};
use super::sandbox::SandboxSettings;
use super::selection::ToolsSettings;
use super::ui::UiSettings;
use crate::base::output::{Encoding, ResponseFormat};
use crate::base::secrets::Secret;
use crate::base::spelling::spell;

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
    pub templates: TemplateSettings,
    #[serde(default)]
    pub telemetry: TelemetrySettings,
    #[serde(default)]
    pub fetch: FetchSettings,
    #[serde(default)]
    pub skills: SkillSettings,
    #[serde(default)]
    pub tools: ToolsSettings,
    #[serde(default)]
    pub session: SessionSettings,
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
    /// The name of a configured model; `null` means `default`, and for a helper the model of the agent that calls it.
    pub model: Option<String>,
    /// A template of the run, never rendered while the configuration is read.
    #[serde(default = "PromptSource::system")]
    pub system_prompt: PromptSource,
    /// The prompt for the closing answer when a limit was reached; a template of the run.
    #[serde(default = "PromptSource::termination")]
    pub termination_summary_prompt: PromptSource,
    /// The prompt for the summary of a compression; a template of the run.
    #[serde(default = "PromptSource::compression")]
    pub compression_prompt: PromptSource,
    /// Names and globs; `!` excludes; `*` means the built-in tools marked as default.
    #[serde(default = "everything")]
    pub tools: Vec<String>,
    #[serde(default = "everything")]
    pub skills: Vec<String>,
    #[serde(default)]
    pub skill_disclosure: SkillDisclosure,
    /// The level of detail of the built-in prompts and the definitions of tools; `auto` chooses it by the model.
    #[serde(default)]
    pub profile: ProfileChoice,
    #[serde(default)]
    pub approval: ApprovalMode,
    /// The way to carry out a request.
    #[serde(default)]
    pub mode: Mode,
    /// The model may propose plans: the tool `propose_plan`.
    #[serde(default = "yes")]
    pub plans: bool,
    /// A person sees a plan before it runs.
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
    /// The place where it works when another agent calls it.
    #[serde(default)]
    pub isolation: Isolation,
    /// A project's selection of `tools` and `skills`.
    #[serde(skip)]
    pub narrowed: Narrowed,
}

/// The keys of an agent for prompts.
pub const PROMPT_KEYS: [&str; 3] = ["system_prompt", "termination_summary_prompt", "compression_prompt"];

fn yes() -> bool {
    true
}

pub(super) fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

impl AgentConfig {
    /// The name of its model.
    pub fn model_name(&self) -> &str {
        self.model.as_deref().unwrap_or("default")
    }
}

/// The place where a helper works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the workspace of the agent that calls it.
    #[default]
    None,
    /// In a separate git worktree; its changes come back as a branch.
    Worktree,
}

/// The place of the instructions of a loaded skill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillDisclosure {
    /// In the result of the call that loads it: everything before stays unchanged, and so does the provider's cache.
    #[default]
    Message,
    /// In the system prompt, which is rendered again when a skill or a file of one is loaded.
    System,
}

/// Additional places of skills besides the standard ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// Directories with folders of skills; later ones win. Absolute, or `~/` for the home directory.
    pub dirs: Vec<String>,
}

/// What becomes of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// How long a session without a name is kept after its last message; `null` keeps all.
    pub retention: Option<WrittenDuration>,
}

/// Limits of a run. `null` means no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model requests of one conversation in one turn.
    pub max_turns: Option<u64>,
    /// Model requests of a run with all its helpers; `null` means ten times `max_turns`.
    pub max_requests: Option<u64>,
    /// Wall-clock time of one turn, not counting waits for a person.
    pub max_time: Option<WrittenDuration>,
    /// Input and output tokens of one turn in sum.
    pub max_tokens: Option<u64>,
    /// USD of one turn.
    pub max_cost: Option<f64>,
    /// The time limit of a call that does not ask for another one.
    pub tool_timeout: WrittenDuration,
    /// The longest time that a call (`timeout` of `run_command`) or a tool's file may ask for.
    pub max_tool_timeout: WrittenDuration,
    /// The longest time that a command may run without writing anything.
    pub tool_idle_timeout: Option<WrittenDuration>,
    /// Read-only calls that run in parallel.
    pub max_parallel: usize,
    /// The depth to which helpers may call helpers; 0 means no helpers.
    pub max_depth: usize,
    /// The number of calls in a row that may bring nothing new before the model is told; at twice that it is stopped.
    pub loop_window: usize,
    /// The number of times that a call may return the same result without progress in between before the model is
    /// told; at twice that it is stopped.
    pub loop_threshold: usize,
}

/// Limits of the content of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextSettings {
    /// Tokens of a request; `null` means the model's window minus the reserve.
    pub budget: Option<u64>,
    /// The share of the budget at which a conversation is compressed.
    pub compress_at: Share,
    /// The share of the budget that a compression aims for.
    pub compress_to: Share,
    /// The share of the budget for the most recent steps, which stay whole as long as possible; 0 keeps only the last
    /// step.
    pub keep_recent: Share,
    /// The strategy by which a compression chooses what to remove.
    pub strategy: Strategy,
    /// The share of the budget that each layer of a request may take.
    pub layers: LayerShares,
    /// True if requests may grow beyond the size from which the model costs more. Otherwise the budget stops below it.
    #[serde(default)]
    pub cross_price_tier: bool,
    /// Tokens kept free for the reply; `null` means the model's `max_output_tokens`.
    pub reserve_output: Option<u64>,
    /// The most tokens that one result may bring in.
    pub tool_result_max_tokens: usize,
}

/// The most that each layer may take of the budget. History takes the rest and is cut first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerShares {
    /// The identity of the agent, its rules, the form of its answers.
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
    pub fn is_sound(self) -> bool {
        self.0 > 0.0 && self.0 <= 1.0
    }

    /// As a number, 0 to 1.
    pub fn value(self) -> f64 {
        self.0
    }

    /// This share of `whole`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of tokens are far below 2^52, and a share is not negative"
    )]
    pub fn take_share(self, whole: u64) -> u64 {
        (whole as f64 * self.0) as u64
    }

    /// The smallest whole of which the share is at least `part`; the largest number if there is none.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of tokens are far below 2^52, and a share is not negative"
    )]
    pub fn find_whole(self, part: u64) -> u64 {
        let near = (part as f64 / self.0) as u64;
        (near.saturating_sub(1)..=near.saturating_add(2))
            .find(|whole| self.take_share(*whole) >= part)
            .unwrap_or(u64::MAX)
    }
}

/// The strategy of a compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Old results are shortened, then idle skills removed, then old turns summarised, as far as each is needed.
    #[default]
    Staged,
    /// Old turns are summarised.
    Summary,
    /// The newest items stay.
    Window,
    /// The most important items stay.
    Selective,
}

impl Strategy {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        spell(&self)
    }
}

/// The form of tools' results for the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolOutputSettings {
    pub format: ResponseFormat,
    pub encoding: Encoding,
}

/// The part of the environment that prompts see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PromptSettings {
    /// Variables that prompts may read although their names look like secrets.
    pub allow_env: Vec<String>,
}

/// The bounds of templates that are rendered apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateSettings {
    /// The longest time that one rendering may take.
    pub timeout: WrittenDuration,
}

impl Default for TemplateSettings {
    fn default() -> Self {
        Self { timeout: WrittenDuration::from_secs(2) }
    }
}

/// The receiver of the figures of runs, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetrySettings {
    /// The base URL of an OpenTelemetry collector (OTLP over HTTP); `/v1/traces` and `/v1/metrics` are added. `null`:
    /// nothing is sent.
    pub otlp_endpoint: Option<String>,
    /// Headers of each export.
    pub otlp_headers: BTreeMap<String, Secret>,
}

/// Hosts that `fetch_url` may reach besides the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FetchSettings {
    /// Hosts of this machine or of a private network: `localhost`, `wiki.internal`, `10.0.0.7:8080`.
    pub allow: Vec<String>,
}

/// `storages/session_stores/NAME.yaml`: the place of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionStoreConfig {
    pub name: String,
    /// The directory of the session logs. A relative one is in the data directory (`$XDG_DATA_HOME/agent`); `~/`
    /// is the home directory.
    pub dir: String,
}

/// Configured things by name.
pub type Named<T> = BTreeMap<String, T>;
