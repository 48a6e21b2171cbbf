//! The owner of the terminal's input: one thread, which reads keys and passes them on.
//!
//! All keys go to the [`Listener`], which is also told whether a hand can have typed them: text may follow a paste in the
//! same moment, and pretend to be keys.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as back;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::abilities::theme_of;
use super::burst::join_burst;
use super::input::{self, WaitResult, wait_input};
use super::keys::{Key, KeyDecoder, Listener};
use super::modes::{self, Modes};

/// The time after which a lone escape is the key.
const ESCAPE: Duration = Duration::from_millis(30);
/// Keys this soon after a paste are not from a hand.
const PASTED: Duration = Duration::from_millis(200);
/// The most bytes of a key, or of a few.
const FEW: usize = 16;
/// The most bytes of one read from a terminal, and of all that are taken as one piece.
const PIECE: usize = 4096;
const MOST_READ: usize = 1024 * 1024;
/// The longest wait for the rest of a piece that is longer than one read.
const BURST: Duration = Duration::from_millis(5);
/// The longest wait for the terminal's answers.
const ANSWER: Duration = Duration::from_millis(300);

/// A handle to the input.
pub struct Console {
    shared: Arc<ConsoleState>,
    waker: UnixStream,
    modes: Modes,
}

/// Keys are read until this is dropped, even if the console does not listen otherwise.
pub struct Focus {
    shared: Arc<ConsoleState>,
    waker: UnixStream,
}

/// The terminal belongs to another program until this is dropped.
pub struct Away {
    _returned: back::Sender<()>,
}

#[derive(Default)]
struct ConsoleState {
    wanted: Mutex<VecDeque<ConsoleRequest>>,
    /// The terminal has its original modes: another program has it, or nobody reads keys any more.
    is_away: AtomicBool,
}

enum ConsoleRequest {
    /// A question reads keys.
    Focus(oneshot::Sender<()>),
    /// The question is over.
    Blur,
    /// Another program has the terminal until the second channel closes.
    Leave(oneshot::Sender<()>, back::Receiver<()>),
    /// The program stops once the sender is dropped, and continues when the receiver is closed.
    Stop(back::Sender<()>, back::Receiver<()>),
    /// The terminal was asked what it is and can.
    Asked,
    /// Ends the thread.
    Rest,
}

impl ConsoleState {
    fn lock(&self) -> MutexGuard<'_, VecDeque<ConsoleRequest>> {
        self.wanted.lock().expect("nobody panics while holding the requests")
    }

    fn send(&self, request: ConsoleRequest, mut waker: &UnixStream) {
        self.lock().push_back(request);
        // A full pipe wakes the thread as well.
        let _ = waker.write(&[0]);
    }

    /// Stops the program at each Ctrl-Z that is a signal, once the screen is ready for it.
    fn take_stops(&self, waker: &UnixStream) {
        while input::stop_signal().wait().is_ok() {
            let (wanted, ready) = back::channel();
            let (stopped, until_continued) = back::channel();
            if !self.is_away.load(Ordering::SeqCst) {
                self.send(ConsoleRequest::Stop(wanted, until_continued), waker);
                let _ = ready.recv();
            }
            input::stop_this_process();
            drop(stopped);
        }
    }
}

impl Console {
    /// Starts the thread. If `listens`, it reads from now on; otherwise only while a question has the focus, and other
    /// typed text stays, not echoed, for the next reader of the terminal. `None` if stdin is not a terminal or the
    /// thread cannot be started.
    pub fn open(listener: Box<dyn Listener>, listens: bool) -> Option<Self> {
        let modes = Modes::save()?;
        let (waker, woken) = UnixStream::pair().ok()?;
        waker.set_nonblocking(true).ok()?;
        woken.set_nonblocking(true).ok()?;
        modes::put_back_after_panic();
        input::leave_stops_to_the_reader();
        let shared = Arc::new(ConsoleState::default());
        if listens {
            // Before anything is shown: whoever sees a prompt has these modes.
            modes.hold_keys();
        } else {
            let (shared, waker) = (Arc::clone(&shared), waker.try_clone().ok()?);
            std::thread::Builder::new().name("stops".to_owned()).spawn(move || shared.take_stops(&waker)).ok()?;
        }
        let reader = ConsoleReader {
            shared: Arc::clone(&shared),
            woken,
            modes,
            listener,
            listens,
            questions: 0,
            pasted: None,
            asked: None,
            decoder: KeyDecoder::default(),
        };
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || reader.serve()).ok()?;
        Some(Self { shared, waker, modes })
    }

    /// Reads keys until the returned value is dropped. Keys that were typed before have reached the listener when this
    /// returns.
    pub async fn focus(&self) -> Focus {
        let (ready, is_ready) = oneshot::channel();
        self.shared.send(ConsoleRequest::Focus(ready), &self.waker);
        // An error means that the thread is gone; then no key arrives either.
        let _ = is_ready.await;
        let waker = self.waker.try_clone().expect("a socket can be cloned");
        Focus { shared: Arc::clone(&self.shared), waker }
    }

    /// Leaves the terminal to another program, in its original modes, until the returned value is dropped.
    pub async fn leave(&self) -> Away {
        let (returned, is_returned) = back::channel();
        let (left, is_left) = oneshot::channel();
        self.shared.send(ConsoleRequest::Leave(left, is_returned), &self.waker);
        // An error means that the thread is gone; then nobody else reads.
        let _ = is_left.await;
        Away { _returned: returned }
    }

    /// Waits for the terminal's answers before another program gets the terminal.
    pub fn expect_answer(&self) {
        self.shared.send(ConsoleRequest::Asked, &self.waker);
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shared.send(ConsoleRequest::Rest, &self.waker);
        self.modes.restore();
    }
}

impl Drop for Focus {
    fn drop(&mut self) {
        self.shared.send(ConsoleRequest::Blur, &self.waker);
    }
}

/// The state of the reading thread.
struct ConsoleReader {
    shared: Arc<ConsoleState>,
    woken: UnixStream,
    modes: Modes,
    listener: Box<dyn Listener>,
    listens: bool,
    /// The number of questions that read keys.
    questions: usize,
    /// The time of the last paste, and of what followed it in a flood.
    pasted: Option<Instant>,
    /// The time when the terminal was asked what it is and can.
    asked: Option<Instant>,
    decoder: KeyDecoder,
}

impl ConsoleReader {
    fn serve(mut self) {
        if self.listens {
            let _ = input::stop_signal().thread_unblock();
        }
        self.take_over();
        loop {
            while let Some(request) = self.next_request() {
                match request {
                    ConsoleRequest::Focus(ready) => self.give_focus(ready),
                    ConsoleRequest::Blur => self.blur(),
                    ConsoleRequest::Leave(left, is_returned) => self.leave(left, &is_returned),
                    ConsoleRequest::Stop(wanted, until_continued) => self.stop(|| {
                        drop(wanted);
                        let _ = until_continued.recv();
                    }),
                    ConsoleRequest::Asked => self.asked = Some(Instant::now()),
                    ConsoleRequest::Rest => return self.shared.is_away.store(true, Ordering::SeqCst),
                }
            }
            let reads = self.listens || self.questions > 0;
            let patience = self.decoder.is_waiting().then_some(ESCAPE);
            match wait_input(reads, Some(&self.woken), patience) {
                WaitResult::Input => {
                    if !self.read(|_| ()) {
                        // The terminal is gone.
                        return self.shared.is_away.store(true, Ordering::SeqCst);
                    }
                }
                WaitResult::Woken => {}
                WaitResult::Nothing => {
                    if let Some(key) = self.decoder.give_up() {
                        self.route(key);
                    }
                }
            }
        }
    }

    fn next_request(&mut self) -> Option<ConsoleRequest> {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(count) if count > 0) {}
        self.shared.lock().pop_front()
    }

    /// Reads the available input, once `mend` has changed it. Returns false at its end.
    fn read(&mut self, mend: impl FnOnce(&mut [u8])) -> bool {
        let mut bytes = vec![0; PIECE];
        let mut count = 0;
        loop {
            match input::read_bytes(&mut bytes[count..]) {
                None => {}
                Some(0) => return false,
                Some(more) => count += more,
            }
            // A paste of many lines is known by what is readable right behind a line.
            let patience = if count < PIECE { Duration::ZERO } else { BURST };
            if count >= MOST_READ || wait_input(true, None, Some(patience)) != WaitResult::Input {
                break;
            }
            bytes.resize(count + PIECE, 0);
        }
        mend(&mut bytes[..count]);
        let keys = join_burst(self.decoder.feed(&bytes[..count]));
        let is_paste = keys.iter().any(|key| matches!(key, Key::Paste(_)));
        if is_paste || (count > FEW && !self.is_by_hand()) {
            self.pasted = Some(Instant::now());
        }
        for key in keys {
            self.route(key);
        }
        true
    }

    fn route(&mut self, key: Key) {
        match key {
            Key::Background(colour) => self.listener.learn(theme_of(colour)),
            Key::Reports => self.listener.report_keys(),
            Key::Attributes => self.asked = None,
            Key::Ctrl('z') if self.listens => self.stop(input::stop_process),
            // It comes back as a request.
            Key::Ctrl('z') => input::stop_process(),
            key => self.listener.press(key, self.is_by_hand()),
        }
    }

    /// True unless text was pasted just now.
    fn is_by_hand(&self) -> bool {
        self.pasted.is_none_or(|pasted| pasted.elapsed() > PASTED)
    }

    fn give_focus(&mut self, ready: oneshot::Sender<()>) {
        self.questions += 1;
        self.take_over();
        let _ = ready.send(());
    }

    fn blur(&mut self) {
        self.questions -= 1;
        self.rest();
    }

    /// Takes the terminal, with what was typed before: in its original modes Enter arrives as a line feed.
    fn take_over(&mut self) {
        self.rest();
        while (self.listens || self.questions > 0)
            && wait_input(true, None, Some(Duration::ZERO)) == WaitResult::Input
            && self.read(|typed| typed.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'\r'))
        {
        }
    }

    /// Sets the modes for the time when this thread has the terminal.
    fn rest(&self) {
        if self.listens || self.questions > 0 {
            self.modes.hold_keys();
        } else {
            self.modes.hush();
        }
    }

    fn leave(&mut self, left: oneshot::Sender<()>, is_returned: &back::Receiver<()>) {
        self.await_answer();
        super::put_back();
        self.shared.is_away.store(true, Ordering::SeqCst);
        // Nobody waits for an abandoned loan.
        let _ = left.send(());
        let _ = is_returned.recv();
        self.shared.is_away.store(false, Ordering::SeqCst);
        self.take_over();
        self.listener.come_back();
    }

    /// Takes what the terminal answers out of the input, if it was asked.
    fn await_answer(&mut self) {
        while let Some(left) = self.asked.and_then(|asked| ANSWER.checked_sub(asked.elapsed())) {
            match wait_input(true, None, Some(left)) {
                WaitResult::Input if self.read(|_| ()) => {}
                _ => break,
            }
        }
        self.asked = None;
    }

    /// Stops the program as Ctrl-Z does in a shell, and continues when the shell resumes it.
    fn stop(&mut self, until_continued: impl FnOnce()) {
        self.listener.stop(true);
        super::put_back();
        until_continued();
        self.take_over();
        self.listener.come_back();
        self.listener.stop(false);
    }
}
