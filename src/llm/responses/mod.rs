//! The responses wire.

mod flags;

pub use flags::Flags;
