//! Syntax colours: which parts of a line of code are comments, strings, keywords and names.
//!
//! The grammars are those of two-face, read by syntect; both are left out without the feature `highlight`. They are
//! loaded for the first block whose language is known. Their scopes become the few inks of `ink`, so the palette of the
//! terminal decides. NOTICE.md beside the code holds the licences of the grammars.

#[cfg(feature = "highlight")]
mod grammar;
#[cfg(feature = "highlight")]
pub use grammar::Highlighter;

#[cfg(not(feature = "highlight"))]
mod plain;
#[cfg(not(feature = "highlight"))]
pub use plain::Highlighter;
