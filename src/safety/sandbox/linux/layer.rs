//! A layer over a directory: this process and everything that it starts see the directory with the layer's changes, and
//! write to the layer. Nobody else sees any of it, and the directory stays as it is.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{XattrFlags, setxattr};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde::{Deserialize, Serialize};

use super::messages::{Bytes, RoleReport};
use super::part::{self, SandboxPart};
use super::{keeper, mounts, wire};

/// The longest that the attempt in another process may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The paths of a layer, for the attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LayerPaths {
    real: Bytes,
    layer: Bytes,
    beneath: Bytes,
}

/// Puts a layer over a directory for this process, which must have one thread. `layer` has the directories `upper` and
/// `work`; at `beneath`, an empty directory, the real one is seen without it, and can be changed if `is_changed`. Another
/// process tries it first: one that has failed half-way could not go back.
///
/// # Errors
/// The system refuses a step, or the file system cannot have a layer; nothing has changed then.
pub fn enter_layer(real: &Path, layer: &Path, beneath: &Path, is_changed: bool) -> io::Result<()> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has several threads"));
    }
    if mounts::list_points()?.iter().any(|point| point != real && point.starts_with(real)) {
        return Err(io::Error::other("another file system is mounted in it"));
    }
    // An overlay without attributes shows what was deleted with a directory.
    setxattr(layer.join("upper"), "user.agent", b"layer", XattrFlags::empty())?;
    let (socket, theirs) = UnixStream::pair()?;
    let mut attempt = SandboxPart::Layer.command(theirs).spawn()?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let paths = LayerPaths { real: real.into(), layer: layer.into(), beneath: beneath.into() };
    let tried = wire::send_message(&socket, &paths, &[]).and_then(|()| wire::receive_ready(&socket));
    let _ = attempt.kill();
    let _ = attempt.wait();
    tried.and_then(|_| put_over(&paths, is_changed))
}

/// Tries to put a layer over a directory, and ends.
pub(super) fn try_layer() -> io::Result<()> {
    let socket = part::take_socket()?;
    let Some((paths, _)) = wire::receive_message::<LayerPaths>(&socket)? else { return Ok(()) };
    let report = match put_over(&paths, false) {
        Ok(()) => RoleReport::Ready,
        Err(error) => RoleReport::Failed(error.to_string()),
    };
    wire::send_message(&socket, &report, &[])
}

fn put_over(paths: &LayerPaths, is_changed: bool) -> io::Result<()> {
    let [real, layer, beneath] = [&paths.real, &paths.layer, &paths.beneath].map(AsRef::as_ref);
    let dir = std::env::current_dir()?;
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        keeper::map_own_ids(user, group)?;
    }
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    mount_bind(real, beneath)?;
    if !is_changed {
        mounts::read_only(beneath)?;
    }
    mounts::mount_overlay(real, layer)?;
    // The old one is below the layer.
    std::env::set_current_dir(dir)?;
    if !user.is_root() {
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    }
    Ok(())
}
