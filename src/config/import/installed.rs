//! The plugins that are installed: a copy of each in `plugins/NAME`, and `plugins.lock`, which pins the copy and every
//! file that was written for it by their contents.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plugin::ForeignPlugin;
use super::settle::{EntryState, copy_dir, settle_entries, write_entry};
use super::tree::digest_tree;
use super::{EntryPlan, ImportEntry};
use crate::base::digest::hash_sha256;
use crate::config::folders::{PLUGIN_LOCK, PLUGINS};
use crate::files::regular::{LONGEST_FILE, Links, read_bytes, replace_file};

const VERSION: u32 = 1;

/// What `plugins.lock` says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PluginLock {
    v: u32,
    pub plugins: BTreeMap<String, InstalledPlugin>,
    #[serde(skip)]
    dir: PathBuf,
}

/// One plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPlugin {
    /// The directory or the address that it came from.
    pub source: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Of all files of the copy.
    digest: String,
    /// The files that were written for it, within the configuration directory, and the digest of each.
    files: BTreeMap<String, String>,
}

/// Where the copy of a plugin is.
pub fn plugin_root(config_dir: &Path, name: &str) -> PathBuf {
    config_dir.join(PLUGINS).join(name)
}

fn digest_all(files: &[(String, String)]) -> String {
    hash_sha256(files.iter().flat_map(|(path, digest)| [path.as_bytes(), b"\0", digest.as_bytes(), b"\n"]))
}

impl PluginLock {
    /// Reads the lock of a configuration directory; an empty one if there is none.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(config_dir: &Path) -> Result<Self, String> {
        let path = config_dir.join(PLUGIN_LOCK);
        let wrong = |why: String| format!("{}: {why}", path.display());
        let mut lock = match read_bytes(&path, Links::Follow, LONGEST_FILE).map_err(wrong)? {
            None => Self { v: VERSION, ..Self::default() },
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?,
        };
        if lock.v != VERSION {
            return Err(wrong(format!("its version {} is not known here", lock.v)));
        }
        lock.dir = config_dir.to_path_buf();
        Ok(lock)
    }

    fn save(&self) -> Result<(), String> {
        let path = self.dir.join(PLUGIN_LOCK);
        if self.plugins.is_empty() {
            return fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()));
        }
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        replace_file(&path, text.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// True if the plugin is installed as it is in `from`.
    ///
    /// # Errors
    /// A sentence: the directory cannot be read.
    pub fn is_current(&self, name: &str, from: &Path) -> Result<bool, String> {
        let digest = digest_all(&digest_tree(from)?);
        Ok(self.plugins.get(name).is_some_and(|plugin| plugin.digest == digest))
    }

    /// Installs a plugin whose files are in `from`: nothing is written if a file of another origin is in the way.
    ///
    /// # Errors
    /// A sentence: what is in the way, or the disk fails.
    pub fn install(&mut self, plugin: &ForeignPlugin, from: &Path, source: &str) -> Result<(), String> {
        let digest = digest_all(&digest_tree(from)?);
        let states = settle_entries(&plugin.entries, &self.dir);
        let taken = plugin
            .entries
            .iter()
            .zip(&states)
            .filter(|(_, state)| !matches!(state, EntryState::New | EntryState::Nothing));
        let taken: Vec<String> = taken.map(|(entry, _)| format!("{} {}", entry.kind, entry.name)).collect();
        if !taken.is_empty() {
            return Err(format!("nothing was installed, as these are there already: {}", taken.join(", ")));
        }
        let root = plugin_root(&self.dir, &plugin.name);
        let failed = |error: std::io::Error| format!("{}: {error}", root.display());
        copy_dir(from, &root).map_err(failed)?;
        let git = root.join(".git");
        if git.exists() {
            fs::remove_dir_all(git).map_err(failed)?;
        }
        let all: Vec<&ImportEntry> = plugin.entries.iter().collect();
        let mut files = BTreeMap::new();
        for entry in &plugin.entries {
            write_entry(entry, &all, &self.dir)?;
            match &entry.plan {
                EntryPlan::Write(to, text) => {
                    files.insert(to.to_string_lossy().into_owned(), hash_sha256([text.as_bytes()]));
                }
                EntryPlan::Copy(to, _) => {
                    let copied = digest_tree(&self.dir.join(to))?;
                    files.extend(
                        copied
                            .into_iter()
                            .map(|(path, digest)| (to.join(path).to_string_lossy().into_owned(), digest)),
                    );
                }
                EntryPlan::List(..) | EntryPlan::Used | EntryPlan::Left => {}
            }
        }
        let (source, version) = (source.to_owned(), plugin.version.clone());
        self.plugins.insert(plugin.name.clone(), InstalledPlugin { source, version, digest, files });
        self.save()
    }

    /// Removes a plugin. Files that changed since stay; returns them.
    ///
    /// # Errors
    /// A sentence: there is no such plugin, or the disk fails.
    pub fn remove(&mut self, name: &str) -> Result<Vec<String>, String> {
        let plugin = self.plugins.get(name).ok_or_else(|| format!("there is no plugin `{name}`"))?;
        let mut kept = Vec::new();
        let is_inside = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        for (path, digest) in plugin.files.iter().filter(|(path, _)| is_inside(path)) {
            let whole = self.dir.join(path);
            match read_digest(&whole) {
                Some(found) if found == *digest => {
                    fs::remove_file(&whole).map_err(|error| format!("{}: {error}", whole.display()))?;
                    // A directory of a skill that is empty now.
                    let above = whole.ancestors().skip(1).take_while(|above| above.parent() != Some(&self.dir));
                    let _ = above.map(fs::remove_dir).take_while(Result::is_ok).count();
                }
                Some(_) => kept.push(path.clone()),
                None => {}
            }
        }
        let root = plugin_root(&self.dir, name);
        if root.exists() {
            fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        }
        self.plugins.remove(name);
        self.save()?;
        Ok(kept)
    }

    /// What is not as it was installed, a sentence each.
    pub fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, plugin) in &self.plugins {
            match digest_tree(&plugin_root(&self.dir, name)) {
                Ok(files) if digest_all(&files) == plugin.digest => {}
                Ok(_) => wrong.push(format!("{name}: its copy in plugins/{name} was changed")),
                Err(why) => wrong.push(format!("{name}: {why}")),
            }
            for (path, digest) in &plugin.files {
                match read_digest(&self.dir.join(path)) {
                    Some(found) if found == *digest => {}
                    Some(_) => wrong.push(format!("{name}: {path} was changed")),
                    None => wrong.push(format!("{name}: {path} is gone")),
                }
            }
        }
        wrong
    }

    /// The text of a file that was written for a plugin, as it is now.
    pub fn read(&self, path: &Path) -> Option<String> {
        let bytes = read_bytes(&self.dir.join(path), Links::Follow, LONGEST_FILE).ok().flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn read_digest(path: &Path) -> Option<String> {
    let bytes = read_bytes(path, Links::Refuse, LONGEST_FILE).ok().flatten()?;
    Some(hash_sha256([bytes.as_slice()]))
}
