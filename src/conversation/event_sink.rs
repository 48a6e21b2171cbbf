//! Where events go.

use std::io;

use futures_util::future::BoxFuture;

use super::event::Event;

/// An observer of a run. Called in order from one task.
pub trait EventSink: Send {
    /// # Errors
    /// The events can no longer be read (stdout was closed); the turn then ends.
    fn emit(&mut self, event: &Event) -> io::Result<()>;
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
