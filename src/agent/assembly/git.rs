//! git, as the program itself runs it: in the sandbox, and so that nothing from a repository runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::base::text;
use crate::config::Config;
use crate::files::private::make_private_dir;
use crate::files::workspace::Workspace;
use crate::safety::Nobody;
use crate::safety::process::{self, ChildPatience, Exit, Launch, ServerLaunch, ServerStreams};
use crate::safety::sandbox::{Sandbox, SandboxProfile, Walls};

use super::boundary;
use super::ground::AgentInputs;
use super::{RunOptions, SetupError};

/// The time limit of one git command.
const PATIENCE: Duration = Duration::from_mins(5);
/// Settings for every command: nothing from the repository runs, now or later.
const SETTINGS: [&str; 10] = [
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "-c",
    "gc.auto=0", "-c", "submodule.recurse=false",
];

/// git, with the environment in which it runs.
pub(super) struct Git {
    sandbox: Option<Sandbox>,
    env: Vec<(String, String)>,
    workspace: PathBuf,
}

impl Git {
    /// The git of a worktree in `dir`.
    pub fn open(ground: &AgentInputs, dir: &Path) -> Result<Self, String> {
        Self::open_in(ground, dir, false)
    }

    /// The git of a directory. That of a clone asks other hosts: it `has_network`.
    fn open_in(ground: &AgentInputs, dir: &Path, has_network: bool) -> Result<Self, String> {
        let settings = ground.settings().map_err(|error| error.message)?;
        let (config, workspace) = (&ground.config, &ground.workspace);
        Ok(Self {
            sandbox: boundary::sandbox_with(config, settings, workspace, dir, has_network),
            env: config.env.for_commands(&settings.sandbox.env, workspace),
            workspace: workspace.root().to_path_buf(),
        })
    }

    /// Runs git in the workspace.
    ///
    /// # Errors
    /// Its output.
    pub async fn run(&self, arguments: &[&str]) -> Result<(), String> {
        self.run_in(&self.workspace, arguments).await
    }

    /// Runs git to its end in a directory.
    ///
    /// # Errors
    /// Its output.
    pub async fn run_in(&self, dir: &Path, arguments: &[&str]) -> Result<(), String> {
        let walls = self.raise_walls(SandboxProfile::Write)?;
        let line = [&SETTINGS[..], arguments].concat();
        let mut said = Vec::new();
        let launch = Launch {
            program: "git",
            arguments: &line,
            dir,
            env: &self.env,
            patience: ChildPatience { call: Some(PATIENCE), ..ChildPatience::default() },
            input: None,
            walls: walls.as_ref(),
        };
        let ended = process::run_child(launch, |bytes| said.extend_from_slice(bytes)).await;
        match ended.map_err(|error| format!("git cannot be run: {error}"))?.exit {
            Exit::Code(0) => Ok(()),
            exit => Err(describe_failure(&said, exit)),
        }
    }

    /// Runs git to its end where it only reads. Returns its output.
    ///
    /// # Errors
    /// Its output.
    pub async fn read(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let walls = self.raise_walls(SandboxProfile::Read)?;
        let line: Vec<String> =
            [&["git"], &SETTINGS[..], arguments].concat().into_iter().map(str::to_owned).collect();
        let launch = ServerLaunch { line: &line, dir: &self.workspace, env: &self.env, walls: walls.as_ref() };
        let cannot = |error: io::Error| format!("git cannot be run: {error}");
        let (mut git, ServerStreams { input, mut output, mut errors }) = launch.start().map_err(cannot)?;
        drop(input);
        let (mut said, mut complained) = (Vec::new(), Vec::new());
        let work = async {
            // What it warns of is no part of its output.
            let read = tokio::join!(output.read_to_end(&mut said), errors.read_to_end(&mut complained));
            read.0.and(read.1)?;
            git.wait().await
        };
        let ended = tokio::time::timeout(PATIENCE, work).await.map_err(|_| "git took too long".to_owned())?;
        match ended.map_err(cannot)? {
            Exit::Code(0) => Ok(said),
            exit => Err(describe_failure(&complained, exit)),
        }
    }

    fn raise_walls(&self, profile: SandboxProfile) -> Result<Option<Walls>, String> {
        let walls = self.sandbox.as_ref().map(|sandbox| sandbox.walls(profile)).transpose();
        walls.map_err(|error| error.to_string())
    }
}

fn describe_failure(said: &[u8], exit: Exit) -> String {
    let said = text::one_line(String::from_utf8_lossy(said).trim(), 300);
    if said.is_empty() { format!("git ended with {exit:?}") } else { said }
}

/// Clones a repository, at a revision if one is named, to a directory that goes with the first part of the result.
///
/// # Errors
/// What git says.
pub async fn clone_repository(
    config: &Arc<Config>,
    workspace: &Workspace,
    address: &str,
    revision: Option<&str>,
) -> Result<(tempfile::TempDir, PathBuf), SetupError> {
    let all = config.dirs.cache.join("clones");
    let made = make_private_dir(&all).and_then(|()| tempfile::tempdir_in(&all));
    let place = made.map_err(SetupError::from_failure)?;
    let ground = AgentInputs::new(config, workspace, &RunOptions::default(), Arc::new(Nobody));
    let git = Git::open_in(&ground, place.path(), true).map_err(SetupError::usage)?;
    let dir = place.path().join("repository");
    let to = dir.to_string_lossy().into_owned();
    let failed = |why: String| SetupError::usage(format!("{address}: {why}"));
    // The walls may hide where a bundle is.
    let bundle = place.path().join("bundle").to_string_lossy().into_owned();
    let from = if Path::new(address).is_file() {
        fs::copy(address, &bundle).map_err(SetupError::from_failure)?;
        &bundle
    } else {
        address
    };
    git.run_in(place.path(), &["clone", "--quiet", "--", from, &to]).await.map_err(failed)?;
    if let Some(revision) = revision {
        git.run_in(&dir, &["checkout", "--quiet", "--detach", revision, "--"]).await.map_err(failed)?;
    }
    Ok((place, dir))
}
