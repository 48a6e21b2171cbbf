//! The boundary around everything that `process` starts, enforced by the operating system.
//!
//! Commands can write only in the workspace (in the `read` profile not even there), a private temporary directory and
//! the directories in the settings; they can read everything except credentials; they have no network unless the
//! settings allow it; processes, memory and file sizes are limited. Linux: namespaces with their own file system
//! (`linux`), and in them Landlock, seccomp and fewer capabilities; if a system refuses namespaces, only the latter,
//! applied to a thread that then spawns. macOS: a profile for `sandbox-exec`. Other systems are not supported
//! ([`SUPPORTED`]).
//!
//! An unavailable feature is an error, never a wider boundary.

mod appeared;
mod aside;
mod configurations;
mod credentials;
mod denial;
mod dirs;
#[cfg(target_os = "linux")]
mod entry;
mod form;
mod git_config;
#[cfg(any(not(target_os = "linux"), test))]
mod profile;
mod plan;
mod places;
mod protected;
mod snapshot;
mod temp;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;

use tempfile::TempDir;

use super::WallOpening;
use configurations::ConfigurationCopies;
use places::Places;
use snapshot::Snapshot;

pub use aside::MovedAside;
pub use credentials::credential_places;
pub use denial::{Denied, Refused, explain_denial, says_it_could_not_write};
#[cfg(target_os = "linux")]
pub use entry::{BoundaryEntry, CommandStreams};
pub use form::{BoundaryForm, Unavailable};
pub use plan::{Boundary, Network, SandboxProfile};
pub use protected::{Protection, Undone};
#[cfg(target_os = "linux")]
pub use system::{ConfinedCommand, News, SpaceKiller};
pub use system::{
    GroupWatch, TEMP, end_rendering, enter_layer, guard_templates, hide_this_process, lift_limits,
    limit_rendering, serve_part, tether_words,
};
pub use temp::TempRoom;

/// True if this program has a boundary for this system.
pub const SUPPORTED: bool = cfg!(any(target_os = "linux", target_os = "macos"));
/// A command that has started more processes than this is ended.
pub const MOST_PROCESSES: usize = 512;
/// The largest file that a command may write, in bytes.
pub const MOST_FILE_BYTES: u64 = 8 << 30;

/// The boundary of a run. Clones of its [`Walls`] share one temporary directory, which is removed with the last of
/// them.
pub struct Sandbox(Arc<WallGround>);

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sandbox").field(&self.0.plan).finish()
    }
}

/// The state that the walls of all commands of a run share.
struct WallGround {
    /// Tells it from the other boundaries of this program.
    number: usize,
    plan: Arc<Boundary>,
    /// With its path, links resolved.
    temp: Arc<OnceLock<(TempDir, PathBuf)>>,
    /// True if the system's rules are whole.
    has_rules: OnceLock<bool>,
    places: OnceLock<Vec<Arc<Places>>>,
    /// Those of repositories that commands made.
    made: Mutex<Vec<Arc<Places>>>,
    /// For the profiles `Read` and `Write`.
    confinements: Mutex<[Option<Arc<system::Confinement>>; 2]>,
    spaces: Mutex<Spaces>,
    /// The copies of configurations that commands in namespaces get.
    copies: OnceLock<ConfigurationCopies>,
    /// The protected files as they last were, in the order of the places.
    last: Mutex<Vec<Arc<Snapshot>>>,
    /// Protected paths at which commands made something harmless, relative to the workspace.
    accepted: Mutex<BTreeSet<PathBuf>>,
    /// True if the weakness was reported.
    told: AtomicBool,
    /// True if a command ran that may write, here or through an opening.
    has_written: Arc<AtomicBool>,
}

/// The namespaces of a run.
enum Spaces {
    Untried,
    Begun(JoinHandle<io::Result<system::Begun>>),
    Up(Arc<system::Space>),
    /// The reason for which there are none.
    Refused(String),
}

impl Sandbox {
    /// Stores the plan, without setting anything up.
    pub fn new(plan: impl Into<Arc<Boundary>>) -> Self {
        Self::over(plan.into(), Arc::default(), Arc::default())
    }

    /// Another boundary for a single command, with the same temporary directory, and an opening in it.
    pub fn open(&self, opening: &WallOpening) -> Self {
        let mut plan = self.plan().clone();
        plan.write.extend(opening.dirs.iter().cloned());
        plan.unprotected.extend(opening.protected.iter().cloned());
        if opening.network {
            plan.network = Network::Open;
        }
        Self::over(plan.into(), Arc::clone(&self.0.temp), Arc::clone(&self.0.has_written))
    }

    fn over(plan: Arc<Boundary>, temp: Arc<OnceLock<(TempDir, PathBuf)>>, has_written: Arc<AtomicBool>) -> Self {
        static NUMBERS: AtomicUsize = AtomicUsize::new(0);
        Self(Arc::new(WallGround {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            plan,
            temp,
            has_rules: OnceLock::new(),
            places: OnceLock::new(),
            made: Mutex::default(),
            confinements: Mutex::default(),
            spaces: Mutex::new(Spaces::Untried),
            copies: OnceLock::new(),
            last: Mutex::default(),
            accepted: Mutex::default(),
            told: AtomicBool::default(),
            has_written,
        }))
    }

    pub fn plan(&self) -> &Boundary {
        &self.0.plan
    }

    /// Begins to set up what the first command needs, without waiting.
    pub fn prepare(&self) {
        // A failure will occur again, and be reported, when a command is about to run.
        let _ = self.0.begin();
    }

    /// The current walls: built on first use, and again when a directory that they depend on has changed.
    ///
    /// # Errors
    /// This system lacks a feature, which the error names.
    pub fn walls(&self, profile: SandboxProfile) -> Result<Walls, Unavailable> {
        let space = self.0.space()?;
        if space.is_none() {
            self.0.confinement(profile)?;
        }
        let ground = Arc::clone(&self.0);
        Ok(Walls { ground, profile, space, unseen: Arc::default(), unwritten: Arc::default() })
    }

    /// The directory that commands see as [`TEMP`], once there are namespaces.
    pub fn private_temp(&self) -> Option<PathBuf> {
        let is_up = matches!(*self.0.spaces(), Spaces::Begun(_) | Spaces::Up(_));
        if is_up { self.0.temp_dir().ok() } else { None }
    }

    /// The form in which commands are confined on this system.
    ///
    /// # Errors
    /// This system lacks a feature, which the error names.
    pub fn form(&self) -> Result<BoundaryForm, Unavailable> {
        self.walls(SandboxProfile::Read)?;
        Ok(match &*self.0.spaces() {
            Spaces::Refused(why) => BoundaryForm::WithoutNamespaces(why.clone()),
            _ if *self.0.has_rules.get_or_init(system::has_rules) => BoundaryForm::Whole,
            _ => BoundaryForm::WithoutLandlock,
        })
    }

    /// True if commands are confined in the whole form of the boundary.
    pub fn is_whole(&self) -> bool {
        self.form().is_ok_and(|form| form == BoundaryForm::Whole)
    }

    /// True if walls can hide paths from a command.
    pub fn hides(&self) -> bool {
        self.form().is_ok_and(|form| !matches!(form, BoundaryForm::WithoutNamespaces(_)))
    }

    /// The weakness compared with the whole boundary, returned once.
    ///
    /// # Errors
    /// This system lacks a feature, which the error names.
    pub fn weakness(&self) -> Result<Option<String>, Unavailable> {
        if self.0.told.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(self.form()?.weakness())
    }
}

impl WallGround {
    fn spaces(&self) -> MutexGuard<'_, Spaces> {
        self.spaces.lock().expect("nobody panics while namespaces are set up")
    }

    fn places(&self) -> &[Arc<Places>] {
        self.places.get_or_init(|| places::find_places(&self.plan))
    }

    fn accepted(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.accepted.lock().expect("nobody panics while paths are compared")
    }

    fn copies(&self) -> &ConfigurationCopies {
        self.copies.get_or_init(|| {
            // The directory is there as soon as there are namespaces.
            let temp = self.temp_dir().unwrap_or_default();
            let places = self.places().iter().map(Arc::as_ref);
            ConfigurationCopies::new(&temp, self.number, &self.plan.workspace, places)
        })
    }

    /// Begins to set up namespaces, unless that has been tried.
    fn begin(self: &Arc<Self>) -> Result<(), Unavailable> {
        let mut spaces = self.spaces();
        if matches!(*spaces, Spaces::Untried) {
            self.temp_dir()?;
            let ground = Arc::clone(self);
            // Looking through the workspace takes its time, and the model is writing meanwhile.
            let work = move || ground.start_space();
            let begun = std::thread::Builder::new().name("begin".to_owned()).spawn(work);
            *spaces = begun.map_or_else(|error| Spaces::Refused(error.to_string()), Spaces::Begun);
        }
        Ok(())
    }

    fn start_space(&self) -> io::Result<system::Begun> {
        let temp = self.temp_dir().map_err(io::Error::other)?;
        system::Begun::start(&self.plan, &temp, self.number, || self.places())
    }

    /// The namespaces; `None` if this system refuses them.
    fn space(self: &Arc<Self>) -> Result<Option<Arc<system::Space>>, Unavailable> {
        self.begin()?;
        let mut spaces = self.spaces();
        *spaces = match std::mem::replace(&mut *spaces, Spaces::Untried) {
            Spaces::Begun(begun) => {
                let begun =
                    begun.join().unwrap_or_else(|_| Err(io::Error::other("looking through the workspace failed")));
                let space = begun.and_then(system::Begun::finish);
                // One failure may be of the moment: a process that somebody killed, a file that came or went.
                let space = space.or_else(|_| self.start_space()?.finish()).map(Arc::new);
                space.map_or_else(|error| Spaces::Refused(error.to_string()), Spaces::Up)
            }
            settled => settled,
        };
        Ok(if let Spaces::Up(space) = &*spaces { Some(Arc::clone(space)) } else { None })
    }

    /// The rules that bind a thread of this program and what it starts.
    fn confinement(&self, profile: SandboxProfile) -> Result<Arc<system::Confinement>, Unavailable> {
        let mut both = self.confinements.lock().expect("nobody panics while walls are built");
        let kept = &mut both[usize::from(profile == SandboxProfile::Write)];
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_current()) {
            return Ok(Arc::clone(kept));
        }
        let built = system::Confinement::build(&self.plan, &self.temp_dir()?, self.places(), profile);
        let built = Arc::new(built.map_err(Unavailable)?);
        // A kernel may know the calls and still refuse them (a container's own filter).
        built.run_inside(|| ()).map_err(|error| Unavailable(error.to_string()))?;
        Ok(kept.insert(built).clone())
    }

    fn temp_dir(&self) -> Result<PathBuf, Unavailable> {
        if self.temp.get().is_none() {
            let made = tempfile::Builder::new().prefix("agent-").tempdir_in(&self.plan.temp_base);
            let made = made.map_err(|error| {
                let base = self.plan.temp_base.display();
                Unavailable(format!("no temporary directory can be made in {base}: {error}"))
            })?;
            let path = crate::files::canonicalize(made.path()).unwrap_or_else(|_| made.path().to_path_buf());
            let _ = self.temp.set((made, path));
        }
        Ok(self.temp.get().expect("it was just set").1.clone())
    }
}

/// The boundary, ready to be put around a command.
#[derive(Clone)]
pub struct Walls {
    ground: Arc<WallGround>,
    profile: SandboxProfile,
    space: Option<Arc<system::Space>>,
    /// The paths that commands must not see or write, besides those that the boundary knows.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only namespaces hide"))]
    unseen: Arc<[PathBuf]>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only namespaces hide"))]
    unwritten: Arc<[PathBuf]>,
}

impl Walls {
    /// Makes the walls hide some paths and protect others from writes. Without namespaces they cannot
    /// ([`Sandbox::hides`]).
    pub fn hiding(self, unseen: Vec<PathBuf>, unwritten: Vec<PathBuf>) -> Self {
        Self { unseen: unseen.into(), unwritten: unwritten.into(), ..self }
    }

    /// What they permit.
    pub fn plan(&self) -> &Arc<Boundary> {
        &self.ground.plan
    }

    /// The protected paths that the output of a failed command names, absolute.
    pub fn find_named(&self, output: &str) -> Vec<PathBuf> {
        let paths = self.ground.places().iter().flat_map(|places| places.files.iter().chain(&places.dirs));
        let named = denial::find_named(output, paths);
        named.iter().map(|path| self.ground.plan.workspace.join(path)).filter(|path| path.exists()).collect()
    }

    /// The copies of configurations that a command behind them changes; `None` if it can change none.
    fn copies(&self) -> Option<&ConfigurationCopies> {
        self.space.as_ref().filter(|_| !self.only_read()).map(|_| self.ground.copies())
    }

    /// True if no command behind them can write in the workspace or in another directory of the settings.
    fn only_read(&self) -> bool {
        self.space.is_some() && self.profile == SandboxProfile::Read
    }

    /// The port of the loopback of commands on which a proxy is to listen, if hosts are allowed.
    pub fn proxy_port(&self) -> Option<u16> {
        self.space.as_ref()?.proxy_port()
    }

    /// The listener on that port, for the first caller.
    pub fn proxy_listener(&self) -> Option<std::net::TcpListener> {
        self.space.as_ref()?.proxy_listener()
    }

    /// Starts a command in the namespaces of the run; `None` if there are none, and the command is to be started by
    /// [`Walls::run_inside`].
    #[cfg(target_os = "linux")]
    pub fn start(
        &self,
        entry: &BoundaryEntry<'_>,
        streams: CommandStreams<'_>,
    ) -> Option<io::Result<ConfinedCommand>> {
        let space = self.space.as_ref()?;
        let started = space.start(entry, self, &streams.list());
        if started.is_err() {
            // The next command gets others.
            *self.ground.spaces() = Spaces::Untried;
        }
        Some(started)
    }

    /// Does `work` inside the boundary; everything that it starts stays inside.
    ///
    /// # Errors
    /// The boundary cannot be applied; then `work` was not done.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.ground.confinement(self.profile).map_err(io::Error::other)?.run_inside(work)
    }

    /// The words before a command line that runs inside, if a separate program enforces the boundary.
    ///
    /// # Errors
    /// The boundary is not available.
    pub fn prefix(&self) -> io::Result<Vec<String>> {
        Ok(self.ground.confinement(self.profile).map_err(io::Error::other)?.prefix())
    }
}
