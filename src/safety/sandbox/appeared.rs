//! What appears under a protected name while a command runs: a hook, a file of an editor, of CI or of another agent.
//!
//! Only the names themselves are looked at, so neither depth nor number of what a command makes there matters. What was
//! there before is not judged: a person may have changed it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::canonicalize;
use crate::files::disk::{self, Dir};

use super::dirs::{EntryIdentity, read_identity};
use super::git_config::differ_harmlessly;
use super::places::{Places, is_sample, named_in};
use super::snapshot::MOST_FILE_BYTES;

/// The lists of what a stopped rebase does next, in a git directory.
const REBASE_LISTS: [&str; 2] = ["rebase-merge/git-rebase-todo", "rebase-merge/git-rebase-todo.backup"];

/// The protected paths as they were when a command began.
#[derive(Default)]
pub(super) struct PathsBefore {
    paths: Vec<PathBefore>,
    /// The commands in lists of stopped rebases: git itself writes those lists, and runs what they name.
    rebases: Vec<(PathBuf, Vec<String>)>,
    /// The git directories that are guarded, relative to the workspace.
    repositories: BTreeSet<PathBuf>,
}

struct PathBefore {
    /// Relative to the workspace, or absolute.
    path: PathBuf,
    is_dir: bool,
    /// The directory in which it was; `None` if nothing was there. A command may move that away and make another.
    within: Option<EntryIdentity>,
}

impl PathsBefore {
    /// What was `accepted` earlier in the run is judged again: the command that made it may still run.
    pub fn record(root: &Path, places: &[Arc<Places>], accepted: &BTreeSet<PathBuf>) -> Self {
        let record = |(path, is_dir): (PathBuf, bool)| {
            let present = find_present(root, &path, is_dir).filter(|_| !accepted.contains(&path));
            let within = present.and_then(|_| identify_parent(&root.join(&path)));
            PathBefore { path, is_dir, within }
        };
        let rebases = list_rebases(places).map(|list| (list.clone(), read_commands(&root.join(list)))).collect();
        let paths = list_paths(root, places).into_iter().map(record).collect();
        Self { paths, rebases, repositories: list_repositories(places) }
    }

    /// Before the `made` ones nothing was there; `places` are all that are guarded.
    pub fn record_nothing(root: &Path, made: &[Arc<Places>], places: &[Arc<Places>]) -> Self {
        let paths = list_paths(root, made).into_iter();
        let paths = paths.map(|(path, is_dir)| PathBefore { path, is_dir, within: None }).collect();
        let rebases = list_rebases(made).map(|list| (list, Vec::new())).collect();
        Self { paths, rebases, repositories: list_repositories(places) }
    }

    /// The paths at which something is now that was not there, sorted. Where a link leads there, it is the link. What is
    /// harmless is accepted instead.
    pub fn find_appeared(self, root: &Path, accepted: &mut BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let endings: Vec<String> = self.paths.iter().filter_map(|known| find_ending(&known.path)).collect();
        let mut appeared = Vec::new();
        for known in &self.paths {
            let Some(found) = find_present(root, &known.path, known.is_dir) else { continue };
            if known.within.is_some() && known.within == identify_parent(&root.join(&known.path)) {
                continue;
            }
            if self.is_harmless(root, &found) {
                accepted.insert(found);
            } else {
                appeared.push(found);
            }
        }
        let was_there = |path: &PathBuf| self.paths.iter().any(|known| known.path == *path);
        appeared.extend(list_ending(root, &endings).filter(|path| !was_there(path)));
        let commands_of = |list: &PathBuf| read_commands(&root.join(list));
        let is_new =
            |(list, before): &&(PathBuf, Vec<String>)| commands_of(list).iter().any(|line| !before.contains(line));
        appeared.extend(self.rebases.iter().filter(is_new).map(|(list, _)| list.clone()));
        appeared.sort();
        appeared.dedup();
        appeared
    }

    /// True for what a new repository consists of: a configuration that runs nothing, samples of hooks, and files that name a
    /// git directory which is guarded.
    fn is_harmless(&self, root: &Path, path: &Path) -> bool {
        let full = root.join(path);
        let is_guarded = |dir: &Path| self.repositories.contains(dir.strip_prefix(root).unwrap_or(dir));
        let git_dir = full.parent().unwrap_or(root);
        match path.file_name().and_then(|name| name.to_str()) {
            Some("hooks") => {
                let entries = Dir::open(&full).and_then(|dir| dir.entries());
                entries.is_ok_and(|entries| entries.iter().all(|entry| is_sample(&full.join(&entry.name))))
            }
            Some("config" | "config.worktree") if is_guarded(git_dir) => {
                let text = disk::read_file(&full, MOST_FILE_BYTES).ok();
                let text = text.and_then(|text| String::from_utf8(text).ok());
                text.is_some_and(|text| differ_harmlessly("", &without_own_tree(&text, git_dir, root)))
            }
            Some(".git") => named_in(&full, "gitdir: ").is_some_and(|dir| is_guarded(&dir)),
            Some("commondir") => named_in(&full, "").is_some_and(|dir| is_guarded(&dir)),
            _ => false,
        }
    }
}

fn list_repositories(places: &[Arc<Places>]) -> BTreeSet<PathBuf> {
    places.iter().flat_map(|places| places.repositories.iter().cloned()).collect()
}

/// The lists of what a stopped rebase would do next.
fn list_rebases(places: &[Arc<Places>]) -> impl Iterator<Item = PathBuf> {
    let repositories = places.iter().flat_map(|places| &places.repositories);
    repositories.flat_map(|dir| REBASE_LISTS.map(|list| dir.join(list)))
}

/// A configuration without the line by which a submodule names its work tree, if that is in the workspace.
fn without_own_tree(text: &str, git_dir: &Path, root: &Path) -> String {
    let is_inside = |path: &str| canonicalize(&git_dir.join(path)).is_ok_and(|tree| tree.starts_with(root));
    let mut is_core = false;
    let mut names_tree = |line: &str| {
        is_core = if line.starts_with('[') { line == "[core]" } else { is_core };
        is_core && line.strip_prefix("worktree = ").is_some_and(is_inside)
    };
    text.lines().filter(|line| !names_tree(line.trim())).collect::<Vec<_>>().join("\n")
}

/// The paths of the places, and whether each is that of a directory. A name with a `*` stands for itself, so that it is
/// known later, and for the files at the root that it matches.
fn list_paths(root: &Path, places: &[Arc<Places>]) -> Vec<(PathBuf, bool)> {
    let named = places.iter().flat_map(|places| {
        let files = places.files.iter().map(|path| (path.clone(), false));
        files.chain(places.dirs.iter().map(|path| (path.clone(), true)))
    });
    let endings = places.iter().flat_map(|places| &places.files).filter_map(|path| find_ending(path));
    let endings: Vec<String> = endings.collect();
    named.chain(list_ending(root, &endings).map(|path| (path, false))).collect()
}

/// The ending of the names that a name with a `*` stands for.
fn find_ending(path: &Path) -> Option<String> {
    path.to_str()?.strip_prefix('*').map(str::to_lowercase)
}

/// The files at the root whose names have one of these endings.
fn list_ending(root: &Path, endings: &[String]) -> impl Iterator<Item = PathBuf> {
    let listed = (!endings.is_empty()).then(|| Dir::open(root).and_then(|dir| dir.entries()).ok()).flatten();
    let has_ending = move |path: &PathBuf| {
        let name = path.to_string_lossy().to_lowercase();
        endings.iter().any(|ending| name.ends_with(ending))
    };
    listed.into_iter().flatten().map(|entry| PathBuf::from(entry.name)).filter(has_ending)
}

/// What is at a path: the path itself, or the first link on the way. A link that leads nowhere is something, too: what it
/// leads to can be made under another name.
fn find_present(root: &Path, path: &Path, is_dir: bool) -> Option<PathBuf> {
    let full = root.join(path);
    let is_whole = fs::metadata(&full).is_ok();
    let above = path.ancestors().skip(usize::from(is_whole));
    let above = above.filter(|above| !above.as_os_str().is_empty() && (!above.is_absolute() || *above == path));
    let link = above.filter(|above| root.join(above).is_symlink()).last();
    if !is_whole {
        return link.map(Path::to_path_buf);
    }
    let counts = is_dir || !fs::symlink_metadata(&full).ok()?.is_dir();
    counts.then(|| link.unwrap_or(path).to_path_buf())
}

/// The lines of a rebase's list that run a command. One that cannot be read here, such as a link, may run anything.
fn read_commands(list: &Path) -> Vec<String> {
    let text = match disk::read_file(list, MOST_FILE_BYTES) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return vec![error.to_string()],
        text => text.unwrap_or_default(),
    };
    let text = String::from_utf8_lossy(&text);
    let runs = |line: &&str| matches!(line.split_whitespace().next(), Some("exec" | "x"));
    text.lines().filter(runs).map(str::to_owned).collect()
}

fn identify_parent(path: &Path) -> Option<EntryIdentity> {
    fs::metadata(path.parent()?).ok().map(|dir| read_identity(&dir))
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use super::super::aside::move_aside;
    use super::*;

    fn places(files: &[&str], dirs: &[&str]) -> Vec<Arc<Places>> {
        let convert = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        vec![Arc::new(Places { files: convert(files), dirs: convert(dirs), ..Places::default() })]
    }

    #[test]
    fn what_was_not_there_appeared_however_it_is_made() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        for dir in [".github/workflows", "elsewhere/workflows", ".git/hooks"] {
            fs::create_dir_all(root.join(dir)).expect("made");
        }
        for file in ["AGENTS.md", "a.code-workspace", ".git/config"] {
            fs::write(root.join(file), "").expect("written");
        }
        let files = ["AGENTS.md", ".envrc", ".cargo/config.toml", "*.code-workspace", ".git/config"];
        let places = places(&files, &[".idea", ".github/workflows", ".git/hooks", ".gitea/workflows"]);
        let before = || PathsBefore::record(root, &places, &BTreeSet::new());
        assert!(before().find_appeared(root, &mut BTreeSet::new()).is_empty());
        let then = before();
        fs::create_dir_all(root.join(".idea/1/2/3/4/5/6")).expect("made");
        fs::create_dir_all(root.join(".cargo/config.toml")).expect("made");
        fs::write(root.join("B.Code-Workspace"), "").expect("written");
        fs::rename(root.join("elsewhere"), root.join(".gitea")).expect("renamed");
        // As an editor saves it.
        fs::write(root.join("new"), "mine").expect("written");
        fs::rename(root.join("new"), root.join("AGENTS.md")).expect("renamed");
        let found = then.find_appeared(root, &mut BTreeSet::new());
        let found: Vec<_> = found.iter().map(|path| path.to_string_lossy()).collect();
        assert_eq!(found, [".gitea/workflows", ".idea", "B.Code-Workspace"]);
        let then = before();
        fs::rename(root.join(".github"), root.join("old")).expect("renamed");
        fs::create_dir_all(root.join(".github/workflows")).expect("made");
        assert_eq!(then.find_appeared(root, &mut BTreeSet::new()), [PathBuf::from(".github/workflows")]);
    }

    #[test]
    fn a_rebase_that_stopped_runs_no_command_that_another_wrote() {
        let root = tempfile::tempdir().expect("a directory");
        let root = canonicalize(root.path()).expect("it is there");
        let list = PathBuf::from(".git/rebase-merge/git-rebase-todo");
        fs::create_dir_all(root.join(".git/rebase-merge")).expect("made");
        let places = vec![Arc::new(Places { repositories: vec![".git".into()], ..Places::default() })];
        let written = |before: &str, after: &str| {
            fs::write(root.join(&list), before).expect("written");
            let then = PathsBefore::record(&root, &places, &BTreeSet::new());
            fs::write(root.join(&list), after).expect("written");
            then.find_appeared(&root, &mut BTreeSet::new())
        };
        assert!(written("", "pick 1a x y\nlabel exec\n# exec x\n").is_empty());
        assert!(written("exec make\npick 1a\n", "exec make\n").is_empty(), "a person's own");
        assert_eq!(written("pick 1a\n", "pick 1a\n x evil\n"), [PathBuf::from(&list)]);
        // Whoever may change what a link leads to writes the list later.
        #[cfg(unix)]
        {
            let then = PathsBefore::record(&root, &places, &BTreeSet::new());
            fs::rename(root.join(&list), root.join("todo")).expect("renamed");
            std::os::unix::fs::symlink("../../todo", root.join(&list)).expect("linked");
            assert_eq!(then.find_appeared(&root, &mut BTreeSet::new()), [PathBuf::from(&list)]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_on_the_way_is_what_appeared() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        fs::create_dir_all(root.join("made/workflows")).expect("made");
        let places = places(&[], &[".github/workflows"]);
        let before = PathsBefore::record(root, &places, &BTreeSet::new());
        std::os::unix::fs::symlink("made", root.join(".github")).expect("linked");
        let appeared = before.find_appeared(root, &mut BTreeSet::new());
        assert_eq!(appeared, [PathBuf::from(".github")]);
        let before = PathsBefore::record(root, &self::places(&[".envrc"], &[]), &BTreeSet::new());
        std::os::unix::fs::symlink("nothing", root.join(".envrc")).expect("linked");
        assert_eq!(before.find_appeared(root, &mut BTreeSet::new()), [PathBuf::from(".envrc")]);
        let kept = tempfile::tempdir().expect("a directory");
        let root = canonicalize(root).expect("it is there");
        let aside = move_aside(&root, &appeared[0], kept.path()).expect("moved");
        assert!(aside.kept.is_symlink() && root.join("made/workflows").is_dir());
    }
}
