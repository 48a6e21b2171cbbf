//! The wire of Ollama's own interface (`/api/chat`): the only one by which a request says how large the window is to
//! be, and that nothing may be cut away silently.

mod decode;
mod encode;
mod messages;
#[cfg(test)]
pub mod tests;

pub use decode::OllamaDecoder;
pub use encode::encode_request;
