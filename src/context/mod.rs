//! What a request holds and what it may hold: the budget, the size of what is sent, and how a conversation that
//! outgrows the budget is made to fit.
//!
//! Everything here is a pure function over messages. What to take out is decided by [`plan`], what stands in its
//! place is written by [`Plan::edits`]; asking a model for a summary and keeping texts for `recall` are the caller's.

mod budget;
mod calls;
mod digest;
mod draft;
mod importance;
mod layers;
mod notes;
mod overflow;
mod plan;
mod ruler;
mod skills;
mod staged;
mod summary;
mod units;
mod usage;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod passes;

pub use budget::Budget;
pub use layers::Layer;
pub use notes::{Room, in_short, note, original, transcript};
pub use overflow::learned;
pub use plan::{Fate, Goal, Material, Plan, plan, shortened_view};
pub use ruler::{Basis, Break, Request, Ruler, Size};
pub use summary::{PARTS, Record, in_code, message, mistake_in};
pub use usage::{Head, Row, Usage};
