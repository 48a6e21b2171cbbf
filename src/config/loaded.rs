//! The one read-only [`Config`] of a run, and the questions that it answers.

use std::path::PathBuf;
use std::sync::Arc;

use super::api_key::ApiKey;
use super::env::{Env, ProgramDirs};
use super::flags::SettingFlags;
use super::flow::FlowConfig;
use super::hook::HookConfig;
use super::manifest::Manifest;
use super::mcp::McpServerConfig;
use super::mistake::did_you_mean;
use super::model::ModelConfig;
use super::options::LoadOptions;
use super::settings::{AgentConfig, Named, SessionStoreConfig, Settings};
use super::skill_dirs::SkillDir;
use super::source::{ConfigDocument, Sources};
use super::through::{CommandDir, PromptDir};
use super::tool::ToolConfig;
use crate::base::secrets::{LateSecrets, Redactor, Secret, looks_secret, secrets_in};
use crate::files::workspace::Workspace;
use crate::template::is_template;

/// The configuration of a run: read-only.
#[derive(Debug)]
pub struct Config {
    pub settings: Settings,
    pub agents: Named<AgentConfig>,
    pub models: Named<ModelConfig>,
    /// The tools, by the name that the model calls.
    pub tools: Named<ToolConfig>,
    pub session_stores: Named<SessionStoreConfig>,
    pub flows: Named<FlowConfig>,
    /// The servers of tools, by the name before `__` in the names of their tools.
    pub servers: Named<McpServerConfig>,
    /// What runs at events of a run, by name.
    pub hooks: Named<HookConfig>,
    /// Lowest first; the built-in prompts are below them all.
    pub prompt_dirs: Vec<PromptDir>,
    /// Lowest first; the built-in skills are below them all.
    pub skill_dirs: Vec<SkillDir>,
    /// The config directories that were read, lowest first.
    pub config_dirs: Vec<PathBuf>,
    /// Sentences to show to the user; none of them stops the program.
    pub warnings: Vec<String>,
    pub env: Env,
    pub dirs: ProgramDirs,
    /// The keys that models fetch while the program runs.
    pub late_secrets: LateSecrets,
    pub(super) command_dirs: Vec<CommandDir>,
    /// The request for it.
    pub(super) given: ConfigInputs,
    pub(super) sources: Sources,
    pub(super) documents: Vec<ConfigDocument>,
}

/// The inputs of a configuration besides the environment and the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfigInputs {
    pub config_dir: Option<PathBuf>,
    pub sets: Vec<String>,
    pub flags: SettingFlags,
    pub brought: Option<Arc<Manifest>>,
    pub trust: bool,
}

/// A name that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{name}`: {}", did_you_mean(name, known.iter().map(String::as_str))
    .unwrap_or_else(|| match known.as_slice() {
        [] => "none is configured".to_owned(),
        known => format!("configured: {}", known.join(", ")),
    }))]
pub struct UnknownName {
    /// `agent`, `model`, `flow`
    pub what: &'static str,
    pub name: String,
    pub known: Vec<String>,
}

impl Config {
    /// The flags `--set KEY=VALUE` that it was read with, in order.
    pub fn sets(&self) -> &[String] {
        &self.given.sets
    }

    /// The flags that name a setting, which it was read with.
    pub fn flags(&self) -> &SettingFlags {
        &self.given.flags
    }

    /// The options to read it again with other flags: from the same places, with the same trust in what the workspace
    /// brought along when the program started.
    pub fn again<'a>(
        &'a self,
        workspace: &'a Workspace,
        sets: &'a [String],
        tools: &'a [&'a str],
    ) -> LoadOptions<'a> {
        let ConfigInputs { config_dir, flags, brought, trust, .. } = self.given.clone();
        LoadOptions { env: &self.env, workspace, config_dir, sets, flags, brought, trust, tools }
    }

    /// True if the workspace brings something along that was not trusted.
    pub fn waits_for_trust(&self) -> bool {
        !self.given.trust && self.given.brought.as_ref().is_some_and(|brought| brought.brings_anything())
    }

    /// An agent by name; the default one without.
    ///
    /// # Errors
    /// None of that name is configured.
    pub fn agent(&self, name: Option<&str>) -> Result<&AgentConfig, UnknownName> {
        find_named("agent", &self.agents, name.unwrap_or(&self.settings.default_agent))
    }

    /// A model by its configured name.
    ///
    /// # Errors
    /// None of that name is configured.
    pub fn model(&self, name: &str) -> Result<&ModelConfig, UnknownName> {
        find_named("model", &self.models, name)
    }

    /// A flow by name.
    ///
    /// # Errors
    /// None of that name is configured.
    pub fn flow(&self, name: &str) -> Result<&FlowConfig, UnknownName> {
        find_named("flow", &self.flows, name)
    }

    /// A redactor for the secrets of this configuration: secret-looking variables, API keys, headers, and credentials
    /// in URLs.
    pub fn redactor(&self) -> Redactor {
        let mut secrets: Vec<String> = self.env.secret_values().map(str::to_owned).collect();
        for model in self.models.values() {
            secrets.extend(model.api_key.as_ref().and_then(ApiKey::given).map(str::to_owned));
            secrets.extend(model.base_url.as_deref().map(secrets_in).unwrap_or_default());
        }
        secrets.extend(self.servers.values().filter_map(|server| server.url.as_deref()).flat_map(secrets_in));
        let variables = self.servers.values().flat_map(|server| &server.env);
        secrets
            .extend(variables.filter(|(name, _)| looks_secret(name)).map(|(_, value)| value.reveal().to_owned()));
        let variables = self.tools.values().flat_map(|tool| tool.env.iter().flatten());
        secrets.extend(
            variables
                .filter(|(name, text)| looks_secret(name) && !is_template(text))
                .map(|(_, text)| text.clone()),
        );
        let telemetry = &self.settings.telemetry;
        secrets.extend(telemetry.otlp_endpoint.as_deref().map(secrets_in).unwrap_or_default());
        let headers = self.models.values().flat_map(|model| model.headers.values());
        let headers = headers.chain(self.servers.values().flat_map(|server| server.headers.values()));
        for header in headers.chain(telemetry.otlp_headers.values()).map(Secret::reveal) {
            secrets.push(header.to_owned());
            // `Bearer VALUE`: the value is the secret.
            secrets.extend(header.split_once(' ').map(|(_, value)| value.to_owned()));
        }
        Redactor::new(secrets).with_late(self.late_secrets.clone())
    }

    /// The directory of the tokens of logins at servers of tools.
    pub fn mcp_token_dir(&self) -> PathBuf {
        self.dirs.data.join("mcp_tokens")
    }

    /// The directory of the sessions, an absolute path.
    pub fn session_dir(&self) -> PathBuf {
        let dir = self.session_stores.get("default").map_or("sessions", |store| store.dir.as_str());
        dir.strip_prefix("~/").map_or_else(|| self.dirs.data.join(dir), |rest| self.dirs.home.join(rest))
    }
}

fn find_named<'c, T>(what: &'static str, all: &'c Named<T>, name: &str) -> Result<&'c T, UnknownName> {
    let unknown = || UnknownName { what, name: name.to_owned(), known: all.keys().cloned().collect() };
    all.get(name).ok_or_else(unknown)
}
