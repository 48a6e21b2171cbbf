//! One output stream of a run, read by a thread: at once, slowly, late, or not to its end.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::run::GUARD;

/// The way in which stdout is read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Pace {
    #[default]
    Eager,
    /// A byte at a time, which is slower than any program writes.
    Slow,
    /// Not before the program has ended.
    Late,
}

/// The output of a pipe so far.
pub struct Stream {
    state: Arc<(Mutex<Seen>, Condvar)>,
}

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    ended: bool,
    /// Set by the test: stop reading and let the pipe go.
    close: bool,
    /// Nothing is read yet.
    held: bool,
}

impl Stream {
    pub fn of(mut pipe: impl Read + Send + 'static, pace: Pace) -> Self {
        let seen = Seen { held: pace == Pace::Late, ..Seen::default() };
        let state = Arc::new((Mutex::new(seen), Condvar::new()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            let (seen, changed) = &*shared;
            drop(changed.wait_while(seen.lock().expect("no reader panics"), |seen| seen.held));
            let mut buffer = vec![0; if pace == Pace::Slow { 1 } else { 64 * 1024 }];
            loop {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                let mut seen = seen.lock().expect("no reader panics");
                seen.bytes.extend_from_slice(&buffer[..read]);
                if read == 0 || seen.close {
                    // The pipe goes before anyone can see that it went.
                    drop(pipe);
                    seen.ended = true;
                    changed.notify_all();
                    return;
                }
                changed.notify_all();
            }
        });
        Self { state }
    }

    /// Reads from now on.
    pub fn read(&self) {
        self.state.0.lock().expect("no reader panics").held = false;
        self.state.1.notify_all();
    }

    /// The next thing read is the last.
    pub fn close(&self) {
        self.state.0.lock().expect("no reader panics").close = true;
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str, other: &Self) {
        let (seen, changed) = &*self.state;
        let seen = seen.lock().expect("no reader panics");
        let missing = |seen: &mut Seen| !contains(&seen.bytes, text.as_bytes()) && !seen.ended;
        let (seen, _) = changed.wait_timeout_while(seen, GUARD, missing).expect("no reader panics");
        assert!(
            contains(&seen.bytes, text.as_bytes()),
            "`{text}` never came\n--- this stream\n{}\n--- the other\n{}",
            String::from_utf8_lossy(&seen.bytes),
            other.so_far()
        );
    }

    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.state.0.lock().expect("no reader panics").bytes).into_owned()
    }

    /// Everything. A grandchild that keeps the pipe open is a failure of the program.
    #[track_caller]
    pub fn all(&self) -> String {
        let (seen, changed) = &*self.state;
        let seen = seen.lock().expect("no reader panics");
        let (seen, guard) = changed.wait_timeout_while(seen, GUARD, |seen| !seen.ended).expect("no reader panics");
        assert!(!guard.timed_out(), "the program ended, but something still holds its output open");
        String::from_utf8_lossy(&seen.bytes).into_owned()
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
}
