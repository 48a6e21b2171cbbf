//! What Gemini accepts.

pub mod valid;
