//! Changes to a running chat: the agent, its model, prompt, mode and approval, and the configuration. Each change
//! assembles a new agent before it drops the old one, so a mistake leaves everything as it was.

use std::sync::Arc;

use super::chat_session::Chat;
use crate::agent::assembly::{self, RunOptions, Services, SetupError};
use crate::config::{self, ApprovalMode, Changed, Config, LoadOptions, Mode, SettingFlag, SettingFlags};
use crate::model::effort::Effort;
use crate::tools;

impl Chat {
    /// Changes the model, its reasoning effort, or both. The conversation goes on.
    pub(super) fn switch_model(&mut self, name: Option<&str>, effort: Option<Effort>) -> Result<(), SetupError> {
        let mut options = self.options.clone();
        if let Some(name) = name {
            (options.model, options.effort) = (Some(name.to_owned()), None);
        }
        options.effort = effort.map(|level| level.word().to_owned()).or(options.effort);
        self.assemble_again(options)
    }

    /// Changes to another agent with its own model, prompt and mode. The conversation goes on; the limits and the
    /// approval that the person chose stay.
    pub(super) fn switch_agent(&mut self, name: &str) -> Result<(), String> {
        let agent = Some(name.to_owned());
        let flags = self.config.flags().clone().with(SettingFlag::Mode, None).of_agent(agent.clone());
        let (model, prompt, effort) = (None, None, None);
        self.load_again(flags, RunOptions { agent, model, prompt, effort, ..self.options.clone() })
    }

    /// Changes the system prompt to `NAME[@VERSION]`. The conversation goes on.
    pub(super) fn switch_prompt(&mut self, reference: &str) -> Result<(), SetupError> {
        self.assemble_again(RunOptions { prompt: Some(reference.to_owned()), ..self.options.clone() })
    }

    /// Changes the mode for later requests. The conversation goes on.
    pub(super) fn switch_mode(&mut self, mode: Mode) -> Result<(), String> {
        self.switch_flag(SettingFlag::Mode, mode.name())
    }

    /// Changes which calls run without a question, as `--approve` does.
    pub(super) fn switch_approval(&mut self, mode: ApprovalMode) -> Result<(), String> {
        self.switch_flag(SettingFlag::Approve, mode.name())
    }

    fn switch_flag(&mut self, flag: SettingFlag, value: &str) -> Result<(), String> {
        let flags = self.config.flags().clone().with(flag, Some(value.to_owned()));
        self.load_again(flags, self.options.clone())
    }

    /// Reads the configuration again with other flags.
    fn load_again(&mut self, flags: SettingFlags, options: RunOptions) -> Result<(), String> {
        let again = self.config.again(&self.workspace, self.config.sets(), &tools::NAMES);
        let config = config::load_config(&LoadOptions { flags, ..again }).map_err(|error| error.to_string())?;
        let config = Arc::new(config);
        let services = self.assembled(&config, &options).map_err(|error| error.to_string())?;
        (self.config, self.options) = (config, options);
        self.replace(services);
        Ok(())
    }

    /// Sets a value as `--set KEY=VALUE` does. Returns the changed values.
    ///
    /// # Errors
    /// The mistakes in the configuration, or the reason that no agent can be assembled with it; then nothing has
    /// changed.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<Vec<Changed>, String> {
        let mut sets = self.config.sets().to_vec();
        sets.push(format!("{key}={value}"));
        let config = config::load_config(&self.config.again(&self.workspace, &sets, &tools::NAMES));
        let config = Arc::new(config.map_err(|error| error.to_string())?);
        let services = self.assembled(&config, &self.options).map_err(|error| error.to_string())?;
        let changed = config.changed_since(&self.config);
        if config.settings.ui.markdown != self.config.settings.ui.markdown
            && config.settings.ui.markdown != self.rendering.is_markdown()
        {
            self.rendering.toggle();
        }
        self.config = config;
        self.replace(services);
        Ok(changed)
    }

    /// Uses another model for the next turn only.
    pub(super) fn lend_model(&mut self, name: &str) -> Result<(), SetupError> {
        let options = RunOptions { model: Some(name.to_owned()), effort: None, ..self.options.clone() };
        let lent = self.assembled(&self.config, &options)?;
        self.own_services = Some(self.replace(lent));
        Ok(())
    }

    /// Returns to the agent of the chat after a turn with another model.
    pub(super) fn take_back(&mut self) {
        if let Some(own) = self.own_services.take() {
            self.replace(own);
        }
    }

    fn assemble_again(&mut self, options: RunOptions) -> Result<(), SetupError> {
        let services = self.assembled(&self.config, &options)?;
        self.options = options;
        self.replace(services);
        Ok(())
    }

    fn assembled(&self, config: &Arc<Config>, options: &RunOptions) -> Result<Services, SetupError> {
        assembly::assemble_services(config, &self.workspace, options, Arc::clone(&self.approver))
    }

    /// Passes the background commands to another agent. Returns the one before it.
    fn replace(&mut self, services: Services) -> Services {
        self.run.emitter.warn(services.follow(&self.services));
        std::mem::replace(&mut self.services, services)
    }
}
