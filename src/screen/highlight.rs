//! Syntax colours: finds the comments, strings, keywords and names in a line of code.
//!
//! The grammars come from two-face and are run by syntect; the feature `highlight` includes both. They are loaded for
//! the first block whose language is known. Their scopes map to the few inks of `ink`, so the terminal's palette
//! decides the colours. NOTICE.md beside the code has the licences of the grammars.

#[cfg(feature = "highlight")]
mod grammar;
#[cfg(feature = "highlight")]
pub use grammar::Highlighter;

#[cfg(not(feature = "highlight"))]
mod plain;
#[cfg(not(feature = "highlight"))]
pub use plain::Highlighter;
