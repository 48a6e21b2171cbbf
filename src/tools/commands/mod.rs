//! Commands inside the sandbox: running them, their output, and background commands.

pub(super) mod bounded;
pub(super) mod command_line;
pub(super) mod confined;
pub(super) mod environment;
pub(super) mod hidden;
mod input;
pub(super) mod plain;
mod work;
pub(super) mod jobs;
pub(super) mod tests_run;

pub use bounded::BoundedInput;
pub use confined::{Confined, describe_undone, keep_programs_outside, warn_of_changes};
pub use environment::Environment;
pub use jobs::Jobs;
pub use plain::PlainState;
