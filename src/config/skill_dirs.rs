//! The directories of skills: the user's own and those of other agents, configured ones, and those that a trusted
//! workspace brings along.

use std::path::{Path, PathBuf};

use super::env::ProgramDirs;
use super::folders::SHARED_SKILLS;
use super::settings::SkillSettings;
use super::through::FileAccess;

/// The scope of a skill: a nearer one hides another of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillScope {
    BuiltIn,
    User,
    Project,
    /// `--config DIR`, or `skills.dirs`.
    Configured,
    /// A server of tools, fetched when it is loaded. It hides none, as its name begins with the server's.
    Served,
}

impl SkillScope {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built in",
            Self::User => "user",
            Self::Project => "project",
            Self::Configured => "configured",
            Self::Served => "server",
        }
    }
}

/// A directory with folders of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDir {
    pub dir: PathBuf,
    pub scope: SkillScope,
    /// For a project: its topmost directory, which nothing may lead out of, and whose ignore files count.
    pub top: Option<PathBuf>,
    /// The way to read its files.
    pub through: FileAccess,
}

impl SkillDir {
    /// A directory of this scope, which is read as it is.
    pub fn new(dir: PathBuf, scope: SkillScope) -> Self {
        Self { dir, scope, top: None, through: FileAccess::default() }
    }

    /// A directory that a workspace brings along.
    pub(super) fn of_project(dir: PathBuf, top: &Path, through: FileAccess) -> Self {
        Self { dir, scope: SkillScope::Project, top: Some(top.to_path_buf()), through }
    }
}

/// The user's directories, lowest first: those that other agents read as well, then this program's own.
pub(super) fn of_user(dirs: &ProgramDirs) -> Vec<SkillDir> {
    let shared = SHARED_SKILLS.map(|folder| dirs.home.join(folder));
    keep_existing(shared.into_iter().chain([dirs.config.join("skills")]), SkillScope::User)
}

/// The directories for a config directory that replaces user and project: the one beside it, then the one in it.
pub(super) fn of_directory(dir: &Path) -> Vec<SkillDir> {
    let beside = dir.parent().map(|parent| parent.join("skills"));
    keep_existing(beside.into_iter().chain([dir.join("skills")]), SkillScope::Configured)
}

/// The configured directories. One that does not exist is kept, so that it is reported.
pub(super) fn list_configured(settings: &SkillSettings, home: &Path) -> Vec<SkillDir> {
    let dir = |dir: &String| dir.strip_prefix("~/").map_or_else(|| PathBuf::from(dir), |rest| home.join(rest));
    settings.dirs.iter().map(|path| SkillDir::new(dir(path), SkillScope::Configured)).collect()
}

fn keep_existing(dirs: impl Iterator<Item = PathBuf>, scope: SkillScope) -> Vec<SkillDir> {
    dirs.filter(|dir| dir.is_dir()).map(|dir| SkillDir::new(dir, scope)).collect()
}
