//! A git worktree for a helper that changes files. Its changes are returned as a branch, which is never merged here.
//!
//! git runs in the sandbox, without hooks. The directory of the worktree is removed when the helper ends, however it
//! ends; uncommitted changes are lost with it. Filters of the repository and the helper's commands can write in both of
//! its directories, so what lies there never says what is read or removed: the names are chosen here, and no link is
//! followed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::output::ToolError;
use crate::base::text;
use crate::files::disk::{self, DirEntryKind};
use crate::files::workspace::Workspace;
use crate::safety::process::{self, ChildPatience, Exit, Launch};
use crate::safety::sandbox::{Sandbox, SandboxProfile};

use super::super::boundary;
use super::super::ground::AgentInputs;

/// The time limit of one git command.
const PATIENCE: Duration = Duration::from_mins(5);
/// The first bytes of a HEAD that are read: the name of a branch is shorter.
const LONGEST_HEAD: u64 = 4096;

/// Settings for every command: nothing from the repository runs, now or later.
const SETTINGS: [&str; 10] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "gc.auto=0",
    "-c",
    "submodule.recurse=false",
];

/// A worktree. Dropping it removes its directory.
pub(super) struct Worktree {
    git: Git,
    dir: PathBuf,
    /// The worktree's part of the repository.
    git_dir: PathBuf,
    /// The commit that it started from.
    base: String,
}

/// The environment in which git runs.
struct Git {
    sandbox: Option<Sandbox>,
    env: Vec<(String, String)>,
    workspace: PathBuf,
}

impl Worktree {
    /// Checks out the current commit of the workspace of `ground`, for the helper called `name`.
    pub(super) async fn add(ground: &AgentInputs, name: &str) -> Result<Self, ToolError> {
        let failed = |why: String| ToolError::permanent(format!("isolation: worktree: {why}"));
        let (config, workspace) = (&ground.config, &ground.workspace);
        let is_dir = |path: &Path| disk::read_facts(path).is_ok_and(|facts| facts.kind == DirEntryKind::Dir);
        let repository = workspace.root().join(".git");
        if !is_dir(&repository) {
            return Err(failed(format!(
                "{} is not the root of a git repository; leave `isolation` out, or start there",
                workspace.root().display()
            )));
        }
        let settings = ground.settings().map_err(|error| failed(error.message))?;
        let all = config.dirs.cache.join("worktrees");
        fs::create_dir_all(&all).map_err(|error| failed(format!("{}: {error}", all.display())))?;
        let all = all.canonicalize().map_err(|error| failed(format!("{}: {error}", all.display())))?;
        let own = make_unique(name);
        let (dir, git_dir) = (all.join(&own), repository.join("worktrees").join(&own));
        fs::create_dir(&dir).map_err(|error| failed(format!("{}: {error}", dir.display())))?;
        let git = Git {
            sandbox: boundary::sandbox_with(config, settings, workspace, &dir),
            env: config.env.for_commands(&settings.sandbox.env, workspace),
            workspace: workspace.root().to_path_buf(),
        };
        let mut worktree = Self { git, dir, git_dir, base: String::new() };
        let path = worktree.dir.to_string_lossy().into_owned();
        worktree.git.run(&["worktree", "add", "--quiet", "--detach", &path, "HEAD"]).await.map_err(failed)?;
        if !is_dir(&worktree.git_dir) {
            return Err(failed(format!("git did not make {}", worktree.git_dir.display())));
        }
        worktree.base = worktree.head();
        Ok(worktree)
    }

    /// The workspace of the helper.
    pub(super) fn workspace(&self) -> Result<Workspace, ToolError> {
        Workspace::open(&self.dir)
            .map_err(|error| ToolError::permanent(format!("{}: {error}", self.dir.display())))
    }

    /// Commits the changes and removes the directory. Returns the branch; `None` if nothing has changed.
    pub(super) async fn keep(self, name: &str) -> Result<Option<String>, ToolError> {
        let failed = |why: String| ToolError::permanent(format!("the changes of {name} are not kept: {why}"));
        self.run_git(&["add", "--all"]).await.map_err(failed)?;
        if self.run_git(&["diff", "--cached", "--quiet"]).await.is_err() {
            let author = format!("user.name=agent ({name})");
            let message = format!("Changes of {name}");
            let commit = [
                "-c",
                &author,
                "-c",
                "user.email=agent@localhost",
                "commit",
                "--quiet",
                "--no-verify",
                "-m",
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

impl Drop for Worktree {
    fn drop(&mut self) {
        // Does the work of `git worktree remove` without waiting for a process.
        for path in [&self.dir, &self.git_dir] {
            let _ = disk::remove_tree(path);
        }
    }
}

impl Git {
    async fn run(&self, arguments: &[&str]) -> Result<(), String> {
        self.run_in(&self.workspace, arguments).await
    }

    /// Runs git to its end. The error is its output.
    async fn run_in(&self, dir: &Path, arguments: &[&str]) -> Result<(), String> {
        let walls = self.sandbox.as_ref().map(|sandbox| sandbox.walls(SandboxProfile::Write)).transpose();
        let walls = walls.map_err(|error| error.to_string())?;
        let line = [&SETTINGS[..], arguments].concat();
        let mut said = Vec::new();
        let launch = Launch {
            program: "git",
            arguments: &line,
            dir,
            env: &self.env,
            patience: ChildPatience { call: Some(PATIENCE), ..ChildPatience::default() },
            walls: walls.as_ref(),
        };
        let ended = process::run_child(launch, |bytes| said.extend_from_slice(bytes)).await;
        let ended = ended.map_err(|error| format!("git cannot be run: {error}"))?;
        if ended.exit == Exit::Code(0) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said);
        let said = text::one_line(said.trim(), 300);
        Err(if said.is_empty() { format!("git ended with {:?}", ended.exit) } else { said })
    }
}

/// Makes a unique name: `coder-4k2x9a` for `coder#2`.
fn make_unique(name: &str) -> String {
    let agent = name.split('#').next().unwrap_or_default();
    let tail = std::iter::repeat_with(fastrand::alphanumeric).take(6).map(|c| c.to_ascii_lowercase());
    format!("{agent}-{}", tail.collect::<String>())
}
