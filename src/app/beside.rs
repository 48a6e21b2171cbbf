//! What the roles and the prompts of flows are made from: the configuration, the prompts, and the model that serves those
//! without one of their own.

use std::sync::Arc;

use crate::config::{AgentConfig, Config};
use crate::contract::ChatModel;
use crate::llm::Surroundings;
use crate::prompt::Registry;

use super::Options;

/// What whoever is asked beside the conversation is made from.
pub(super) struct Common<'a> {
    pub config: &'a Config,
    pub settings: &'a AgentConfig,
    pub options: &'a Options,
    pub registry: &'a Registry,
    /// The model of the agent, which serves roles without one of their own.
    pub model: &'a Arc<dyn ChatModel>,
    pub around: &'a Surroundings,
}
