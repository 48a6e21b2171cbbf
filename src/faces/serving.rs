//! What the command line says of every run that another program asks for, by whatever protocol.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::assembly::{self, RunOptions};
use crate::config::{self, Config, Env, LoadOptions, McpServerConfig, SettingFlags, StoredKeys, TrustStore};
use crate::files::canonicalize;
use crate::files::workspace::Workspace;
use crate::tools;

/// The policy and the choices of who started the server.
#[derive(Clone)]
pub struct ServingSetup {
    pub env: Env,
    pub config_dir: Option<PathBuf>,
    pub sets: Vec<String>,
    pub trust: bool,
    pub flags: SettingFlags,
    pub options: RunOptions,
}

/// What a client of a protocol adds to the configuration of a session.
#[derive(Clone, Default)]
pub struct ClientAdditions {
    /// Under the same policy as the person's own.
    pub servers: Vec<McpServerConfig>,
    /// Absolute directories, which join those of `sandbox.write`, except for what holds the home.
    pub dirs: Vec<String>,
}

/// Why a directory cannot be served, each with a sentence.
pub enum ServingError {
    Directory(String),
    Configuration(String),
    /// No model is configured.
    NoModel(String),
}

impl ServingError {
    /// The sentence.
    pub fn into_message(self) -> String {
        let (Self::Directory(message) | Self::Configuration(message) | Self::NoModel(message)) = self;
        message
    }
}

impl ServingSetup {
    /// The workspace and the configuration of a directory.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub fn load(&self, dir: &Path) -> Result<(Workspace, Arc<Config>), ServingError> {
        self.load_with(dir, &ClientAdditions::default(), self.flags.clone())
    }

    /// Like [`ServingSetup::load`], with what the client adds, and other flags.
    ///
    /// # Errors
    /// The directory or its configuration cannot be used.
    pub fn load_with(
        &self,
        dir: &Path,
        added: &ClientAdditions,
        flags: SettingFlags,
    ) -> Result<(Workspace, Arc<Config>), ServingError> {
        let wrong = |error| ServingError::Directory(format!("cannot work in {}: {error}", dir.display()));
        let workspace = Workspace::open(dir).map_err(wrong)?;
        let brought = config::find_brought(&self.env, &workspace, self.config_dir.as_deref());
        let store = TrustStore::open(&self.env.dirs().data);
        let options = LoadOptions {
            env: &self.env,
            workspace: &workspace,
            config_dir: self.config_dir.clone(),
            sets: &self.sets,
            flags,
            trust: self.trust || brought.as_deref().is_some_and(|brought| store.trusts(brought)),
            brought,
            tools: &tools::NAMES,
        };
        let config = load_with_additions(&options, added)?;
        Ok((workspace, config))
    }

    /// The same without the keys that `agent key set` and `agent acp --setup` keep; they are removed. Variables of the
    /// environment stay.
    ///
    /// # Errors
    /// The file of the keys cannot be changed: a sentence.
    pub fn forget_keys(&self) -> Result<Self, String> {
        let keys = StoredKeys::open(&self.env.dirs().data);
        let env = self.env.clone().without_stored_keys();
        for name in keys.read()?.keys() {
            keys.put(name, None)
                .map_err(|error| format!("{} cannot be changed: {error}", keys.path().display()))?;
        }
        Ok(Self { env, ..self.clone() })
    }

    /// Checks that there is a model to ask.
    ///
    /// # Errors
    /// There is none: the error ends with `advice`.
    pub fn check_model(&self, config: &Config, advice: &str) -> Result<(), ServingError> {
        let outlook = assembly::read_outlook(config, &self.options)
            .map_err(|error| ServingError::Configuration(error.message))?;
        if outlook.is_configured {
            Ok(())
        } else {
            Err(ServingError::NoModel(format!("no model is configured: {advice}")))
        }
    }
}

/// Loads a configuration to which the client adds something.
///
/// # Errors
/// It is wrong.
pub fn load_with_additions(
    options: &LoadOptions<'_>,
    added: &ClientAdditions,
) -> Result<Arc<Config>, ServingError> {
    let config = config::load_config(options);
    let mut config = config.map_err(|error| ServingError::Configuration(error.to_string()))?;
    let passed = added.servers.iter().map(|server| (server.name.clone(), server.clone()));
    config.servers.extend(passed);
    let home = canonicalize(&config.dirs.home).unwrap_or_default();
    let dirs = added.dirs.iter().filter(|dir| !home.starts_with(dir));
    config.agents.values_mut().for_each(|agent| agent.sandbox.write.extend(dirs.clone().cloned()));
    Ok(Arc::new(config))
}
