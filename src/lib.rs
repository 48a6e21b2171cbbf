//! `agent`: a terminal agent in one binary. Thirteen folders, each a capability, from the ground up; a folder uses only
//! those above it in this list. ARCHITECTURE.md is the map, and `tests/it/house/floors.rs` enforces it.

pub mod base;
pub mod template;
pub mod files;
pub mod config;
pub mod conversation;
pub mod safety;
pub mod model;
pub mod prompt;
pub mod skills;
pub mod tools;
pub mod agent;
pub mod screen;
pub mod faces;
