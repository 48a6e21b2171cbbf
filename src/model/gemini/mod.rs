//! The wire of Google's own interface to Gemini (`generateContent`): thoughts with their signatures in place, pictures in
//! results, cached tokens.

mod contents;
mod decode;
mod encode;
mod flags;
mod stop;
#[cfg(test)]
pub mod tests;

pub use decode::GeminiDecoder;
pub use encode::encode_request;
pub use flags::{GeminiFlags, GeminiThinking};
