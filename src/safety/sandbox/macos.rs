//! The boundary on macOS: `sandbox-exec` with our own profile runs the program. Limits on processes, memory and
//! files are not set here. Written from the documentation; never run in our tests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::places::Places;
use super::{Boundary, SandboxProfile, credentials, profile};

pub use super::without_namespaces::TEMP;
pub(super) use super::without_namespaces::{Begun, Space, has_rules};

const PROGRAM: &str = "/usr/bin/sandbox-exec";

pub(super) struct Confinement {
    profile: String,
}

impl Confinement {
    /// # Errors
    /// The program is not there.
    pub fn build(
        plan: &Boundary,
        temp: &Path,
        places: &[Arc<Places>],
        walls: SandboxProfile,
    ) -> Result<Self, String> {
        if !Path::new(PROGRAM).exists() {
            return Err(format!("{PROGRAM} does not exist"));
        }
        let superuser = nix::unistd::geteuid().is_root();
        let hidden = credentials::list_paths(plan, superuser);
        Ok(Self { profile: profile::write_profile(plan, temp, places, &hidden, walls) })
    }

    /// The profile names the hidden paths, so nothing has to be listed.
    pub fn is_current(&self) -> bool {
        true
    }

    /// Only the programs that it starts are confined.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        Ok(work())
    }

    pub fn prefix(&self) -> Vec<String> {
        vec![PROGRAM.to_owned(), "-p".to_owned(), self.profile.clone()]
    }
}

/// A watch that watches nothing.
pub(super) struct Watch;

impl Watch {
    pub fn start(_group: i32) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "other systems know")]
    pub fn is_flooded(&self) -> bool {
        false
    }
}
