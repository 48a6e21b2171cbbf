//! The keeper of a run's namespaces: a separate process, as only a process with a single thread can enter a user
//! namespace.
//!
//! It lays out what all commands share (network, shared memory, file system), and makes the inits in which they run.
//! A process can give its children a new pid namespace only once, so a separate thread does it for each init. It ends
//! when this program does, and everything inside with it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with};
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};

use super::messages::{KeeperRequest, RoleReport, RunStage};
use super::part::SandboxPart;
use super::{mounts, part, powers, wire};

/// The capabilities that an init needs: mounting, and changing the sets of its own capabilities.
const NEEDED: [CapabilitySet; 2] = [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP];

/// The delay before a spare init is made, which would otherwise compete with the command that was just started.
const SOON: u8 = 10;

/// Sets everything up, then makes inits until this program ends.
pub(super) fn run_keeper() -> io::Result<()> {
    let socket = part::take_socket()?;
    let Some((stage, _)) = wire::receive_message::<RunStage>(&socket)? else { return Ok(()) };
    let mut init = match set_up(&socket, &stage) {
        Ok(first) => first,
        Err(error) => return wire::send_message(&socket, &RoleReport::Failed(error.to_string()), &[]),
    };
    powers::hide_this_process();
    let mut proxy = if stage.proxy { Some(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?) } else { None };
    let mut running: Vec<Child> = Vec::new();
    loop {
        let proxy = proxy.take();
        let beside: Vec<BorrowedFd<'_>> =
            [init.socket.as_fd()].into_iter().chain(proxy.iter().map(AsFd::as_fd)).collect();
        wire::send_message(&socket, &RoleReport::Ready, &beside)?;
        running.push(init.process);
        loop {
            match wire::receive_message::<KeeperRequest>(&socket)? {
                Some((KeeperRequest::Another, _)) => break,
                Some((KeeperRequest::Hurry, _)) => {}
                None => return Ok(()),
            }
        }
        // The urgent request itself is read in the next round.
        poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::from(SOON))?;
        running.retain_mut(|init| !matches!(init.try_wait(), Ok(Some(_)) | Err(_)));
        let made = || Init::begin().and_then(|init| init.finish(&stage));
        // Somebody may kill the first while it is made.
        init = match made().or_else(|_| made()) {
            Ok(init) => init,
            Err(error) => return wire::send_message(&socket, &RoleReport::Failed(error.to_string()), &[]),
        };
    }
}

fn set_up(socket: &UnixStream, stage: &RunStage) -> io::Result<Init> {
    let (user, group) = (geteuid(), getegid());
    name_step("a user namespace", unshare(CloneFlags::CLONE_NEWUSER))?;
    if user.is_root() {
        // All ids are mapped, which only an outside process may do.
        wire::send_message(socket, &RoleReport::Unmapped, &[])?;
        if wire::receive_message::<()>(socket)?.is_none() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
    } else {
        map_own_ids(user, group)?;
    }
    let shared = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    name_step("namespaces of mounts and shared memory", unshare(shared))?;
    if !stage.network {
        name_step("a network namespace", unshare(CloneFlags::CLONE_NEWNET))?;
        raise_loopback()?;
    }
    pass_on_capabilities()?;
    // It loads while the file system is laid out.
    let first = Init::begin()?;
    mounts::mount_stage(stage)?;
    first.finish(stage)
}

/// Maps the ids that this process had before it entered its user namespace, which know no others.
pub(super) fn map_own_ids(user: Uid, group: Gid) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

fn name_step<T>(what: &str, done: nix::Result<T>) -> io::Result<T> {
    done.map_err(|error| io::Error::other(format!("{what}: {error}")))
}

/// A process that is not the superuser's loses its capabilities when it runs a program, unless they are ambient.
fn pass_on_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable = sets.permitted;
    set_capabilities(None, sets)?;
    NEEDED.into_iter().try_for_each(|needed| Ok(configure_capability_in_ambient_set(needed, true)?))
}

/// Raises the loopback interface, the only one of a new network namespace (rtnetlink(7)).
fn raise_loopback() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST: u16 = 1;
    const LOOPBACK: i32 = 1;
    const IFF_UP: u32 = 1;
    // The header: length, type, flags, sequence, port.
    let header = [&32_u32.to_ne_bytes()[..], &RTM_NEWLINK.to_ne_bytes(), &NLM_F_REQUEST.to_ne_bytes(), &[0; 8]];
    // The interface: family and type, index, flags, the flags that change.
    let interface = [&[0; 4][..], &LOOPBACK.to_ne_bytes(), &IFF_UP.to_ne_bytes(), &IFF_UP.to_ne_bytes()];
    let message = [header.concat(), interface.concat()].concat();
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&kernel, &message, SendFlags::empty())?;
    Ok(())
}

/// An init without a command.
struct Init {
    process: Child,
    socket: UnixStream,
}

impl Init {
    /// Starts an init.
    fn begin() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let process = std::thread::scope(|scope| {
            let start = || {
                name_step("a namespace of processes", unshare(CloneFlags::CLONE_NEWPID))?;
                SandboxPart::Init.command(theirs).spawn()
            };
            scope.spawn(start).join().map_err(|_| io::Error::other("the thread that starts an init panicked"))?
        })?;
        Ok(Self { process, socket: ours })
    }

    /// Waits until it has set itself up on the stage.
    fn finish(self, stage: &RunStage) -> io::Result<Self> {
        wire::send_message(&self.socket, stage, &[])?;
        match wire::receive_message::<RoleReport>(&self.socket)? {
            Some((RoleReport::Ready, _)) => Ok(self),
            Some((RoleReport::Failed(why), _)) => Err(io::Error::other(why)),
            _ => Err(io::Error::other("an init ended before it was ready")),
        }
    }
}
