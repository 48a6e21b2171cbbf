//! The Responses wire of OpenAI, and of the hosts that copy it: a conversation as a list of items, a reply as a
//! stream of typed events.
//!
//! Nothing is stored at the server: each request contains the whole conversation, and reasoning goes back encrypted,
//! item by item, as it came.

mod decode;
mod encode;
mod event;
mod flags;
mod items;
mod output;
#[cfg(test)]
pub mod tests;

pub use decode::ResponsesDecoder;
pub use encode::encode_request;
pub use flags::{ResponsesFlags, SystemIn};
