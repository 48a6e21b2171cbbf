//! The wire of Anthropic's Messages API, which other servers speak too.

mod cloud;
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
pub mod tests;

pub use decode::AnthropicDecoder;
pub use encode::encode_request;
pub use flags::{AnthropicFlags, Thinking};
pub use headers::list_headers;
pub use thinking::{most_tokens, thinking_budget};
