//! The rules of chat completions.

pub mod valid;
