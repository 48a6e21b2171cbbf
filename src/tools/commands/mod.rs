//! Commands inside the sandbox: running them, their output, and background commands.

pub(super) mod bounded;
pub(super) mod command_line;
pub(super) mod confined;
pub(super) mod hidden;
pub(super) mod jobs;
pub(super) mod plain;

pub use confined::Confined;
pub use jobs::Jobs;
