//! `agent`: a terminal agent in one binary. The floors, from the ground up, and what each may use are described in
//! ARCHITECTURE.md and enforced by `tests/it/house.rs`.

// From the ground up: values, pure functions, and the directory that all paths are told from.
pub mod text;
pub mod builtin;
pub mod json;
pub mod image;
pub mod yaml;
pub mod template;
pub mod message;
pub mod attachment;
pub mod output;
pub mod frontmatter;
pub mod tokens;
pub mod present;
pub mod event;
pub mod workspace;

// Settings, and the operating system.
pub mod config;
pub mod net;
pub mod sandbox;
pub mod spill;
pub mod telemetry;
pub mod terminal;

// Child processes, inside the sandbox.
pub mod process;

// The traits between the loop and the world.
pub mod contract;

// What lives in files, what decides.
pub mod prompt;
pub mod skills;
pub mod session;
pub mod policy;

// The outside world; these never see one another.
pub mod llm;
pub mod tools;
pub mod sink;

// What a request holds, the loop, the services, the front ends.
pub mod context;
pub mod agent;
pub mod app;
pub mod repl;
pub mod cli;
