//! The sources that a configuration is read from, and where they lie.

use std::path::PathBuf;

use super::env::Env;
use super::source::Layer;
use crate::workspace::Workspace;

/// The config directory of a project.
pub(super) const FOLDER: &str = ".agent";

/// The sources of a configuration.
#[derive(Debug, Clone)]
pub struct LoadOptions<'a> {
    pub env: &'a Env,
    pub workspace: &'a Workspace,
    /// `--config DIR`; without it `AGENT_CONFIG` is asked.
    pub config_dir: Option<PathBuf>,
    /// `--set KEY=VALUE`, in order.
    pub sets: &'a [String],
    /// Whether what the workspace brings along is used; see [`super::brought`].
    pub trust: bool,
    /// The tools that are built in: rules name them, those that are configured, or those of a server
    /// (`server__tool`).
    pub tools: &'a [&'a str],
}

impl LoadOptions<'_> {
    /// The directory that stands in for user and project, if one was named.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.config_dir.clone().or_else(|| self.env.get("AGENT_CONFIG").map(PathBuf::from))
    }

    /// Where configuration is looked for, lowest first, whether or not anything is there.
    #[must_use]
    pub fn places(&self) -> Vec<(Layer, PathBuf)> {
        if let Some(dir) = self.directory() {
            return vec![(Layer::Directory, dir)];
        }
        let mut places = vec![(Layer::User, self.env.dirs().config)];
        let projects = self.workspace.dirs_up_to_git_root().map(|dir| (Layer::Project, dir.join(FOLDER)));
        let mut projects: Vec<_> = projects.collect();
        projects.reverse();
        places.append(&mut projects);
        places
    }
}
