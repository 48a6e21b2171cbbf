//! How a request is carried out, and the roles that take part in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::prompt_source::PromptSource;

/// How a request is carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The model calls tools until it answers.
    #[default]
    Direct,
    /// A router picks a tool, an agent or a flow first.
    Route,
    /// A planner lists steps, which run by themselves and are judged at the end.
    Plan,
    /// Only reads, and proposes; what changes anything waits for an approval.
    Explore,
}

impl Mode {
    /// All modes, in the order in which help lists them.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Route, Self::Plan, Self::Explore];

    /// The mode of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The name that the configuration uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Route => "route",
            Self::Plan => "plan",
            Self::Explore => "explore",
        }
    }
}

/// The roles of the modes `route` and `plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoleSettings {
    pub router: RoleConfig,
    pub planner: RoleConfig,
    pub executor: RoleConfig,
    pub reflector: RoleConfig,
}

/// One role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoleConfig {
    /// A configured model, or `provider/id`; that of the agent where there is none.
    pub model: Option<String>,
    /// A prompt of the registry, or one written out; the role's own where there is none.
    pub prompt: Option<PromptSource>,
    /// How much the model of the role reasons, as its `reasoning_effort`.
    pub effort: Option<String>,
    /// Whether the reply writes its reasoning out before the decision.
    pub reasoning: Reasoning,
}

/// Where a role reasons.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// The reply is the decision alone.
    #[default]
    Implicit,
    /// The reply is a scratchpad, which only the log keeps, and then the decision.
    Explicit,
}

impl Default for RoleSettings {
    fn default() -> Self {
        let role = |reasoning| RoleConfig { reasoning, ..RoleConfig::default() };
        Self {
            router: role(Reasoning::Implicit),
            planner: role(Reasoning::Explicit),
            executor: role(Reasoning::Implicit),
            reflector: role(Reasoning::Explicit),
        }
    }
}

impl RoleConfig {
    /// The prompt of the role of this name.
    #[must_use]
    pub fn prompt_of(&self, name: &str) -> PromptSource {
        let own = || PromptSource::registered(&format!("{name}@production"));
        self.prompt.clone().unwrap_or_else(own)
    }
}
