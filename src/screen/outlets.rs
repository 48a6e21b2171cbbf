//! stdout and stderr behind queues.
//!
//! If both streams are the same file, one thread writes both, so a screen or a log keeps its order. A thread starts
//! with its first byte. A queue accepts everything, because no event may be lost; it stays small because the turn waits
//! for [`OutputQueue::wait_for_room`] before it goes on. A regular file, which no reader can delay, is written without a queue. On a
//! terminal that can be drawn on, the thread owns the screen: see [`Display`].

use std::io::{self, Write};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::display::Display;
use super::file::StreamFile;
use super::lane::{Lane, LaneQueue};
use super::look::Look;
use super::outlet::Outlet;
use super::surface::SurfaceSetup;
use crate::conversation::OutputQueue;
use crate::screen::ink::{Line, Style};
use crate::screen::terminal;

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

impl Outlets {
    /// Opens the streams of this process. If `look.live`, the terminal on stderr is drawn on.
    pub fn open(look: &Look) -> Self {
        let (stdout, stderr) = (StreamFile::stdout(), StreamFile::stderr());
        let (answer, progress) = if stdout.identity.is_some() && stdout.identity == stderr.identity {
            let answer = Outlet::new(vec![stdout.target, stderr.target], stdout.is_free);
            let progress = Outlet { stream: 1, ..answer.clone() };
            (answer, progress)
        } else {
            (Outlet::new(vec![stdout.target], stdout.is_free), Outlet::new(vec![stderr.target], stderr.is_free))
        };
        let setup = SurfaceSetup { size: terminal::measure_size, style: look.style, reflows: look.reflows };
        let display = if look.live { Display::draw_on(&progress, setup) } else { Display::default() };
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
        // Errors are ignored: a closed stderr does not stop a run.
        let _ = self.progress.clone().write_all(text.as_bytes());
    }

    /// Waits until everything is written, however slow the reader is. Once `hurry` completes, gives up on a stream that
    /// takes nothing for 500 ms. Returns true if everything was written.
    pub async fn flush(&self, hurry: impl Future<Output = ()>) -> bool {
        let [one, other] = self.lanes();
        tokio::select! {
            biased;
            _ = async { tokio::join!(one.wait_until(LaneQueue::is_empty), other.wait_until(LaneQueue::is_empty)) } => return true,
            () = hurry => {}
        }
        tokio::join!(one.flush_in_time(), other.flush_in_time()) == (true, true)
    }

    /// Writes a last line to stderr, unless it shares the stuck queue of stdout. Gives up as `flush` does.
    pub async fn last_words(&mut self, line: &str) {
        if self.are_one() {
            return;
        }
        // An error on stderr can be reported nowhere else.
        let _ = writeln!(self.progress, "{line}");
        self.progress.lane.flush_in_time().await;
    }

    /// Blocks this thread until everything is written.
    pub fn wait(&self) {
        self.answer.wait();
        self.progress.wait();
    }

    /// True if stdout and stderr are one file: the same terminal, or the same log.
    pub fn are_one(&self) -> bool {
        Arc::ptr_eq(&self.answer.lane, &self.progress.lane)
    }

    /// The queue of each stream; the same one twice if they share it.
    fn lanes(&self) -> [&Lane; 2] {
        [&self.answer.lane, &self.progress.lane]
    }
}

impl OutputQueue for Outlets {
    fn has_room(&self) -> bool {
        self.lanes().into_iter().all(|lane| lane.lock().has_room())
    }

    fn wait_for_room(&self) -> BoxFuture<'_, ()> {
        async {
            for lane in self.lanes() {
                lane.wait_until(LaneQueue::has_room).await;
            }
        }
        .boxed()
    }

    fn wait_until_closed(&self) -> BoxFuture<'_, ()> {
        self.answer.lane.wait_until(|queue| queue.streams[self.answer.stream].failure.is_some()).boxed()
    }

    fn failure(&self) -> Option<io::Error> {
        self.answer.lane.lock().failure(self.answer.stream)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::screen::lane::{CHUNK, ROOM};

    /// Takes one write for each permit, and keeps what it got.
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
        block_on(outlets.wait_for_room());
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
            outlets.wait_until_closed().await;
            outlets.wait_for_room().await;
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
