//! The plugins that are installed: a copy of each in `plugins/NAME`, and `plugins.lock`, which pins the copy and every
//! file that was written for it by their contents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plugin::ForeignPlugin;
use super::settle::{EntryState, NEW, copy_dir, remove_dir, settle_entries, write_entry};
use super::tree::digest_tree;
use super::{EntryPlan, ImportEntry};
use crate::base::diff;
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

/// The digest of all files of a plugin.
///
/// # Errors
/// A sentence: what it may not have, or it cannot be read.
pub fn digest_plugin(dir: &Path) -> Result<String, String> {
    Ok(digest_all(&digest_tree(dir)?))
}

/// The text files of a plugin whose paths are wanted, with these.
///
/// # Errors
/// As [`digest_plugin`].
pub fn read_plugin_files(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, String)>, String> {
    let paths = digest_tree(dir)?.into_iter().map(|(path, _)| path).filter(|path| wanted(path));
    Ok(paths.filter_map(|path| read_text(&dir.join(&path)).map(|text| (path, text))).collect())
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

    /// True if the plugin is installed, all of it, with this digest of its files.
    pub fn is_current(&self, name: &str, digest: &str) -> bool {
        let is_there = |path: &String| self.dir.join(path).symlink_metadata().is_ok();
        self.plugins.get(name).is_some_and(|plugin| plugin.digest == digest && plugin.files.keys().all(is_there))
    }

    /// Installs a plugin whose files are in `from` and have this digest, in place of the one of its name: nothing is changed if
    /// a file of another origin is in the way, or one that was changed since. Returns the files that were changed since, which it
    /// does not need any more and which stay.
    ///
    /// # Errors
    /// A sentence: what is in the way, or the disk fails.
    pub fn install(
        &mut self,
        plugin: &ForeignPlugin,
        from: &Path,
        source: &str,
        digest: &str,
    ) -> Result<Vec<String>, String> {
        let taken = self.find_taken(plugin);
        if !taken.is_empty() {
            let taken = taken.join(", ");
            return Err(format!(
                "nothing was installed, as these are there already, or were changed since they came: {taken}"
            ));
        }
        let root = plugin_root(&self.dir, &plugin.name);
        let failed = |error: io::Error| format!("{}: {error}", root.display());
        // The copy is whole before anything goes.
        let copy = root.with_file_name(NEW);
        copy_dir(from, &copy).and_then(|()| remove_dir(&copy.join(".git"))).map_err(failed)?;
        if digest_plugin(&copy)? != digest {
            remove_dir(&copy).map_err(failed)?;
            return Err("nothing was installed, as its files changed meanwhile".to_owned());
        }
        let kept = self.plugins.get(&plugin.name).map(|old| self.remove_files(old)).transpose()?;
        remove_dir(&root).and_then(|()| fs::rename(&copy, &root)).map_err(failed)?;
        // Should this be stopped, the lock knows what belongs to the plugin, and an update ends it.
        let installed = InstalledPlugin {
            source: source.to_owned(),
            version: plugin.version.clone(),
            digest: digest.to_owned(),
            files: list_written(&plugin.entries)?,
        };
        self.plugins.insert(plugin.name.clone(), installed);
        self.save()?;
        let all: Vec<&ImportEntry> = plugin.entries.iter().collect();
        for entry in &plugin.entries {
            write_entry(entry, &all, &self.dir)?;
        }
        Ok(kept.unwrap_or_default())
    }

    /// What is in the way of a plugin and not its own.
    fn find_taken(&self, plugin: &ForeignPlugin) -> Vec<String> {
        let own = self.plugins.get(&plugin.name).map(|installed| &installed.files);
        let is_own = |path: &Path, digest: Option<&str>| {
            let known = own.and_then(|own| own.get(&*path.to_string_lossy()));
            known.is_some() && known.map(String::as_str) == digest
        };
        let is_free = |plan: &EntryPlan| match plan {
            EntryPlan::Write(to, _) => is_own(to, read_digest(&self.dir.join(to)).as_deref()),
            EntryPlan::Copy(to, _) => digest_tree(&self.dir.join(to))
                .is_ok_and(|files| files.iter().all(|(path, digest)| is_own(&to.join(path), Some(digest)))),
            EntryPlan::List(..) | EntryPlan::Used | EntryPlan::Left => false,
        };
        let entries = plugin.entries.iter().zip(settle_entries(&plugin.entries, &self.dir));
        let taken = entries.filter(|(entry, state)| {
            !matches!(state, EntryState::New | EntryState::Nothing) && !is_free(&entry.plan)
        });
        taken.map(|(entry, _)| format!("{} {}", entry.kind, entry.name)).collect()
    }

    /// Removes what was written for a plugin. Files that changed since stay; returns them.
    fn remove_files(&self, plugin: &InstalledPlugin) -> Result<Vec<String>, String> {
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
        Ok(kept)
    }

    /// The files of a plugin's copy that are others in `from`, as diffs.
    ///
    /// # Errors
    /// A sentence: the directory cannot be read.
    pub fn compare_copy(&self, name: &str, from: &Path) -> Result<String, String> {
        let root = plugin_root(&self.dir, name);
        let before: BTreeMap<_, _> = digest_tree(&root).unwrap_or_default().into_iter().collect();
        let after: BTreeMap<_, _> = digest_tree(from)?.into_iter().collect();
        let mut out = String::new();
        let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for path in paths.into_iter().filter(|path| before.get(*path) != after.get(*path)) {
            let read = |files: &BTreeMap<String, String>, dir: &Path| {
                if files.contains_key(path) { read_text(&dir.join(path)) } else { Some(String::new()) }
            };
            let difference = match (read(&before, &root), read(&after, from)) {
                (Some(before), Some(after)) => diff::unify(path, &before, &after),
                _ => format!("{path} is no text, and changed\n"),
            };
            out += &difference;
        }
        Ok(out)
    }

    /// Removes a plugin. Files that changed since stay; returns them.
    ///
    /// # Errors
    /// A sentence: there is no such plugin, or the disk fails.
    pub fn remove(&mut self, name: &str) -> Result<Vec<String>, String> {
        let plugin = self.plugins.get(name).ok_or_else(|| format!("there is no plugin `{name}`"))?;
        let kept = self.remove_files(plugin)?;
        let root = plugin_root(&self.dir, name);
        remove_dir(&root).map_err(|error| format!("{}: {error}", root.display()))?;
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

/// The files that are written for entries, and the digest of each.
fn list_written(entries: &[ImportEntry]) -> Result<BTreeMap<String, String>, String> {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let mut files = BTreeMap::new();
    for entry in entries {
        match &entry.plan {
            EntryPlan::Write(to, text) => drop(files.insert(name(to), hash_sha256([text.as_bytes()]))),
            EntryPlan::Copy(to, from) => {
                files.extend(digest_tree(from)?.into_iter().map(|(path, digest)| (name(&to.join(path)), digest)));
            }
            EntryPlan::List(..) | EntryPlan::Used | EntryPlan::Left => {}
        }
    }
    Ok(files)
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_bytes(path, Links::Refuse, LONGEST_FILE).ok().flatten()?).ok()
}

fn read_digest(path: &Path) -> Option<String> {
    let bytes = read_bytes(path, Links::Refuse, LONGEST_FILE).ok().flatten()?;
    Some(hash_sha256([bytes.as_slice()]))
}
