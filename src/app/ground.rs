//! What an agent is put together from. A helper stands on the ground of the agent that calls it.

use std::sync::Arc;

use crate::config::{AgentConfig, Config};
use crate::contract::Approver;
use crate::llm::Surroundings;
use crate::sandbox::Sandbox;
use crate::workspace::Workspace;

use super::{Options, SetupError};

/// What an agent is put together from.
#[derive(Clone)]
pub(super) struct Ground {
    pub config: Arc<Config>,
    /// The settings of a helper, narrowed; else those of the configuration count.
    pub narrowed: Option<Arc<AgentConfig>>,
    pub workspace: Workspace,
    pub options: Options,
    pub approver: Arc<dyn Approver>,
    /// Parts of the agent that calls a helper.
    pub shared: Option<Shared>,
}

/// Parts that a helper shares with the agent that calls it.
#[derive(Clone)]
pub(super) struct Shared {
    pub around: Arc<Surroundings>,
    /// `None` where the helper needs one of its own, or there is none.
    pub sandbox: Option<Arc<Sandbox>>,
}

impl Ground {
    /// The ground of an agent that a person runs.
    pub(super) fn new(
        config: &Arc<Config>,
        workspace: &Workspace,
        options: &Options,
        approver: Arc<dyn Approver>,
    ) -> Self {
        let (config, workspace, options) = (Arc::clone(config), workspace.clone(), options.clone());
        Self { config, narrowed: None, workspace, options, approver, shared: None }
    }

    /// The same with the parts that helpers share.
    pub(super) fn with(&self, shared: Shared) -> Self {
        Self { shared: Some(shared), ..self.clone() }
    }

    /// The settings of the agent.
    pub(super) fn settings(&self) -> Result<&AgentConfig, SetupError> {
        match &self.narrowed {
            Some(narrowed) => Ok(narrowed),
            None => self.config.agent(self.options.agent.as_deref()).map_err(SetupError::usage),
        }
    }
}
