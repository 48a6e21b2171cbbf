//! The content of a request and its limits: the budget, the size of a request, and the compression of a conversation
//! that outgrows the budget.
//!
//! Everything here is a pure function over items. [`plan`] decides which items to remove and writes their
//! replacements; the caller asks a model for a summary and records the edits.

// Sizes.
mod budget;
mod layers;
mod overflow;
mod report;
mod scale;
mod ruler;
mod fill;
// Decisions.
mod goal;
mod plan;
mod draft;
mod staged;
mod give_way;
mod importance;
mod skills;
// Replacements.
mod calls;
mod encodings;
mod digest;
mod room;
mod summary;
mod in_code;
mod asking;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod passes;
#[cfg(test)]
mod simulation;

pub use asking::{in_short, summary_prefix, with_less};
pub use budget::{Budget, result_cap};
#[cfg(test)]
pub use fill::Row;
pub use fill::{Fill, Head};
pub use goal::Goal;
pub use in_code::in_code;
pub use layers::Layer;
pub use overflow::{Learned, learned};
pub use plan::{Material, Plan, plan};
pub use report::Report;
pub use ruler::{Basis, Break, Request, Ruler, Size};
pub use summary::{PARTS, SummaryFacts, compose, mistake_in};
