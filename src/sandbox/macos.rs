//! The boundary on macOS: `sandbox-exec` with our own profile runs the program. Limits on processes, memory and
//! files are not set here. Written from the documentation; never run in our tests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::places::Places;
use super::{Boundary, credentials, profile};

const PROGRAM: &str = "/usr/bin/sandbox-exec";

pub(super) struct Walls {
    profile: String,
}

impl Walls {
    /// # Errors
    /// When the program is not there.
    pub fn build(plan: &Boundary, temp: &Path, places: &[Arc<Places>]) -> Result<Self, String> {
        if !Path::new(PROGRAM).exists() {
            return Err(format!("{PROGRAM} does not exist"));
        }
        let superuser = nix::unistd::geteuid().is_root();
        Ok(Self { profile: profile::write(plan, temp, places, &credentials::paths(plan, superuser)) })
    }

    /// The profile names the hidden paths, so nothing has to be listed.
    pub fn is_current(&self) -> bool {
        true
    }

    /// Only the programs that it starts are confined.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        Ok(work())
    }

    pub fn prefix(&self) -> Vec<&str> {
        vec![PROGRAM, "-p", &self.profile]
    }

    pub fn watch(&self, _group: i32) -> Watch {
        Watch
    }
}

/// Nothing is watched.
pub(super) struct Watch;

impl Watch {
    #[expect(clippy::unused_self, reason = "other systems know")]
    pub fn flooded(&self) -> bool {
        false
    }
}
