//! Finds out what a model's server supports, with one small request at a time, sent the same way as in a run.
//!
//! The questions (`questions`) and the judgement of their answers (`judgement`, `fitting`) are pure; only `asking`
//! sends requests.

mod questions;
mod judgement;
mod fitting;
mod asking;

pub use asking::{ModelCheck, ModelCheckResult, Reached};
pub use fitting::format_yaml;
