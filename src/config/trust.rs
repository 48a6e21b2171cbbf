//! Remembers whether the user trusts what a workspace brings along. The answer applies only to that content: if a file
//! or a byte changes, the question is asked again.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::manifest::{BroughtDir, Manifest};
use crate::files::file_name;
use crate::files::private::{make_private_dir, private_file};
use crate::files::regular::read_regular;

/// The decisions, one JSON object per line, in the data directory; private to the user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct TrustDecision {
    /// Quoted where it is no plain text.
    path: String,
    hash: String,
}

impl TrustStore {
    /// The store of this user; nothing is read or written yet.
    pub fn open(data_dir: &Path) -> Self {
        Self { path: data_dir.join("trust.jsonl") }
    }

    /// True if the user agreed to exactly this. An unreadable store counts as empty.
    pub fn trusts(&self, brought: &Manifest) -> bool {
        let text = read_regular(&self.path).ok().flatten().unwrap_or_default();
        let decisions: Vec<TrustDecision> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let known = |layer: &BroughtDir| {
            decisions
                .iter()
                .any(|decision| decision.path == file_name::quote(&layer.dir) && decision.hash == layer.hash)
        };
        brought.layers.iter().all(known)
    }

    /// Remembers that the user agreed.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn remember(&self, brought: &Manifest) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            make_private_dir(dir)?;
        }
        let mut text = String::new();
        for layer in &brought.layers {
            let decision =
                TrustDecision { path: file_name::quote(&layer.dir).into_owned(), hash: layer.hash.clone() };
            text.push_str(&serde_json::to_string(&decision)?);
            text.push('\n');
        }
        private_file().create(true).append(true).open(&self.path)?.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::manifest::Manifest;
    use super::TrustStore;
    use crate::files::workspace::Workspace;

    #[test]
    fn a_yes_holds_for_that_content_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(dir.path()).expect("it exists");
        for path in [".git", ".agent", "sub/.agent/skills/x/scripts", ".claude/skills/y"] {
            fs::create_dir_all(root.join(path)).expect("made");
        }
        let script = root.join("sub/.agent/skills/x/scripts/run.sh");
        let write = |path: &std::path::Path, text: &str| fs::write(path, text).expect("written");
        write(&root.join("sub/.agent/agent.yaml"), "limits: {max_turns: 3}");
        write(&root.join(".claude/skills/y/SKILL.md"), "text");
        write(&script, "echo");
        let workspace = Workspace::open(&root.join("sub")).expect("a workspace");
        let store = TrustStore::open(&root.join("data"));
        let now = || Manifest::find_brought(&workspace, Vec::new);
        assert_eq!(now().dirs().count(), 3);
        assert!(!store.trusts(&now()));
        store.remember(&now()).expect("written");
        assert!(store.trusts(&now()));
        write(&script, "rm -rf /");
        assert!(!store.trusts(&now()), "other content");
        write(&script, "echo");
        assert!(store.trusts(&now()), "the same again");
        write(&root.join("sub/.agent/new.yaml"), "");
        assert!(!store.trusts(&now()), "another file");
        fs::remove_file(root.join("sub/.agent/new.yaml")).expect("removed");
        write(&root.join(".mcp.json"), "{}");
        assert!(!store.trusts(&now()), "servers of tools");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_yes_holds_in_a_directory_whose_name_is_not_utf_8() {
        let dir = tempfile::tempdir().expect("a directory");
        let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"w\xff");
        let root = crate::files::canonicalize(dir.path()).expect("it exists").join(name);
        fs::create_dir_all(root.join(".agent")).expect("made");
        fs::write(root.join(".agent/agent.yaml"), "{}").expect("written");
        let brought = Manifest::find_brought(&Workspace::open(&root).expect("a workspace"), Vec::new);
        let store = TrustStore::open(&dir.path().join("data"));
        store.remember(&brought).expect("written");
        assert!(store.trusts(&brought));
    }
}
