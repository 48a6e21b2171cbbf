//! Turns directories, variables and flags into the one read-only [`Config`]: everything is read, then merged, then
//! checked, and nothing is loaded partially.
//!
//! If everything is valid, no schema is built: the merged trees are read as their types, which refuse unknown keys.
//! Only a failure, or `config check`, walks the schemas to name every mistake at once.

use serde::de::DeserializeOwned;

use super::command;
use super::env::Env;
use super::flow::{self, FlowConfig};
use super::gather::{Gathered, gather_documents};
use super::hook::{self, HookConfig};
use super::inspect::{self, PromptCheck};
use super::loaded::{Config, ConfigInputs};
use super::mcp::{self, McpServerConfig};
use super::merge::{Merged, inherit_sections};
use super::mistake::{ConfigError, Mistake, in_order, suggest};
use super::model::ModelConfig;
use super::options::LoadOptions;
use super::partly::read_partly;
use super::rules;
use super::settings::{AgentConfig, Named, SessionStoreConfig, Settings};
use super::skill_dirs;
use super::source::{ConfigDocument, ConfigLayer, Sources, SubjectKind};
use super::tool::ToolConfig;
use crate::base::secrets::LateSecrets;
use crate::base::yaml::{Node, Scalar, ScalarForm, YamlPlace, YamlTree};

/// Reads the configuration.
///
/// # Errors
/// There are mistakes; the error has all of them.
pub fn load_config(options: &LoadOptions<'_>) -> Result<Config, ConfigError> {
    let (gathered, mut mistakes) = gather_documents(options);
    let merged = Merged::merge_all(&gathered.documents);
    let (typed, refused) = TypedConfig::read(&merged, &gathered);
    if !mistakes.is_empty() || !refused.is_empty() {
        inspect::against_schemas(&gathered, &merged, &mut mistakes);
    }
    typed.check(&merged, &gathered.sources, refused, &mut mistakes);
    inspect::tools_of_rules(options.tools, &gathered, &merged, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(order_mistakes(&gathered.sources, options.env, mistakes));
    }
    finish_config(options, gathered, typed)
        .ok_or_else(|| ConfigError { mistakes: vec![Mistake::in_file("agent.yaml", "is missing")] })
}

/// Reads the configuration as [`load_config`] does, and checks what a run would discover only later: values that a higher
/// layer hides, the syntax of prompts and scripts, and that the prompts which agents name exist. `prompt` checks
/// references such as `system@production`.
///
/// Returns every mistake, and the configuration as far as it can be read, so that the caller can look for more.
pub fn check_config(options: &LoadOptions<'_>, prompt: &mut PromptCheck<'_>) -> (Option<Config>, Vec<Mistake>) {
    let (gathered, mut mistakes) = gather_documents(options);
    let merged = Merged::merge_all(&gathered.documents);
    let (typed, refused) = TypedConfig::read(&merged, &gathered);
    inspect::against_schemas(&gathered, &merged, &mut mistakes);
    typed.check(&merged, &gathered.sources, refused, &mut mistakes);
    inspect::run_time_templates(&gathered, &mut mistakes);
    inspect::check_prompts(&gathered, &merged, prompt, &mut mistakes);
    inspect::tools_of_rules(options.tools, &gathered, &merged, &mut mistakes);
    let ConfigError { mistakes } = order_mistakes(&gathered.sources, options.env, mistakes);
    (finish_config(options, gathered, typed), mistakes)
}

/// The configuration as far as it can be read, whatever is wrong with the rest: for offers of names.
pub fn read_sound_parts(options: &LoadOptions<'_>) -> Option<Config> {
    let gathered = gather_documents(options).0;
    let typed = TypedConfig::read(&Merged::merge_all(&gathered.documents), &gathered).0;
    finish_config(options, gathered, typed)
}

/// The merged trees as their types, as far as they can be read.
struct TypedConfig {
    settings: Option<Settings>,
    agents: Named<AgentConfig>,
    models: Named<ModelConfig>,
    tools: Named<ToolConfig>,
    session_stores: Named<SessionStoreConfig>,
    flows: Named<FlowConfig>,
    servers: Named<McpServerConfig>,
    hooks: Named<HookConfig>,
}

impl TypedConfig {
    /// Reads what can be read, and returns the mistakes. Settings, agents and models that are partly wrong are read
    /// partly, so that their other mistakes are found as well.
    fn read(merged: &Merged, gathered: &Gathered) -> (Self, Vec<Mistake>) {
        let (sources, mut refused) = (&gathered.sources, Vec::new());
        let nothing = Node { tree: YamlTree::Map(Vec::new()), place: YamlPlace::default() };
        let is_ground = |document: &&ConfigDocument| {
            (document.kind, document.layer) == (SubjectKind::Settings, ConfigLayer::BuiltIn)
        };
        let settings_ground =
            gathered.documents.iter().find(is_ground).map_or(&nothing, |document| &document.node);
        let mut agent_ground = nothing.clone();
        inherit_sections(&mut agent_ground, settings_ground);
        let (ground, wrong) = (Some(settings_ground), &mut refused);
        let typed = Self {
            settings: read_named(merged, SubjectKind::Settings, sources, ground, wrong).remove(""),
            agents: read_named(merged, SubjectKind::Agents, sources, Some(&agent_ground), wrong),
            models: read_named(merged, SubjectKind::Models, sources, Some(&nothing), wrong),
            tools: read_named(merged, SubjectKind::Tools, sources, None, wrong),
            session_stores: read_named(merged, SubjectKind::SessionStores, sources, None, wrong),
            flows: read_named(merged, SubjectKind::Flows, sources, None, wrong),
            servers: read_named(merged, SubjectKind::Mcp, sources, None, wrong),
            hooks: read_named(merged, SubjectKind::Hooks, sources, None, wrong),
        };
        (typed, refused)
    }

    /// Checks what types cannot express: references, and values that make no sense. What the types `refused` is
    /// reported only if nothing else was found, since the schemas report the same in better words.
    fn check(&self, merged: &Merged, sources: &Sources, refused: Vec<Mistake>, mistakes: &mut Vec<Mistake>) {
        if mistakes.is_empty() {
            mistakes.extend(refused);
        }
        check_references(merged, sources, mistakes);
        empty_limits(merged, sources, mistakes);
        check_retention(merged, sources, mistakes);
        command::check_commands(merged, sources, &self.tools, mistakes);
        flow::check_flows(merged, sources, &self.flows, mistakes);
        mcp::check_servers(merged, sources, &self.servers, mistakes);
        hook::check_hooks(merged, sources, &self.hooks, mistakes);
        rules::check_rules(
            merged,
            self.settings.as_ref(),
            &self.agents,
            &self.models,
            &mut |kind, name, path, message| {
                let node = merged.get(kind, name);
                let value = node.and_then(|node| node.find(path.iter().copied()).or(Some(node)));
                mistakes.push(Mistake::place_at(
                    sources,
                    value.map(|node| node.place).unwrap_or_default(),
                    message,
                ));
            },
        );
    }
}

/// Checks that named agents and models are configured. Reads the trees, so that a mistake elsewhere in a file does not
/// hide this one.
fn check_references(merged: &Merged, sources: &Sources, mistakes: &mut Vec<Mistake>) {
    let settings = merged
        .of_kind(SubjectKind::Settings)
        .map(|(_, node)| (node.get("default_agent"), SubjectKind::Agents, "agent"));
    let agents =
        merged.of_kind(SubjectKind::Agents).map(|(_, node)| (node.get("model"), SubjectKind::Models, "model"));
    for (node, kind, what) in settings.chain(agents) {
        let Some((node, target)) = node.and_then(|node| Some((node, node.text()?))) else { continue };
        let known: Vec<&str> = merged.of_kind(kind).map(|(name, _)| name).collect();
        if !known.contains(&target) {
            let mistake = Mistake::place_at(sources, node.place, format!("there is no {what} `{target}`"));
            mistakes.push(mistake.hint(suggest(target, &known, "configured")));
        }
    }
}

/// Refuses a bare number for the age of sessions: it would be seconds, and they are deleted.
fn check_retention(merged: &Merged, sources: &Sources, mistakes: &mut Vec<Mistake>) {
    let settings = merged.get(SubjectKind::Settings, "");
    let node = settings.and_then(|settings| settings.get("session")).and_then(|session| session.get("retention"));
    if let Some(node) = node.filter(|node| node.text().is_some_and(|text| text.trim().parse::<f64>().is_ok())) {
        mistakes.push(Mistake::place_at(sources, node.place, "`retention` needs a unit: 90d"));
    }
}

/// Finds limits without a value, also by a variable that is empty, a mistake: no limit would be the opposite of what was intended.
fn empty_limits(merged: &Merged, sources: &Sources, mistakes: &mut Vec<Mistake>) {
    let is_empty = |node: &Node| {
        let given = |scalar: &Scalar| matches!(scalar.form, ScalarForm::Rendered | ScalarForm::Given);
        node.is_blank()
            || matches!(&node.tree, YamlTree::Scalar(scalar) if given(scalar) && scalar.text.trim().is_empty())
    };
    let owners = merged.of_kind(SubjectKind::Settings).chain(merged.of_kind(SubjectKind::Agents));
    let limits = owners.filter_map(|(_, node)| node.get("limits")).flat_map(Node::entries);
    for (key, value) in limits.filter(|(_, value)| is_empty(value)) {
        let mistake = Mistake::place_at(sources, value.place, format!("`{}` is empty", key.text));
        // The schema may have reported it already, in other words.
        let place = |mistake: &Mistake| (mistake.file.clone(), mistake.line, mistake.column);
        mistakes.retain(|other| place(other) != place(&mistake));
        mistakes.push(mistake.hint("write a value, or null for no limit: `{{ env.NAME | default('null') }}`"));
    }
}

fn read_named<T: DeserializeOwned>(
    merged: &Merged,
    kind: SubjectKind,
    sources: &Sources,
    ground: Option<&Node>,
    mistakes: &mut Vec<Mistake>,
) -> Named<T> {
    let read = |(name, node): (&str, &Node)| match node.read() {
        Ok(value) => Some((name.to_owned(), value)),
        Err(error) => {
            mistakes.push(Mistake::place_at(sources, error.place.unwrap_or(node.place), error.message));
            Some((name.to_owned(), read_partly(node, ground?)?))
        }
    };
    merged.of_kind(kind).filter_map(read).collect()
}

fn finish_config(options: &LoadOptions<'_>, gathered: Gathered, typed: TypedConfig) -> Option<Config> {
    let settings = typed.settings?;
    let mut layers = gathered.layers;
    let mut agents = typed.agents;
    for (name, narrowed) in gathered.narrowed {
        agents.entry(name).and_modify(|agent| agent.narrowed = narrowed);
    }
    let resolve_key = |(name, model): (String, ModelConfig)| {
        let api_key = model.api_key.and_then(|key| key.resolve(options.env));
        (name, ModelConfig { api_key, ..model })
    };
    layers.skill_dirs.extend(skill_dirs::list_configured(&settings.skills, &options.env.dirs().home));
    Some(Config {
        settings,
        agents,
        models: typed.models.into_iter().map(resolve_key).collect(),
        tools: typed.tools,
        session_stores: typed.session_stores,
        flows: typed.flows,
        servers: typed.servers,
        hooks: typed.hooks,
        prompt_dirs: layers.prompt_dirs,
        skill_dirs: layers.skill_dirs,
        command_dirs: layers.command_dirs,
        config_dirs: layers.dirs.iter().filter_map(|layer| layer.dir.clone()).collect(),
        warnings: gathered.warnings,
        env: options.env.clone(),
        dirs: options.env.dirs(),
        late_secrets: LateSecrets::default(),
        given: ConfigInputs {
            config_dir: options.config_dir.clone(),
            sets: options.sets.to_vec(),
            flags: options.flags.clone(),
            brought: options.brought.clone(),
            trust: options.trust,
        },
        sources: gathered.sources,
        documents: gathered.documents,
    })
}

/// The mistakes in the order of their places, each once. A line or a message may contain a value from a variable.
fn order_mistakes(sources: &Sources, env: &Env, mut mistakes: Vec<Mistake>) -> ConfigError {
    // What is wrong with a built-in file then follows from what a person wrote.
    let is_own = |mistake: &Mistake| !mistake.file.starts_with("<built-in>/");
    if mistakes.iter().any(is_own) {
        mistakes.retain(is_own);
    }
    in_order(sources, &mut mistakes);
    let redactor = env.redactor();
    for mistake in &mut mistakes {
        mistake.message = redactor.redact(&mistake.message).into_owned();
        mistake.source_line = mistake.source_line.as_deref().map(|line| redactor.redact(line).into_owned());
    }
    ConfigError { mistakes }
}
