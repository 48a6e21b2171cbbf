//! Finds the files in a workspace that decide what runs later, according to the one table of them: at the root, deeper
//! if they exist, and in the repositories in it: nested and bare ones, submodules, linked work trees.
//!
//! They are searched once, while the model writes its first command, the nearest first, and neither in directories that
//! package managers fill nor through links. The limits are those of a very large workspace. Repositories that commands make
//! later come by [`find_repository_at`].

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::disk::{self, DirEntry, DirEntryKind, list_closed};
use crate::files::protected::{self, ProtectedEntry, ProtectedKind};

use super::Boundary;

/// Directories that are not searched.
const PASSED_OVER: [&str; 6] = ["node_modules", "target", "__pycache__", ".venv", "venv", ".git"];
const MOST_LEVELS: usize = 16;
const MOST_DIRS: usize = 20_000;
const MOST_REPOSITORIES: usize = 256;
const MOST_NESTED: usize = 1000;
/// A file that points to a git directory is short.
const LONGEST_POINTER: u64 = 4096;

/// Places that are watched: relative to the workspace, or absolute if they are outside.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub files: Vec<PathBuf>,
    pub dirs: Vec<PathBuf>,
    /// The git directories among the watched places, and other directories that may go as a whole.
    pub repositories: Vec<PathBuf>,
    /// The files that point to a git directory elsewhere, and others that may go with their directory.
    pub pointers: Vec<PathBuf>,
    /// Git directories beyond the limit: known, but not guarded.
    pub unguarded: BTreeSet<PathBuf>,
    /// True if there are more directories than were visited.
    pub is_cut: bool,
}

/// The places of a workspace, and those of the repositories in what its commands may write.
pub(super) fn find_places(plan: &Boundary) -> Vec<Arc<Places>> {
    let mut own = Places { repositories: vec![".git".into()], ..Places::default() };
    let search = PlaceSearch::new(plan);
    for top in [PathBuf::new()].iter().chain(&search.written) {
        protected::from_commands().for_each(|row| own.add(&row, top));
    }
    protected::of_git().for_each(|row| own.add(&row, Path::new(".git")));
    let mut nested = search.run(true);
    for places in [&mut own, &mut nested].into_iter().filter(|_| !plan.unprotected.is_empty()) {
        let stays = |path: &PathBuf| {
            let path = plan.workspace.join(path);
            !plan.unprotected.iter().any(|opened| opened.starts_with(&path) || path.starts_with(opened))
        };
        places.files.retain(stays);
        places.dirs.retain(stays);
    }
    let places = [own, nested].into_iter().filter(|places| !places.files.is_empty() || !places.dirs.is_empty());
    places.map(Arc::new).collect()
}

/// The git directories in what commands may write, and the `.git` entries that lead to others, which are not among the
/// known places, however many. The workspace is left out if it `is_followed`, or if not all of it was known before.
pub(super) fn find_unknown(plan: &Boundary, known: &[Arc<Places>], is_followed: bool) -> Vec<PathBuf> {
    let found = PlaceSearch::new(plan).run(!is_followed && !known.iter().any(|places| places.is_cut));
    let list = |places: &Places| {
        let pointers = places.pointers.iter().filter(|path| path.file_name().is_some_and(is_git));
        places.repositories.iter().chain(&places.unguarded).chain(pointers).cloned().collect::<BTreeSet<_>>()
    };
    let known = known.iter().flat_map(|places| list(places)).collect();
    list(&found).difference(&known).cloned().collect()
}

/// The places of a repository that a command made, by the path of its `.git` in the workspace, or its own if it is bare.
pub(super) fn find_repository_at(plan: &Boundary, entry: &Path) -> Places {
    let mut search = PlaceSearch::new(plan);
    search.entry(&plan.workspace.join(entry));
    search.places
}

impl Places {
    fn add(&mut self, row: &ProtectedEntry, below: &Path) {
        let list = if row.kind == ProtectedKind::Dir { &mut self.dirs } else { &mut self.files };
        list.push(below.join(row.path));
    }
}

struct PlaceSearch<'a> {
    workspace: &'a Path,
    /// Other places that commands may write, with links resolved.
    written: Vec<PathBuf>,
    places: Places,
    /// Files and directories of the table below the root.
    nested: usize,
    /// The directories that were visited.
    visited: usize,
}

impl<'a> PlaceSearch<'a> {
    fn new(plan: &'a Boundary) -> Self {
        let written = plan.write.iter().filter_map(|dir| crate::files::canonicalize(dir).ok()).collect();
        Self { workspace: &plan.workspace, written, places: Places::default(), nested: 0, visited: 0 }
    }

    fn run(mut self, goes_down: bool) -> Places {
        let search = &mut self;
        search.entry(&search.workspace.join(".git"));
        for dir in search.written.clone() {
            search.entry(&dir.join(".git"));
            search.git_dir(&dir);
        }
        let mut queue: VecDeque<_> = goes_down.then(|| (search.workspace.to_path_buf(), 0)).into_iter().collect();
        while let Some((dir, level)) = queue.pop_front() {
            search.visited += 1;
            if search.visited > MOST_DIRS {
                break;
            }
            // A git directory of any name: a bare repository.
            let is_whole = || dir.join("objects").is_dir() && dir.join("refs").is_dir();
            if has_head(&dir) && (dir.join("commondir").is_file() || is_whole()) {
                search.git_dir(&dir);
                continue;
            }
            for DirEntry { name, kind } in list_closed(&dir) {
                let path = dir.join(&name);
                let goes_on = kind == DirEntryKind::Dir && level < MOST_LEVELS;
                if is_git(&name) {
                    search.entry(&path);
                } else if let Some(row) = search.find_row(&path) {
                    search.place(&row, &path);
                } else if goes_on && !PASSED_OVER.iter().any(|other| name == *other) {
                    queue.push_back((path, level + 1));
                }
            }
        }
        self.places.is_cut = self.visited > MOST_DIRS;
        self.places
    }

    /// The row of the table that ends this path.
    fn find_row(&self, path: &Path) -> Option<ProtectedEntry> {
        if !protected::may_end_row(path.file_name()?) {
            return None;
        }
        protected::nested_row(path.strip_prefix(self.workspace).ok()?)
    }

    fn place(&mut self, row: &ProtectedEntry, path: &Path) {
        let Some(path) = self.find_watched(path).filter(|_| self.nested < MOST_NESTED) else { return };
        self.nested += 1;
        let Places { files, dirs, repositories, pointers, .. } = &mut self.places;
        let (watched, may_go) =
            if row.kind == ProtectedKind::Dir { (dirs, repositories) } else { (files, pointers) };
        watched.push(path.clone());
        may_go.push(path);
    }

    /// A `.git`: the git directory itself, a link to it, or a file that names it.
    fn entry(&mut self, path: &Path) {
        let Ok(metadata) = fs::symlink_metadata(path) else { return };
        if metadata.is_dir() {
            self.git_dir(path);
            return;
        }
        if let Some(pointer) = self.find_watched(path) {
            self.places.files.push(pointer.clone());
            self.places.pointers.push(pointer);
        }
        let named =
            if metadata.is_file() { named_in(path, "gitdir: ") } else { crate::files::canonicalize(path).ok() };
        if let Some(dir) = named {
            self.git_dir(&dir);
            // A linked work tree shares hooks and configuration with the others.
            if let Some(common) = named_in(&dir.join("commondir"), "") {
                self.git_dir(&common);
            }
        }
    }

    /// A git directory, and those inside it for submodules and linked work trees.
    fn git_dir(&mut self, dir: &Path) {
        let mut queue = VecDeque::from([(dir.to_path_buf(), 0)]);
        while let Some((dir, level)) = queue.pop_front() {
            self.visited += 1;
            // A link may lead out, or round.
            let dir = crate::files::canonicalize(&dir).ok().filter(|dir| self.find_watched(dir).is_some());
            let Some(dir) = dir.filter(|_| self.visited <= MOST_DIRS) else { continue };
            let is_repository = has_head(&dir) || dir.file_name().is_some_and(|name| name == ".git");
            if is_repository {
                self.add(&dir);
            } else if level == 0 {
                return;
            }
            // Submodules may be called `a/b`.
            let below: &[&str] = if is_repository { &["modules", "worktrees"] } else { &["."] };
            for top in below.iter().map(|name| dir.join(name)) {
                let dirs = list_closed(&top).into_iter().filter(|entry| entry.kind == DirEntryKind::Dir);
                queue.extend(dirs.filter(|_| level < MOST_LEVELS).map(|entry| (top.join(entry.name), level + 1)));
            }
        }
    }

    fn add(&mut self, dir: &Path) {
        let Some(dir) = self.find_watched(dir) else { return };
        let known = &self.places.repositories;
        if dir == Path::new(".git") || known.contains(&dir) {
            return;
        }
        if known.len() >= MOST_REPOSITORIES {
            self.places.unguarded.insert(dir);
            return;
        }
        protected::of_git().for_each(|row| self.places.add(&row, &dir));
        self.places.repositories.push(dir);
    }

    /// The name of a path, if commands may write it at all.
    fn find_watched(&self, path: &Path) -> Option<PathBuf> {
        match path.strip_prefix(self.workspace) {
            Ok(inside) => Some(inside.to_path_buf()),
            Err(_) => self.written.iter().any(|dir| path.starts_with(dir)).then(|| path.to_path_buf()),
        }
    }
}

/// The directories of a workspace's repository that lie outside of it. A file that names another's is not believed,
/// unless the other names the workspace as well.
#[cfg(target_os = "linux")]
pub(super) fn find_repository(workspace: &Path) -> Vec<PathBuf> {
    let entry = workspace.join(".git");
    let Some(dir) = named_in(&entry, "gitdir: ") else {
        let is_inner = fs::symlink_metadata(&entry).is_err();
        return workspace
            .ancestors()
            .skip(1)
            .filter(|dir| is_inner && dir.join(".git").exists())
            .take(1)
            .map(Path::to_path_buf)
            .collect();
    };
    let is_linked = named_in(&dir.join("gitdir"), "").is_some_and(|named| named == entry);
    let is_submodule = workspace.ancestors().any(|above| dir.starts_with(above.join(".git/modules")));
    // git makes it below the common one.
    let common = named_in(&dir.join("commondir"), "");
    let common = common.filter(|common| dir.parent().is_some_and(|above| above == common.join("worktrees")));
    if is_linked || is_submodule { [dir].into_iter().chain(common).collect() } else { Vec::new() }
}

/// True if a file system may take a name for `.git`.
fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// True if git runs no hook of this name.
pub(super) fn is_sample(path: &Path) -> bool {
    path.parent().is_some_and(|dir| dir.ends_with("hooks")) && path.extension().is_some_and(|end| end == "sample")
}

/// True if git may take a directory for a repository by its `HEAD`: also a link that leads nowhere.
pub(super) fn has_head(dir: &Path) -> bool {
    fs::symlink_metadata(dir.join("HEAD")).is_ok_and(|entry| !entry.is_dir())
}

/// The directory that a file names after `key`, relative to the file. As for git, spaces at its end belong to it.
pub(super) fn named_in(file: &Path, key: &str) -> Option<PathBuf> {
    let text = String::from_utf8(disk::read_file(file, LONGEST_POINTER).ok()?).ok()?;
    let named = text.strip_prefix(key)?.trim_end_matches(['\n', '\r']);
    crate::files::canonicalize(&file.parent()?.join(named)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_where_git_says_that_it_leads() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = crate::files::canonicalize(dir.path()).expect("it is there");
        for name in ["good", "good "] {
            fs::create_dir(root.join(name)).expect("made");
        }
        for (text, expected) in [
            ("gitdir: good\n", Some("good")),
            ("gitdir: good\r\n", Some("good")),
            ("gitdir: good \n", Some("good ")),
            ("gitdir:good\n", None),
        ] {
            fs::write(root.join(".git"), text).expect("written");
            assert_eq!(named_in(&root.join(".git"), "gitdir: "), expected.map(|name| root.join(name)), "{text:?}");
        }
    }
}
