//! stdout and stderr behind queues: callers never block, a thread writes.
//!
//! If both streams are the same file, one thread writes both, so a screen or a log keeps its order. A thread starts
//! with its first byte. A queue accepts everything, because no event may be lost; it stays small because the turn
//! waits for [`Outlets::room`] before it goes on. What no reader can hold up, a regular file, is written without both.
//! On a terminal that can be drawn on, the thread owns the screen: see [`Display`].

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::display::{Display, Setup, Surface};
use super::file::{File, Target};
use super::look::Look;
use crate::ink::{Line, Style};
use crate::terminal;

/// The number of queued bytes above which a turn waits.
const ROOM: usize = 256 * 1024;
/// The most bytes in one write. A pipe takes this many at once or none, so progress is visible, and lines of two
/// processes in one log do not mix.
const CHUNK: usize = 4096;
/// How long a stream may stay blocked once the run is being ended; then the rest is dropped.
const STALLED: Duration = Duration::from_millis(500);

/// The output streams of the process, and the screen behind them. Clones share the queues.
#[derive(Clone)]
pub struct Outlets {
    /// stdout
    pub answer: Outlet,
    /// stderr
    pub progress: Outlet,
    pub display: Display,
    style: Style,
}

/// One stream. A write puts bytes into the queue, and fails once the stream has failed.
#[derive(Clone)]
pub struct Outlet {
    lane: Arc<Lane>,
    stream: usize,
}

/// A queue and its thread.
struct Lane {
    queue: Mutex<Queue>,
    filled: Condvar,
    /// Notified after each write that another one follows, and when the queue is empty.
    moved: Notify,
    /// Nothing is queued: each write goes to its file at once.
    at_once: bool,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// The number of bytes not written yet.
    waiting: usize,
    /// The time of the last write.
    moved: Option<Instant>,
    /// The thread is processing an item.
    busy: bool,
    streams: Vec<Stream>,
    /// `None` once the thread has taken it, and where nothing is drawn.
    surface: Option<Box<Surface>>,
}

#[derive(Default)]
struct Stream {
    /// `None` once the thread has taken it.
    target: Option<Target>,
    failure: Option<io::Error>,
}

enum Item {
    Bytes {
        stream: usize,
        bytes: Vec<u8>,
    },
    /// Run once everything before it was written.
    Then(Box<dyn FnOnce() + Send>),
    /// A piece of the answer, for the screen.
    Say {
        text: String,
        markdown: bool,
    },
    /// A change of the screen; an urgent one is drawn at once.
    Change {
        urgent: bool,
        change: Box<dyn FnOnce(&mut Surface) + Send>,
    },
}

impl Outlets {
    /// Opens the streams of this process. Where the look says so, the terminal on stderr is drawn on.
    #[must_use]
    pub fn open(look: &Look) -> Self {
        let (stdout, stderr) = (File::stdout(), File::stderr());
        let (answer, progress) = if stdout.identity.is_some() && stdout.identity == stderr.identity {
            let answer = Outlet::over(vec![stdout.target, stderr.target], stdout.is_free);
            let progress = Outlet { stream: 1, ..answer.clone() };
            (answer, progress)
        } else {
            (Outlet::over(vec![stdout.target], stdout.is_free), Outlet::over(vec![stderr.target], stderr.is_free))
        };
        let setup = Setup { size: terminal::size, style: look.style, reflows: look.reflows };
        let display = if look.live { Display::on(&progress, setup) } else { Display::default() };
        Self { answer, progress, display, style: look.style }
    }

    /// Streams that nobody reads.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        let sink = || Outlet::to(Box::new(io::sink()));
        Self { answer: sink(), progress: sink(), display: Display::default(), style: Style::default() }
    }

    /// Shows lines about the run.
    pub fn show(&self, lines: Vec<Line>) {
        if self.display.is_live() {
            return self.display.lines(lines);
        }
        let text: String = lines.iter().map(|line| line.painted(self.style) + "\n").collect();
        // Errors are ignored: a closed stderr is no reason to stop.
        let _ = self.progress.clone().write_all(text.as_bytes());
    }

    /// True if no queue is full.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.lanes().into_iter().all(|lane| lane.lock().has_room())
    }

    /// Waits until no queue is full.
    pub async fn room(&self) {
        for lane in self.lanes() {
            lane.until(Queue::has_room).await;
        }
    }

    /// Waits until stdout has failed: its reader left, or its disk is full.
    pub async fn closed(&self) {
        self.answer.lane.until(|queue| queue.streams[self.answer.stream].failure.is_some()).await;
    }

    /// The error of stdout, if it failed.
    #[must_use]
    pub fn failure(&self) -> Option<io::Error> {
        self.answer.lane.lock().failure(self.answer.stream)
    }

    /// Waits until everything is written, however slow the reader is. After `hurry`, gives up on a stream that takes
    /// nothing for 500 ms. Returns true if everything was written.
    pub async fn flush(&self, hurry: impl Future<Output = ()>) -> bool {
        let [one, other] = self.lanes();
        tokio::select! {
            biased;
            _ = async { tokio::join!(one.until(Queue::is_empty), other.until(Queue::is_empty)) } => return true,
            () = hurry => {}
        }
        tokio::join!(one.flush_in_time(), other.flush_in_time()) == (true, true)
    }

    /// Writes a last line to stderr, unless stderr waits for the reader of stdout, and gives up on it as `flush` does.
    pub async fn last_words(&mut self, line: &str) {
        if self.are_one() {
            return;
        }
        // There is no other place to report an error of stderr.
        let _ = writeln!(self.progress, "{line}");
        self.progress.lane.flush_in_time().await;
    }

    /// Blocks this thread until everything is written.
    pub fn wait(&self) {
        self.answer.wait();
        self.progress.wait();
    }

    /// True if stdout and stderr are one file: the same terminal, or the same log.
    #[must_use]
    pub fn are_one(&self) -> bool {
        Arc::ptr_eq(&self.answer.lane, &self.progress.lane)
    }

    /// The queue of each stream; the same one twice if they share it.
    fn lanes(&self) -> [&Lane; 2] {
        [&self.answer.lane, &self.progress.lane]
    }
}

impl Outlet {
    /// A stream with its own queue.
    #[cfg(test)]
    pub(super) fn to(target: Target) -> Self {
        Self::over(vec![target], false)
    }

    fn over(targets: Vec<Target>, at_once: bool) -> Self {
        let streams = targets.into_iter().map(|target| Stream { target: Some(target), failure: None }).collect();
        let queue = Mutex::new(Queue { streams, ..Queue::default() });
        let lane = Lane { queue, filled: Condvar::new(), moved: Notify::new(), at_once };
        Self { lane: Arc::new(lane), stream: 0 }
    }

    /// Runs `act` on the writing thread once everything before it was written.
    pub(super) fn then(&self, act: impl FnOnce() + Send + 'static) {
        if self.lane.at_once {
            return act();
        }
        // A stream that failed needs nothing more done to it.
        let _ = self.put(true, |queue, _| queue.items.push_back(Item::Then(Box::new(act))));
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
                Some(Item::Say { text: last, .. }) => last.push_str(text),
                _ => queue.items.push_back(Item::Say { text: text.to_owned(), markdown }),
            }
        })
    }

    /// Changes the screen.
    pub(super) fn change(&self, urgent: bool, change: impl FnOnce(&mut Surface) + Send + 'static) {
        let change = Box::new(change);
        // A screen that failed shows nothing any more.
        let _ = self.put(urgent, |queue, _| queue.items.push_back(Item::Change { urgent, change }));
    }

    /// Blocks this thread until everything that was put into the queue before is written.
    pub fn wait(&self) {
        if self.lane.lock().is_empty() {
            return;
        }
        let (done, written) = std::sync::mpsc::channel::<()>();
        self.then(move || drop(done));
        // Returns when the sender is dropped.
        let _ = written.recv();
    }

    fn put(&self, wakes: bool, into: impl FnOnce(&mut Queue, usize)) -> io::Result<()> {
        let mut queue = self.lane.lock();
        let targets: Option<Vec<Target>> = queue.streams.iter_mut().map(|stream| stream.target.take()).collect();
        if let Some(targets) = targets {
            let lane = Arc::clone(&self.lane);
            let surface = queue.surface.take();
            let thread = std::thread::Builder::new().name("output".to_owned());
            if let Err(error) = thread.spawn(move || lane.serve(targets, surface)) {
                queue.streams.iter_mut().for_each(|stream| stream.failure = Some(error.kind().into()));
            }
        }
        if let Some(error) = queue.failure(self.stream) {
            return Err(error);
        }
        into(&mut queue, self.stream);
        // A thread that waits for the time of the next frame is left to it.
        let wakes = wakes || !queue.busy;
        drop(queue);
        if wakes {
            self.lane.filled.notify_one();
        }
        Ok(())
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
                Some(Item::Bytes { stream, bytes: last }) if *stream == to => last.extend_from_slice(bytes),
                _ => queue.items.push_back(Item::Bytes { stream: to, bytes: bytes.to_vec() }),
            }
        })?;
        Ok(bytes.len())
    }

    /// Does nothing: the thread writes as soon as it can.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lane {
    /// The body of the thread, which lives as long as the process.
    fn serve(&self, mut targets: Vec<Target>, surface: Option<Box<Surface>>) {
        match surface {
            Some(surface) => self.draw(&mut targets, *surface),
            None => self.write(&mut targets),
        }
    }

    fn write(&self, targets: &mut [Target]) {
        loop {
            match self.take() {
                Item::Then(act) => act(),
                Item::Bytes { stream, bytes } => self.write_bytes(&mut targets[stream], stream, &bytes),
                // Only a screen gets these.
                Item::Say { .. } | Item::Change { .. } => {}
            }
        }
    }

    /// Draws frames. What comes while a frame is not due goes into the next one.
    fn draw(&self, targets: &mut [Target], mut surface: Surface) {
        loop {
            let items = self.take_all(surface.next_frame(), surface.is_dirty());
            let mut is_due = items.is_empty();
            for item in items {
                match item {
                    Item::Bytes { bytes, .. } => surface.write(&bytes),
                    Item::Say { text, markdown } => surface.say(&text, markdown),
                    Item::Change { urgent, change } => {
                        change(&mut surface);
                        is_due |= urgent;
                    }
                    Item::Then(act) => {
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

    /// Writes a frame. All streams of this queue are the same terminal, so one of them is written.
    fn paint(&self, targets: &mut [Target], surface: &mut Surface) {
        let frame = surface.frame();
        let mut outcome = Ok(());
        if self.lock().streams[0].failure.is_none() {
            for chunk in frame.as_bytes().chunks(CHUNK) {
                outcome = write_whole(&mut targets[0], chunk);
                self.lock().moved = Some(Instant::now());
                if outcome.is_err() {
                    break;
                }
            }
        }
        let mut queue = self.lock();
        if let Err(error) = outcome {
            for stream in &mut queue.streams {
                stream.failure = Some(error.kind().into());
            }
        }
        if !surface.is_dirty() {
            // What came since is still in the queue.
            queue.waiting = queue.items.iter().map(Item::weight).sum();
        }
        drop(queue);
        self.moved.notify_waiters();
    }

    fn write_at_once(&self, stream: usize, bytes: &[u8]) -> io::Result<()> {
        let mut queue = self.lock();
        queue.failure(stream).map_or(Ok(()), Err)?;
        let Some(target) = &mut queue.streams[stream].target else { return Ok(()) };
        if let Err(error) = write_whole(target, bytes) {
            queue.streams[stream].failure = Some(error);
            self.moved.notify_waiters();
            return queue.failure(stream).map_or(Ok(()), Err);
        }
        Ok(())
    }

    fn take(&self) -> Item {
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

    /// Takes everything, or nothing once `due` has come. `busy` says that a frame has yet to be written.
    fn take_all(&self, due: Option<Instant>, busy: bool) -> VecDeque<Item> {
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

    fn write_bytes(&self, target: &mut Target, stream: usize, bytes: &[u8]) {
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
            // After the last one, `take` tells: each telling wakes the turn, if it waits.
            if !is_last {
                self.moved.notify_waiters();
            }
        }
        // The rest of a failed stream is dropped.
        self.lock().waiting -= rest.len();
    }

    /// Waits until everything is written, or until the stream took nothing for 500 ms: then false.
    async fn flush_in_time(&self) -> bool {
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
            () = self.until(Queue::is_empty) => true,
            () = stalled => false,
        }
    }

    async fn until(&self, holds: impl Fn(&Queue) -> bool) {
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            moved.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("nobody panics while holding the queue")
    }
}

impl Item {
    /// The bytes that it adds to the queue.
    fn weight(&self) -> usize {
        match self {
            Self::Bytes { bytes, .. } => bytes.len(),
            Self::Say { text, .. } => text.len(),
            Self::Then(_) | Self::Change { .. } => 0,
        }
    }
}

impl Queue {
    fn has_room(&self) -> bool {
        self.waiting < ROOM
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty() && !self.busy
    }

    fn failure(&self, stream: usize) -> Option<io::Error> {
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
fn write_whole(target: &mut Target, mut bytes: &[u8]) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes one write for each permit; keeps what it got.
    struct Reader {
        permits: mpsc::Receiver<()>,
        got: mpsc::Sender<Vec<u8>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            let _ = self.got.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime can be built").block_on(future)
    }

    fn outlets() -> (Outlets, mpsc::Sender<()>, mpsc::Receiver<Vec<u8>>) {
        let ((permit, permits), (got, seen)) = (mpsc::channel(), mpsc::channel());
        let answer = Outlet::to(Box::new(Reader { permits, got }));
        let progress = Outlet::to(Box::new(io::sink()));
        (Outlets { answer, progress, display: Display::default(), style: Style::default() }, permit, seen)
    }

    #[test]
    fn writing_never_waits_and_a_reader_makes_room() {
        let (mut outlets, permit, seen) = outlets();
        let lines = b"seven..\n".repeat(ROOM / 8);
        outlets.answer.write_all(&lines).expect("the queue takes everything");
        assert!(!outlets.has_room());
        for _ in 0..=lines.len() / CHUNK {
            let _ = permit.send(());
        }
        block_on(outlets.room());
        assert!(block_on(outlets.flush(std::future::pending())));
        let got: Vec<Vec<u8>> = seen.try_iter().collect();
        assert!(got.iter().all(|write| write.len() <= CHUNK && write.ends_with(b"\n")), "lines stay whole");
        assert_eq!(got.concat(), lines);
    }

    #[test]
    fn what_is_not_read_is_given_up_once_the_end_is_wanted() {
        let (mut outlets, permit, _seen) = outlets();
        outlets.answer.write_all(b"nobody reads this").expect("the queue takes it");
        assert!(!block_on(outlets.flush(std::future::ready(()))));
        permit.send(()).expect("the thread waits for it");
        assert!(block_on(outlets.flush(std::future::ready(()))));
    }

    #[test]
    fn a_reader_that_left_fails_the_next_write_and_empties_the_queue() {
        let (mut outlets, permit, _seen) = outlets();
        drop(permit);
        outlets.answer.write_all(&vec![b'x'; 3 * ROOM]).expect("it is not known yet");
        block_on(async {
            outlets.closed().await;
            outlets.room().await;
            assert!(outlets.flush(std::future::pending()).await);
        });
        assert_eq!(outlets.failure().map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
        assert_eq!(outlets.answer.write(b"y").expect_err("closed").kind(), io::ErrorKind::BrokenPipe);
        assert!(outlets.progress.write(b"y").is_ok(), "the other stream goes on");
    }

    #[test]
    fn what_stands_behind_bytes_is_done_after_them() {
        let (mut outlets, permit, seen) = outlets();
        let (done, order) = mpsc::channel();
        outlets.answer.write_all(b"first").expect("the queue takes it");
        outlets.answer.then(move || drop(done.send(seen.try_recv())));
        permit.send(()).expect("the thread waits for it");
        outlets.answer.wait();
        assert_eq!(order.recv().expect("it was done"), Ok(b"first".to_vec()));
    }
}
