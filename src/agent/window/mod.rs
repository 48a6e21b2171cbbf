//! The content of a request and its limits: the budget, the size of a request, and the compression of a conversation
//! that outgrows the budget.
//!
//! Everything here is a pure function over items. [`plan_compression`] decides which items to remove and writes their
//! replacements; the caller asks a model for a summary and records the edits.

// Sizes.
mod budget;
mod layers;
mod overflow;
mod report;
mod rates;
mod entry;
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
mod sections;
mod summary;
mod in_code;
mod asking;
#[cfg(test)]
pub(super) mod tests;

pub use asking::{in_short, summary_prefix, with_less};
pub use budget::{Budget, describe_enough, most_calls, result_cap};
pub use digest::name_status;
#[cfg(test)]
pub use fill::FillRow;
pub use fill::{Fill, RequestHead};
pub use goal::Goal;
pub use in_code::in_code;
pub use layers::WindowLayer;
pub use overflow::{Learned, learn_window};
pub use plan::{CompressionPlan, Material, plan_compression};
pub use rates::Rates;
pub use report::SizeReport;
pub use ruler::{Basis, Break, MeasuredRequest, RequestSize, Ruler};
pub use sections::{PARTS, complete_summary};
pub use summary::{SummaryFacts, compose_summary};
