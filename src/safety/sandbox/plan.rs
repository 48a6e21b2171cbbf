//! The plan of the boundary: what it permits.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::file_name;

/// The permissions of the boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    /// Absolute, without symbolic links.
    pub workspace: PathBuf,
    /// Further directories that may be written, absolute.
    pub write: Vec<PathBuf>,
    pub network: Network,
    pub home: PathBuf,
    /// Files of this program (sessions, keys), hidden as credentials are.
    pub own: Vec<PathBuf>,
    /// The directory in which the private temporary directory is created.
    pub temp_base: PathBuf,
    /// Paths in the workspace that may be changed although they are protected, absolute.
    pub unprotected: Vec<PathBuf>,
    /// The directory for what commands made under protected names, which is moved there.
    pub undone: PathBuf,
    /// The directory for commands' writes to caches in the home, for this workspace.
    pub caches: PathBuf,
    /// The directories from which programs are run by their names.
    pub programs: Vec<PathBuf>,
    /// True if namespaces are tried. They need a program that calls [`super::serve_part`] first thing.
    pub namespaces: bool,
}

impl Boundary {
    /// The closest one: nothing but the workspace may be written. What is kept for it goes to directories in `temp`.
    pub fn around(workspace: &Path, home: &Path, temp: &Path) -> Self {
        let (write, own, unprotected, programs) = Default::default();
        let (undone, caches) = (temp.join("undone"), temp.join("caches"));
        let [workspace, home, temp_base] = [workspace, home, temp].map(Path::to_path_buf);
        let (network, namespaces) = (Network::Closed, true);
        Self { workspace, write, network, home, own, temp_base, unprotected, undone, caches, programs, namespaces }
    }

    /// The directories of the settings that may be written, each after a comma.
    pub fn name_further(&self) -> String {
        self.write.iter().fold(String::new(), |text, dir| text + ", " + &file_name::quote(dir))
    }

    /// The trees that may be written: the workspace, and the directories of the settings that exist.
    #[cfg(target_os = "linux")]
    pub(super) fn list_writable(&self) -> Vec<PathBuf> {
        let dirs = self.write.iter().map(|dir| resolve_path(dir)).filter(|dir| dir.exists());
        std::iter::once(self.workspace.clone()).chain(dirs).collect()
    }
}

/// The two sets of walls that a command may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxProfile {
    /// Nothing outside the private temporary directory can be written.
    Read,
    /// The workspace and the directories of the settings can be written.
    Write,
}

/// The network of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// A private loopback.
    Closed,
    /// A private loopback, with a proxy on it that reaches these hosts. Closed if there are no namespaces.
    Hosts(Vec<String>),
    /// The network of the machine.
    Open,
}

/// Resolves links as far as the path exists.
pub(super) fn resolve_path(path: &Path) -> PathBuf {
    if let Ok(real) = crate::files::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolve_path(parent).join(name),
        _ => path.to_path_buf(),
    }
}
