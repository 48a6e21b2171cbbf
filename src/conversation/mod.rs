//! A conversation: its messages, the events that report them, its log on disk, and what it knows beside them.
//!
//! Invariants:
//! - Reading a log takes memory only for what its view still shows (`session/unseen.rs`); damage in the rest is
//!   reported.
//! - Files that were read, skills that were loaded and keys that tools set are `state` entries of the log. Nothing is
//!   recovered by searching rendered text.
//!
//! To add:
//! - an event: one variant of `EventKind`, a sample in the tests below it, rows in docs/events.md.

mod archive;
mod event_sink;
pub mod message;
pub mod attachment;
pub mod event;
pub mod spill;
pub mod knowledge;
pub mod telemetry;
pub mod session;
pub mod export;
pub mod import;

pub use archive::Archive;
pub use event_sink::{EventSink, HookRun, OutputQueue};
