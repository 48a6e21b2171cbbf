//! What Ollama accepts.

pub mod valid;
