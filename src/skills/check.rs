//! Checks skills against the standard: every problem, with its line.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::frontmatter;
use crate::config::{SkillDir, SkillScope};

use super::discover::{self, FILE_IN_LOWERCASE};
use super::header;
use super::inside::{FILE, LARGEST};
use super::note::SkillNote;
use super::rendering;
use super::standard;

/// The result for one skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillCheck {
    /// Its file, or its directory if there is none.
    pub path: String,
    /// Empty if it is valid.
    pub problems: Vec<SkillProblem>,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillProblem {
    /// 1-based, where known.
    pub line: Option<usize>,
    pub message: String,
}

impl SkillProblem {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), message: message.into() }
    }
}

/// Checks the skill in `dir`, or every skill below it. A template error is a problem as well. `tell` is called before
/// each skill with the number of those done, the number of all, and the name of the next.
///
/// # Errors
/// There is nothing to check.
pub fn check_skills(dir: &Path, tell: &dyn Fn(usize, usize, &str)) -> Result<Vec<SkillCheck>, String> {
    let root = crate::files::canonicalize(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    if !root.is_dir() {
        return Err(format!("{} is not a directory; name that of a skill, or one of skills", dir.display()));
    }
    let own = [FILE, FILE_IN_LOWERCASE].into_iter().map(|name| root.join(name)).find(|file| file.exists());
    if let Some(file) = own {
        return Ok(vec![check_one(&root, &file)]);
    }
    let mut notes = Vec::new();
    let from = SkillDir::new(dir.to_path_buf(), SkillScope::Configured);
    let found = discover::find_folders(&from, &root, &[], &mut notes);
    if found.is_empty() && notes.is_empty() {
        return Err(format!("{} contains no {FILE}, nor does any folder in it", dir.display()));
    }
    let numbered = found.iter().enumerate();
    let numbered = numbered.inspect(|(done, (dir, _))| tell(*done, found.len(), &dir.to_string_lossy()));
    let mut checked: Vec<SkillCheck> = numbered.map(|(_, (dir, file))| check_one(dir, file)).collect();
    checked.extend(notes.into_iter().map(|SkillNote { path, line, message, .. }| SkillCheck {
        path,
        problems: vec![SkillProblem { line, message }],
    }));
    Ok(checked)
}

fn check_one(dir: &Path, file: &Path) -> SkillCheck {
    let folder = dir.file_name().unwrap_or_default().to_string_lossy();
    let problems = match read_content(dir, file) {
        Ok(content) => {
            let mut problems = standard::find_problems(&content, &folder);
            problems.extend(broken_template(&content));
            problems
        }
        Err(message) => vec![SkillProblem { line: None, message }],
    };
    SkillCheck { path: file.display().to_string(), problems }
}

fn read_content(dir: &Path, file: &Path) -> Result<String, String> {
    let real: PathBuf = crate::files::canonicalize(file).map_err(|error| error.to_string())?;
    if !real.starts_with(dir) {
        return Err(format!("it is a link out of {}", dir.display()));
    }
    let data = real.metadata().map_err(|error| error.to_string())?;
    if !data.is_file() {
        return Err("it is no file".to_owned());
    }
    if data.len() > LARGEST {
        return Err(format!("it is larger than {} MiB", LARGEST / 1024 / 1024));
    }
    let bytes = fs::read(&real).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn broken_template(content: &str) -> Option<SkillProblem> {
    let parts = frontmatter::split_head(content).ok()?;
    header::read_header(parts.head?).ok().filter(|header| header.is_template)?;
    let (line, why) = rendering::find_mistake(parts.body)?;
    let line = line.map(|line| parts.body_line + line - 1);
    Some(SkillProblem { line, message: format!("the body cannot be rendered: {why}") })
}
