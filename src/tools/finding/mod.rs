//! Finding tools: selection by names and globs, and ranking by the words of a query.

pub(super) mod rank;
mod select;

pub use select::{SelectableName, select_names};
