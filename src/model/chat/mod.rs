//! The chat-completions wire, which nearly every server speaks, each a little differently.

mod calls;
mod chunk;
mod decode;
mod details;
mod encode;
mod flags;
mod messages;
mod notation;
mod schema;
mod text_calls;
mod think;
mod tools;
mod usage;
#[cfg(test)]
pub mod valid;

pub use decode::Decoder;
pub use encode::encode;
pub use flags::{AnswerFormat, Echo, EffortField, Flags, OutputField};
