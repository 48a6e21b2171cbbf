//! What rules deny, remembered by what it is rather than by its name: a file that was moved stays denied.
//!
//! Before a command, its denied paths are looked up and noted. One that is no longer in its place is searched for, once;
//! what is found is denied under the name that it had.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// The files and directories of a workspace that were denied to a command.
#[derive(Debug, Clone, Default)]
pub struct DeniedFiles(Arc<Mutex<HashMap<FileIdentity, DeniedFile>>>);

/// The number of a file on its disk, which stays when its name changes.
type FileIdentity = (u64, u64);

#[derive(Debug)]
struct DeniedFile {
    /// The path by which a rule denied it.
    named: PathBuf,
    /// Its current path.
    path: PathBuf,
}

impl DeniedFiles {
    /// Notes the denied paths that exist now; returns those of earlier ones that have moved to elsewhere below `root`,
    /// and where one is not found the directories that cannot be listed: it may be in them.
    pub fn follow(&self, root: &Path, found: &[PathBuf]) -> Vec<PathBuf> {
        let mut known = self.known();
        for path in found {
            if let Some(identity) = identify(path) {
                known.entry(identity).or_insert_with(|| DeniedFile { named: path.clone(), path: path.clone() });
            }
        }
        let mut closed = Vec::new();
        known.retain(|identity, file| {
            let is_there = |path: &Path| identify(path) == Some(*identity);
            if !is_there(&file.path) {
                match find_identity(root, *identity) {
                    Ok(path) => file.path = path,
                    // It may be in one of these.
                    Err(dirs) => closed.extend(dirs),
                }
            }
            is_there(&file.path) || !closed.is_empty()
        });
        let moved = known
            .iter()
            .filter(|(identity, file)| file.path != file.named && identify(&file.path) == Some(**identity));
        moved.map(|(_, file)| file.path.clone()).chain(closed).collect()
    }

    /// The path by which a rule denied the file that is now at `path`, or a directory on the way to it.
    pub fn former_path(&self, path: &Path) -> Option<PathBuf> {
        let known = self.known();
        if known.is_empty() {
            return None;
        }
        path.ancestors().find_map(|above| {
            let file = known.get(&identify(above)?).filter(|file| file.named != above)?;
            Some(file.named.join(path.strip_prefix(above).ok()?))
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<FileIdentity, DeniedFile>> {
        self.0.lock().expect("no holder of the denied files panics")
    }
}

#[cfg(unix)]
fn identify(path: &Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).ok().map(|entry| (entry.dev(), entry.ino()))
}

/// Names alone identify files here.
#[cfg(not(unix))]
fn identify(_: &Path) -> Option<FileIdentity> {
    None
}

/// Searches a tree for a file, without following links.
///
/// # Errors
/// It is not found: the directories that could not be listed.
fn find_identity(root: &Path, identity: FileIdentity) -> Result<PathBuf, Vec<PathBuf>> {
    /// The most entries that are examined.
    const MOST: usize = 200_000;
    let mut waiting = vec![root.to_path_buf()];
    let (mut left, mut closed) = (MOST, Vec::new());
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&dir) else {
            closed.push(dir);
            continue;
        };
        for entry in entries.flatten() {
            left -= 1;
            let path = entry.path();
            if identify(&path) == Some(identity) {
                return Ok(path);
            }
            if left == 0 {
                return Err(closed);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            }
        }
    }
    Err(closed)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_is_found_under_its_new_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        fs::create_dir_all(root.join("config/deep")).expect("made");
        fs::write(root.join("config/deep/key"), "k").expect("written");
        fs::write(root.join("other"), "").expect("written");
        let denied = DeniedFiles::default();
        let key = [root.join("config/deep/key")];
        assert_eq!(denied.follow(root, &key), [] as [PathBuf; 0]);
        fs::rename(root.join("config"), root.join("c2")).expect("moved");
        assert_eq!(denied.follow(root, &[]), [root.join("c2/deep/key")]);
        assert_eq!(denied.former_path(&root.join("c2/deep/key")).as_deref(), Some(key[0].as_path()));
        assert_eq!(denied.former_path(&root.join("other")), None);
        fs::remove_file(root.join("c2/deep/key")).expect("removed");
        assert_eq!(denied.follow(root, &[]), [] as [PathBuf; 0]);
    }
}
