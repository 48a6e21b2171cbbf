//! Remembers that the walls were whole since this system started, for the first lines of a chat: to set walls up takes longer
//! than everything else before the prompt. Calls are judged by the walls as they are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::regular::replace_file;

/// What is remembered.
pub(super) struct WallMemory {
    file: PathBuf,
    /// What tells this system, since it started, from others; `None` where nothing does.
    system: Option<String>,
}

impl WallMemory {
    /// The memory in a state directory.
    pub fn open(state: &Path) -> Self {
        Self { file: state.join("walls"), system: describe_system() }
    }

    /// True if they are known to have been whole.
    pub fn were_whole(&self) -> bool {
        let known = fs::read_to_string(&self.file).ok();
        self.system.is_some() && known == self.system
    }

    /// Remembers that they are.
    pub fn remember(&self) {
        if let Some(system) = self.system.as_ref().filter(|_| !self.were_whole()) {
            // It only saves time.
            let _ = replace_file(&self.file, system.as_bytes());
        }
    }
}

/// The start of the system, and the namespaces and the user in which this process runs.
fn describe_system() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let own =
        |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).ok().map(|link| link.display().to_string());
    let (user, mounts) = (own("user")?, own("mnt")?);
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let ids = status.lines().find(|line| line.starts_with("Uid:"))?;
    Some(format!("{}\n{user} {mounts}\n{ids}\n", boot.trim()))
}
