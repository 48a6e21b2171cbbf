//! Unix sockets that programs of the machine listen on: a container engine, a key agent, an editor. Whoever connects to
//! one acts outside, and a read-only mount does not keep anybody from connecting. So each that commands could see gets a
//! lid.
//!
//! The kernel lists the sockets of a network namespace. Commands have one of their own, so theirs are not in it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::safety::sandbox::{Boundary, Network};

/// Trees in which commands see nothing of the machine.
const COVERED: [&str; 5] = ["/run", "/var/run", "/tmp", "/dev", "/proc"];
/// The most that are remembered.
const MOST_SOCKETS: usize = 256;

/// The sockets of the machine that were found so far.
pub(super) struct OutsideSockets {
    found: Mutex<BTreeSet<PathBuf>>,
    /// The trees that commands write.
    written: Vec<PathBuf>,
    /// True if commands share the machine's network, so that their own sockets are listed from the first command on.
    is_shared: bool,
}

impl OutsideSockets {
    /// Looks for the sockets in all network namespaces that this user may examine.
    pub fn find(plan: &Boundary) -> Self {
        let written = plan.list_writable();
        let mut found = list_sockets(Path::new("/proc/self"), &written);
        let own = fs::read_link("/proc/self/ns/net").ok();
        let mut seen = BTreeSet::from_iter(own);
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let process = entry.path();
            if fs::read_link(process.join("ns/net")).is_ok_and(|space| seen.insert(space)) {
                found.extend(list_sockets(&process, &written));
            }
        }
        Self { found: Mutex::new(found), written, is_shared: plan.network == Network::Open }
    }

    /// Those that a command which starts now must not reach.
    pub fn list(&self) -> Vec<PathBuf> {
        let mut found = self.found.lock().expect("nobody panics while sockets are listed");
        if !self.is_shared && found.len() < MOST_SOCKETS {
            found.extend(list_sockets(Path::new("/proc/self"), &self.written));
        }
        found.iter().take(MOST_SOCKETS).cloned().collect()
    }
}

/// The sockets in the network namespace of a process that exist where commands see them.
fn list_sockets(process: &Path, written: &[PathBuf]) -> BTreeSet<PathBuf> {
    let list = fs::read_to_string(process.join("net/unix")).unwrap_or_default();
    let named = list.lines().skip(1).filter_map(|line| {
        let inode = line.split_whitespace().nth(6)?;
        let (_, name) = line.split_once(&format!(" {inode} "))?;
        (!name.starts_with('@')).then(|| find_socket(name, inode, written))
    });
    let named = named.flatten();
    let is_seen = |path: &PathBuf| !COVERED.iter().any(|tree| path.starts_with(tree));
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|entry| entry.file_type().is_socket());
    named.filter(is_seen).filter(is_there).collect()
}

/// The paths that a socket may have: a relative name leads from where the program is that made it, which only its user
/// may know.
fn find_socket(name: &str, inode: &str, written: &[PathBuf]) -> Vec<PathBuf> {
    if name.starts_with('/') {
        return vec![name.into()];
    }
    let target = format!("socket:[{inode}]");
    let holds = |process: &PathBuf| {
        let mut handles = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        handles.any(|handle| fs::read_link(handle.path()).is_ok_and(|link| link.as_os_str() == &*target))
    };
    let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let holder = processes.find(holds).and_then(|process| fs::read_link(process.join("cwd")).ok());
    holder.iter().chain(written).map(|dir| dir.join(name)).collect()
}
