//! Tells whether a command, and everything it started, is alive: it holds a FIFO open, and the last holder's death is
//! the end of the file. No process id is guessed and nothing is polled.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use nix::sys::stat::Mode;

use crate::run::GUARD;

/// The reading end of the FIFO.
pub struct Lifeline {
    started: Receiver<()>,
    ended: Receiver<()>,
}

impl Lifeline {
    /// The shell command that holds `alive` in the workspace, with a child that holds it too.
    pub const COMMAND: &str = "exec 3>alive; echo started >&3; sleep 600 & sleep 600";

    /// The same, deaf to polite signals.
    pub const STUBBORN: &str = "trap '' TERM INT HUP; exec 3>alive; echo started >&3; sleep 600 & wait; sleep 600";

    /// Makes the FIFO in this directory.
    pub fn new(workspace: &Path) -> Self {
        let path = workspace.join("alive");
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a FIFO can be made");
        let ((start, started), (end, ended)) = (mpsc::channel(), mpsc::channel());
        thread::spawn(move || {
            let mut reader = BufReader::new(std::fs::File::open(path).expect("the FIFO can be read"));
            let _ = reader.read_line(&mut String::new());
            let _ = start.send(());
            let _ = reader.read_to_string(&mut String::new());
            let _ = end.send(());
        });
        Self { started, ended }
    }

    /// Returns once the command runs.
    #[track_caller]
    pub fn wait_started(&self) {
        self.started.recv_timeout(GUARD).expect("the command was never started");
    }

    /// Returns once nobody holds the FIFO any more.
    #[track_caller]
    pub fn wait_dead(&self) {
        self.ended.recv_timeout(GUARD).expect("a process that the command started is still alive");
    }
}
