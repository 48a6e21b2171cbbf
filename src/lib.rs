//! `agent`: a terminal agent in one binary. Thirteen folders, each a capability, from the ground up; a folder uses only
//! those above it in this list. ARCHITECTURE.md is the map, and `tests/it/house/floors.rs` enforces it.

mod base;
mod template;
mod files;
mod config;
mod conversation;
mod safety;
mod model;
mod prompt;
mod skills;
mod tools;
mod agent;
mod screen;
mod faces;

pub mod facade;
