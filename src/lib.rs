//! `agent`: a terminal agent in one binary. The modules are in five bands, from the ground up; a module uses only those
//! below it. ARCHITECTURE.md is the map, and `tests/it/house/floors.rs` enforces it.

// Ground: values and pure functions, careful reading of files, and the directory that paths are relative to.
pub mod text;
pub mod long_text;
pub mod builtin;
pub mod json;
pub mod image;
pub mod protected;
pub mod file_name;
pub mod yaml;
pub mod template;
pub mod validator;
pub mod message;
pub mod attachment;
pub mod output;
pub mod ink;
pub mod regular;
pub mod diff;
pub mod highlight;
pub mod frontmatter;
pub mod markdown;
pub mod tokens;
pub mod present;
pub mod event;
pub mod disk;
pub mod workspace;
pub mod ignored;

// Files and decisions: settings, the operating system, the traits, the log, the rules.
pub mod secrets;
pub mod config;
pub mod net;
pub mod sandbox;
pub mod spill;
pub mod knowledge;
pub mod telemetry;
pub mod terminal;
pub mod process;
pub mod ledger;
pub mod contract;
pub mod prompt;
pub mod skills;
pub mod session;
pub mod policy;

// World: models, tools, and what is shown. These never see one another.
pub mod llm;
pub mod tools;
pub mod sink;

// Agent: what a request holds, the loop, the services.
pub mod window;
pub mod agent;
pub mod app;

// Faces: the chat and the command line.
pub mod repl;
pub mod cli;
