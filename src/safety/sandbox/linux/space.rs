//! The namespaces of a run, from this program's side: starts their keeper, and sends commands to its inits.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::caches::find_caches;
use super::inits::Inits;
use super::inside::ConfinedCommand;
use super::messages::{Bytes, CommandOrder, RunStage, StageView, convert_paths};
use super::part::SandboxPart;
use super::reading::{find_covered_repository, find_shown};
use super::sockets::OutsideSockets;
use super::wire;
use crate::safety::sandbox::configurations::{list_configurations, name_copies};
use crate::safety::sandbox::places::Places;
use crate::safety::sandbox::{Boundary, BoundaryEntry, Network, SandboxProfile, Walls, credentials};

/// The namespaces of a run. Dropping it ends everything in them.
pub(in crate::safety::sandbox) struct Space {
    /// Kept, as everything ends with it.
    _keeper: Keeper,
    inits: Arc<Inits>,
    /// The port on which a proxy for commands is to listen, and its listener until somebody took it.
    proxy_port: Option<u16>,
    proxy_listener: Mutex<Option<TcpListener>>,
    sockets: OutsideSockets,
}

/// The paths that are mounted read-only, absolute.
#[derive(Default)]
struct Lists {
    files: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
    /// Those of which commands get a copy instead.
    configurations: Vec<PathBuf>,
    /// The directories of those.
    repositories: Vec<PathBuf>,
}

impl Lists {
    fn collect(plan: &Boundary, places: &[Arc<Places>]) -> Self {
        let all = || places.iter().map(Arc::as_ref);
        let configurations: Vec<PathBuf> = list_configurations(&plan.workspace, all()).collect();
        let absolute = |path: &PathBuf| plan.workspace.join(path);
        let files = all().flat_map(|places| &places.files).map(absolute);
        let files = files.filter(|path| !configurations.contains(path)).collect();
        let dirs = all().flat_map(|places| &places.dirs).map(absolute).collect();
        let repositories = configurations.iter().filter_map(|path| path.parent()).map(Path::to_path_buf);
        let mut repositories: Vec<PathBuf> = repositories.collect();
        // The outer ones first.
        repositories.sort();
        repositories.dedup();
        Self { files, dirs, configurations, repositories }
    }
}

/// A set-up that was begun, to wait for.
pub(in crate::safety::sandbox) struct Begun {
    keeper: Keeper,
    sockets: OutsideSockets,
}

/// The keeper's process. Dropping it ends everything in the namespaces.
struct Keeper {
    process: Child,
    socket: UnixStream,
}

impl Begun {
    /// Starts the keeper, without waiting.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start<'a>(
        plan: &Boundary,
        temp: &Path,
        number: usize,
        places: impl FnOnce() -> &'a [Arc<Places>],
    ) -> io::Result<Self> {
        if !plan.namespaces {
            return Err(io::Error::other("this program does not set them up"));
        }
        let (socket, theirs) = UnixStream::pair()?;
        // In a group of its own: Ctrl-C in a terminal reaches all of ours, and the next command needs it.
        let process = SandboxPart::Keeper.command(theirs).process_group(0).spawn()?;
        let keeper = Keeper { process, socket };
        // It loads meanwhile.
        let lists = Lists::collect(plan, places());
        let stage = RunStage {
            written: convert_paths(&plan.list_writable()),
            home: Bytes::from(plan.home.as_path()),
            temp: Bytes::from(temp),
            caches: find_caches(plan),
            shown: find_shown(plan),
            repository: find_covered_repository(plan),
            masked: convert_paths(&credentials::credential_places(plan)),
            protected_files: convert_paths(&lists.files),
            protected_dirs: convert_paths(&lists.dirs),
            pinned: convert_paths(&lists.repositories),
            configurations: convert_paths(&lists.configurations),
            copies: name_copies(number),
            network: plan.network == Network::Open,
            proxy: matches!(plan.network, Network::Hosts(_)),
        };
        wire::send_message(&keeper.socket, &stage, &[])?;
        Ok(Self { keeper, sockets: OutsideSockets::find(plan) })
    }

    /// Waits until the namespaces are there.
    ///
    /// # Errors
    /// The system refuses a step, or it took longer than [`PATIENCE`].
    pub fn finish(self) -> io::Result<Space> {
        let Self { keeper, sockets } = self;
        keeper.socket.set_read_timeout(Some(PATIENCE))?;
        let beside = loop {
            if let Some(beside) = wire::receive_ready(&keeper.socket)? {
                break beside;
            }
            map_ids(keeper.process.id())?;
            wire::send_message(&keeper.socket, &(), &[])?;
        };
        let mut beside = beside.into_iter();
        let init = beside.next().ok_or(io::ErrorKind::InvalidData)?;
        let listener = beside.next().map(TcpListener::from);
        let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let inits = Arc::new(Inits::new(keeper.socket.try_clone()?, init.into()));
        let (proxy_port, proxy_listener) = (address.map(|address| address.port()), Mutex::new(listener));
        Ok(Space { _keeper: keeper, inits, proxy_port, proxy_listener, sockets })
    }
}

/// The longest that the set-up may take; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maps every id that this process knows to itself.
fn map_ids(process: u32) -> io::Result<()> {
    for map in ["uid_map", "gid_map"] {
        let known = fs::read_to_string(Path::new("/proc/self").join(map))?;
        let same = known.lines().filter_map(|line| {
            let mut numbers = line.split_whitespace();
            Some(format!("{0} {0} {1}\n", numbers.next()?, numbers.nth(1)?))
        });
        fs::write(format!("/proc/{process}/{map}"), same.collect::<String>())?;
    }
    Ok(())
}

impl Space {
    pub fn proxy_port(&self) -> Option<u16> {
        self.proxy_port
    }

    pub fn proxy_listener(&self) -> Option<TcpListener> {
        self.proxy_listener.lock().expect("no holder of the listener panics").take()
    }

    /// Starts a command with these streams: its output, and if they are apart, its errors and its input.
    ///
    /// # Errors
    /// The keeper is gone, or the command is too long.
    pub fn start(
        &self,
        entry: &BoundaryEntry<'_>,
        walls: &Walls,
        streams: &[BorrowedFd<'_>],
    ) -> io::Result<ConfinedCommand> {
        // A command that only reads has no such sockets.
        let writes = walls.profile == SandboxProfile::Write;
        let sockets = if writes { self.sockets.list() } else { Vec::new() };
        let view = StageView {
            profile: walls.profile,
            masked: convert_paths(walls.unseen.iter().chain(&sockets)),
            protected: convert_paths(&*walls.unwritten),
        };
        let order = CommandOrder {
            program: entry.program.to_owned(),
            arguments: entry.arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            dir: Bytes::from(entry.dir),
            env: entry.env.to_vec(),
            view: view.clone(),
        };
        let socket = self.inits.start(order, streams)?;
        ConfinedCommand::new(socket, view, Arc::clone(&self.inits))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The keeper would end on its own when the socket closes; waiting for it avoids a zombie.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
