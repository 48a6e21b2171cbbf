//! The sources of prompts: the program, the user's directories, directories that a workspace brings along.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::builtin;
use crate::config::PromptDir;
use crate::files::file_name;

use super::error::PromptError;
use super::owner::Owner;
use super::version::Version;

/// The folder of the modules, with which their names begin.
pub const MODULES: &str = "modules/";

/// The folder of a prompt with the files of each released version as they were then.
pub(super) const RELEASED: &str = "released";

/// The folder of one of them.
pub(super) fn released_dir(prompts: &Path, name: &str, version: Version) -> PathBuf {
    prompts.join(name).join(RELEASED).join(version.to_string())
}

/// The versions that a folder of a prompt keeps.
pub(super) fn list_released(prompts: &Path, name: &str) -> Vec<Version> {
    let folders = fs::read_dir(prompts.join(name).join(RELEASED)).into_iter().flatten().flatten();
    folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok()).collect()
}

/// One place of prompts. Names of files are relative to it, with `/` between their parts.
#[derive(Debug, Clone)]
pub(super) struct PromptLayer {
    pub owner: Owner,
    /// `None` for the program. One that a workspace brings along is read through the manifest, as the user agreed to it.
    dir: Option<PromptDir>,
}

impl PromptLayer {
    pub const BUILTIN: Self = Self { owner: Owner::Program, dir: None };

    pub fn from_dir(dir: &PromptDir) -> Self {
        let is_brought = dir.through.list_files(&dir.dir).is_some();
        Self { owner: if is_brought { Owner::Project } else { Owner::Person }, dir: Some(dir.clone()) }
    }

    /// The directory; `None` for the program.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_ref().map(|at| at.dir.as_path())
    }

    /// The names of all prompts, modules included.
    pub fn names(&self) -> Result<Vec<String>, PromptError> {
        let inside = |folder: &str| -> Result<Vec<String>, PromptError> {
            let folders = self.entries(folder)?.into_iter().filter(|entry| entry.is_folder);
            Ok(folders.map(|entry| format!("{folder}{}", entry.name)).filter(|name| is_name(name)).collect())
        };
        let mut names = inside("")?;
        names.retain(|name| name != MODULES.trim_end_matches('/'));
        names.extend(inside(MODULES)?);
        Ok(names)
    }

    /// The names of the files of one prompt.
    pub fn files(&self, prompt: &str) -> Result<Vec<String>, PromptError> {
        let entries = self.entries(&format!("{prompt}/"))?;
        Ok(entries.into_iter().filter(|entry| !entry.is_folder).map(|entry| entry.name).collect())
    }

    /// The released versions of a prompt whose files are kept.
    pub fn released(&self, prompt: &str) -> Vec<Version> {
        self.dir().map_or_else(Vec::new, |dir| list_released(dir, prompt))
    }

    /// The text of a file; `None` if there is none.
    pub fn read(&self, path: &str) -> Result<Option<Cow<'static, str>>, PromptError> {
        let Some(at) = &self.dir else { return Ok(builtin::prompt_text(path).map(Into::into)) };
        let read = at.through.read_text(&at.dir.join(path));
        Ok(read.map_err(|why| PromptError::of_file(&self.origin(path), why))?.map(Into::into))
    }

    /// The name of a file in errors.
    pub fn origin(&self, path: &str) -> String {
        match self.dir() {
            None => format!("built-in prompts/{path}"),
            Some(dir) if self.owner == Owner::Project => file_name::quote(&dir.join(path)).into_owned(),
            Some(dir) => dir.join(path).display().to_string(),
        }
    }

    fn entries(&self, folder: &str) -> Result<Vec<PromptEntry>, PromptError> {
        let folder = folder.trim_end_matches('/');
        let mut entries = match &self.dir {
            None => of_program(folder),
            Some(at) => {
                let dir = at.dir.join(folder);
                let listed = at.through.list_files(&at.dir).map(|files| of_manifest(files, &dir));
                listed.map_or_else(|| of_dir(&dir), Ok).map_err(|error| {
                    PromptError::of_file(&self.origin(folder), format!("cannot be read: {error}"))
                })?
            }
        };
        entries.retain(|entry| !entry.name.starts_with('.'));
        entries.sort();
        entries.dedup();
        Ok(entries)
    }
}

/// True if a prompt may have this name: one folder, or one below `modules/`.
pub(super) fn is_name(name: &str) -> bool {
    let folder = name.strip_prefix(MODULES).unwrap_or(name);
    let is_fine = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    !folder.is_empty() && !folder.starts_with('.') && folder.chars().all(is_fine)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PromptEntry {
    name: String,
    is_folder: bool,
}

fn of_program(folder: &str) -> Vec<PromptEntry> {
    let Some(dir) = builtin::prompt_folder(folder) else { return Vec::new() };
    let name = |path: &Path| {
        let path = path.to_string_lossy();
        path.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let folders = dir.dirs().map(|dir| PromptEntry { name: name(dir.path()), is_folder: true });
    folders.chain(dir.files().map(|file| PromptEntry { name: name(file.path()), is_folder: false })).collect()
}

/// The entries of a directory; none if it does not exist.
fn of_dir(dir: &Path) -> io::Result<Vec<PromptEntry>> {
    let listing = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        listing => listing?,
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry?;
        // A link to a directory counts as one.
        let is_folder = entry.path().is_dir();
        entries.extend(entry.file_name().into_string().map(|name| PromptEntry { name, is_folder }));
    }
    Ok(entries)
}

fn of_manifest(files: Vec<PathBuf>, dir: &Path) -> Vec<PromptEntry> {
    let inside = |file: PathBuf| {
        let rest = file.strip_prefix(dir).ok()?.to_str()?.to_owned();
        Some(match rest.split_once('/') {
            Some((name, _)) => PromptEntry { name: name.to_owned(), is_folder: true },
            None => PromptEntry { name: rest, is_folder: false },
        })
    };
    files.into_iter().filter_map(inside).filter(|entry| !entry.name.is_empty()).collect()
}
