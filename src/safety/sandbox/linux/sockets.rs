//! Unix sockets that programs of the machine listen on: a container engine, a key agent, an editor. Whoever connects to
//! one acts outside, and a read-only mount does not keep anybody from connecting. So each that commands could see gets a
//! lid.
//!
//! The kernel lists the sockets of a network namespace. Commands have one of their own, so theirs are not in it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
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
    let list = fs::read(process.join("net/unix")).unwrap_or_default();
    let named = split_sockets(&list).into_iter().filter(|(_, name)| !name.as_encoded_bytes().starts_with(b"@"));
    let named = named.flat_map(|(inode, name)| find_socket(&name, inode, written));
    let is_seen = |path: &PathBuf| !COVERED.iter().any(|tree| path.starts_with(tree));
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|entry| entry.file_type().is_socket());
    named.filter(is_seen).filter(is_there).collect()
}

/// The inodes and names in the kernel's list. A name may have any byte; after a line break the next line belongs to it.
fn split_sockets(list: &[u8]) -> Vec<(u64, OsString)> {
    let mut found: Vec<(u64, OsString)> = Vec::new();
    for line in list.strip_suffix(b"\n").unwrap_or(list).split(|byte| *byte == b'\n').skip(1) {
        let mut rest = line;
        let mut fields = std::iter::from_fn(|| {
            rest = rest.trim_ascii_start();
            let field;
            (field, rest) = rest.split_at(rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()));
            Some(field)
        });
        let is_socket = fields.next().is_some_and(|address| address.ends_with(b":"));
        let inode = fields.nth(5).and_then(|field| str::from_utf8(field).ok()?.parse().ok());
        match (inode, rest.strip_prefix(b" "), found.last_mut()) {
            (Some(inode), name, _) if is_socket => {
                found.push((inode, OsStr::from_bytes(name.unwrap_or_default()).to_owned()));
            }
            (_, _, Some((_, name))) => {
                name.push("\n");
                name.push(OsStr::from_bytes(line));
            }
            _ => {}
        }
    }
    found.retain(|(_, name)| !name.is_empty());
    found
}

/// The paths that a socket may have: a relative name leads from where the program is that made it, which only its user
/// may know.
fn find_socket(name: &OsStr, inode: u64, written: &[PathBuf]) -> Vec<PathBuf> {
    if Path::new(name).is_absolute() {
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

#[cfg(test)]
mod tests {
    use super::split_sockets;

    #[test]
    fn a_name_of_any_bytes_hides_no_socket() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 11 @svc\xff\n\
            0000000000000000: 00000002 00000000 00010000 0001 01    22 /a\nb\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 33\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 44 /c d\n";
        let found = split_sockets(list);
        let found: Vec<_> = found.iter().map(|(inode, name)| (*inode, name.to_string_lossy())).collect();
        let found: Vec<(u64, &str)> = found.iter().map(|(inode, name)| (*inode, &**name)).collect();
        assert_eq!(found, [(11, "@svc\u{fffd}"), (22, "/a\nb"), (44, "/c d")]);
    }
}
