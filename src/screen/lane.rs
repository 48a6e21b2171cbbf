//! A queue of output and the thread that writes it: as it comes, or in frames on a screen.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::file::StreamTarget;
use super::surface::Surface;

/// The number of queued bytes above which a turn waits.
pub(super) const ROOM: usize = 256 * 1024;
/// The most bytes in one write. A pipe takes this many at once or none, so progress is visible, and lines of two
/// processes in one log do not mix.
pub(super) const CHUNK: usize = 4096;
/// The longest time that a stream may stay blocked at the end of a run; then the rest is dropped.
const STALLED: Duration = Duration::from_millis(500);

/// A queue and its thread.
pub(super) struct Lane {
    pub queue: Mutex<LaneQueue>,
    pub filled: Condvar,
    /// Notified after each write, and when the queue is empty.
    pub moved: Notify,
    /// True if nothing is queued: each write goes to its file at once.
    pub at_once: bool,
}

#[derive(Default)]
pub(super) struct LaneQueue {
    pub items: VecDeque<LaneItem>,
    /// The number of bytes not written yet.
    pub waiting: usize,
    /// The time of the last write.
    pub moved: Option<Instant>,
    /// True while the thread is processing an item.
    pub busy: bool,
    pub streams: Vec<Stream>,
    /// `None` once the thread has taken it, and if nothing is drawn.
    pub surface: Option<Box<Surface>>,
}

#[derive(Default)]
pub(super) struct Stream {
    /// `None` once the thread has taken it.
    pub target: Option<StreamTarget>,
    pub failure: Option<io::Error>,
}

pub(super) enum LaneItem {
    Bytes {
        stream: usize,
        bytes: Vec<u8>,
    },
    /// A function to call once everything before it is written.
    Then(Box<dyn FnOnce() + Send>),
    /// A piece of the answer, for the screen.
    Say {
        text: String,
        markdown: bool,
    },
    /// A change to the screen; an urgent one is drawn at once.
    Change {
        urgent: bool,
        change: Box<dyn FnOnce(&mut Surface) + Send>,
    },
}

impl Lane {
    /// Creates a lane for these streams.
    pub fn new(targets: Vec<StreamTarget>, at_once: bool) -> Self {
        let streams = targets.into_iter().map(|target| Stream { target: Some(target), failure: None }).collect();
        let queue = Mutex::new(LaneQueue { streams, ..LaneQueue::default() });
        Self { queue, filled: Condvar::new(), moved: Notify::new(), at_once }
    }

    /// Changes the queue, and wakes the thread if it `wakes` or is idle. The first change starts the thread.
    pub fn put(
        self: &Arc<Self>,
        stream: usize,
        wakes: bool,
        into: impl FnOnce(&mut LaneQueue, usize),
    ) -> io::Result<()> {
        let mut queue = self.lock();
        let targets: Option<Vec<StreamTarget>> =
            queue.streams.iter_mut().map(|stream| stream.target.take()).collect();
        if let Some(targets) = targets {
            let lane = Arc::clone(self);
            let surface = queue.surface.take();
            let thread = std::thread::Builder::new().name("output".to_owned());
            if let Err(error) = thread.spawn(move || lane.serve(targets, surface)) {
                queue.streams.iter_mut().for_each(|stream| stream.failure = Some(error.kind().into()));
            }
        }
        queue.check(stream)?;
        into(&mut queue, stream);
        // A busy thread waits for the time of its next frame and need not be woken.
        let wakes = wakes || !queue.busy;
        drop(queue);
        if wakes {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// The body of the thread, which lives as long as the process.
    fn serve(&self, mut targets: Vec<StreamTarget>, surface: Option<Box<Surface>>) {
        match surface {
            Some(surface) => self.draw(&mut targets, *surface),
            None => self.write(&mut targets),
        }
    }

    fn write(&self, targets: &mut [StreamTarget]) {
        loop {
            match self.take() {
                LaneItem::Then(act) => act(),
                LaneItem::Bytes { stream, bytes } => self.write_bytes(&mut targets[stream], stream, &bytes),
                // These are only for a screen.
                LaneItem::Say { .. } | LaneItem::Change { .. } => {}
            }
        }
    }

    /// Draws frames. Items that arrive before a frame is due go into that frame.
    fn draw(&self, targets: &mut [StreamTarget], mut surface: Surface) {
        loop {
            let items = self.take_all(surface.next_frame(), surface.is_dirty());
            let mut is_due = items.is_empty();
            for item in items {
                match item {
                    LaneItem::Bytes { bytes, .. } => surface.write(&bytes),
                    LaneItem::Say { text, markdown } => surface.say(&text, markdown),
                    LaneItem::Change { urgent, change } => {
                        change(&mut surface);
                        is_due |= urgent;
                    }
                    LaneItem::Then(act) => {
                        self.paint(targets, &mut surface);
                        act();
                    }
                }
            }
            is_due |= surface.next_frame().is_none_or(|due| due <= Instant::now());
            if is_due {
                self.paint(targets, &mut surface);
            }
        }
    }

    /// Writes a frame. All streams of this queue are the same terminal, so only one is written.
    fn paint(&self, targets: &mut [StreamTarget], surface: &mut Surface) {
        let frame = surface.frame();
        let has_failed = self.lock().streams[0].failure.is_some();
        let mut chunks = frame.as_bytes().chunks(CHUNK).filter(|_| !has_failed);
        let outcome = chunks.try_for_each(|chunk| {
            let written = write_whole(&mut targets[0], chunk);
            self.lock().moved = Some(Instant::now());
            written
        });
        let mut queue = self.lock();
        if let Err(error) = outcome {
            queue.streams.iter_mut().for_each(|stream| stream.failure = Some(error.kind().into()));
        }
        if !surface.is_dirty() {
            // Only items that arrived since then are left in the queue.
            queue.waiting = queue.items.iter().map(LaneItem::weight).sum();
        }
        drop(queue);
        self.moved.notify_waiters();
    }

    pub fn write_at_once(&self, stream: usize, bytes: &[u8]) -> io::Result<()> {
        let mut queue = self.lock();
        queue.check(stream)?;
        let Some(target) = &mut queue.streams[stream].target else { return Ok(()) };
        if let Err(error) = write_whole(target, bytes) {
            queue.streams[stream].failure = Some(error);
            self.moved.notify_waiters();
        }
        queue.check(stream)
    }

    fn take(&self) -> LaneItem {
        let mut queue = self.lock();
        loop {
            if let Some(item) = queue.items.pop_front() {
                queue.busy = true;
                return item;
            }
            queue.busy = false;
            self.moved.notify_waiters();
            queue = self.filled.wait(queue).expect("nobody panics while holding the queue");
        }
    }

    /// Takes all items, or none once `due` has passed. `busy` means that a frame has yet to be written.
    fn take_all(&self, due: Option<Instant>, busy: bool) -> VecDeque<LaneItem> {
        let mut queue = self.lock();
        loop {
            if !queue.items.is_empty() {
                queue.busy = true;
                return std::mem::take(&mut queue.items);
            }
            if queue.busy != busy {
                queue.busy = busy;
                self.moved.notify_waiters();
            }
            let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
            queue = match wait {
                Some(Duration::ZERO) => return VecDeque::new(),
                Some(wait) => {
                    self.filled.wait_timeout(queue, wait).expect("nobody panics while holding the queue").0
                }
                None => self.filled.wait(queue).expect("nobody panics while holding the queue"),
            };
        }
    }

    fn write_bytes(&self, target: &mut StreamTarget, stream: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && self.lock().streams[stream].failure.is_none() {
            let (chunk, after) = rest.split_at(chunk_of(rest));
            let outcome = write_whole(target, chunk);
            rest = after;
            let mut queue = self.lock();
            queue.waiting -= chunk.len();
            queue.moved = Some(Instant::now());
            queue.streams[stream].failure = outcome.err();
            let is_last = rest.is_empty() && queue.items.is_empty();
            drop(queue);
            // After the last write `take` notifies: each notification wakes a waiting turn.
            if !is_last {
                self.moved.notify_waiters();
            }
        }
        // The rest of a failed stream is dropped.
        self.lock().waiting -= rest.len();
    }

    /// Waits until everything is written. Returns false if the stream takes nothing for 500 ms.
    pub async fn flush_in_time(&self) -> bool {
        let began = Instant::now();
        let stalled = async {
            loop {
                let moved = self.lock().moved.map_or(began, |moved| moved.max(began));
                let left = STALLED.saturating_sub(moved.elapsed());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left).await;
            }
        };
        tokio::select! {
            biased;
            () = self.wait_until(LaneQueue::is_empty) => true,
            () = stalled => false,
        }
    }

    pub async fn wait_until(&self, holds: impl Fn(&LaneQueue) -> bool) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            moved.await;
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, LaneQueue> {
        self.queue.lock().expect("nobody panics while holding the queue")
    }
}

impl LaneItem {
    /// The bytes that it adds to the queue.
    fn weight(&self) -> usize {
        match self {
            Self::Bytes { bytes, .. } => bytes.len(),
            Self::Say { text, .. } => text.len(),
            Self::Then(_) | Self::Change { .. } => 0,
        }
    }
}

impl LaneQueue {
    pub fn has_room(&self) -> bool {
        self.waiting < ROOM
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.busy
    }

    /// Fails once the stream has failed.
    fn check(&self, stream: usize) -> io::Result<()> {
        self.failure(stream).map_or(Ok(()), Err)
    }

    pub fn failure(&self, stream: usize) -> Option<io::Error> {
        let error = self.streams[stream].failure.as_ref()?;
        Some(error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error))
    }
}

/// The length of the next write: whole lines if they are short enough.
fn chunk_of(bytes: &[u8]) -> usize {
    if bytes.len() <= CHUNK {
        return bytes.len();
    }
    bytes[..CHUNK].iter().rposition(|byte| *byte == b'\n').map_or(CHUNK, |at| at + 1)
}

/// Writes all bytes. Another process that shares the file may have made it non-blocking.
fn write_whole(target: &mut StreamTarget, mut bytes: &[u8]) -> io::Result<()> {
    const AGAIN: Duration = Duration::from_millis(5);
    while !bytes.is_empty() {
        match target.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(error) => return Err(error),
        }
    }
    target.flush()
}
