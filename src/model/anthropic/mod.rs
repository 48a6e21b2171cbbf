//! The wire of Anthropic's Messages API, which other servers speak too.

mod decode;
mod encode;
mod event;
mod flags;
mod headers;
mod messages;
mod stop;
mod thinking;
mod tools;
mod usage;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub mod valid;

pub use decode::Decoder;
pub use encode::encode;
pub use flags::{Flags, Thinking};
pub use headers::headers;
pub use thinking::{most_tokens, thinking_budget};
