//! Asks the server of a model what it can do: one tiny request each, one after the other, over the way that a run
//! takes.
//!
//! The questions (`questions`) and what their answers show (`judgement`, `fitting`) are pure; `asking` alone asks.

mod questions;
mod judgement;
mod fitting;
mod asking;

pub use asking::{Checked, ModelCheck, Reached};
pub use fitting::yaml;
pub use judgement::Finding;
