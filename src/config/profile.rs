//! The level of detail of the built-in prompts and the definitions of tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::spelling::spell;

/// The amount of guidance for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceProfile {
    /// Rules and facts, for models that know how to work.
    #[default]
    Concise,
    /// A recipe and examples as well, for models of some 7 to 30 billion parameters.
    Guided,
}

impl GuidanceProfile {
    /// The name as configuration and prompts spell it.
    pub fn name(self) -> &'static str {
        spell(&self)
    }
}

/// `profile` of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileChoice {
    /// Depends on the model.
    #[default]
    Auto,
    Concise,
    Guided,
}

impl ProfileChoice {
    /// The profile for a model that needs `by_model`.
    pub fn or(self, by_model: GuidanceProfile) -> GuidanceProfile {
        match self {
            Self::Auto => by_model,
            Self::Concise => GuidanceProfile::Concise,
            Self::Guided => GuidanceProfile::Guided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GuidanceProfile, ProfileChoice};

    #[test]
    fn what_is_configured_beats_what_the_model_needs() {
        for (choice, by_model, profile) in [
            (ProfileChoice::Auto, GuidanceProfile::Guided, GuidanceProfile::Guided),
            (ProfileChoice::Auto, GuidanceProfile::Concise, GuidanceProfile::Concise),
            (ProfileChoice::Guided, GuidanceProfile::Concise, GuidanceProfile::Guided),
            (ProfileChoice::Concise, GuidanceProfile::Guided, GuidanceProfile::Concise),
        ] {
            assert_eq!(choice.or(by_model), profile, "{choice:?}");
        }
    }
}
