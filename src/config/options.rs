//! The sources of a configuration, and their places.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::env::Env;
use super::flags::SettingFlags;
use super::manifest::Manifest;
use super::skill_dirs;
use crate::files::workspace::Workspace;

/// The sources of a configuration.
#[derive(Debug, Clone)]
pub struct LoadOptions<'a> {
    pub env: &'a Env,
    pub workspace: &'a Workspace,
    /// `--config DIR`; without it `AGENT_CONFIG` is asked.
    pub config_dir: Option<PathBuf>,
    /// `--set KEY=VALUE`, in order.
    pub sets: &'a [String],
    /// The flags that name a setting.
    pub flags: SettingFlags,
    /// The content that the workspace brings along.
    pub brought: Option<Arc<Manifest>>,
    /// True if that is used.
    pub trust: bool,
    /// The tools that are built in: rules name them, those that are configured, or those of a server
    /// (`server__tool`).
    pub tools: &'a [&'a str],
}

impl LoadOptions<'_> {
    /// The directory that replaces user and project, if one was named.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        find_directory(self.env, self.config_dir.as_deref())
    }
}

/// The content that the workspace brings along now: made once at startup, and used only after the user agrees. `None`
/// if a config directory replaces it.
pub fn find_brought(env: &Env, workspace: &Workspace, config_dir: Option<&Path>) -> Option<Arc<Manifest>> {
    if find_directory(env, config_dir).is_some() {
        return None;
    }
    let own = || {
        let own = skill_dirs::of_user(&env.dirs());
        own.iter().filter_map(|own| crate::files::canonicalize(&own.dir).ok()).collect()
    };
    Some(Arc::new(Manifest::find_brought(workspace, own)))
}

fn find_directory(env: &Env, config_dir: Option<&Path>) -> Option<PathBuf> {
    config_dir.map(Path::to_path_buf).or_else(|| env.get("AGENT_CONFIG").map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl<'a> LoadOptions<'a> {
        /// With nothing but what the environment names.
        pub fn new(env: &'a Env, workspace: &'a Workspace) -> Self {
            let (config_dir, brought, flags) = Default::default();
            Self { env, workspace, config_dir, sets: &[], flags, brought, trust: false, tools: &[] }
        }
    }
}
