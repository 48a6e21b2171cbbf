//! Copies of the configurations of repositories. A command finds one in place of each configuration, and changes it as
//! git does; what runs nothing and leads nowhere else is taken over when the command has ended.
//!
//! The configuration itself is never writable to a command, whatever its line says, and stays the same file: a person's
//! programs read it meanwhile. The copies are in a directory that commands write, so they are reached through handles.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::files::disk::{self, Dir};
use crate::files::file_name;

use super::aside::{MovedAside, make_kept_dir};
use super::git_config::differ_harmlessly;
use super::places::Places;
use super::snapshot::MOST_FILE_BYTES;

const COPIES: &str = ".git-config";

/// The copies of one boundary.
pub(super) struct ConfigurationCopies {
    /// The directory in which each copy has a directory of its own.
    dir: PathBuf,
    copies: Mutex<Vec<ConfigurationCopy>>,
}

struct ConfigurationCopy {
    workspace: PathBuf,
    /// Absolute.
    real: PathBuf,
    /// The content that commands were given.
    given: Option<Vec<u8>>,
}

/// The configurations among these places, absolute, in the order of their copies.
pub(super) fn list_configurations<'a>(
    workspace: &'a Path,
    places: impl IntoIterator<Item = &'a Places>,
) -> impl Iterator<Item = PathBuf> {
    let of_git = |places: &'a Places| {
        let is_of_git = |path: &&PathBuf| {
            let is_named = path.file_name().is_some_and(|name| name == "config" || name == "config.worktree");
            is_named && path.parent().is_some_and(|dir| places.repositories.iter().any(|known| known == dir))
        };
        places.files.iter().filter(is_of_git)
    };
    places.into_iter().flat_map(of_git).map(|path| workspace.join(path))
}

impl ConfigurationCopies {
    /// `temp` is the directory that commands see as their own for temporary files. Boundaries that share it have
    /// numbers of their own.
    pub fn new<'a>(
        temp: &Path,
        number: usize,
        workspace: &'a Path,
        places: impl IntoIterator<Item = &'a Places>,
    ) -> Self {
        let copies = list_configurations(workspace, places);
        let copies = copies.map(|real| ConfigurationCopy { workspace: workspace.into(), real, given: None });
        Self { dir: temp.join(name_copies(number)), copies: Mutex::new(copies.collect()) }
    }

    /// Renews the copies of configurations that have changed since.
    pub fn give(&self) {
        for (at, copy) in self.copies().iter_mut().enumerate() {
            let now = disk::read_file(&copy.real, MOST_FILE_BYTES).ok();
            // What a command in the background has written is collected first.
            let is_untouched = copy.given.is_none() || self.read_copy(at) == copy.given;
            if now != copy.given && is_untouched {
                // Without its copy a command cannot change that configuration.
                copy.given = now.filter(|text| self.write_copy(at, text).is_ok());
            }
        }
    }

    /// Takes over what commands changed, and returns what is not taken over: with where it is kept, or the name of a
    /// configuration of which it cannot be kept.
    pub fn collect(&self, kept: &Path) -> Vec<Result<MovedAside, String>> {
        let mut refused = Vec::new();
        for (at, copy) in self.copies().iter_mut().enumerate() {
            let (Some(given), Some(changed)) = (copy.given.clone(), self.read_copy(at)) else { continue };
            if changed == given {
                continue;
            }
            let now = disk::read_file(&copy.real, MOST_FILE_BYTES).ok();
            if now.as_ref() == Some(&given) && is_harmless(&given, &changed) && copy.take(&changed).is_ok() {
                copy.given = Some(changed);
                continue;
            }
            refused.push(copy.keep(&changed, now.clone(), kept).map_err(|_| copy.name()));
            copy.given = now.filter(|text| self.write_copy(at, text).is_ok());
        }
        refused
    }

    fn read_copy(&self, at: usize) -> Option<Vec<u8>> {
        disk::read_file(&self.dir.join(at.to_string()).join("config"), MOST_FILE_BYTES).ok()
    }

    fn write_copy(&self, at: usize, text: &[u8]) -> io::Result<()> {
        let dir = Dir::create(&self.dir.join(at.to_string()))?;
        dir.replace("config".as_ref(), text, Some(0o644))
    }

    fn copies(&self) -> MutexGuard<'_, Vec<ConfigurationCopy>> {
        self.copies.lock().expect("nobody panics while configurations are compared")
    }
}

impl ConfigurationCopy {
    fn take(&self, text: &[u8]) -> io::Result<()> {
        let (dir, name) = disk::split_path(&self.real)?.ok_or(io::ErrorKind::NotFound)?;
        Dir::open(dir)?.overwrite(name, text)
    }

    /// For a person, relative to the workspace.
    fn name(&self) -> String {
        file_name::quote(self.real.strip_prefix(&self.workspace).unwrap_or(&self.real)).into_owned()
    }

    fn keep(&self, text: &[u8], replaces: Option<Vec<u8>>, kept: &Path) -> io::Result<MovedAside> {
        let kept = make_kept_dir(kept)?.join("config");
        std::fs::write(&kept, text)?;
        Ok(MovedAside { name: self.name(), path: self.real.clone(), kept, replaces })
    }
}

/// The directory of the copies of one boundary, in that for temporary files.
pub(super) fn name_copies(number: usize) -> String {
    format!("{COPIES}-{number}")
}

fn is_harmless(before: &[u8], after: &[u8]) -> bool {
    let texts = std::str::from_utf8(before).ok().zip(std::str::from_utf8(after).ok());
    texts.is_some_and(|(before, after)| differ_harmlessly(before, after))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn harmless_changes_are_taken_over_and_others_kept_apart() {
        let place = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(place.path()).expect("it is there");
        let (temp, kept, own) = (root.join("tmp"), root.join("kept"), root.join("w/.git/config"));
        for dir in [&temp, &root.join("w/.git")] {
            fs::create_dir_all(dir).expect("made");
        }
        let copy = temp.join(name_copies(7)).join("0/config");
        let places = Places {
            files: vec![".git/config".into(), ".cargo/config".into()],
            repositories: vec![".git".into()],
            ..Places::default()
        };
        let read = |path: &Path| fs::read_to_string(path).expect("read");
        let copies = ConfigurationCopies::new(&temp, 7, &root.join("w"), [&places]);
        copies.give();
        assert!(!copy.exists(), "there is no configuration");
        let (mine, renamed) = ("[core]\n\tbare = false\n", "[core]\n\tbare = false\n[user]\n\tname = a\n");
        fs::write(&own, mine).expect("written");
        copies.give();
        assert_eq!(read(&copy), mine);
        fs::write(&copy, renamed).expect("written");
        assert!(copies.collect(&kept).is_empty());
        assert_eq!(read(&own), renamed);
        let evil = format!("{renamed}[core]\n\tfsmonitor = evil\n");
        fs::write(&copy, &evil).expect("written");
        let refused: Vec<MovedAside> = copies.collect(&kept).into_iter().map(|kept| kept.expect("kept")).collect();
        assert_eq!(refused.iter().map(|change| &*change.name).collect::<Vec<_>>(), [".git/config"]);
        assert_eq!((read(&refused[0].kept), read(&own), read(&copy)), (evil, renamed.into(), renamed.into()));
        // The person was faster.
        fs::write(&copy, format!("{renamed}[user]\n\temail = a\n")).expect("written");
        fs::write(&own, mine).expect("written");
        assert_eq!(copies.collect(&kept).len(), 1);
        assert_eq!((read(&own), read(&copy)), (mine.into(), mine.into()));
        #[cfg(unix)]
        {
            fs::remove_file(&copy).expect("removed");
            std::os::unix::fs::symlink("/etc/passwd", &copy).expect("linked");
            assert!(copies.collect(&kept).is_empty());
            assert_eq!(read(&own), mine, "a link is not followed");
        }
    }
}
