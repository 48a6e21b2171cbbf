//! The machine of a plan together with the decisions that drive it.

mod tables;
mod properties;
