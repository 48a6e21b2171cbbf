//! From configuration to services: the only reader of a whole configuration.

mod check;
mod error;
mod boundary;
mod catalogue;
mod facts;
mod ground;
mod layers;
mod needs;
mod orchestration;
mod flows;
mod models;
mod model_check;
mod outlook;
mod sessions;
mod task;
mod toolbox;
pub mod prompt_test;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::window::Budget;
use crate::agent::{Agent, AnswerSchema, Briefing, Toolbox};
use crate::config::{AgentConfig, Config, Limits, PromptRef, PromptSource, SelectBy, ToolsSettings};
use crate::files::ignored;
use crate::files::workspace::Workspace;
use crate::model::ChatModel;
use crate::model::catalogue::{Catalogue as ModelCatalogue, providers};
use crate::model::{self, Surroundings, WireLog};
use crate::prompt::{Person, Reader, Registry, Released};
use crate::safety::Approver;
use crate::safety::net::Net;
use crate::safety::policy::Rules;
use crate::skills::{Catalogue, Variables};
use crate::tools::{self, Choice, Environment, Jobs, Judge, Kit};

pub use boundary::{Bounds, confinement};
pub use catalogue::{Listed, Listing, listing};
pub use check::{check, contradictions};
pub use error::{SetupError, SetupErrorKind};
pub use flows::FlowChoice;
use ground::{Ground, Shared};
pub use model_check::{Checked, ModelCheck, Reached, yaml as model_file};
use models::chosen_model;
pub use outlook::{NetworkOf, Outlook, outlook, without_model};
pub use sessions::{SessionChoice, new_run_id, open_conversation, read_conversation, store};

/// The most warnings about the prompts of a project.
const MOST_TOLD: usize = 20;

/// Choices of the user about one run. Flags that name a setting are a layer of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub agent: Option<String>,
    pub model: Option<String>,
    /// The system prompt, `NAME[@VERSION]`.
    pub prompt: Option<String>,
    /// The values that prompts read as `vars.NAME`.
    pub vars: Vec<(String, Value)>,
    /// The flow that carries out every input.
    pub flow: Option<FlowChoice>,
    pub schema: Option<Value>,
    /// The reasoning effort of the model, in place of the one in its file.
    pub effort: Option<String>,
    /// The file that logs requests and answers.
    pub log_wire: Option<PathBuf>,
    /// True if the person can reply to an answer.
    pub chat: bool,
    /// The reader of the answer.
    pub output: Reader,
}

/// An assembled agent, and the parts that a front end shows.
pub struct Services {
    pub agent: Agent,
    pub catalogue: Arc<Catalogue>,
    /// Warnings to show once, when the run starts.
    pub warnings: Vec<String>,
    /// The confinement of its commands.
    pub bounds: Bounds,
}

impl Services {
    /// Takes over the background commands of `earlier`, if both confine commands in the same way and this one can read
    /// and stop them. Otherwise they are stopped; returns a line that names them and the reason.
    #[must_use]
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

/// Assembles an agent.
///
/// # Errors
/// A name does not exist, a file is wrong, or the configuration is not enough to reach a model.
pub fn assemble(
    config: &Arc<Config>,
    workspace: &Workspace,
    options: &Options,
    approver: Arc<dyn Approver>,
) -> Result<Services, SetupError> {
    let services = assemble_on(Ground::new(config, workspace, options, approver))?;
    match layers::mistakes(config, &services.agent).as_slice() {
        [] => Ok(services),
        mistakes => Err(SetupError::mistakes(mistakes)),
    }
}

/// Assembles an agent without checking how much of a request its parts fill.
fn assemble_on(ground: Ground) -> Result<Services, SetupError> {
    let (config, options, approver) = (&ground.config, &ground.options, &ground.approver);
    let settings = ground.settings()?;
    let shared = ground.shared.as_ref();
    let plan = Arc::new(boundary::plan(config, settings, &ground.workspace));
    let sandbox = shared.and_then(|shared| shared.sandbox.clone());
    let sandbox = sandbox.or_else(|| boundary::sandbox(settings, &plan));
    let workspace = &boundary::workspace_of(config, &plan, &ground.workspace, sandbox.as_ref());
    let redactor = Arc::new(config.redactor());
    let services = match shared {
        Some(shared) => Arc::clone(&shared.around),
        None => Arc::new(surroundings(config, options, Arc::new(net(config)))?),
    };
    let net = &services.net;
    let model = model(config, settings, options, &services)?;
    let limits = limits(settings, model.as_ref())?;
    let registry = Registry::new(&config.prompt_dirs);
    let Prompts { system, own, termination, compression } = prompts(config, settings, options, &registry)?;

    let variables = facts::surroundings(config, workspace, &options.vars);
    let catalogue = skills(config, settings, variables.clone()).map_err(|why| {
        SetupError::configuration(config.mistake(&format!("agents.{}.skills", settings.name), &why))
    })?;
    let catalogue = Arc::new(catalogue);
    let jobs = Arc::new(Jobs::new(Arc::clone(&redactor)));
    let mut toolbox = if model.info().calls_tools {
        let kit = Kit {
            child_env: environment(config, settings, workspace),
            jobs: Arc::clone(&jobs),
            sandbox: sandbox.clone(),
            net: Arc::clone(net),
            vision: model.info().sees,
            fetch_allow: config.settings.fetch.allow.clone(),
            person: Some(approver).filter(|approver| approver.present()).cloned(),
        };
        let for_helpers = || ground.with(Shared { around: Arc::clone(&services), sandbox });
        toolbox::assemble((config, settings), &catalogue, kit, for_helpers)?
    } else {
        Toolbox::default()
    };
    toolbox.guide(settings.profile.or(model.info().profile));
    let unfound = judge(config, settings, options, &model, &services).map(|judge| toolbox.find_by(judge)).err();
    let budget = Budget::new(model.info(), &settings.context).map_err(SetupError::configuration)?;
    let schema = options
        .schema
        .clone()
        .map(AnswerSchema::new)
        .transpose()
        .map_err(|why| SetupError::usage(format!("--schema is not a valid JSON Schema: {why}")))?;
    let (mut facts, notes) =
        facts::gather(config, settings, workspace, &toolbox, &catalogue, model.info(), &variables);
    facts.session.output = options.output;
    facts.session.person = match (approver.present(), options.chat) {
        (true, true) => Person::Chat,
        (true, false) => Person::Present,
        (false, _) => Person::Absent,
    };
    let warnings = config
        .warnings
        .iter()
        .cloned()
        .chain(registry.warnings().into_iter().take(MOST_TOLD))
        .chain(ignored::oddities(workspace.dirs_up_to_git_root()))
        .chain(catalogue.warnings())
        .chain(notes)
        .chain(services.catalogue.notice().map(str::to_owned))
        .chain(boundary::absence(settings))
        .chain(boundary::whole_home(workspace))
        .chain(unfound.filter(|_| toolbox.in_two_stages()))
        .collect();
    let needs = needs::Needs { config, settings, options, registry: &registry, model: &model, around: &services };
    let orchestration = orchestration::assemble(&needs, settings.mode, &toolbox)?;
    let agent = Agent {
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
        approval: settings.approval,
        mode: settings.mode,
        orchestration,
        rules: Rules::new(&settings.permissions.rules).map_err(SetupError::configuration)?,
        workspace: workspace.clone(),
        readable: catalogue.directories(),
        approver: Arc::clone(approver),
        jobs,
        redactor,
        schema,
    };
    Ok(Services { agent, catalogue, warnings, bounds: boundary::bounds(settings, plan) })
}

/// The prompts of an agent.
struct Prompts {
    system: Released,
    own: Option<Released>,
    termination: Released,
    compression: Released,
}

/// Finds the prompts. If the chosen prompt is not a system prompt, the agent's own system prompt is read too.
fn prompts(
    config: &Config,
    settings: &AgentConfig,
    options: &Options,
    registry: &Registry,
) -> Result<Prompts, SetupError> {
    let prompt = |key: &str, source: &PromptSource| {
        let key_of_agent = format!("agents.{}.{key}", settings.name);
        let origin = format!("{}: {key}", config.place(&key_of_agent));
        registry.of(source, &origin, config.is_of_project(&key_of_agent)).map_err(SetupError::configuration)
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

fn environment(config: &Config, agent: &AgentConfig, workspace: &Workspace) -> Environment {
    let (env, named, workspace) = (config.env.clone(), agent.sandbox.env.clone(), workspace.clone());
    Environment::lazily(move || env.for_commands(&named, &workspace))
}

/// The judge that finds tools that are not sent with every request.
fn judge(
    config: &Config,
    agent: &AgentConfig,
    options: &Options,
    model: &Arc<dyn ChatModel>,
    around: &Surroundings,
) -> Result<Judge, String> {
    let ToolsSettings { selection, embedding_model } = &config.settings.tools;
    Ok(match selection {
        SelectBy::Bm25 => Judge::Words,
        SelectBy::Model => Judge::Model(Arc::clone(model)),
        SelectBy::Embedding => {
            let chosen = chosen_model(config, agent, options).map_err(|error| error.to_string())?;
            let embedder = model::embedder(&chosen, embedding_model, around);
            let alone = |error| format!("tools are found only by their words (tools.selection): {error}");
            Judge::Embedding(embedder.map_err(alone)?)
        }
    })
}

fn model(
    config: &Config,
    agent: &AgentConfig,
    options: &Options,
    around: &Surroundings,
) -> Result<Arc<dyn ChatModel>, SetupError> {
    let chosen = chosen_model(config, agent, options)?;
    model::connect(&chosen, around).map_err(SetupError::configuration)
}

/// The parts that all models of a run share.
fn surroundings(config: &Config, options: &Options, net: Arc<Net>) -> Result<Surroundings, SetupError> {
    let opened = options.log_wire.as_ref().map(|path| {
        let wrong = |error| SetupError::usage(format!("--log-wire {}: {error}", path.display()));
        WireLog::open(path, config.redactor()).map(Arc::new).map_err(wrong)
    });
    Ok(Surroundings {
        net,
        user_id: config.env.user().to_owned(),
        wire_log: opened.transpose()?,
        catalogue: Arc::new(ModelCatalogue::of_user(&config.dirs.data)),
        keys_set: keys_set(config),
    })
}

/// The variables for provider keys that are set.
fn keys_set(config: &Config) -> Vec<&'static str> {
    providers::keys().filter(|variable| config.env.get(variable).is_some()).collect()
}

/// The network access of this configuration: its proxies, certificates and timeouts.
#[must_use]
pub fn net(config: &Config) -> Net {
    Net::new(|name| config.env.get(name))
}

fn limits(agent: &AgentConfig, model: &dyn ChatModel) -> Result<Limits, SetupError> {
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

fn skills(config: &Config, agent: &AgentConfig, around: Variables) -> Result<Catalogue, String> {
    let mut catalogue = Catalogue::discover(&config.skill_dirs, &config.dirs.cache, around);
    let choices: Vec<Choice<'_>> =
        catalogue.iter().map(|skill| Choice { name: &skill.name, default: true }).collect();
    let mut taken = tools::select(&agent.skills, &choices)?;
    for list in &agent.narrowed.skills {
        let narrower = tools::select(list, &choices)?;
        taken.retain(|name| narrower.contains(name));
    }
    let taken: Vec<String> = taken.into_iter().map(str::to_owned).collect();
    catalogue.retain(|name| taken.iter().any(|taken| taken == name));
    Ok(catalogue)
}
