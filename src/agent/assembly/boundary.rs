//! Creates the sandbox of commands from the settings.

use std::path::Path;
use std::sync::Arc;

use crate::base::digest::hash_sha256;
use crate::config::{AgentConfig, Config, SandboxMode};
use crate::files::canonicalize;
use crate::files::workspace::Workspace;
use crate::safety::policy::{AutoFacts, ChosenApproval, choose_approval};
use crate::safety::sandbox::{self, Boundary, BoundaryForm, Network, Sandbox, Unavailable};

use super::RunOptions;
use super::wall_memory::WallMemory;

/// The directory below the state's with what was moved aside after commands.
pub(super) const KEPT: &str = "undone";

/// Entries of a config directory that may contain keys. Commands may read its prompts and skills.
const KEPT_IN_CONFIG: [&str; 5] = ["agent.yaml", "agent.yaml.j2", "models", "mcp", "tools"];

/// Extends the workspace with what a person may open: their home, except the places of credentials.
pub(super) fn workspace_of(
    config: &Config,
    plan: &Arc<Boundary>,
    workspace: &Workspace,
    sandbox: Option<&Arc<Sandbox>>,
) -> Workspace {
    let places = Arc::clone(plan);
    let workspace = workspace.clone().of_person(&config.dirs.home, move || sandbox::credential_places(&places));
    // Only the tools that run commands keep the sandbox and its files alive.
    let sandbox = sandbox.map(Arc::downgrade).unwrap_or_default();
    workspace
        .with_beside(&plan.write)
        .with_programs(config.env.list_program_dirs())
        .of_commands(Path::new(sandbox::TEMP), move || sandbox.upgrade()?.private_temp())
}

/// The approval mode that an agent's setting means. `sandbox` is that of its commands.
pub(super) fn choose_mode(
    config: &Config,
    agent: &AgentConfig,
    options: &RunOptions,
    sandbox: Option<&Sandbox>,
) -> ChosenApproval {
    choose_by(config, agent, options, || {
        let is_whole = sandbox.is_some_and(Sandbox::is_whole);
        if is_whole {
            WallMemory::open(&config.dirs.state).remember();
        }
        is_whole
    })
}

/// The mode that it will probably mean, for a person: known at once if the walls were whole before.
pub(super) fn foresee_mode(config: &Config, agent: &AgentConfig, options: &RunOptions) -> ChosenApproval {
    choose_by(config, agent, options, || {
        let were_whole = is_on(agent) && WallMemory::open(&config.dirs.state).were_whole();
        were_whole || options.walls.as_ref().is_some_and(|walls| walls.is_whole())
    })
}

fn choose_by(
    config: &Config,
    agent: &AgentConfig,
    options: &RunOptions,
    is_walled: impl FnOnce() -> bool,
) -> ChosenApproval {
    let facts = AutoFacts {
        is_chat: options.chat || options.is_undoable,
        is_undoable: options.is_undoable,
        waits_for_trust: config.waits_for_trust(),
    };
    choose_approval(agent.approval, facts, is_walled)
}

/// The reminder of a run under `edits`.
pub fn describe_freedom(agent: &AgentConfig) -> String {
    let here = "files here are changed without asking".to_owned();
    let changed = match agent.sandbox.write.join(", ") {
        dirs if dirs.is_empty() => here,
        dirs => format!("{here}, and in {dirs}, where what commands change is not undone"),
    };
    changed + "; what you or your editor run from here is not confined"
}

/// The warning for a workspace that contains a whole home directory.
pub(super) fn whole_home(workspace: &Workspace) -> Option<String> {
    workspace.holds_home().then(|| {
        "the workspace contains a whole home directory: changes to files that start with a dot always ask, and so does \
        reading places of credentials (start in the directory of a project instead)"
            .to_owned()
    })
}

/// The sandbox of a run: the one that its options bring along, if it is the same, else a new one.
pub(super) fn choose_sandbox(
    agent: &AgentConfig,
    options: &RunOptions,
    plan: &Arc<Boundary>,
) -> Option<Arc<Sandbox>> {
    let given = options.walls.clone().filter(|walls| walls.plan() == plan.as_ref() && is_on(agent));
    given.or_else(|| create_sandbox(agent, plan))
}

/// Creates the sandbox; `None` if it is off, or this system has none.
pub(super) fn create_sandbox(agent: &AgentConfig, plan: &Arc<Boundary>) -> Option<Arc<Sandbox>> {
    is_on(agent).then(|| Arc::new(Sandbox::new(Arc::clone(plan))))
}

/// Creates the sandbox of an agent that is assembled later, to be told what it may do; `None` if there is none, or no such
/// agent.
pub fn create_walls(config: &Config, workspace: &Workspace, options: &RunOptions) -> Option<Arc<Sandbox>> {
    let agent = config.agent(options.agent.as_deref()).ok()?;
    create_sandbox(agent, &Arc::new(plan_boundary(config, agent, workspace)))
}

/// True if the commands of an agent run in a sandbox.
pub(super) fn is_on(agent: &AgentConfig) -> bool {
    agent.sandbox.mode != SandboxMode::Off && sandbox::SUPPORTED
}

/// Creates a sandbox in which `dir` can be written too, for programs that the agent itself runs.
pub(super) fn sandbox_with(
    config: &Config,
    agent: &AgentConfig,
    workspace: &Workspace,
    dir: &Path,
    has_network: bool,
) -> Option<Sandbox> {
    let mut plan = plan_boundary(config, agent, workspace);
    if has_network {
        plan.network = Network::Open;
    }
    plan.write.push(dir.to_path_buf());
    is_on(agent).then(|| Sandbox::new(plan))
}

/// The limits that the settings of an agent put on its commands.
pub(super) fn plan_boundary(config: &Config, agent: &AgentConfig, workspace: &Workspace) -> Boundary {
    let settings = &agent.sandbox;
    let dirs = &config.dirs;
    let mut own = vec![dirs.data.clone(), dirs.state.clone(), config.session_dir()];
    let config_dirs = config.config_dirs.iter().chain([&dirs.config]);
    own.extend(config_dirs.flat_map(|dir| KEPT_IN_CONFIG.map(|name| dir.join(name))));
    let write = settings.write.iter().map(|dir| match dir.strip_prefix('~').map(|rest| rest.strip_prefix('/')) {
        Some(Some(rest)) => dirs.home.join(rest),
        Some(None) if dir == "~" => dirs.home.clone(),
        _ => workspace.root().join(dir),
    });
    let temp = config.env.get("TMPDIR").unwrap_or("/tmp");
    Boundary {
        write: write.map(|dir| canonicalize(&dir).unwrap_or(dir)).collect(),
        network: match settings.network.as_slice() {
            [] => Network::Closed,
            _ if settings.reaches_all() => Network::Open,
            hosts => Network::Hosts(hosts.to_vec()),
        },
        own,
        undone: dirs.state.join(KEPT),
        caches: dirs
            .state
            .join("caches")
            .join(&hash_sha256([workspace.root().as_os_str().as_encoded_bytes()])[..16]),
        programs: config.env.list_program_dirs(),
        ..Boundary::around(workspace.root(), &dirs.home, Path::new(temp))
    }
}

/// Returns the form in which commands are confined; `None` if the settings or the system do not confine them.
///
/// # Errors
/// The feature that this system lacks.
pub fn find_confinement(config: &Config, workspace: &Workspace) -> Option<Result<BoundaryForm, Unavailable>> {
    let agent = config.agents.get(&config.settings.default_agent)?;
    create_sandbox(agent, &Arc::new(plan_boundary(config, agent, workspace))).map(|sandbox| sandbox.form())
}

/// The confinement of commands: their walls, if any, and the variables that they get besides the harmless ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    pub(super) walls: Option<Arc<Boundary>>,
    pub(super) variables: Vec<String>,
}

/// The warning that commands run without a boundary, with the reason.
pub(super) fn warn_absence(agent: &AgentConfig) -> Option<String> {
    let why = match agent.sandbox.mode {
        SandboxMode::Off => "the sandbox is off",
        SandboxMode::On if sandbox::SUPPORTED => return None,
        SandboxMode::On => "this system has no supported sandbox",
    };
    Some(format!("{why}: commands run with your own permissions"))
}
