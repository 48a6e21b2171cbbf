//! Renderers: pure functions from facts to lines of coloured text, none wider than the given room. The plain screen
//! writes these lines once; the live screen redraws them as the facts change.

mod amount;
mod fit;
mod call;
mod work;
mod note;
mod status;
mod change;
mod todo;
mod checklist;

pub use amount::estimate_tokens;
pub use call::{
    Ended, RunningCall, draw_errand, draw_finished, draw_label, draw_lines, draw_output, draw_running,
};
pub use change::{draw_change, is_diff};
pub use checklist::Checklist;
pub use fit::count_columns;
pub use note::{draw_compression, draw_failure, draw_permission, draw_skill, draw_warning};
pub use status::{ContextLevel, TurnStatus, draw_status};
pub(in crate::screen) use todo::TOOL as CHECKLIST_TOOL;
pub use todo::TodoList;
pub use work::{CurrentWork, draw_retry, draw_work};
