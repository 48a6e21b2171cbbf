//! Ends a command that keeps starting processes.
//!
//! The kernel's own limit exempts the superuser and counts all processes of any other user, so it is far above
//! normal use ([`super::powers`]) and only keeps the machine alive. Here a thread regularly reads the number of
//! all tasks, which is one small read; only when that has grown by more than allowed does it count the members of
//! the group. It kills the group itself: in such a flood no other thread may be scheduled for seconds.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::safety::sandbox::MOST_PROCESSES;

const PERIOD: Duration = Duration::from_millis(20);

/// Ends a group of processes that has more than [`MOST_PROCESSES`] members, until it is dropped.
pub struct GroupWatch {
    flooded: Arc<AtomicBool>,
    /// Stops the thread when dropped.
    _stop: mpsc::Sender<()>,
}

impl GroupWatch {
    /// Starts watching. Does nothing if no thread or task count is available.
    pub fn start(group: i32) -> Self {
        let (stop, stopped) = mpsc::channel();
        let flooded = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&flooded);
        let group = Pid::from_raw(group);
        if let Some(mut usual) = all_tasks() {
            let watch = move || {
                let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), -20);
                while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    let Some(now) = all_tasks().filter(|now| *now > usual + MOST_PROCESSES) else { continue };
                    // Counting many processes takes long, and they would multiply meanwhile: stop them first.
                    let _ = killpg(group, Signal::SIGSTOP);
                    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
                    let members = processes.filter(|process| is_member(&process.path(), group) == Some(true));
                    if members.count() > MOST_PROCESSES {
                        shared.store(true, Ordering::Relaxed);
                        let _ = killpg(group, Signal::SIGKILL);
                        return;
                    }
                    let _ = killpg(group, Signal::SIGCONT);
                    // Another group caused the growth.
                    usual = now;
                }
            };
            let _ = thread::Builder::new().name("flood".to_owned()).spawn(watch);
        }
        Self { flooded, _stop: stop }
    }

    /// True if the group exceeded the limit.
    pub fn is_flooded(&self) -> bool {
        self.flooded.load(Ordering::Relaxed)
    }
}

/// `0.20 0.18 0.12 1/80 11206`: one task is running, of 80.
pub(super) fn all_tasks() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// True if a process belongs to the group. The third field of `stat` is the state and the fifth the group; the second
/// is a name in parentheses that may contain anything.
fn is_member(process: &std::path::Path, group: Pid) -> Option<bool> {
    process.file_name()?.to_str()?.parse::<u32>().ok()?;
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, of) = (fields.next()?, fields.nth(1)?);
    Some(state != "Z" && of.parse() == Ok(group.as_raw()))
}
