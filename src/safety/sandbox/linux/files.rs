//! Files, and processes outside: the Landlock ruleset.
//!
//! Landlock grants trees and cannot exclude a branch. So a tree that contains something hidden is not granted as a
//! whole; its entries are granted one by one, except the hidden ones. Links are never granted, as their targets
//! are in the tree themselves. An entry created later beside a hidden one is not granted until the walls are
//! rebuilt, which happens when [`RuleGround`] reports that a listed directory has changed.
//!
//! Listing is granted for everything: otherwise `ls /` and `ls ~` would fail, as both contain something hidden. So
//! the names of hidden files are visible, but the files cannot be opened. Landlock has no rule for attributes
//! either: modes, owners and times of files outside can be changed as far as the user may.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::messages::RunStage;
use crate::safety::sandbox::{Boundary, SandboxProfile, credentials};

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
/// The right to create and change files and directories, but not devices and sockets.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    Execute | ReadFile | ReadDir | WriteFile | Truncate | Refer
    | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeFifo | MakeSym
});
const OF_FILES: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{Execute | ReadFile | WriteFile | Truncate | IoctlDev});
const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

/// The devices that offer no escape. Terminals do: a command could read and fake keys there, and overwrite a question.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// The devices that are private inside namespaces: the terminals of a command.
const OWN_DEVICES: [&str; 2] = ["/dev/pts", "/dev/tty"];
/// The trees that are private to a run inside namespaces.
const OWN_TREES: [&str; 2] = [super::mounts::TEMP, "/dev/shm"];
/// Never granted as a tree: every disk is in it.
const DEVICE_TREE: &str = "/dev";
/// Trees that are never written, whatever the workspace is: files there are switches of the kernel.
const KERNEL_TREES: [&str; 2] = ["/proc", "/sys"];

/// The ruleset, and the directories that it depends on.
///
/// # Errors
/// The kernel lacks a feature, which the error names.
pub(super) fn build_ruleset(
    plan: &Boundary,
    temp: &Path,
    profile: SandboxProfile,
) -> Result<(RulesetCreated, RuleGround), String> {
    let ruleset = create_ruleset().map_err(|error| describe_missing(&error))?;
    let mut hidden = credentials::credential_places(plan);
    hidden.push(DEVICE_TREE.into());
    hidden.sort();
    let mut grants = PathGrants { ruleset, hidden, ground: RuleGround::default() };
    grants.tree(Path::new("/"), READ)?;
    grants.add(Path::new("/"), AccessFs::ReadDir.into())?;
    for device in DEVICES {
        grants.add(Path::new(device), DEVICE)?;
    }
    grants.hidden.extend(KERNEL_TREES.map(PathBuf::from));
    grants.hidden.sort();
    let written = if profile == SandboxProfile::Write { plan.list_writable() } else { Vec::new() };
    for root in written.into_iter().chain([temp.to_path_buf()]) {
        grants.ground.rest_on(&root, false);
        grants.root(&root)?;
    }
    Ok((grants.ruleset, grants.ground))
}

/// The ruleset inside namespaces, where lids hide what must not be read. `None` if the kernel has no Landlock.
pub(super) fn build_stage_ruleset(stage: &RunStage, profile: SandboxProfile) -> Option<RulesetCreated> {
    let mut grants =
        PathGrants { ruleset: create_ruleset().ok()?, hidden: Vec::new(), ground: RuleGround::default() };
    grants.add(Path::new("/"), READ).ok()?;
    for device in DEVICES.iter().chain(&OWN_DEVICES) {
        grants.add(Path::new(device), DEVICE).ok()?;
    }
    let written = stage.written.iter().chain(stage.caches.iter().map(|(real, _)| real));
    let written = written.filter(|_| profile == SandboxProfile::Write).map(AsRef::as_ref);
    for tree in written.chain(OWN_TREES.map(Path::new)) {
        // Sockets that are made outside of these trees are out of reach where the kernel knows such a right (version 9).
        grants.add(tree, WRITE | AccessFs::MakeSock | AccessFs::ResolveUnix).ok()?;
    }
    Some(grants.ruleset)
}

/// True if the kernel has Landlock, as new as it must be.
pub(in crate::safety::sandbox) fn has_rules() -> bool {
    create_ruleset().is_ok()
}

/// True if the kernel itself guards files against truncation.
pub(super) fn supports_truncate() -> bool {
    let asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    asked.handle_access(AccessFs::Truncate).is_ok_and(|asked| asked.create().is_ok())
}

/// Without version 2 no file could be moved between directories. Later features are used where available: version
/// 3 guards truncation (else seccomp does), 5 devices, 6 signals to processes outside, 9 sockets.
fn create_ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V2))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5) | AccessFs::ResolveUnix)?
        .scope(make_bitflags!(Scope::{AbstractUnixSocket | Signal}))?
        .create()
}

fn describe_missing(error: &RulesetError) -> String {
    let needed = "it needs Linux 5.19 or newer with Landlock switched on";
    match error {
        RulesetError::CreateRuleset(error) => format!("{needed} ({error})"),
        // The rights that the kernel lacks, as bits.
        _ => needed.to_owned(),
    }
}

struct PathGrants {
    ruleset: RulesetCreated,
    /// Sorted: the content of a directory comes right after it.
    hidden: Vec<PathBuf>,
    ground: RuleGround,
}

impl PathGrants {
    /// Grants writing to a tree. It was named explicitly, so it is granted even inside something hidden.
    fn root(&mut self, path: &Path) -> Result<(), String> {
        let below = self.hidden.partition_point(|hidden| hidden.as_path() <= path);
        let holds_hidden = self.hidden.get(below).is_some_and(|hidden| hidden.starts_with(path));
        if holds_hidden { self.entries(path, WRITE) } else { self.add(path, WRITE) }
    }

    fn tree(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), String> {
        let at = self.hidden.partition_point(|hidden| hidden.as_path() < path);
        match self.hidden.get(at) {
            Some(hidden) if hidden == path => Ok(()),
            Some(hidden) if hidden.starts_with(path) => self.entries(path, access),
            _ => self.add(path, access),
        }
    }

    fn entries(&mut self, dir: &Path, access: BitFlags<AccessFs>) -> Result<(), String> {
        self.ground.rest_on(dir, true);
        // A directory that this process cannot list is not granted to others.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()) {
                self.tree(&entry.path(), access)?;
            }
        }
        Ok(())
    }

    /// Adds one rule. A path that is gone, became a link or may not be examined is left out: that grants less,
    /// never more.
    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), String> {
        let Ok(opened) = open(path, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty()) else {
            return Ok(());
        };
        let opened = fs::File::from(opened);
        let Ok(metadata) = opened.metadata() else { return Ok(()) };
        let access = match metadata.file_type() {
            kind if kind.is_symlink() => return Ok(()),
            kind if kind.is_dir() => access,
            _ => access & OF_FILES,
        };
        if access.is_empty() {
            return Ok(());
        }
        let added = (&mut self.ruleset).add_rule(PathBeneath::new(opened, access));
        added.map(drop).map_err(|error| error.to_string())
    }
}

/// Directories as they were when the rules were made.
#[derive(Default)]
pub(super) struct RuleGround(Vec<(PathBuf, bool, Option<GroundStamp>)>);

/// Device, inode, and for directories with listed entries the time of the last change.
type GroundStamp = (u64, u64, i64, i64);

impl RuleGround {
    fn rest_on(&mut self, path: &Path, on_entries: bool) {
        self.0.push((path.to_path_buf(), on_entries, read_stamp(path, on_entries)));
    }

    pub fn is_unchanged(&self) -> bool {
        self.0.iter().all(|(path, on_entries, then)| read_stamp(path, *on_entries) == *then)
    }
}

fn read_stamp(path: &Path, on_entries: bool) -> Option<GroundStamp> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let time = if on_entries { (metadata.mtime(), metadata.mtime_nsec()) } else { (0, 0) };
    Some((metadata.dev(), metadata.ino(), time.0, time.1))
}
