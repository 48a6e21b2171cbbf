//! The processes of a command from the view of the first process of their namespace, which reaps them, counts them, and
//! reports the end of the command.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, pidfd_open};

use super::messages::CommandEnd;
use crate::safety::sandbox::MOST_PROCESSES;

/// The time between two checks of the processes of a running command, in milliseconds.
const LOOK: u8 = 50;
/// The time between two checks of processes that are about to end.
const GLANCE: Duration = Duration::from_millis(1);

/// An event that was waited for.
pub(super) enum ProcessEvent {
    /// A message arrived, or the other end of the socket closed.
    Asked,
    /// The command ended.
    Ended,
    /// Some time has passed.
    Look,
}

/// A command, and everything that it started.
pub(super) struct ProcessFamily {
    /// The number of the command, and a handle that is readable when it has ended.
    command: (Pid, OwnedFd),
    status: Option<WaitStatus>,
    /// True if nothing of it is left.
    pub is_gone: bool,
    /// The processor time of the processes reaped before, in microseconds, and the most memory of one of them in bytes.
    before: (u64, u64),
}

impl ProcessFamily {
    /// The family of a command that was just started. `before` is the result of [`measure_spent`] before that.
    ///
    /// # Errors
    /// No more descriptors can be opened.
    pub fn start(command: Pid, before: (u64, u64)) -> io::Result<Self> {
        let handle = pidfd_open(command, PidfdFlags::empty())?;
        Ok(Self { command: (command, handle), status: None, is_gone: false, before })
    }

    /// Waits for the next event.
    pub fn wait(&self, socket: &UnixStream) -> io::Result<ProcessEvent> {
        // A handle of a process that has been reaped would be readable forever.
        let handle = self.status.is_none().then(|| self.command.1.as_fd());
        let mut watched: Vec<PollFd<'_>> =
            [socket.as_fd()].into_iter().chain(handle).map(|file| PollFd::new(file, PollFlags::POLLIN)).collect();
        match poll(&mut watched, PollTimeout::from(LOOK)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut happened = watched.iter().map(|file| file.any() == Some(true));
        Ok(match (happened.next(), happened.next()) {
            (Some(true), _) => ProcessEvent::Asked,
            (_, Some(true)) => ProcessEvent::Ended,
            _ => ProcessEvent::Look,
        })
    }

    /// Reaps ended processes; returns true once, when the command itself has ended.
    pub fn reap(&mut self) -> bool {
        let had_ended = self.status.is_some();
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((process, status))) if process == self.command.0 => self.status = Some(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => {
                    self.is_gone = true;
                    break;
                }
            }
        }
        self.status.is_some() && !had_ended
    }

    /// Waits until nothing is left, but no longer than this; returns true if nothing is.
    pub fn is_gone_within(&mut self, most: Duration) -> bool {
        let mut waited = Duration::ZERO;
        loop {
            self.reap();
            if self.is_gone || waited >= most {
                return self.is_gone;
            }
            sleep(GLANCE);
            waited += GLANCE;
        }
    }

    /// The end of the command.
    pub fn end(&self, flooded: bool, is_over: bool) -> CommandEnd {
        let (cpu, peak) = measure_spent(UsageWho::RUSAGE_CHILDREN);
        // A child begins with the mark of this process.
        let (_, own) = measure_spent(UsageWho::RUSAGE_SELF);
        let known = self.before.1.max(own + own / 8);
        CommandEnd {
            status: self.status.map(WaitStatus::as_raw),
            flooded,
            is_over,
            cpu: cpu.saturating_sub(self.before.0),
            peak_memory: (peak > known).then_some(peak),
        }
    }
}

/// Processor time in microseconds, and the most memory that one process held in bytes.
pub(super) fn measure_spent(whose: UsageWho) -> (u64, u64) {
    let of = |usage: nix::sys::resource::Usage| {
        let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Some((u64::try_from(cpu).ok()?, u64::try_from(usage.max_rss()).ok()? * 1024))
    };
    getrusage(whose).ok().and_then(of).unwrap_or_default()
}

/// Signals every process of this namespace but this one.
pub(super) fn signal_all(signal: Signal) {
    // There may be none.
    let _ = kill(nix::unistd::Pid::from_raw(-1), signal);
}

/// Detects that there are more processes than a command may have. The kernel's own limit does not apply to the
/// superuser.
#[derive(Default)]
pub(super) struct Census {
    /// No number below this one belongs to a process that was not there at the last count.
    counted: usize,
}

impl Census {
    /// True if there are too many. Cheap as long as few are started: one read, where counting costs one for each
    /// process.
    pub fn is_over(&mut self) -> bool {
        let newest = find_newest();
        // Numbers wrap around at some time.
        if newest < self.counted {
            self.counted = 0;
        }
        if newest - self.counted <= MOST_PROCESSES {
            return false;
        }
        let count = count_processes();
        self.counted = newest.saturating_sub(count);
        count > MOST_PROCESSES
    }
}

/// The newest process number of this namespace.
fn find_newest() -> usize {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().last().and_then(|last| last.parse().ok()).unwrap_or(usize::MAX)
}

fn count_processes() -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())).count()
}
