//! Where events go.

use std::io;
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;

use super::event::Event;

/// An observer of a run. Called in order from one task.
pub trait EventSink: Send {
    /// # Errors
    /// The events can no longer be read (stdout was closed); the turn then ends.
    fn emit(&mut self, event: &Event) -> io::Result<()>;

    /// Takes note of a hook that ran, which is no event: hooks also run before a run begins and after it has ended.
    fn note_hook(&mut self, _: &HookRun) {}
}

/// A hook that ran.
#[derive(Debug, PartialEq, Eq)]
pub struct HookRun {
    pub name: String,
    /// The event that it ran at, as in its file.
    pub event: &'static str,
    pub began: SystemTime,
    pub duration: Duration,
    /// What became of it, if it has not let things go on: `failed`, `denied`.
    pub error: Option<&'static str>,
}

/// The queues that a sink writes into. Work waits while they are full.
pub trait OutputQueue: Send + Sync {
    /// True if no queue is full.
    fn has_room(&self) -> bool;

    /// Waits until no queue is full.
    fn wait_for_room(&self) -> BoxFuture<'_, ()>;

    /// Waits until the answer cannot be written any more: its reader is gone, or its disk is full.
    fn wait_until_closed(&self) -> BoxFuture<'_, ()>;

    /// The error that closed the answer, if it is closed.
    fn failure(&self) -> Option<io::Error>;
}
