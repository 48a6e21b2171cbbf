//! `agent`: a terminal agent in one binary. The floors, from the ground up, and what each may use are described in
//! ARCHITECTURE.md and enforced by `tests/it/house.rs`.

// Floor 0: values and pure functions.
pub mod text;
pub mod builtin;
pub mod yaml;
pub mod template;
pub mod frontmatter;
pub mod tokens;
pub mod message;
pub mod output;

// Floor 1: settings, what is seen, the traits, the operating system.
pub mod event;
pub mod workspace;
pub mod config;
pub mod contract;
pub mod net;
pub mod process;
pub mod terminal;

// Floor 2: what lives in files, what decides.
pub mod prompt;
pub mod skills;
pub mod session;
pub mod policy;

// Floor 3: the outside world; these never see one another.
pub mod llm;
pub mod tools;
pub mod sink;

// Floors 4 to 8.
pub mod context;
pub mod agent;
pub mod app;
pub mod repl;
pub mod cli;
