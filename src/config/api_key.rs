//! The key of a model's server: written, or where it is to be had.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::WrittenDuration;
use super::env::Env;
use crate::base::secrets::Secret;

/// A key, or its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ApiKey {
    /// The key itself, mostly rendered from a variable.
    Given(Secret),
    Source(KeySource),
}

/// Where a key is to be had: exactly one of `env`, `file`, `command`, `aws` and `google`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeySource {
    /// A variable. One that is not set is no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// A file: absolute, or from the home directory on (`~/key`). White space around the key is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A program and its arguments, which no shell reads; what it prints is the key. It runs when a key is first needed,
    /// after `refresh`, and once more when the server refuses the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// A profile of Amazon's own files, whose keys sign each request; `default` also stands for the environment, a role by
    /// web identity and a container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<String>,
    /// A file of credentials of Google Cloud, absolute or from `~` on; `default`: the application default credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub google: Option<String>,
    /// The time after which the program is asked again; `null`: only when the server refuses the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<WrittenDuration>,
}

impl ApiKey {
    /// The key, where it is known without asking anyone.
    pub fn given(&self) -> Option<&str> {
        if let Self::Given(key) = self { Some(key.reveal().trim()) } else { None }
    }

    /// The mistake in a source, if there is one.
    pub(super) fn find_mistake(&self) -> Option<&'static str> {
        let Self::Source(KeySource { env, file, command, aws, google, refresh }) = self else { return None };
        let named = [env.is_some(), file.is_some(), command.is_some(), aws.is_some(), google.is_some()];
        let named = named.into_iter().filter(|is_named| *is_named).count();
        let program = command.as_ref().map(|command| command.first().is_none_or(|name| name.trim().is_empty()));
        match (named, program) {
            (1, Some(true)) => Some("the list `command` names no program"),
            (1, None) if refresh.is_some() => Some("`refresh` belongs to a `command`"),
            (1, _) => None,
            _ => Some("a source of a key is one of `env`, `file`, `command`, `aws` and `google`"),
        }
    }

    /// Resolves what this environment answers: a variable and the home directory. `None` for a variable that is not set.
    pub(super) fn resolve(self, env: &Env) -> Option<Self> {
        let Self::Source(mut source) = self else { return Some(self) };
        if let Some(name) = source.env {
            return Some(Self::Given(Secret::new(env.get(&name)?.to_owned())));
        }
        let home = |file: PathBuf| file.strip_prefix("~").map(|rest| env.dirs().home.join(rest)).unwrap_or(file);
        source.file = source.file.map(home);
        Some(Self::Source(source))
    }
}
