//! Values and pure functions that every folder above uses: texts and their formats, tokens, secrets, results of tools in
//! the notations that models read. Nothing here does I/O.
//!
//! Invariants:
//! - The parts of the built-in files that every startup needs are parsed by the build with the program's own reader
//!   (`build/built_in.rs`, `yaml/`); a test checks that both are equal. Everything else is made on demand: a prompt is
//!   read when it is asked for, and a built-in template is compiled when it is rendered.
//!
//! To add:
//! - a kind of key: one row in `secrets/shapes/table.rs`.

pub mod text;
pub mod open_command;
pub mod long_text;
pub mod spelling;
pub mod age;
pub mod builtin;
pub mod json;
pub mod json_text;
pub mod image;
pub mod yaml;
pub mod validator;
pub mod output;
pub mod diff;
pub mod digest;
pub mod seal;
pub mod frontmatter;
pub mod tokens;
pub mod present;
pub mod secrets;
