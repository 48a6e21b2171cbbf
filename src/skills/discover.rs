//! Which folders below a directory are skills: those that hold a `SKILL.md`.
//!
//! A skill's own folder is not searched for more of them. The search is bounded, passes over `.git`,
//! `node_modules` and hidden directories, and follows a link only to a place below the directory it began in.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::text;

use super::catalogue::{Place, Skill};
use super::header;

/// How deep below the directory a skill may lie.
const DEPTH: usize = 4;
/// The most directories that are looked into.
const MOST_DIRECTORIES: usize = 2000;
/// How much of a `SKILL.md` is read for the catalogue: the head has to end within it.
const HEAD_BYTES: u64 = 64 * 1024;
/// The longest name and description by the standard, in characters.
const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1024;

/// The skills below `root`, in the order of their paths. What is not loaded, or only just, is told in `warnings`.
pub(super) fn skills(root: &Path, warnings: &mut Vec<String>) -> Vec<Skill> {
    match root.canonicalize() {
        Ok(root) => Search { root, seen: HashSet::new(), skills: Vec::new(), warnings }.run(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            warnings.push(format!("skills in {} are left out: {error}", root.display()));
            Vec::new()
        }
    }
}

struct Search<'a> {
    /// Links followed.
    root: PathBuf,
    seen: HashSet<PathBuf>,
    skills: Vec<Skill>,
    warnings: &'a mut Vec<String>,
}

impl Search<'_> {
    fn run(mut self) -> Vec<Skill> {
        self.descend(&self.root.clone(), 0);
        self.skills
    }

    fn descend(&mut self, dir: &Path, depth: usize) {
        if !self.seen.insert(dir.to_path_buf()) {
            return;
        }
        if self.seen.len() > MOST_DIRECTORIES {
            if self.seen.len() == MOST_DIRECTORIES + 1 {
                let root = self.root.display();
                self.warnings.push(format!("skills in {root}: only {MOST_DIRECTORIES} directories were searched"));
            }
            return;
        }
        let mut paths: Vec<PathBuf> = match fs::read_dir(dir) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(error) => return self.warnings.push(format!("{} is left out: {error}", dir.display())),
        };
        paths.sort();
        if depth > 0
            && let Some(file) = skill_file(&paths)
        {
            return self.take(dir, file);
        }
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if depth == DEPTH || name.starts_with('.') || name == "node_modules" || !path.is_dir() {
                continue;
            }
            match self.inside(&path) {
                Some(real) => self.descend(&real, depth + 1),
                None => self.warnings.push(self.leads_out(&path)),
            }
        }
    }

    /// Adds the skill of this folder, if its head can be understood.
    fn take(&mut self, dir: &Path, file: &Path) {
        if self.inside(file).is_none_or(|real| !real.starts_with(dir)) {
            return self.warnings.push(self.leads_out(file));
        }
        let shown = file.display();
        let header = match read_head(file).and_then(|text| header::read(&text)) {
            Ok(header) => header,
            Err(why) => return self.warnings.push(format!("{shown} is left out: {why}")),
        };
        let Some(description) = header.description.filter(|description| !description.trim().is_empty()) else {
            return self.warnings.push(format!("{shown} is left out: it has no description"));
        };
        let folder = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = header.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| folder.clone());
        self.warnings.extend(header.warning.map(|warning| format!("{shown}: {warning}")));
        self.warnings.extend(doubts(&name, &description, &folder).map(|doubt| format!("{shown}: {doubt}")));
        self.skills.push(Skill {
            name: text::one_line(&name, NAME_CHARS + 1),
            description: text::one_line(&description, DESCRIPTION_CHARS + 1),
            hides: None,
            place: Place::Folder { dir: dir.to_path_buf(), file: file.to_path_buf() },
        });
    }

    /// Where the path leads, if that is below the root.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok().filter(|real| real.starts_with(&self.root))
    }

    fn leads_out(&self, path: &Path) -> String {
        format!("{} is left out: it is a link out of {}", path.display(), self.root.display())
    }
}

/// `SKILL.md`, or what people write who do not know that case matters.
fn skill_file(paths: &[PathBuf]) -> Option<&Path> {
    let named = |name: &str| paths.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    named("SKILL.md").or_else(|| named("skill.md")).map(PathBuf::as_path).filter(|path| path.is_file())
}

fn read_head(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where a skill departs from the standard and can be used all the same.
fn doubts(name: &str, description: &str, folder: &str) -> impl Iterator<Item = String> {
    let plain = name.chars().all(|c| c == '-' || (c.is_alphanumeric() && !c.is_uppercase()));
    let dashes = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    [
        (name != folder).then(|| format!("its name `{name}` differs from its directory `{folder}`")),
        (!plain || dashes).then(|| format!("its name `{name}` should be lowercase words joined by `-`")),
        (name.chars().count() > NAME_CHARS).then(|| format!("its name is longer than {NAME_CHARS} characters")),
        (description.chars().count() > DESCRIPTION_CHARS)
            .then(|| format!("its description is longer than {DESCRIPTION_CHARS} characters and is cut")),
    ]
    .into_iter()
    .flatten()
}
