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
#[cfg(test)]
pub mod tests;

pub use decode::ChatDecoder;
pub use encode::encode_request;
pub use flags::{AnswerFormat, ChatFlags, Echo, EffortField, OutputField};
pub use schema::simplify_schema;
