//! A git worktree for a helper that changes files. Its changes are returned as a branch, which is never merged here.
//!
//! git runs in the sandbox, without hooks. The directory of the worktree is removed once its changes are on the branch.
//! The changes of a helper that is cancelled are put there at the end of the run, those of one that was killed at the next
//! start: each worktree has a lock that its process holds, and that says where it started. Filters of the repository and the helper's commands can write in both of
//! its directories, so what lies there never says what is read or removed: the names are chosen here, and no link is
//! followed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::FutureExt;

use crate::agent::UnfinishedWork;
use crate::base::output::ToolError;
use crate::files::disk::{self, Dir, DirEntryKind};
use crate::files::workspace::Workspace;

use super::super::git::Git;
use super::super::ground::AgentInputs;

/// The end of the name of a worktree's lock.
const LOCK: &str = ".lock";
/// The first bytes of a HEAD that are read: the name of a branch is shorter.
const LONGEST_HEAD: u64 = 4096;

/// The worktree of a helper. Dropping it leaves its changes to be kept at the end of the run.
pub(in super::super) struct Worktree {
    /// `None` once it is removed.
    place: Option<WorktreePlace>,
    unfinished: Arc<UnfinishedWork>,
}

/// The directories of a worktree, while this process holds their lock.
struct WorktreePlace {
    git: Git,
    /// The helper: `coder#2`.
    name: String,
    dir: PathBuf,
    /// The worktree's part of the repository.
    git_dir: PathBuf,
    /// The directory of all worktrees, and the name of this one.
    all: Dir,
    own: String,
    /// Names the commit that it started from.
    lock: File,
    base: String,
}

impl Worktree {
    /// Checks out the current commit of the workspace of `ground`, for the helper called `name`.
    pub(in super::super) async fn add(ground: &AgentInputs, name: &str) -> Result<Self, ToolError> {
        let failed = |why: String| ToolError::permanent(format!("isolation: worktree: {why}"));
        let workspace = &ground.workspace;
        if let Some(why) = Self::find_obstacle(workspace) {
            return Err(failed(format!("{why}, or leave `isolation` out")));
        }
        let repository = workspace.root().join(".git");
        let all = ground.config.dirs.cache.join("worktrees");
        fs::create_dir_all(&all).map_err(|error| failed(format!("{}: {error}", all.display())))?;
        let path =
            crate::files::canonicalize(&all).map_err(|error| failed(format!("{}: {error}", all.display())))?;
        let own = make_unique(name);
        let (dir, git_dir) = (path.join(&own), repository.join("worktrees").join(&own));
        let (all, lock) =
            make_locked(&path, &own).map_err(|error| failed(format!("{}: {error}", dir.display())))?;
        let git = Git::open(ground, &dir).map_err(failed)?;
        let name = name.to_owned();
        let mut place = WorktreePlace { git, name, dir, git_dir, all, own, lock, base: String::new() };
        let path = place.dir.to_string_lossy().into_owned();
        let added = place.git.run(&["worktree", "add", "--quiet", "--detach", &path, "HEAD"]).await;
        let missing = || format!("git did not make {}", place.git_dir.display());
        let added = added.map_err(|why| {
            let has_commit = !why.contains("invalid reference: HEAD");
            if has_commit { why } else { "the repository has no commit yet: make one".to_owned() }
        });
        let added = added.and_then(|()| is_dir(&place.git_dir).then_some(()).ok_or_else(missing));
        if let Err(why) = added {
            place.remove();
            return Err(failed(why));
        }
        place.base = place.head();
        place.lock.write_all(place.base.as_bytes()).map_err(|error| failed(error.to_string()))?;
        Ok(Self { place: Some(place), unfinished: Arc::clone(&ground.unfinished) })
    }

    /// Why no work tree can be made of this workspace, and what to do, if that is so.
    pub(in super::super) fn find_obstacle(workspace: &Workspace) -> Option<String> {
        let (root, git) = (workspace.root().display(), workspace.root().join(".git"));
        if !workspace.originals().is_empty() {
            return Some(format!("{root} is a copy that goes with its branches: start in the workspace itself"));
        }
        match disk::read_facts(&git).map(|facts| facts.kind) {
            Ok(DirEntryKind::Dir) => None,
            Ok(DirEntryKind::File) => {
                Some(format!("{root} is a linked work tree: start in the repository that it belongs to"))
            }
            _ => Some(format!("{root} is not the root of a git repository: start there")),
        }
    }

    /// The workspace of the helper, a work tree of `original`.
    pub(in super::super) fn workspace(&self, original: &Workspace) -> Result<Workspace, ToolError> {
        let dir = self.place.as_ref().map_or(Path::new(""), |place| place.dir.as_path());
        let opened = Workspace::open(dir).map(|workspace| workspace.with_original(original));
        opened.map_err(|error| ToolError::permanent(format!("{}: {error}", dir.display())))
    }

    /// Commits the changes and removes the directory. Returns the branch; `None` if nothing has changed.
    pub(in super::super) async fn keep(mut self) -> Result<Option<String>, ToolError> {
        let Some(place) = &self.place else { return Ok(None) };
        let kept = place.keep().await;
        // What could not be kept stays where it is.
        let place = self.place.take();
        match (kept, place) {
            (Ok(branch), Some(place)) => {
                place.remove();
                Ok(branch)
            }
            (Ok(branch), None) => Ok(branch),
            (Err(why), _) => Err(ToolError::permanent(why)),
        }
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.unfinished.push(place.rescue("so far").boxed());
        }
    }
}

/// Finds the worktrees of helpers in this workspace whose process was killed. Their changes are kept with the next run.
pub(in super::super) fn recover_worktrees(ground: &AgentInputs) {
    // A branch that is made in a copy goes with it, and the directory would be gone.
    if Worktree::find_obstacle(&ground.workspace).is_some() {
        return;
    }
    let all = ground.config.dirs.cache.join("worktrees");
    let Ok(locks) = Dir::open(&all).and_then(|all| all.entries()) else { return };
    let of_this = ground.workspace.root().join(".git").join("worktrees");
    let recovered = |own: &str| {
        let git_dir = of_this.join(own);
        is_dir(&git_dir).then_some(())?;
        let place = Dir::open(&all).ok()?;
        let mut opened = place.file(OsStr::new(&format!("{own}{LOCK}"))).ok()?;
        opened.file.try_lock().ok()?;
        let base = String::from_utf8_lossy(&opened.read(LONGEST_HEAD).ok()?).into_owned();
        let (dir, own) = (all.join(own), own.to_owned());
        let git = Git::open(ground, &dir).ok()?;
        let name = own.rsplit_once('-').map_or(own.as_str(), |(name, _)| name).to_owned();
        Some(WorktreePlace { git, name, dir, git_dir, all: place, own, lock: opened.file, base })
    };
    let names = locks.iter().filter_map(|entry| entry.name.to_str()?.strip_suffix(LOCK));
    for place in names.filter_map(recovered) {
        ground.unfinished.push(place.rescue("before it was killed").boxed());
    }
}

/// Makes the directory of a worktree among all of them, with its lock.
fn make_locked(all: &Path, own: &str) -> io::Result<(Dir, File)> {
    let all = Dir::open(all)?;
    let lock = all.create_file(OsStr::new(&format!("{own}{LOCK}")), 0o600)?;
    lock.try_lock()?;
    all.create_dir(OsStr::new(own))?;
    Ok((all, lock))
}

impl WorktreePlace {
    /// Puts the changes of a helper that did not end on a branch. Returns the line for the person, if there were any.
    async fn rescue(self, when: &'static str) -> Option<String> {
        let name = self.name.clone();
        let kept = if is_dir(&self.dir) && is_dir(&self.git_dir) && !self.base.is_empty() {
            self.keep().await
        } else {
            Ok(None)
        };
        match kept {
            Ok(branch) => {
                self.remove();
                Some(format!("what {name} changed {when} is on the branch {}, not merged", branch?))
            }
            Err(why) => Some(why),
        }
    }

    /// Commits the changes. Returns the branch; `None` if nothing has changed. The error says where they are.
    async fn keep(&self) -> Result<Option<String>, String> {
        let name = &self.name;
        let failed = |why: String| {
            format!("the changes of {name} are on no branch: {why}; they are in {}", self.dir.display())
        };
        self.run_git(&["add", "--all"]).await.map_err(failed)?;
        if self.run_git(&["diff", "--cached", "--quiet"]).await.is_err() {
            let author = format!("user.name=agent ({name})");
            let message = format!("Changes of {name}");
            let commit = [
                "-c", &author, "-c", "user.email=agent@localhost", "commit", "--quiet", "--no-verify", "-m",
                &message,
            ];
            self.run_git(&commit).await.map_err(failed)?;
        }
        if self.head() == self.base {
            return Ok(None);
        }
        let branch = format!("agent/{}", make_unique(name));
        self.run_git(&["branch", "--", &branch]).await.map_err(failed)?;
        Ok(Some(branch))
    }

    /// Does the work of `git worktree remove`, without a process.
    fn remove(&self) {
        for path in [&self.dir, &self.git_dir] {
            let _ = disk::remove_tree(path);
        }
        let _ = self.all.remove(OsStr::new(&format!("{}{LOCK}", self.own)));
    }

    /// Runs git on the worktree. Its place is passed explicitly, because a file in the worktree could lead elsewhere.
    async fn run_git(&self, arguments: &[&str]) -> Result<(), String> {
        let place =
            [format!("--git-dir={}", self.git_dir.display()), format!("--work-tree={}", self.dir.display())];
        let mut line: Vec<&str> = place.iter().map(String::as_str).collect();
        line.extend(arguments);
        self.git.run_in(&self.dir, &line).await
    }

    /// The contents of the worktree's HEAD: a commit, unless the helper switched to a branch.
    fn head(&self) -> String {
        let head = disk::open_file(&self.git_dir.join("HEAD")).and_then(|mut head| head.read(LONGEST_HEAD));
        String::from_utf8_lossy(&head.unwrap_or_default()).trim().to_owned()
    }
}

fn is_dir(path: &Path) -> bool {
    disk::read_facts(path).is_ok_and(|facts| facts.kind == DirEntryKind::Dir)
}

/// Makes a unique name: `coder-4k2x9a` for `coder#2`.
fn make_unique(name: &str) -> String {
    let agent = name.split('#').next().unwrap_or_default();
    let tail = std::iter::repeat_with(fastrand::alphanumeric).take(6).map(|c| c.to_ascii_lowercase());
    format!("{agent}-{}", tail.collect::<String>())
}
