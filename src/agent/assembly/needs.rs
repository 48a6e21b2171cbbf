//! The input for assembling the roles and the flows of an agent.

use std::sync::Arc;

use crate::agent::Role;
use crate::config::{AgentConfig, Config, RoleConfig};
use crate::model::ChatModel;
use crate::model::{self, Surroundings};
use crate::prompt::Registry;

use super::models::chosen_model;
use super::{RunOptions, SetupError};

/// The input that roles and flows share.
pub(super) struct RoleNeeds<'a> {
    pub config: &'a Config,
    pub settings: &'a AgentConfig,
    pub options: &'a RunOptions,
    pub registry: &'a Registry,
    /// The model of the agent, used by roles that name none.
    pub model: &'a Arc<dyn ChatModel>,
    pub around: &'a Surroundings,
}

impl RoleNeeds<'_> {
    pub(super) fn role(&self, name: &'static str, role: &RoleConfig) -> Result<Role, SetupError> {
        let Self { config, settings, options, registry, model, around } = self;
        let key = format!("agents.{}.roles.{name}.prompt", settings.name);
        let origin = format!("{}: roles.{name}.prompt", config.place(&key));
        let source = role.prompt_of(name);
        let prompt =
            registry.resolve(&source, &origin, config.is_of_project(&key)).map_err(SetupError::configuration)?;
        let model = if role.model.is_none() && role.effort.is_none() {
            Arc::clone(model)
        } else {
            let own = RunOptions {
                model: role.model.clone().or_else(|| options.model.clone()),
                effort: role.effort.clone(),
                ..(*options).clone()
            };
            let chosen = chosen_model(config, settings, &own)?;
            model::connect_model(&chosen, around).map_err(SetupError::configuration)?
        };
        Ok(Role::new(name, model, prompt, role.reasoning))
    }
}
