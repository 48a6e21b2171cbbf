//! The faces of the program: the chat and the command line.

pub mod chat;
pub mod cli;
