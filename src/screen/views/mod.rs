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

pub use call::{Ended, RunningCall, below, errand, finished, label, output, running};
pub use change::{change, is_diff};
pub use checklist::Checklist;
pub use fit::room;
pub use note::{compressed, failure, resolved, skill, warning};
pub use status::{Context, Status, status};
pub(in crate::screen) use todo::TOOL as TODO;
pub use todo::TodoList;
pub use work::{Work, retry, working};
