//! The modes in which a request is carried out, and the roles that take part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::spelling::spell;

use super::prompt_source::PromptSource;

/// The way to carry out a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The model calls tools until it answers.
    #[default]
    Direct,
    /// A router picks a tool, an agent or a flow first.
    Route,
    /// A planner lists steps, which run on their own and are judged at the end.
    Plan,
    /// Only reads and proposes; changes wait for an approval.
    Explore,
}

impl Mode {
    /// All modes, in the order in which help lists them.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Route, Self::Plan, Self::Explore];

    /// The mode of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The name that the configuration uses.
    pub fn name(self) -> &'static str {
        spell(&self)
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
    /// A configured model, or `provider/id`; the agent's by default.
    pub model: Option<String>,
    /// A prompt of the registry, or the text of one; the role's own by default.
    pub prompt: Option<PromptSource>,
    /// The amount of reasoning of the role's model, like `reasoning_effort`.
    pub effort: Option<String>,
    /// The form of the reasoning in the reply.
    pub reasoning: Reasoning,
}

/// The place of a role's reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// The reply is only the decision.
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
    pub fn prompt_of(&self, name: &str) -> PromptSource {
        let own = || PromptSource::registered(&format!("{name}@production"));
        self.prompt.clone().unwrap_or_else(own)
    }
}
