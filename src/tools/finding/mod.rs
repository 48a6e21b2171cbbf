//! Finding tools: selection by names and globs, and ranking by a query.

pub(super) mod rank;
pub(super) mod ranking;
mod select;

pub use ranking::Judge;
pub use select::{SelectableName, select_names};
