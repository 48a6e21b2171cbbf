//! The file system of a command: lids over what it must not see, read-only mounts over what it must not write.
//!
//! An init mounts them once and serves many commands. Meanwhile files come and go: a new key needs a lid, and a file
//! that was replaced from outside has lost its mount. Both change the directory that contains them. So before each
//! command only directories are checked, and their entries only if they have changed ([`Lids::hold`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::messages::{RunStage, StageView};
use super::mounts::{
    has_copy, is_mount_point, is_read_only, list_points, mount_copy, mount_lid, pin_path, protect_link,
    protect_path, read_only,
};
use crate::safety::sandbox::SandboxProfile;
use crate::safety::sandbox::dirs::{DirState, EntryIdentity, read_identity};

/// The kind of mount over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    /// It is hidden completely.
    Lid,
    /// It is read-only. A link stays the link that it is, and what it leads to is read-only. Anything else that is not a
    /// file, or not a directory, is left alone.
    File,
    Dir,
    Any,
    /// A link leads from it to the copy of this number; without a copy it is read-only.
    Copy(usize),
    /// A directory stays where it is: nothing else can be put in its place.
    Pin,
}

/// The mounts over paths, and the directories that reveal whether they are still complete.
#[derive(Debug, Default)]
pub(super) struct Lids {
    dirs: BTreeMap<PathBuf, LidDir>,
    /// The paths at which something was to be covered.
    mounted: Vec<(PathBuf, Cover)>,
    /// Paths on the way to others that are not directories.
    ends: BTreeSet<PathBuf>,
    /// Those of them that exist. A link may lead to a directory that is created elsewhere.
    others: Vec<PathBuf>,
}

/// A directory that contains some of the paths.
#[derive(Debug)]
struct LidDir {
    seen: DirState,
    covered: Vec<(PathBuf, Cover)>,
    /// Entries at which ways to other paths end, and what was there: nothing, or something that is not a directory.
    ends: Vec<(PathBuf, Option<EntryIdentity>)>,
}

impl Lids {
    /// Mounts those that every command has.
    ///
    /// # Errors
    /// A step failed: then no command must run.
    pub fn mount_common(stage: &RunStage) -> io::Result<Self> {
        let mut lids = Self::default();
        lids.lay(stage.masked.iter().map(|path| (path.as_ref(), Cover::Lid)))?;
        Ok(lids)
    }

    /// Mounts the rest of a view.
    ///
    /// # Errors
    /// A step failed: then the command must not run.
    pub fn complete(&mut self, stage: &RunStage, view: &StageView) -> io::Result<()> {
        self.lay(view.masked.iter().map(|path| (path.as_ref(), Cover::Lid)))?;
        if view.profile == SandboxProfile::Read {
            return only_read(stage);
        }
        let protected = [
            // First, as it would cover what is mounted in it.
            (&stage.pinned, Cover::Pin),
            (&stage.protected_files, Cover::File),
            (&stage.protected_dirs, Cover::Dir),
            (&view.protected, Cover::Any),
        ];
        let protected =
            protected.into_iter().flat_map(|(paths, cover)| paths.iter().map(move |path| (path, cover)));
        let copied = stage.configurations.iter().enumerate().map(|(at, path)| (path, Cover::Copy(at)));
        self.lay(protected.chain(copied).map(|(path, cover)| (path.as_ref(), cover)))
    }

    /// True if the mounts are still complete.
    pub fn hold(&mut self) -> bool {
        // Every directory gets its new stamp, whatever was found in another.
        let hold = self.dirs.iter_mut().fold(true, |hold, (path, dir)| dir.holds(path) && hold);
        hold && !self.others.iter().any(|path| path.is_dir())
    }

    /// Mounts again over what has replaced what was covered.
    ///
    /// # Errors
    /// A step failed.
    pub fn repair(&self) -> io::Result<()> {
        self.mounted.iter().try_for_each(|(path, cover)| cover.complete(path))
    }

    /// The directories whose entries the mounts depend on.
    pub fn list_dirs(&self) -> impl Iterator<Item = &Path> {
        self.dirs.keys().map(PathBuf::as_path)
    }

    fn lay<'a>(&mut self, paths: impl Iterator<Item = (&'a Path, Cover)>) -> io::Result<()> {
        for (path, cover) in paths {
            let Some(parent) = path.parent() else { continue };
            if !self.is_seen(parent) {
                continue;
            }
            cover.complete(path)?;
            if path.symlink_metadata().is_ok() {
                self.mounted.push((path.to_path_buf(), cover));
            }
            if let Some(dir) = self.dirs.get_mut(parent) {
                dir.covered.push((path.to_path_buf(), cover));
            }
        }
        Ok(())
    }

    /// True if there is such a directory. It is watched from here on, or, if it does not exist, the way to it.
    fn is_seen(&mut self, dir: &Path) -> bool {
        if self.dirs.contains_key(dir) || self.ends.contains(dir) {
            return !self.ends.contains(dir);
        }
        match DirState::check(dir) {
            DirState::Nothing => {}
            DirState::Other => self.others.push(dir.to_path_buf()),
            seen @ DirState::Dir(_) => {
                self.dirs.insert(dir.to_path_buf(), LidDir { seen, covered: Vec::new(), ends: Vec::new() });
                return true;
            }
        }
        self.ends.insert(dir.to_path_buf());
        if let Some(parent) = dir.parent()
            && self.is_seen(parent)
            && let Some(above) = self.dirs.get_mut(parent)
        {
            above.ends.push((dir.to_path_buf(), identify(dir)));
        }
        false
    }
}

impl LidDir {
    fn holds(&mut self, path: &Path) -> bool {
        let now = DirState::check(path);
        let then = std::mem::replace(&mut self.seen, now);
        if now.is_as(then) {
            return true;
        }
        self.covered.iter().all(|(path, cover)| cover.is_missing(path).is_none())
            && self.ends.iter().all(|(path, then)| identify(path) == *then)
    }
}

impl Cover {
    /// Covers what is at a path, unless it is. What was there may go meanwhile, as sockets do, and another come: then it is
    /// tried again, eight times in all.
    fn complete(self, path: &Path) -> io::Result<()> {
        let cover = || {
            let Some(entry) = self.is_missing(path) else { return Ok(()) };
            match self {
                Self::Lid => mount_lid(path, &entry),
                _ if entry.is_symlink() => protect_link(path),
                Self::Copy(at) if has_copy(at) => mount_copy(path, at),
                Self::Pin => pin_path(path),
                Self::Copy(_) | Self::File | Self::Dir | Self::Any => protect_path(path),
            }
        };
        (1..8).find_map(|_| cover().ok()).map_or_else(cover, Ok)
    }

    /// The entry that must be covered and is not, if there is one.
    fn is_missing(self, path: &Path) -> Option<Metadata> {
        let entry = fs::symlink_metadata(path).ok()?;
        let kind = entry.file_type();
        let is_open = match self {
            // A lid on a file or a socket is a device.
            Self::Lid => kind.is_file() || kind.is_socket() || kind.is_dir() && !is_lid(path, &entry),
            Self::Any | Self::Pin if kind.is_symlink() => false,
            _ if kind.is_symlink() => !is_mount_point(path),
            Self::File => kind.is_file() && !is_read_only(path),
            Self::Dir => kind.is_dir() && !is_read_only(path),
            Self::Any => !is_read_only(path),
            Self::Copy(at) => kind.is_file() && (has_copy(at) || !is_read_only(path)),
            Self::Pin => kind.is_dir() && !is_mount_point(path),
        };
        is_open.then_some(entry)
    }
}

/// True if a directory is an empty one that is mounted there.
fn is_lid(path: &Path, entry: &Metadata) -> bool {
    let above = path.parent().and_then(|dir| fs::symlink_metadata(dir).ok());
    entry.mode().trailing_zeros() >= 9 && above.is_some_and(|above| above.dev() != entry.dev())
}

/// Makes the trees of a stage that are written read-only.
fn only_read(stage: &RunStage) -> io::Result<()> {
    for point in list_points()? {
        if stage.written.iter().any(|tree| point.starts_with(tree.as_ref())) && !is_read_only(&point) {
            read_only(&point)?;
        }
    }
    Ok(())
}

fn identify(path: &Path) -> Option<EntryIdentity> {
    fs::symlink_metadata(path).ok().map(|entry| read_identity(&entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths, none of which exists, looked at in a directory that has been as it is for long.
    fn watched(root: &Path, paths: &[&str]) -> Lids {
        let mut lids = Lids::default();
        let paths: Vec<PathBuf> = paths.iter().map(|path| root.join(path)).collect();
        lids.lay(paths.iter().map(|path| (path.as_path(), Cover::Lid))).expect("nothing is to be mounted");
        lids
    }

    #[test]
    fn what_appears_on_the_way_to_a_path_is_noticed() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let paths = ["key", "a/key", "b/c/key", "file/key"];
        fs::write(root.join("file"), "").expect("written");
        let mut lids = watched(root, &paths);
        assert!(lids.hold() && lids.hold());
        fs::write(root.join("other"), "").expect("written");
        assert!(lids.hold(), "nothing that matters");
        for made in ["key", "a", "b"] {
            let mut lids = watched(root, &paths);
            fs::create_dir(root.join(made)).expect("made");
            assert!(!lids.hold(), "{made}");
            fs::remove_dir(root.join(made)).expect("removed");
        }
        fs::create_dir_all(root.join("b/c")).expect("made");
        let mut lids = watched(root, &paths);
        assert!(lids.hold());
        fs::write(root.join("b/c/key"), "").expect("written");
        assert!(!lids.hold(), "in a directory that was there");
        fs::remove_file(root.join("b/c/key")).expect("removed");
        let mut lids = watched(root, &paths);
        fs::remove_file(root.join("file")).expect("removed");
        assert!(!lids.hold(), "a directory may take its place");
        let elsewhere = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(elsewhere.path().join("later"), root.join("link")).expect("made");
        let mut lids = watched(root, &["link/key"]);
        assert!(lids.hold());
        fs::create_dir(elsewhere.path().join("later")).expect("made");
        assert!(!lids.hold(), "the target of a link was made");
    }

    #[test]
    fn few_directories_stand_for_many_paths() {
        let root = tempfile::tempdir().expect("a directory");
        let lids = watched(root.path(), &["a/1", "a/2", "a/b/3", "a/b/4", "5", "6"]);
        assert_eq!(lids.dirs.keys().collect::<Vec<_>>(), [root.path()]);
        assert_eq!(lids.dirs[root.path()].ends.len(), 1, "`a` stands for all in it");
    }
}
