//! What `recall` reads: the text of a conversation that is no longer sent.

use crate::base::long_text::FoundText;

use super::message::Handle;

/// The text of this conversation that is no longer sent.
pub trait Archive: Send + Sync {
    /// The text behind a handle, as it was recorded; `None` if there is no such item.
    ///
    /// # Errors
    /// The log cannot be read.
    fn read(&self, handle: Handle) -> std::io::Result<Option<String>>;

    /// Lines that contain `query`, ignoring case, with their neighbours; the newest text first. At most `limit` hits.
    ///
    /// # Errors
    /// The log cannot be read.
    fn search(&self, query: &str, limit: usize) -> std::io::Result<Vec<FoundText>>;

    /// The numbers of the items, ascending.
    fn numbers(&self) -> Vec<u64>;
}
