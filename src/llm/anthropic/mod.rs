//! The anthropic wire.

mod flags;

pub use flags::Flags;
