//! From configuration to services: the only reader of a whole configuration.

mod check;
mod error;
mod boundary;
mod catalogue;
mod ending;
mod facts;
mod git;
mod ground;
mod hooks;
mod layers;
mod needs;
mod orchestration;
mod flow_choice;
mod flows;
mod models;
mod model_check;
mod map;
mod options;
mod outlook;
mod paced;
mod retention;
mod review;
mod servers;
mod skills;
mod sessions;
mod task;
mod toolbox;
mod trial;
mod wall_memory;
pub mod prompt_test;

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Zoned;

use crate::agent::window::Budget;
use crate::agent::{Agent, Briefing, Toolbox};
use crate::config::{AgentConfig, ApprovalMode, Config, Limits, PromptRef, PromptSource};
use crate::files::workspace::Workspace;
use crate::files::{disk, ignored};
use crate::model::ChatModel;
use crate::model::catalogue::ModelCatalogue;
use crate::model::{self, RefusalMemory, Surroundings, WireLog};
use crate::prompt::{AnswerWays, Registry, Released};
use crate::safety::Approver;
use crate::safety::net::Net;
use crate::safety::policy::{self, PolicyRules};
use crate::skills::SkillCatalogue;
use crate::tools::{self, Environment, Jobs, Kit};

pub use boundary::{Bounds, create_walls, describe_freedom, find_confinement};
pub use catalogue::{ListedModel, ModelListing, list_models, list_served};
pub use check::check_names;
pub use error::{SetupError, SetupErrorKind};
pub use flow_choice::FlowChoice;
pub use git::clone_repository;
use ground::{AgentInputs, SharedServices};
pub use map::{MapOutcome, MapRunner, MapTask, SinkOpener, TaskIsolation};
pub use model_check::{ModelCheck, ModelCheckResult, Reached, format_yaml as model_file};
use models::chosen_model;
pub use models::find_choosing_key;
pub use options::RunOptions;
pub use outlook::{NetworkOf, Outlook, read_outlook, without_model};
pub use retention::{DeleteError, apply_retention, delete_session, is_old, list_old_kept};
pub use review::{ReviewedDiff, read_diff};
pub use servers::gather_servers_alone;
pub use sessions::{
    ForkPoint, OpenedConversation, SessionChoice, edit_session, fork_session, new_run_id, open_conversation,
    open_store, read_conversation,
};
pub use trial::{
    RunPlace, TrialWish, choose_place, enter_session, find_outside, remove_trial, require_history, take_changes,
};

/// The most warnings about the prompts of a project.
const MOST_TOLD: usize = 20;

/// An assembled agent, and the parts that a front end shows.
pub struct Services {
    pub agent: Agent,
    pub catalogue: Arc<SkillCatalogue>,
    /// Warnings to show once, when the run starts.
    pub warnings: Vec<String>,
    /// The confinement of its commands.
    pub bounds: Bounds,
}

impl Services {
    /// Takes over the background commands of `earlier`, if both confine commands in the same way and this one can read
    /// and stop them. Otherwise they are stopped; returns a line that names them and the reason.
    pub fn follow(&self, earlier: &Self) -> Option<String> {
        let why = if self.bounds != earlier.bounds {
            "`sandbox` has other settings now"
        } else if self.agent.tools.get(tools::BACKGROUND).is_none() {
            "the agent has no tool `background`"
        } else {
            self.agent.jobs.take_over(&earlier.agent.jobs);
            return None;
        };
        earlier.agent.end_background().map(|ended| format!("{ended}: {why}"))
    }
}

/// Removes what killed processes left behind of writes, and notes the writes of this one.
pub fn note_writes(config: &Config) {
    disk::begin_journal(&config.dirs.state.join("writes"));
}

/// Assembles an agent.
///
/// # Errors
/// A name does not exist, a file is wrong, or the configuration is not enough to reach a model.
pub fn assemble_services(
    config: &Arc<Config>,
    workspace: &Workspace,
    options: &RunOptions,
    approver: Arc<dyn Approver>,
) -> Result<Services, SetupError> {
    note_writes(config);
    let ground = AgentInputs::new(config, workspace, options, approver);
    task::recover_worktrees(&ground);
    let mut services = assemble_on(ground)?;
    let info = services.agent.model.info();
    if info.ends.is_some() {
        let told = ending::warn_of_end(info, &config.dirs.state, Zoned::now().date());
        services.warnings.extend(told);
    }
    match layers::find_layer_mistakes(config, &services.agent).as_slice() {
        [] => Ok(services),
        mistakes => Err(SetupError::mistakes(mistakes)),
    }
}

/// Assembles an agent without checking how much of a request its parts fill.
fn assemble_on(ground: AgentInputs) -> Result<Services, SetupError> {
    let (config, options, approver) = (&ground.config, &ground.options, &ground.approver);
    let settings = ground.settings()?;
    let shared = ground.shared.as_ref();
    let plan = Arc::new(boundary::plan_boundary(config, settings, &ground.workspace));
    let given = shared.and_then(|shared| shared.sandbox.clone());
    let sandbox = given.or_else(|| boundary::choose_sandbox(settings, options, &plan));
    let workspace = &boundary::workspace_of(config, &plan, &ground.workspace, sandbox.as_ref());
    let approval = boundary::choose_mode(config, settings, options, sandbox.as_deref());
    let redactor = Arc::new(config.redactor());
    let services = match shared {
        Some(shared) => Arc::clone(&shared.around),
        None => Arc::new(ground.gather_surroundings()?),
    };
    let model = connect_model(config, settings, options, &services)?;
    let limits = choose_limits(settings, model.as_ref())?;
    let registry = Registry::new(&config.prompt_dirs);
    let Prompts { system, own, termination, compression } = find_prompts(config, settings, options, &registry)?;

    let variables = facts::gather_surroundings(config, workspace, &options.vars);
    let servers = match shared {
        Some(shared) => shared.servers.clone(),
        None => servers::gather_servers(config, settings, workspace, &services.net, options.servers.as_ref()),
    };
    let serving = servers.as_ref().filter(|_| model.info().calls_tools);
    let skills = skills::open_skills(config, settings, variables.clone(), serving);
    let catalogue = skills.map(Arc::new).map_err(|why| {
        SetupError::configuration(config.mistake(&format!("agents.{}.skills", settings.name), &why))
    })?;
    let jobs = Arc::new(Jobs::new(Arc::clone(&redactor)));
    let boundary = sandbox.clone();
    let hooks = hooks::assemble_hooks(config, settings, workspace, sandbox.as_ref(), &redactor);
    let mut toolbox = if model.info().calls_tools {
        let kit = Kit {
            child_env: choose_environment(config, settings, workspace),
            jobs: Arc::clone(&jobs),
            sandbox: sandbox.clone(),
            net: Arc::clone(&services.net),
            vision: model.info().sees,
            fetch_allow: config.settings.fetch.allow.clone(),
            person: Some(approver).filter(|approver| approver.present()).cloned(),
        };
        let for_helpers = SharedServices { around: Arc::clone(&services), sandbox, servers: servers.clone() };
        let for_helpers = || AgentInputs { shared: Some(for_helpers), ..ground.clone() };
        let servers = servers.as_ref();
        toolbox::assemble_toolbox(config, settings, &catalogue, kit, servers, shared.is_some(), for_helpers)?
    } else {
        Toolbox::default()
    };
    toolbox.guide(settings.profile.or(model.info().profile));
    let rules = gather_rules(settings, &toolbox)?;
    hide_denied(&mut toolbox, options, approval.mode, &rules, approver.as_ref());
    let budget = Budget::new(model.info(), &settings.context).map_err(SetupError::configuration)?;
    let (mut facts, notes) =
        facts::gather_facts(config, settings, workspace, &toolbox, &catalogue, model.info(), &variables);
    (facts.agent.approval, facts.agent.has_walls) = (approval.mode.name(), boundary.is_some());
    facts.session.output = options.output;
    facts.session.person = match (approver.present(), options.chat) {
        (true, true) => AnswerWays::Chat,
        (true, false) => AnswerWays::Present,
        (false, _) => AnswerWays::Absent,
    };
    let warnings = gather_warnings(&ground, settings, &registry, workspace, &catalogue, notes, &services);
    let needs =
        needs::RoleNeeds { config, settings, options, registry: &registry, model: &model, around: &services };
    let orchestration = orchestration::assemble_roles(&needs, settings.mode, &toolbox)?;
    let agent = Agent {
        titler: needs.titler()?,
        name: settings.name.clone(),
        model,
        tools: toolbox,
        briefing: Briefing {
            system,
            own,
            termination,
            compression,
            facts,
            catalogue: Arc::clone(&catalogue),
            disclosure: settings.skill_disclosure,
        },
        limits,
        budget,
        context: settings.context.clone(),
        tool_output: settings.tool_output,
        approval: approval.mode,
        needs_undo: approval.needs_undo,
        mode: settings.mode,
        orchestration,
        unfinished: Arc::clone(&ground.unfinished),
        rules,
        hooks,
        workspace: workspace.clone(),
        sandbox: boundary,
        readable: catalogue.directories(),
        approver: Arc::clone(approver),
        jobs,
        redactor,
        tape: services.tape.clone(),
        schema: options.compile_schema()?,
    };
    let walls = boundary::is_on(settings).then_some(plan);
    Ok(Services { agent, catalogue, warnings, bounds: Bounds { walls, variables: settings.sandbox.env.clone() } })
}

/// The rules of the agent and of its servers.
fn gather_rules(settings: &AgentConfig, toolbox: &Toolbox) -> Result<PolicyRules, SetupError> {
    let mut rules = settings.permissions.rules.clone();
    rules.extend(toolbox.servers().map(servers::list_rules).unwrap_or_default());
    PolicyRules::new(&rules).map_err(SetupError::configuration)
}

/// Leaves out the tools whose every call would be denied. In a chat the mode can change, and the tools stay the same.
fn hide_denied(
    toolbox: &mut Toolbox,
    options: &RunOptions,
    approval: ApprovalMode,
    rules: &PolicyRules,
    approver: &dyn Approver,
) {
    if !options.chat {
        let is_answered = approver.present();
        toolbox.hide(|tool| policy::is_always_denied(approval, rules, &tool.name, &tool.effects, is_answered));
    }
}

fn gather_warnings(
    ground: &AgentInputs,
    settings: &AgentConfig,
    registry: &Registry,
    workspace: &Workspace,
    catalogue: &SkillCatalogue,
    notes: Vec<String>,
    services: &Surroundings,
) -> Vec<String> {
    let config = &ground.config;
    config
        .warnings
        .iter()
        .cloned()
        .chain(registry.warnings().into_iter().take(MOST_TOLD))
        .chain(ignored::find_oddities(workspace.dirs_up_to_git_root()))
        .chain(catalogue.warnings())
        .chain(notes)
        .chain(services.catalogue.notice().map(str::to_owned))
        .chain(boundary::warn_absence(settings))
        .chain(boundary::whole_home(workspace))
        .collect()
}

/// The prompts of an agent.
struct Prompts {
    system: Released,
    own: Option<Released>,
    termination: Released,
    compression: Released,
}

/// Finds the prompts. If the chosen prompt is not a system prompt, the agent's own system prompt is read too.
fn find_prompts(
    config: &Config,
    settings: &AgentConfig,
    options: &RunOptions,
    registry: &Registry,
) -> Result<Prompts, SetupError> {
    let prompt = |key: &str, source: &PromptSource| {
        let key_of_agent = format!("agents.{}.{key}", settings.name);
        let origin = format!("{}: {key}", config.place(&key_of_agent));
        registry.resolve(source, &origin, config.is_of_project(&key_of_agent)).map_err(SetupError::configuration)
    };
    let own = || prompt("system_prompt", &settings.system_prompt);
    let (system, own) = match &options.prompt {
        None => (own()?, None),
        Some(reference) => {
            let chosen = PromptSource::Registered(PromptRef { reference: reference.clone() });
            let chosen = prompt("system_prompt", &chosen)?;
            let is_system = chosen.all().all(|prompt| prompt.has_system());
            let own = if is_system { None } else { Some(own()?) };
            (chosen, own)
        }
    };
    let termination = prompt("termination_summary_prompt", &settings.termination_summary_prompt)?;
    let compression = prompt("compression_prompt", &settings.compression_prompt)?;
    Ok(Prompts { system, own, termination, compression })
}

fn choose_environment(config: &Config, agent: &AgentConfig, workspace: &Workspace) -> Environment {
    let (env, named, workspace) = (config.env.clone(), agent.sandbox.env.clone(), workspace.clone());
    Environment::lazily(move || env.for_commands(&named, &workspace))
}

fn connect_model(
    config: &Config,
    agent: &AgentConfig,
    options: &RunOptions,
    around: &Surroundings,
) -> Result<Arc<dyn ChatModel>, SetupError> {
    let chosen = chosen_model(config, agent, options)?;
    model::connect_model(&chosen, around).map_err(SetupError::configuration)
}

/// The parts that all models of a run share.
fn gather_model_surroundings(config: &Config, options: &RunOptions) -> Result<Surroundings, SetupError> {
    let opened = options.log_wire.as_ref().map(|path| {
        let wrong = |error| SetupError::usage(format!("--log-wire {}: {error}", path.display()));
        WireLog::open(path, config.redactor()).map(Arc::new).map_err(wrong)
    });
    Ok(Surroundings {
        tape: options.tape.clone(),
        workspace: PathBuf::new(),
        net: Arc::new(open_net(config)),
        user_id: config.env.user().to_owned(),
        late_secrets: config.late_secrets.clone(),
        wire_log: opened.transpose()?,
        catalogue: Arc::new(ModelCatalogue::of_user(&config.dirs.data)),
        env: config.env.clone(),
        memory: Arc::new(RefusalMemory::open(&config.dirs.state)),
    })
}

/// The network access of this configuration: its proxies, certificates and timeouts.
pub fn open_net(config: &Config) -> Net {
    Net::new(|name| config.env.get(name))
}

fn choose_limits(agent: &AgentConfig, model: &dyn ChatModel) -> Result<Limits, SetupError> {
    let mut limits = agent.limits.clone();
    limits.max_requests = limits.most_requests();
    let info = model.info();
    if limits.max_cost.is_some() && info.prices.is_none() && !info.scripted {
        let (id, name) = (&info.id, &info.name);
        // A model without a file is named by its provider and id.
        let place = if name.contains('/') {
            "a file models/NAME.yaml of it".to_owned()
        } else {
            format!("models/{name}.yaml")
        };
        return Err(SetupError::configuration(format!(
            "a cost limit is set, but no prices are known for the model `{id}`: add `prices` to {place}, or leave \
             out --max-cost and limits.max_cost"
        )));
    }
    Ok(limits)
}
