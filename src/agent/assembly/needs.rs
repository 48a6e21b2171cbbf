//! The input for assembling the roles and the flows of an agent.

use std::sync::Arc;

use crate::agent::{Role, Titler};
use crate::config::{AgentConfig, Config, PromptRef, PromptSource, RoleConfig};
use crate::model::{ChatModel, Surroundings};
use crate::prompt::{Registry, Released};

use super::{RunOptions, SetupError, connect_model};

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
        let key = format!("agents.{}.roles.{name}.prompt", self.settings.name);
        let prompt = self.resolve_prompt(&key, &format!("roles.{name}.prompt"), &role.prompt_of(name))?;
        let model = self.connect(role.model.as_ref(), role.effort.as_ref())?;
        Ok(Role::new(name, model, prompt, role.reasoning))
    }

    /// What gives conversations their titles.
    pub(super) fn titler(&self) -> Result<Option<Titler>, SetupError> {
        let Some(name) = &self.config.settings.ui.title_model else { return Ok(None) };
        let model = self.connect(Some(name), None).map_err(|error| SetupError {
            message: format!("{}: ui.title_model: {}", self.config.place("ui.title_model"), error.message),
            ..error
        })?;
        let from = PromptSource::Registered(PromptRef { reference: "title@production".to_owned() });
        Ok(Some(Titler { model, prompt: self.resolve_prompt("ui.title_model", "title_model", &from)? }))
    }

    /// The prompt that the configuration names at `key`.
    pub(super) fn resolve_prompt(
        &self,
        key: &str,
        what: &str,
        from: &PromptSource,
    ) -> Result<Released, SetupError> {
        let origin = format!("{}: {what}", self.config.place(key));
        let is_of_project = self.config.is_of_project(key);
        self.registry.resolve(from, &origin, is_of_project).map_err(SetupError::configuration)
    }

    /// The named model, with the effort that is named; the agent's own without either.
    pub(super) fn connect(
        &self,
        name: Option<&String>,
        effort: Option<&String>,
    ) -> Result<Arc<dyn ChatModel>, SetupError> {
        if name.is_none() && effort.is_none() {
            return Ok(Arc::clone(self.model));
        }
        let options = RunOptions {
            model: name.or(self.options.model.as_ref()).cloned(),
            effort: effort.cloned(),
            ..self.options.clone()
        };
        connect_model(self.config, self.settings, &options, self.around)
    }
}
