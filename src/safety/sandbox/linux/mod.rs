//! The boundary on Linux: namespaces ([`space`]) and, in them, Landlock and seccomp. If namespaces are refused, only
//! the latter. They bind the calling thread and everything that it starts afterwards, so a separate thread applies them
//! to itself, does its one task, and ends.

mod messages;
mod wire;
mod part;
mod mounts;
mod reading;
mod lids;
mod calls;
mod files;
mod flood;
mod powers;
mod confinement;
mod family;
mod watch;
mod init;
mod keeper;
mod inside;
mod inits;
mod layer;
mod caches;
mod sockets;
mod space;
mod renderer;

use std::ffi::OsString;
use std::io;

pub(in crate::safety::sandbox) use confinement::Confinement;
pub(in crate::safety::sandbox) use files::has_rules;
pub use flood::GroupWatch;
pub use inside::{ConfinedCommand, SpaceKiller};
pub use layer::enter_layer;
pub use messages::News;
pub use mounts::TEMP;
use part::SandboxPart;
pub use part::tether_words;
pub use powers::{hide_this_process, lift_limits};
pub use renderer::{end_rendering, guard_templates, limit_rendering};
pub(in crate::safety::sandbox) use space::{Begun, Space};

/// Runs this process as a part of the boundary if its arguments say so: the first thing that the program does.
/// `None` in every other process.
pub fn serve_part(arguments: &[OsString]) -> Option<io::Result<()>> {
    if let Some(error) = part::become_tethered(arguments) {
        return Some(Err(error));
    }
    Some(match SandboxPart::parse(arguments)? {
        SandboxPart::Keeper => keeper::run_keeper(),
        SandboxPart::Init => init::run_init(),
        SandboxPart::Renderer => renderer::run_renderer(),
        SandboxPart::Layer => layer::try_layer(),
    })
}
