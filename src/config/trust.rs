//! The configuration and skills that a workspace brings along, and whether the user trusts them. The answer holds for that content alone:
//! another file, or another byte, and the question is asked again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::options::{FOLDER, LoadOptions};
use super::skill_dirs::{self, SHARED_SKILLS};
use crate::regular::read_regular;
use crate::workspace::Workspace;

/// More than this is no configuration, and hashing it would keep somebody waiting.
const MOST_FILES: usize = 5_000;

/// The directories of a workspace that configure or instruct, lowest first (the nearest wins, so it is last).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    layers: Vec<ProjectLayer>,
}

/// The kind of a directory's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `.agent`: configuration, prompts and skills.
    Config,
    /// Skills alone.
    Skills,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ProjectLayer {
    part: Part,
    dir: PathBuf,
    files: BTreeSet<String>,
    hash: String,
}

/// The directories that the workspace brings along, except those that are the user's `own`; `None` when it
/// brings nothing.
#[must_use]
pub fn brought(workspace: &Workspace, own: &[PathBuf]) -> Option<Brought> {
    let mut dirs: Vec<&Path> = workspace.dirs_up_to_git_root().collect();
    dirs.reverse();
    let parts = SHARED_SKILLS.map(|folder| (folder, Part::Skills)).into_iter().chain([(FOLDER, Part::Config)]);
    let found = dirs.into_iter().flat_map(|dir| parts.clone().map(|(folder, part)| (dir.join(folder), part)));
    let mut layers: Vec<ProjectLayer> = found
        .filter(|(dir, _)| dir.is_dir())
        .filter_map(|(dir, part)| Some((dir.canonicalize().ok()?, part)))
        .filter(|(dir, _)| !own.contains(dir))
        .map(|(dir, part)| ProjectLayer::read(dir, part))
        .collect();
    // One that is a link to another is that one; an empty folder brings nothing.
    let dirs: Vec<PathBuf> = layers.iter().map(|layer| layer.dir.clone()).collect();
    let mut at = 0;
    layers.retain(|layer| {
        at += 1;
        !dirs[at..].contains(&layer.dir) && (layer.part == Part::Config || !layer.files.is_empty())
    });
    (!layers.is_empty()).then_some(Brought { layers })
}

impl LoadOptions<'_> {
    /// The directories to ask the user about before `trust` may be set; `None` when there is nothing, or when a config
    /// directory stands in for it.
    #[must_use]
    pub fn brought(&self) -> Option<Brought> {
        if self.directory().is_some() {
            return None;
        }
        let own = skill_dirs::of_user(&self.env.dirs());
        let own: Vec<PathBuf> = own.iter().filter_map(|own| own.dir.canonicalize().ok()).collect();
        brought(self.workspace, &own)
    }
}

impl Brought {
    /// The directories that are brought along, in the order of their layers.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.layers.iter().map(|layer| layer.dir.as_path())
    }

    /// Those of them that are config directories.
    pub fn config_dirs(&self) -> impl Iterator<Item = &Path> {
        self.layers.iter().filter(|layer| layer.part == Part::Config).map(|layer| layer.dir.as_path())
    }

    /// Where skills lie in them, in the same order.
    pub fn skill_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let skills = self.layers.iter().map(|layer| match layer.part {
            Part::Config => layer.dir.join("skills"),
            Part::Skills => layer.dir.clone(),
        });
        skills.filter(|dir| dir.is_dir())
    }

    /// The text that the user reads before saying yes: every file, with what it can do.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut lines = Vec::new();
        for layer in &self.layers {
            lines.push(layer.dir.display().to_string());
            let effect = |file: &str| match file.split('/').next().filter(|_| layer.part == Part::Config) {
                None | Some("skills") if file.contains("/scripts/") => "a script that the model may run",
                None | Some("prompts" | "skills") => "instructs the model",
                Some("tools") => "a tool: may run commands",
                Some("models") => "chooses a model and its options",
                Some("agents") => "chooses prompts, tools and limits",
                _ => "settings",
            };
            lines.extend(layer.files.iter().map(|file| format!("  {file}: {}", effect(file))));
        }
        crate::text::visible(&lines.join("\n")).into_owned()
    }
}

impl ProjectLayer {
    fn read(dir: PathBuf, part: Part) -> Self {
        let mut files = BTreeSet::new();
        list(&dir, "", &mut files);
        let mut hasher = Sha256::new();
        for file in &files {
            let path = dir.join(file);
            // Links count with their target's name, too: pointing elsewhere is another content.
            let link =
                fs::read_link(&path).map(|target| target.to_string_lossy().into_owned()).unwrap_or_default();
            // Reading a pipe or a socket would block.
            let content = Some(&path).filter(|path| path.is_file()).and_then(|path| fs::read(path).ok());
            let content = content.unwrap_or_default();
            for part in [file.as_bytes(), link.as_bytes(), &content] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        let hash = hex(&hasher.finalize());
        Self { part, dir, files, hash }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn list(dir: &Path, inside: &str, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir.join(inside)).into_iter().flatten().filter_map(Result::ok) {
        if files.len() >= MOST_FILES {
            return;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let relative = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(dir, &relative, files),
            _ => {
                files.insert(relative);
            }
        }
    }
}

/// The decisions, one JSON object a line, in the data directory; private to the user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Decision {
    path: PathBuf,
    hash: String,
}

impl TrustStore {
    /// The store of this user; nothing is read or written yet.
    #[must_use]
    pub fn open(data_dir: &Path) -> Self {
        Self { path: data_dir.join("trust.jsonl") }
    }

    /// Whether somebody said yes to exactly this. An unreadable store knows nothing.
    #[must_use]
    pub fn trusts(&self, brought: &Brought) -> bool {
        let text = read_regular(&self.path).ok().flatten().unwrap_or_default();
        let decisions: Vec<Decision> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let known = |layer: &ProjectLayer| {
            let same = |decision: &Decision| decision.path == layer.dir && decision.hash == layer.hash;
            // Files left out of the listing were not hashed, so nobody can have agreed to them.
            layer.files.len() < MOST_FILES && decisions.iter().any(same)
        };
        brought.layers.iter().all(known)
    }

    /// Remembers that somebody said yes.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn remember(&self, brought: &Brought) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            create_private_dir(dir)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut text = String::new();
        for layer in &brought.layers {
            let decision = Decision { path: layer.dir.clone(), hash: layer.hash.clone() };
            text.push_str(&serde_json::to_string(&decision)?);
            text.push('\n');
        }
        options.open(&self.path)?.write_all(text.as_bytes())
    }
}

fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{TrustStore, brought};
    use crate::workspace::Workspace;

    #[test]
    fn skills_of_other_agents_are_part_of_what_is_asked_about() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("it exists");
        for path in [".git", ".agents/skills/a/scripts", ".claude/skills", "sub/.claude/skills/b", "sub/.agent"] {
            fs::create_dir_all(root.join(path)).expect("made");
        }
        for path in [".agents/skills/a/SKILL.md", ".agents/skills/a/scripts/x.sh", "sub/.claude/skills/b/SKILL.md"]
        {
            fs::write(root.join(path), "text").expect("written");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("../.agents/skills", root.join("sub/.agents")).expect("a link");
        let workspace = Workspace::open(&root.join("sub")).expect("a workspace");
        let all = brought(&workspace, &[]).expect("three directories");
        let dirs: Vec<_> = all.dirs().map(|dir| dir.strip_prefix(&root).expect("inside").to_path_buf()).collect();
        assert_eq!(dirs, [".agents/skills", "sub/.claude/skills", "sub/.agent"].map(std::path::PathBuf::from));
        assert!(all.describe().contains("a/scripts/x.sh: a script that the model may run"));
        assert!(all.describe().contains("b/SKILL.md: instructs the model"), "{}", all.describe());
        let own = brought(&workspace, &[root.join(".agents/skills")]).expect("two directories");
        assert_eq!(own.dirs().count(), 2, "what is the user's own is not asked about");

        let store = TrustStore::open(&root.join("data"));
        store.remember(&all).expect("written");
        assert!(store.trusts(&all));
        fs::write(root.join(".agents/skills/a/SKILL.md"), "other text").expect("written");
        assert!(!store.trusts(&brought(&workspace, &[]).expect("still there")));
    }

    #[test]
    fn a_yes_holds_for_that_content_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let inner = dir.path().join("inner");
        fs::create_dir_all(inner.join(".agent/skills/x/scripts")).expect("made");
        fs::create_dir_all(dir.path().join(".agent")).expect("made");
        fs::create_dir_all(dir.path().join(".git")).expect("made");
        fs::write(inner.join(".agent/agent.yaml"), "limits: {max_turns: 3}").expect("written");
        fs::write(inner.join(".agent/skills/x/scripts/run.sh"), "echo").expect("written");
        let workspace = Workspace::open(&inner).expect("a workspace");
        let store = TrustStore::open(&dir.path().join("data"));

        let first = brought(&workspace, &[]).expect("two directories");
        assert_eq!(first.dirs().count(), 2);
        assert!(first.describe().contains("skills/x/scripts/run.sh: a script that the model may run"));
        assert!(!store.trusts(&first));
        store.remember(&first).expect("written");
        assert!(store.trusts(&brought(&workspace, &[]).expect("still there")));

        fs::write(inner.join(".agent/skills/x/scripts/run.sh"), "rm -rf /").expect("written");
        assert!(!store.trusts(&brought(&workspace, &[]).expect("still there")));
    }
}
