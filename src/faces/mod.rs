//! The faces of the program: the chat, the protocols of editors and of other agents, and the command line.
//!
//! To add:
//! - a slash command: one row in `chat/commands/table.rs`, its function beside it, a row of `docs/chat-commands.md`.
//! - a subcommand: one file in `cli/`, one variant in `cli/args.rs`.
//! - a program that starts `agent` and only waits: `WAITING` in `cli/stdin/holders.rs`.

pub mod chat;
mod collector;
mod serving;
pub mod acp;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod cli;
