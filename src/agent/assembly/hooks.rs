//! The hooks of an agent, with what they run in.

use std::sync::Arc;

use crate::agent::{HookGround, Hooks};
use crate::base::secrets::Redactor;
use crate::config::{AgentConfig, Config};
use crate::files::workspace::Workspace;
use crate::safety::sandbox::Sandbox;

/// The hooks of the configuration, inside the walls of the agent's commands.
pub(super) fn assemble_hooks(
    config: &Config,
    agent: &AgentConfig,
    workspace: &Workspace,
    sandbox: Option<&Arc<Sandbox>>,
    redactor: &Arc<Redactor>,
) -> Hooks {
    Hooks::new(config.hooks.values(), || HookGround {
        env: super::choose_environment(config, agent, workspace),
        sandbox: sandbox.cloned(),
        workspace: workspace.root().to_path_buf(),
        redactor: Arc::clone(redactor),
    })
}
