//! Changes to a running chat: the agent, its model, prompt, mode and approval, and the configuration. Each change
//! assembles a new agent before it drops the old one, so a mistake leaves everything as it was.

use std::sync::Arc;

use super::chat_session::Chat;
use crate::agent::assembly::{self, RunOptions, Services, SetupError};
use crate::config::{self, Changed, Config, LoadOptions, SettingFlag, SettingFlags};
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
    pub(super) fn switch_agent(&mut self, name: &str) -> anyhow::Result<()> {
        let agent = Some(name.to_owned());
        let flags = self.config.flags().clone().with(SettingFlag::Mode, None).of_agent(agent.clone());
        let (model, prompt, effort) = (None, None, None);
        let options = RunOptions { agent, model, prompt, effort, ..self.options.clone() };
        let config = Arc::clone(&self.config);
        self.load_again(config.sets(), flags, options).map(drop)
    }

    /// Changes the mode for later requests, or which calls run without a question. The conversation goes on.
    pub(super) fn switch_flag(&mut self, flag: SettingFlag, value: &str) -> anyhow::Result<()> {
        let config = Arc::clone(&self.config);
        let flags = config.flags().clone().with(flag, Some(value.to_owned()));
        self.load_again(config.sets(), flags, self.options.clone()).map(drop)
    }

    /// Sets a value as `--set KEY=VALUE` does. Returns the changed values.
    ///
    /// # Errors
    /// The mistakes in the configuration, or the reason that no agent can be assembled with it; then nothing has
    /// changed.
    pub(super) fn set(&mut self, key: &str, value: &str) -> anyhow::Result<Vec<Changed>> {
        let mut sets = self.config.sets().to_vec();
        sets.push(format!("{key}={value}"));
        let before = self.load_again(&sets, self.config.flags().clone(), self.options.clone())?;
        let markdown = self.config.settings.ui.markdown;
        if markdown != before.settings.ui.markdown && markdown != self.rendering.is_markdown() {
            self.rendering.toggle();
        }
        Ok(self.config.changed_since(&before))
    }

    /// Reads the configuration again. Returns the one before it.
    fn load_again(
        &mut self,
        sets: &[String],
        flags: SettingFlags,
        options: RunOptions,
    ) -> anyhow::Result<Arc<Config>> {
        let again = self.config.again(&self.origin, sets, &tools::NAMES);
        let config = Arc::new(config::load_config(&LoadOptions { flags, ..again })?);
        let services = self.assembled(&config, &options)?;
        self.options = options;
        self.replace(services);
        Ok(std::mem::replace(&mut self.config, config))
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

    pub(super) fn assemble_again(&mut self, options: RunOptions) -> Result<(), SetupError> {
        let services = self.assembled(&self.config, &options)?;
        self.options = options;
        self.replace(services);
        Ok(())
    }

    fn assembled(&self, config: &Arc<Config>, options: &RunOptions) -> Result<Services, SetupError> {
        let servers = self.services.agent.tools.servers().cloned();
        let options = RunOptions { servers, ..options.clone() };
        assembly::assemble_services(config, &self.workspace, &options, Arc::clone(&self.approver))
    }

    /// Passes the background commands to another agent. Returns the one before it.
    fn replace(&mut self, services: Services) -> Services {
        self.run.emitter.warn(services.follow(&self.services));
        std::mem::replace(&mut self.services, services)
    }
}
