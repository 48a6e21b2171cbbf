//! The input for assembling an agent. A helper is assembled from the ground of the agent that calls it.

use std::sync::Arc;

use crate::agent::UnfinishedWork;
use crate::config::{AgentConfig, Config};
use crate::files::workspace::Workspace;
use crate::model::Surroundings;
use crate::safety::Approver;
use crate::safety::sandbox::Sandbox;
use crate::tools::McpServers;

use super::{RunOptions, SetupError, gather_model_surroundings};

/// The input for assembling an agent.
#[derive(Clone)]
pub(super) struct AgentInputs {
    pub config: Arc<Config>,
    /// The narrowed settings of a helper; `None` to use those of the configuration.
    pub narrowed: Option<Arc<AgentConfig>>,
    pub workspace: Workspace,
    pub options: RunOptions,
    pub approver: Arc<dyn Approver>,
    /// Parts of the agent that calls a helper.
    pub shared: Option<SharedServices>,
    /// One for an agent with all its helpers.
    pub unfinished: Arc<UnfinishedWork>,
}

/// Parts that a helper shares with the agent that calls it.
#[derive(Clone)]
pub(super) struct SharedServices {
    pub around: Arc<Surroundings>,
    /// `None` if the helper needs a separate sandbox, or there is none.
    pub sandbox: Option<Arc<Sandbox>>,
    pub servers: Option<Arc<McpServers>>,
}

impl AgentInputs {
    /// Creates the ground of an agent that a person runs.
    pub(super) fn new(
        config: &Arc<Config>,
        workspace: &Workspace,
        options: &RunOptions,
        approver: Arc<dyn Approver>,
    ) -> Self {
        let (config, workspace, options) = (Arc::clone(config), workspace.clone(), options.clone());
        Self { config, narrowed: None, workspace, options, approver, shared: None, unfinished: Arc::default() }
    }

    /// The parts that all models of the run share.
    pub(super) fn gather_surroundings(&self) -> Result<Surroundings, SetupError> {
        let workspace = self.workspace.root().to_path_buf();
        Ok(Surroundings { workspace, ..gather_model_surroundings(&self.config, &self.options)? })
    }

    /// The settings of the agent.
    pub(super) fn settings(&self) -> Result<&AgentConfig, SetupError> {
        match &self.narrowed {
            Some(narrowed) => Ok(narrowed),
            None => self.config.agent(self.options.agent.as_deref()).map_err(SetupError::usage),
        }
    }
}
