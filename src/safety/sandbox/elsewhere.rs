//! The boundary on systems other than Linux, which have no namespaces. On macOS `sandbox-exec` runs the program with our
//! own profile; limits on processes, memory and files are not set. Written from the documentation; never run in our
//! tests. On any other system every request for a boundary fails.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::places::Places;
use super::{Boundary, SandboxProfile, credentials, profile};

/// The private temporary directory, as commands in namespaces see it.
pub const TEMP: &str = "/tmp";

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
        if !cfg!(target_os = "macos") {
            return Err("none is known on this system".to_owned());
        }
        if !Path::new(PROGRAM).exists() {
            return Err(format!("{PROGRAM} does not exist"));
        }
        let hidden = credentials::credential_places(plan);
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

/// Namespaces, which never begin.
pub(super) enum Begun {}

impl Begun {
    pub fn start<'a>(
        _plan: &Boundary,
        _temp: &Path,
        _number: usize,
        _places: impl FnOnce() -> &'a [Arc<Places>],
    ) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has none"))
    }

    pub fn finish(self) -> io::Result<Space> {
        match self {}
    }
}

/// Never exists.
pub(super) enum Space {}

impl Space {
    pub fn proxy_port(&self) -> Option<u16> {
        match *self {}
    }

    pub fn proxy_listener(&self) -> Option<TcpListener> {
        match *self {}
    }
}

/// True if the system's rules are whole.
pub(super) fn has_rules() -> bool {
    true
}

pub use self::IdleWatch as GroupWatch;

/// Watches nothing.
pub struct IdleWatch;

impl IdleWatch {
    pub fn start(_group: i32) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "other systems know")]
    pub fn is_flooded(&self) -> bool {
        false
    }
}

/// Templates are rendered in this process: only their steps are limited.
pub fn guard_templates() {}

/// Templates are rendered in this process.
pub fn limit_rendering(_: Duration) {}

/// There is no rendering to end.
pub fn end_rendering() {}

/// No part of the boundary is a process.
/// No program of these systems ends with another.
pub fn tether_words() -> Vec<String> {
    Vec::new()
}

pub fn serve_part(_arguments: &[OsString]) -> Option<io::Result<()>> {
    None
}

/// No directory can have a layer.
pub fn enter_layer(_real: &Path, _layer: &Path, _beneath: &Path, _is_changed: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No limits were lowered.
pub fn lift_limits(_process: u32) {}

/// Nothing hides it.
pub fn hide_this_process() {}
