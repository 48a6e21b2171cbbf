//! Values and pure functions that every folder above uses: texts and their formats, tokens, secrets, results of tools in
//! the notations that models read. Nothing here does I/O.

pub mod text;
pub mod long_text;
pub mod builtin;
pub mod json;
pub mod image;
pub mod yaml;
pub mod validator;
pub mod output;
pub mod diff;
pub mod frontmatter;
pub mod tokens;
pub mod present;
pub mod secrets;
