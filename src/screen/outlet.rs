//! One output stream behind a queue: callers never block, and a thread writes.

use std::io::{self, Write};
use std::sync::Arc;

use super::file::StreamTarget;
use super::lane::{Lane, LaneItem, LaneQueue};
use super::surface::Surface;

/// One stream. A write puts bytes into the queue, and fails once the stream has failed.
#[derive(Clone)]
pub struct Outlet {
    pub(super) lane: Arc<Lane>,
    /// The index of the stream in the queue.
    pub(super) stream: usize,
}

impl Outlet {
    /// A stream with its own queue.
    #[cfg(test)]
    pub(super) fn to(target: StreamTarget) -> Self {
        Self::new(vec![target], false)
    }

    /// The first stream of a queue.
    pub(super) fn new(targets: Vec<StreamTarget>, at_once: bool) -> Self {
        Self { lane: Arc::new(Lane::new(targets, at_once)), stream: 0 }
    }

    /// Calls `act` on the writing thread once everything before it is written.
    pub(super) fn then(&self, act: impl FnOnce() + Send + 'static) {
        if self.lane.at_once {
            return act();
        }
        // After a failure there is nothing to do.
        let _ = self.put(true, |queue, _| queue.items.push_back(LaneItem::Then(Box::new(act))));
    }

    /// Lets the writing thread draw on the terminal. Has no effect once the thread runs.
    pub(super) fn draw_on(&self, surface: Surface) {
        self.lane.lock().surface = Some(Box::new(surface));
    }

    /// Adds a piece of the answer to the screen.
    pub(super) fn say(&self, text: &str, markdown: bool) -> io::Result<()> {
        self.put(false, |queue, _| {
            queue.waiting += text.len();
            match queue.items.back_mut() {
                Some(LaneItem::Say { text: last, .. }) => last.push_str(text),
                _ => queue.items.push_back(LaneItem::Say { text: text.to_owned(), markdown }),
            }
        })
    }

    /// Changes the screen.
    pub(super) fn change(&self, urgent: bool, change: impl FnOnce(&mut Surface) + Send + 'static) {
        let change = Box::new(change);
        // After a failure the screen shows nothing.
        let _ = self.put(urgent, |queue, _| queue.items.push_back(LaneItem::Change { urgent, change }));
    }

    /// Blocks this thread until everything queued so far is written.
    pub fn wait(&self) {
        if self.lane.lock().is_empty() {
            return;
        }
        let (done, written) = std::sync::mpsc::channel::<()>();
        self.then(move || drop(done));
        // Returns when the sender is dropped.
        let _ = written.recv();
    }

    fn put(&self, wakes: bool, into: impl FnOnce(&mut LaneQueue, usize)) -> io::Result<()> {
        self.lane.put(self.stream, wakes, into)
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.lane.at_once {
            return self.lane.write_at_once(self.stream, bytes).map(|()| bytes.len());
        }
        self.put(false, |queue, to| {
            queue.waiting += bytes.len();
            match queue.items.back_mut() {
                Some(LaneItem::Bytes { stream, bytes: last }) if *stream == to => last.extend_from_slice(bytes),
                _ => queue.items.push_back(LaneItem::Bytes { stream: to, bytes: bytes.to_vec() }),
            }
        })?;
        Ok(bytes.len())
    }

    /// Does nothing: the thread writes as soon as it can.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
