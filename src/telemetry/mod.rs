//! The cost of calls: measured (`children`), put together (`report`), and written down for people (`table`).
//!
//! One call is one [`CallTelemetry`](crate::event::CallTelemetry): it is part of the event that ends the call and of
//! the session's log, and never of a request. Results are not cached between calls: files change under a session
//! (an editor, a build, another agent), and looking whether they did costs what reading them costs.

mod children;
mod report;
mod table;
mod versions;

pub use children::{Spent, Watch, count_child};
pub use report::{Figures, Report, Steps, Tally, milliseconds};
pub use table::{line, table};
pub use versions::{SessionFigures, VERSION_HEADINGS, VersionFigures, by_prompt, row, version_json};
