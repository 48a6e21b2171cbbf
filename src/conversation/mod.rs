//! A conversation: its messages, the events that report them, its log on disk, and what it knows beside them.

mod archive;
mod event_sink;
pub mod message;
pub mod attachment;
pub mod event;
pub mod spill;
pub mod knowledge;
pub mod telemetry;
pub mod session;

pub use archive::Archive;
pub use event_sink::{EventSink, OutputQueue};
