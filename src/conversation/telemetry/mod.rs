//! The cost of calls: measured (`safety::process`), summed up (`report`), and formatted for people (`table`).
//!
//! One call is one [`CallTelemetry`](crate::conversation::event::CallTelemetry): it is part of the event that ends the call and of
//! the session's log, and never of a request. Results are not cached between calls: files change during a session (by
//! an editor, a build, another agent), and checking for changes costs as much as reading them.

mod report;
mod table;
mod versions;

pub use report::{SessionReport, Steps, Tally, to_milliseconds};
pub use table::{format_line, format_report};
pub use versions::{SessionFigures, VERSION_HEADINGS, by_prompt, format_row, version_json};
