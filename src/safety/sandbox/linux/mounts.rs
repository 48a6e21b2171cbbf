//! The file system that commands see: everything read-only except a few trees, secrets under a lid, a private `/tmp`.
//!
//! [`mount_stage`] sets it up once per run, in the keeper's mount namespace; [`super::lids`] adjusts the copy of an init.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatVfsMountFlags, StatxFlags, statvfs, statx};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, mount_remount, move_mount, open_tree,
};

use super::messages::{Bytes, RunStage};

/// The private directory for temporary files, as commands see it.
pub const TEMP: &str = "/tmp";
/// The shared memory of commands.
pub(super) const SHARED: &str = "/dev/shm";
/// Sockets of the machine's services are below these.
const SERVICES: [&str; 2] = ["/run", "/var/run"];
/// The paths that programs need from there: the system itself on some distributions.
const KEPT_SERVICES: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];
const DEV: &str = "/dev";
/// The devices that offer no escape.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// The links that programs expect beside them.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// Links to the copies of configurations, beside the devices.
const COPIES: &str = "git-config";
/// Terminals of commands.
const TERMINALS: &str = "/dev/pts";
const RESOLVER: &str = "/etc/resolv.conf";

/// Names the step that failed.
fn name_step<T>(what: &str, path: &Path, done: rustix::io::Result<T>) -> io::Result<T> {
    done.map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
    })
}

/// Sets up the file system of a run.
///
/// # Errors
/// The system refuses a step.
pub(super) fn mount_stage(stage: &RunStage) -> io::Result<()> {
    let root = Path::new("/");
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    name_step("making mounts private below", root, mount_change(root, private))?;
    let resolver = fs::read(RESOLVER);
    // Each is a separate mount, so that it stays writable when everything else does not.
    let written = || stage.written.iter().map(AsRef::as_ref);
    for tree in written() {
        name_step("binding", tree, mount_bind_recursive(tree, tree))?;
    }
    let kept = KEPT_SERVICES.map(Path::new).into_iter().filter(|path| path.is_dir());
    // The home comes first: the workspace may be in it.
    let is_cover = |path: &Path| [TEMP, SHARED].iter().any(|cover| path == Path::new(cover));
    let home = [stage.home.as_ref()].into_iter().filter(|home| home.is_dir() && !is_cover(home));
    let kept: Vec<(&Path, OwnedFd)> = home
        .chain(stage.repository.iter().map(AsRef::as_ref))
        .chain(written())
        .chain(kept)
        .filter(|path| [TEMP, SHARED].into_iter().chain(SERVICES).any(|cover| path.starts_with(cover)))
        .map(|path| Ok((path, clone_all(path)?)))
        .collect::<io::Result<_>>()?;
    let temp = Path::new(TEMP);
    name_step("binding", temp, mount_bind_recursive(stage.temp.as_ref(), temp))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    // One may be a link to the other.
    let is_own_dir = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir());
    SERVICES.map(Path::new).iter().filter(|path| is_own_dir(path)).try_for_each(|service| cover(service))?;
    mount_devices(flags)?;
    fs::create_dir(Path::new(DEV).join(COPIES))?;
    for at in 0..stage.configurations.len() {
        let copy = Path::new(TEMP).join(&stage.copies).join(at.to_string()).join("config");
        std::os::unix::fs::symlink(copy, find_copy_link(at))?;
    }
    for (path, tree) in kept {
        fs::create_dir_all(path)?;
        put_back(path, &tree)?;
    }
    if let (Ok(text), Ok(target)) = (resolver, fs::read_link(RESOLVER)) {
        let target = Path::new("/etc").join(target);
        if !target.exists() && target.parent().is_some_and(|dir| fs::create_dir_all(dir).is_ok()) {
            fs::write(target, text)?;
        }
    }
    // On a file system that cannot be a layer, the cache is read-only.
    let has_layer = |(real, layer): &&(Bytes, Bytes)| mount_overlay(real.as_ref(), layer.as_ref()).is_ok();
    let layered: Vec<&Path> = stage.caches.iter().filter(has_layer).map(|(real, _)| real.as_ref()).collect();
    for point in list_points()? {
        if !is_writable(stage, &layered, &point) && !is_read_only(&point) {
            // Some file systems of the kernel cannot be remounted; Landlock keeps commands from writing there.
            let _ = read_only(&point);
        }
    }
    Ok(())
}

/// Lets commands read a path but not write it.
pub(super) fn protect_path(path: &Path) -> io::Result<()> {
    name_step("binding", path, mount_bind_recursive(path, path))?;
    read_only(path)
}

/// Lets commands change a directory but not move it.
pub(super) fn pin_path(path: &Path) -> io::Result<()> {
    name_step("binding", path, mount_bind_recursive(path, path))
}

/// Mounts the processes of the calling process's own pid namespace.
///
/// # Errors
/// This system refuses it, as some containers do.
pub(super) fn mount_processes() -> io::Result<()> {
    // The superuser could give orders to the kernel there.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    name_step("mounting", Path::new("/proc"), mount("proc", "/proc", "proc", flags, None))
}

/// Lets commands follow a link, but replace neither the link nor what it leads to.
pub(super) fn protect_link(path: &Path) -> io::Result<()> {
    let link = name_step("binding", path, clone_tree(path, OpenTreeFlags::AT_SYMLINK_NOFOLLOW))?;
    put_back(path, &link)?;
    match crate::files::canonicalize(path) {
        // One that leads to a directory in which it is itself is none that a program could use.
        Ok(target) if !is_read_only(&target) && !path.starts_with(&target) => protect_path(&target),
        _ => Ok(()),
    }
}

/// True if something is mounted right at a path; a link at its end is not followed.
pub(super) fn is_mount_point(path: &Path) -> bool {
    let mount = |path: &Path| {
        statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID).ok().map(|found| found.stx_mnt_id)
    };
    path.parent().is_some_and(|dir| mount(dir) != mount(path))
}

/// Puts a link to the copy of a configuration in its place: programs that replace the file that they change replace the
/// copy, as a link leads to it.
pub(super) fn mount_copy(path: &Path, at: usize) -> io::Result<()> {
    let link = clone_tree(&find_copy_link(at), OpenTreeFlags::AT_SYMLINK_NOFOLLOW);
    put_back(path, &name_step("copying", path, link)?)
}

/// True if commands were given a copy of the configuration with this number.
pub(super) fn has_copy(at: usize) -> bool {
    find_copy_link(at).is_file()
}

/// The link to a copy, which commands cannot change.
fn find_copy_link(at: usize) -> PathBuf {
    Path::new(DEV).join(COPIES).join(at.to_string())
}

fn is_writable(stage: &RunStage, layered: &[&Path], point: &Path) -> bool {
    let trees = stage.written.iter().map(AsRef::as_ref);
    // What was put back below one of these, as a home may be there, is not of commands alone.
    let is_own = [TEMP, SHARED, TERMINALS].iter().any(|own| point == Path::new(own));
    is_own || trees.chain(layered.iter().copied()).any(|tree| point.starts_with(tree))
}

/// Puts a layer over a directory.
///
/// # Errors
/// The kernel has none, or one of the file systems cannot be part of one.
pub(super) fn mount_overlay(real: &Path, layer: &Path) -> io::Result<()> {
    // The kernel reads these as separators of options.
    let is_plain = |path: &Path| path.to_str().is_some_and(|path| !path.contains([',', ':', '\\', '"']));
    if !is_plain(real) || !is_plain(layer) {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    let [lower, upper, work] =
        [real, &layer.join("upper"), &layer.join("work")].map(|path| path.display().to_string());
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = CString::new(options)?;
    name_step("putting a layer over", real, mount("overlay", real, "overlay", flags, options.as_c_str()))
}

/// Mounts a `/dev` with only harmless devices, and private terminals and shared memory: a disk that the superuser may
/// open outside is not there.
fn mount_devices(flags: MountFlags) -> io::Result<()> {
    let dev = Path::new(DEV);
    let clone = |path: PathBuf| clone_tree(&path, OpenTreeFlags::empty()).ok().map(|device| (path, device));
    let kept: Vec<(PathBuf, OwnedFd)> = DEVICES.iter().filter_map(|name| clone(dev.join(name))).collect();
    cover_with(dev, MountFlags::NOSUID | MountFlags::NOEXEC, c"mode=0755,size=1m")?;
    for (path, device) in kept {
        fs::write(&path, "")?;
        put_back(&path, &device)?;
    }
    for (name, target) in DEVICE_LINKS {
        std::os::unix::fs::symlink(target, dev.join(name))?;
    }
    fs::create_dir(SHARED)?;
    cover_with(Path::new(SHARED), flags, c"mode=1777")?;
    fs::create_dir(TERMINALS)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    // Commands that need a terminal of their own fail without; nothing else does.
    let _ = mount("devpts", TERMINALS, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620");
    Ok(())
}

/// A copy of what is mounted at a path.
fn clone_tree(path: &Path, further: OpenTreeFlags) -> rustix::io::Result<OwnedFd> {
    open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | further)
}

/// A copy of what is mounted at a path and below.
pub(super) fn clone_all(path: &Path) -> io::Result<OwnedFd> {
    name_step("keeping", path, clone_tree(path, OpenTreeFlags::AT_RECURSIVE))
}

/// Mounts an empty directory.
pub(super) fn cover(path: &Path) -> io::Result<()> {
    cover_with(path, MountFlags::NOSUID | MountFlags::NODEV, c"mode=0755,size=1m")
}

fn cover_with(path: &Path, flags: MountFlags, options: &CStr) -> io::Result<()> {
    name_step("covering", path, mount("tmpfs", path, "tmpfs", flags, options))
}

pub(super) fn put_back(path: &Path, tree: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    name_step("putting back", path, move_mount(tree, "", CWD, path, flags))
}

/// Puts a lid on a file, a socket or a directory: the null device, or an empty directory.
pub(super) fn mount_lid(path: &Path, entry: &fs::Metadata) -> io::Result<()> {
    if !entry.is_dir() {
        name_step("masking", path, mount_bind("/dev/null", path))?;
        // If devices do not work, nobody can open one.
        return restrict_mount(path, MountFlags::RDONLY | MountFlags::NODEV);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    name_step("masking", path, mount("tmpfs", path, "tmpfs", flags, c"mode=0,size=4k"))
}

pub(super) fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

pub(super) fn read_only(point: &Path) -> io::Result<()> {
    restrict_mount(point, MountFlags::RDONLY)
}

/// Restricts a mount further; its restrictions stay, as they must.
fn restrict_mount(point: &Path, by: MountFlags) -> io::Result<()> {
    const KEPT: [(StatVfsMountFlags, MountFlags); 6] = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let found = name_step("looking at", point, statvfs(point))?.f_flag;
    let kept = KEPT.iter().filter(|(has, _)| found.contains(*has)).map(|(_, flag)| *flag);
    let flags = kept.fold(MountFlags::BIND | by, MountFlags::union);
    name_step("restricting", point, mount_remount(point, flags, c""))
}

/// The mount points, from the kernel's own list.
pub(super) fn list_points() -> io::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStringExt;
    let list = fs::read("/proc/self/mountinfo")?;
    let fields = list.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    Ok(fields.map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescape_field(field)))).collect())
}

/// Unescapes a path: the kernel writes spaces, tabs, newlines and backslashes as `\` and three octal digits.
fn unescape_field(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unescape_field;

    #[test]
    fn paths_in_the_kernel_s_list_are_read_back() {
        for (written, path) in
            [("/a\\040b", "/a b"), ("/a\\134b\\011", "/a\\b\t"), ("/a\\0", "/a\\0"), ("/中", "/中")]
        {
            assert_eq!(unescape_field(written.as_bytes()), path.as_bytes(), "{written}");
        }
    }
}
