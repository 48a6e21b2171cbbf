//! The fallback for systems without a known boundary: every request for one fails.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::places::Places;
use super::{Boundary, SandboxProfile};

pub use super::without_namespaces::TEMP;
pub(super) use super::without_namespaces::{Begun, Space, has_rules};

/// Never exists.
pub(super) enum Confinement {}

impl Confinement {
    pub fn build(_: &Boundary, _: &Path, _: &[Arc<Places>], _: SandboxProfile) -> Result<Self, String> {
        Err("none is known on this system".to_owned())
    }

    pub fn is_current(&self) -> bool {
        match *self {}
    }

    pub fn run_inside<T: Send>(&self, _work: impl FnOnce() -> T + Send) -> io::Result<T> {
        match *self {}
    }

    pub fn prefix(&self) -> Vec<String> {
        match *self {}
    }
}

/// Watches nothing.
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
