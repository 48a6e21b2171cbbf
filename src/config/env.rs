//! The one snapshot of the environment, taken when the program starts. No other file reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::secrets::{MASK, Redactor, looks_secret, password_in, without_credentials};
use crate::files::workspace::Workspace;
use crate::template;

use super::children::{self, NamedVariables};
use super::stored_keys::StoredKeys;

/// The variables of the process.
#[derive(Clone, Default)]
pub struct Env {
    variables: Arc<BTreeMap<String, String>>,
}

/// The program's directories, by the XDG base directory specification 0.8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramDirs {
    /// `$XDG_CONFIG_HOME/agent`
    pub config: PathBuf,
    /// `$XDG_DATA_HOME/agent`: sessions, trust decisions.
    pub data: PathBuf,
    /// `$XDG_STATE_HOME/agent`: the history of the line editor.
    pub state: PathBuf,
    /// `$XDG_CACHE_HOME/agent`: files that can be made again.
    pub cache: PathBuf,
    pub home: PathBuf,
}

impl Env {
    /// The environment of this process; values that are not Unicode are read leniently. Without `HOME`, as in some containers
    /// and on Windows, it is what the system says of the user.
    pub fn capture() -> Self {
        let home = std::env::home_dir().map(|home| ("HOME".into(), home.into_os_string()));
        let variables = home.into_iter().chain(std::env::vars_os()).map(|(name, value): (OsString, OsString)| {
            // Windows takes `Path` for `PATH`.
            let name = if cfg!(windows) { name.to_ascii_uppercase() } else { name };
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        });
        Self { variables: Arc::new(variables.collect()) }
    }

    /// An environment of only these variables.
    pub fn from_pairs<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        let variables = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables: Arc::new(variables) }
    }

    /// The same with the keys that `agent key set` keeps, for variables that are not set. A file that cannot be read
    /// counts as none: `agent key list` says why.
    #[must_use]
    pub fn with_stored_keys(self) -> Self {
        let stored = StoredKeys::open(&self.dirs().data).read().unwrap_or_default();
        if stored.is_empty() {
            return self;
        }
        let mut variables = (*self.variables).clone();
        for (name, key) in stored.iter().filter(|(name, _)| self.get(name).is_none()) {
            variables.insert(name.clone(), key.reveal().to_owned());
        }
        Self { variables: Arc::new(variables) }
    }

    /// The same without those keys.
    #[must_use]
    pub fn without_stored_keys(self) -> Self {
        let stored = StoredKeys::open(&self.dirs().data).read().unwrap_or_default();
        let mut variables = (*self.variables).clone();
        variables.retain(|name, value| stored.get(name).is_none_or(|key| key.reveal() != value));
        Self { variables: Arc::new(variables) }
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The directories from which programs are run by their name: those of `PATH`, and of an active virtual environment.
    pub fn list_program_dirs(&self) -> Vec<PathBuf> {
        let path = self.get("PATH").map(std::env::split_paths).into_iter().flatten();
        let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| self.get(name)).map(PathBuf::from);
        path.chain(active).filter(|dir| dir.is_absolute()).collect()
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The name of the user: `AGENT_USER`, else the login name.
    pub fn user(&self) -> &str {
        ["AGENT_USER", "USER", "LOGNAME", "USERNAME"].iter().find_map(|name| self.get(name)).unwrap_or("user")
    }

    /// `env` for templates in configuration. Without `secrets`, variables that look like secrets are as if unset, and
    /// credentials in values are masked; with them all can be read by name, and no secret is listed.
    pub fn for_configuration(&self, secrets: bool) -> template::Value {
        self.template_object(move |_| secrets, |name| !looks_secret(name))
    }

    /// Variables are looked up when a template reads them. Of those that `opens` refuses, one that looks like a secret is
    /// as if unset, and credentials in the value of another are masked.
    fn template_object(
        &self,
        opens: impl Fn(&str) -> bool + Send + Sync + 'static,
        lists: impl Fn(&str) -> bool,
    ) -> template::Value {
        let listed = self.iter().filter(|(name, value)| !value.is_empty() && lists(name));
        let names = listed.map(|(name, _)| name.to_owned()).collect();
        let env = self.clone();
        template::make_lookup(names, move |name| match env.get(name)? {
            value if opens(name) => Some(value.to_owned()),
            _ if looks_secret(name) => None,
            value => Some(Redactor::default().redact(&without_credentials(value, MASK)).into_owned()),
        })
    }

    /// `env` for prompts: without variables whose names look like secrets and credentials in values, unless `allow_env`
    /// lists them.
    pub fn for_prompts(&self, allow_env: &[String]) -> template::Value {
        let allowed = allow_env.to_vec();
        let opens = move |name: &str| allowed.iter().any(|other| other == name);
        self.template_object(opens.clone(), move |name| !looks_secret(name) || opens(name))
    }

    /// The environment of commands: what is harmless (`children`) and what `sandbox.env` names, without a pager or
    /// prompt that would wait for somebody.
    pub fn for_commands(&self, named: &[String], workspace: &Workspace) -> Vec<(String, String)> {
        const FIXED: [(&str, &str); 5] = [
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("MANPAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("DEBIAN_FRONTEND", "noninteractive"),
        ];
        let named = NamedVariables::new(named);
        let passed = self.iter().filter_map(|(name, value)| {
            Some((name, children::value_for_commands(name, value, &named, workspace)?))
        });
        let mut variables: BTreeMap<&str, Cow<'_, str>> = passed.collect();
        variables.extend(FIXED.map(|(name, value)| (name, Cow::Borrowed(value))));
        variables.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect()
    }

    /// The values of variables that look like secrets, and the passwords in addresses: none of them is ever shown,
    /// logged or sent, unless it is an ordinary word.
    pub fn secret_values(&self) -> impl Iterator<Item = &str> {
        let named = self.iter().filter(|(name, _)| looks_secret(name)).map(|(_, value)| value.trim());
        named.chain(self.iter().filter_map(|(_, value)| password_in(value)))
    }

    /// Masks the values of secret-looking variables alone: before there is a configuration.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.secret_values().map(str::to_owned).collect())
    }

    /// The directories of the program for this user.
    pub fn dirs(&self) -> ProgramDirs {
        let home = PathBuf::from(self.get("HOME").unwrap_or("/"));
        let xdg = |name: &str, default: &str| {
            let base = self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
            base.unwrap_or_else(|| home.join(default)).join("agent")
        };
        ProgramDirs {
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data: xdg("XDG_DATA_HOME", ".local/share"),
            state: xdg("XDG_STATE_HOME", ".local/state"),
            cache: xdg("XDG_CACHE_HOME", ".cache"),
            home,
        }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Env({} variables)", self.variables.len())
    }
}
