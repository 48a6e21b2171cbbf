//! The boundary around everything that `process` starts, enforced by the operating system.
//!
//! Commands can write only in the workspace, a private temporary directory and the directories in the settings;
//! they can read everything but credentials; they have no network unless the settings allow it; processes, memory
//! and file sizes are limited. Linux: Landlock, seccomp and fewer capabilities, applied to a thread that then
//! spawns, so that the child starts inside. macOS: a profile for `sandbox-exec`. Other systems are not supported
//! ([`SUPPORTED`]).
//!
//! Nothing is done before the first command. An unavailable feature is an error, never a wider boundary.

#[cfg(any(target_os = "linux", target_os = "macos", test))]
mod credentials;
mod denial;
#[cfg(any(target_os = "macos", test))]
mod profile;
mod places;
mod protected;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod absent;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
use absent as system;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use tempfile::TempDir;

use places::Places;

pub use credentials::holds_credentials;
pub use denial::{Denial, says_it_could_not_write};
pub use protected::{Protection, Undone};

/// Whether this program has a boundary for this system.
pub const SUPPORTED: bool = cfg!(any(target_os = "linux", target_os = "macos"));
/// A command that has started more processes than this is ended.
pub const MOST_PROCESSES: usize = 512;
/// The largest file that a command may write, in bytes.
pub const MOST_FILE_BYTES: u64 = 8 << 30;

/// The permissions of the boundary.
#[derive(Debug, Clone)]
pub struct Boundary {
    /// Absolute, without symbolic links.
    pub workspace: PathBuf,
    /// Further directories that may be written, absolute.
    pub write: Vec<PathBuf>,
    /// Whether commands reach the network.
    pub network: bool,
    pub home: PathBuf,
    /// Files of this program (sessions, keys), hidden as credentials are.
    pub own: Vec<PathBuf>,
    /// Where the private temporary directory is created.
    pub temp_base: PathBuf,
    /// Where the versions that commands wrote of protected files are kept, before the files are restored.
    pub undone: PathBuf,
}

/// The boundary of a run. Clones of its [`Walls`] share one temporary directory, which is removed with the
/// sandbox.
pub struct Sandbox {
    plan: Boundary,
    temp: OnceLock<TempDir>,
    places: OnceLock<Vec<Arc<Places>>>,
    walls: Mutex<Option<Walls>>,
}

/// Why there is no boundary on this system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "commands cannot be run, because the sandbox is not available: {0}. `sandbox.mode: off` runs them without"
)]
pub struct Unavailable(pub String);

impl Sandbox {
    /// Stores the plan; does nothing else.
    #[must_use]
    pub fn new(plan: Boundary) -> Self {
        Self { plan, temp: OnceLock::new(), places: OnceLock::new(), walls: Mutex::default() }
    }

    #[must_use]
    pub fn plan(&self) -> &Boundary {
        &self.plan
    }

    /// The current walls: built on first use, and again when a directory that they depend on has changed.
    ///
    /// # Errors
    /// The feature that this system lacks.
    pub fn walls(&self) -> Result<Walls, Unavailable> {
        let mut walls = self.walls.lock().expect("nobody panics while building walls");
        if let Some(walls) = walls.as_ref().filter(|walls| walls.system.is_current()) {
            return Ok(walls.clone());
        }
        let temp = self.temp_dir()?;
        let places = self.places.get_or_init(|| places::of(&self.plan)).clone();
        let system = system::Walls::build(&self.plan, &temp, &places).map_err(Unavailable)?;
        let built = Walls { system: Arc::new(system), temp, places, undone: self.plan.undone.clone() };
        // A kernel may know the calls and still refuse them (a container's own filter).
        built.inside(|| ()).map_err(|error| Unavailable(error.to_string()))?;
        Ok(walls.insert(built).clone())
    }

    fn temp_dir(&self) -> Result<PathBuf, Unavailable> {
        if self.temp.get().is_none() {
            let made = tempfile::Builder::new().prefix("agent-").tempdir_in(&self.plan.temp_base);
            let made = made.map_err(|error| {
                let base = self.plan.temp_base.display();
                Unavailable(format!("no temporary directory can be made in {base}: {error}"))
            })?;
            let _ = self.temp.set(made);
        }
        let path = self.temp.get().expect("it was just set").path();
        Ok(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
    }
}

/// The boundary, ready to be put around a command.
#[derive(Clone)]
pub struct Walls {
    system: Arc<system::Walls>,
    temp: PathBuf,
    /// Places that commands must not change.
    places: Vec<Arc<Places>>,
    undone: PathBuf,
}

impl Walls {
    /// The directory for temporary files (`TMPDIR`) of commands; removed when the run ends.
    #[must_use]
    pub fn temp_dir(&self) -> &Path {
        &self.temp
    }

    /// Does `work` inside the boundary; everything that it starts stays inside.
    ///
    /// # Errors
    /// When the boundary cannot be applied; then `work` was not done.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.system.inside(work)
    }

    /// Watches a started process group until the watch is dropped.
    #[must_use]
    pub fn watch(&self, group: i32) -> Watch {
        Watch(self.system.watch(group))
    }

    /// The command line that runs `program` inside, where a separate program enforces the boundary.
    #[must_use]
    pub fn command_line<'a>(&'a self, program: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut line = self.system.prefix();
        line.push(program);
        line.extend(arguments);
        line
    }
}

/// Ends a group of processes that has more than [`MOST_PROCESSES`] members.
pub struct Watch(system::Watch);

impl Watch {
    /// Whether the group exceeded the limit.
    #[must_use]
    pub fn flooded(&self) -> bool {
        self.0.flooded()
    }
}

/// Gives a child outside the sandbox the limits that it would have without this program, which lowers its own so
/// that children inside inherit them.
pub fn lift_limits(process: u32) {
    #[cfg(target_os = "linux")]
    system::lift_limits(process);
    #[cfg(not(target_os = "linux"))]
    let _ = process;
}

/// Hides this process from others of the same user: its memory and environment cannot be read, and it leaves no
/// core dump. Done before the first child starts: until then there is nobody to hide from.
pub fn hide_this_process() {
    #[cfg(target_os = "linux")]
    system::hide_this_process();
}
