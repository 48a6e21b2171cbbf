//! Child processes: started in their own process group, watched, and killed with all their descendants.
//!
//! This is the only place that spawns processes, inside the boundary of `sandbox` if one is requested. A child never
//! outlives its call: at a timeout the group gets SIGTERM and then SIGKILL; processes left behind when the child
//! exits are killed too; and dropping the future, for any reason, kills the group first. A process that moves to
//! another session (`setsid`) leaves the group and escapes all of this, except in the namespaces of the sandbox, which
//! end with the command.

mod children;
mod foreground;
mod group;
mod server;
mod shell;
mod subject;

use std::future::{pending, poll_fn};
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use crate::safety::sandbox::{self, Walls};

use group::Force;
use subject::{CommandKiller, Pipes, StartedCommand, poll_pipes};

pub use crate::base::output::Exit;
pub use children::{ChildWatch, ProcessUsage};
pub use foreground::{PersonsLine, ask_program, feed_program, in_foreground, is_on_path, run_pager};
pub use group::kill_all;
pub use server::{ServerLaunch, ServerProcess, ServerStreams};
pub use shell::{SHELL, choose_shell, shell_name};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// The wait for output after the child has exited: another process may keep its pipe open forever.
pub const LINGER: Duration = Duration::from_millis(300);
/// The number of times that survivors are checked within that time.
const LOOKS: u32 = 15;
/// The capacity of a pipe in the kernel.
const READ_BYTES: usize = 64 * 1024;

/// A command to run. The child sees only `env`.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub dir: &'a Path,
    /// The whole environment of the child.
    pub env: &'a [(String, String)],
    pub patience: ChildPatience<'a>,
    /// What it reads; nothing without it.
    pub input: Option<&'a io::PipeReader>,
    /// The sandbox boundary; `None` if it was turned off, or if a person allowed running without it.
    pub walls: Option<&'a Walls>,
}

/// Time limits of a child. The first clock to expire ends it, or the holder of its leash.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChildPatience<'a> {
    /// The limit of the whole call.
    pub call: Option<Duration>,
    /// The limit since its last output.
    pub idle: Option<Duration>,
    /// The time left in the run.
    pub run: Option<Duration>,
    pub leash: Option<&'a Leash>,
}

/// The reason that a child was ended: a clock ran out, or somebody asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Call,
    Idle,
    Run,
    Asked,
}

/// Ends a child from elsewhere.
#[derive(Debug, Default)]
pub struct Leash {
    asked: Notify,
    /// Kills the child while it runs.
    killer: Mutex<Option<CommandKiller>>,
}

impl Leash {
    /// Asks the child to end, as at a timeout.
    pub fn stop(&self) {
        self.asked.notify_one();
    }

    /// Kills its whole group at once.
    pub fn kill(&self) {
        if let Some(killer) = &*self.killer.lock().expect("no holder of a leash panics") {
            killer.kill();
        }
    }

    fn hold(&self, killer: Option<CommandKiller>) {
        *self.killer.lock().expect("no holder of a leash panics") = killer;
    }
}

/// The leash of a child, which it leaves when this is dropped.
struct Held<'a>(&'a Leash);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.hold(None);
    }
}

impl ChildPatience<'_> {
    /// The next clock to expire, and the time.
    fn next(&self, started: Instant, heard: Instant) -> Option<(Cut, Instant)> {
        let at = |clock, since: Instant, limit: Option<Duration>| Some((clock, since.checked_add(limit?)?));
        let clocks =
            [at(Cut::Run, started, self.run), at(Cut::Call, started, self.call), at(Cut::Idle, heard, self.idle)];
        clocks.into_iter().flatten().min_by_key(|(_, at)| *at)
    }
}

/// The end of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnd {
    pub exit: Exit,
    /// The reason that it was ended early, if it was.
    pub cut: Option<Cut>,
    /// True if it was ended because it had started more than [`sandbox::MOST_PROCESSES`] processes.
    pub flooded: bool,
    /// True if it had left processes running, which were ended.
    pub left_behind: bool,
}

/// Runs a child to its end. `seen` receives its stdout and stderr, in the order of writing. Dropping the future
/// kills the whole group.
///
/// # Errors
/// The child cannot be started or watched, or cannot be killed.
pub async fn run_child(launch: Launch<'_>, mut seen: impl FnMut(&[u8]) + Send) -> io::Result<ChildEnd> {
    let mut running = RunningChild::start(&launch)?;
    let _held = launch.patience.leash.map(|leash| {
        leash.hold(running.subject.killer());
        Held(leash)
    });
    let cut = running.feed_in_time(launch.patience, &mut seen).await?;
    if cut.is_some() {
        running.end_by_force(&mut seen).await?;
    }
    // Output from before the exit is in the pipe already; later output is not worth waiting for.
    if let Ok(closed) = timeout(LINGER, running.feed(Until::Closed, &mut seen)).await {
        closed?;
    }
    let left_behind = running.end_survivors(&mut seen).await && cut.is_none();
    let flooded = running.subject.is_flooded();
    let exit = running.exit.expect("it was waited for");
    Ok(ChildEnd { exit, cut, flooded, left_behind })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The child has exited.
    Exited,
    /// No process has the writing end of its output open any more.
    Closed,
}

/// A child that may still run.
struct RunningChild {
    subject: StartedCommand,
    pipes: Pipes,
    buffer: Box<[u8]>,
    /// The time of the last read.
    heard: Instant,
    exit: Option<Exit>,
}

impl RunningChild {
    fn start(launch: &Launch<'_>) -> io::Result<Self> {
        // From the first child on, there is a process to hide from.
        static HIDDEN: std::sync::Once = std::sync::Once::new();
        HIDDEN.call_once(sandbox::hide_this_process);
        let (subject, pipes) = StartedCommand::start(launch)?;
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Ok(Self { subject, pipes, buffer, heard: Instant::now(), exit: None })
    }

    /// Passes output on until the child has exited or must be ended; returns the reason.
    async fn feed_in_time(
        &mut self,
        patience: ChildPatience<'_>,
        seen: &mut (impl FnMut(&[u8]) + Send),
    ) -> io::Result<Option<Cut>> {
        let started = self.heard;
        let mut asked = pin!(async {
            match patience.leash {
                Some(leash) => leash.asked.notified().await,
                None => pending().await,
            }
        });
        loop {
            let next = patience.next(started, self.heard);
            // Output may have reset the clock in the meantime, so it is checked again.
            if let Some((cut, _)) = next.filter(|(_, at)| *at <= Instant::now()) {
                return Ok(Some(cut));
            }
            tokio::select! {
                biased;
                () = &mut asked => return Ok(Some(Cut::Asked)),
                exited = self.feed(Until::Exited, seen) => return exited.map(|()| None),
                () = sleep_until(next.map_or(started, |(_, at)| at)), if next.is_some() => {}
            }
        }
    }

    /// Passes output on until the condition holds. Polls the pipes and the exit together, so that neither blocks
    /// the other.
    async fn feed(&mut self, until: Until, seen: &mut (impl FnMut(&[u8]) + Send)) -> io::Result<()> {
        poll_fn(|cx| {
            loop {
                let read = poll_pipes(&mut self.pipes, &mut self.buffer, cx, |bytes| {
                    seen(bytes);
                    self.heard = Instant::now();
                });
                if self.exit.is_none()
                    && let Poll::Ready(exit) = self.subject.poll_exit(cx)
                {
                    self.exit = Some(exit?);
                }
                let done = match until {
                    Until::Exited => self.exit.is_some(),
                    Until::Closed => self.pipes.is_empty(),
                };
                if done {
                    return Poll::Ready(Ok(()));
                }
                if !read {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    async fn end_by_force(&mut self, seen: &mut (impl FnMut(&[u8]) + Send)) -> io::Result<()> {
        self.subject.signal(Force::Ask);
        if let Ok(exited) = timeout(GRACE, self.feed(Until::Exited, seen)).await {
            return exited;
        }
        self.subject.signal(Force::Kill);
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the process does not end, not even by SIGKILL");
        timeout(GRACE, self.feed(Until::Exited, seen)).await.map_err(late)?
    }

    /// Ends the rest of the group after the child has exited; returns true if there was any.
    async fn end_survivors(&mut self, seen: &mut (impl FnMut(&[u8]) + Send)) -> bool {
        let survivors = self.subject.ask_survivors().await;
        if survivors {
            // A pipe that survivors have open closes as they end; without a pipe, this waits for the whole time.
            let closed = !self.pipes.is_empty() && timeout(LINGER, self.feed(Until::Closed, seen)).await.is_ok();
            for _ in 0..LOOKS {
                if closed || !self.subject.is_alive() {
                    break;
                }
                tokio::time::sleep(LINGER / LOOKS).await;
            }
        }
        self.subject.end_survivors(survivors);
        survivors
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be built").block_on(future)
    }

    fn run_line(line: &str, limit: Duration) -> (ChildEnd, String) {
        let mut output = Vec::new();
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let launch = Launch {
            program: SHELL[0],
            arguments: &[SHELL[1], line],
            dir: Path::new("/"),
            env: &env,
            patience: ChildPatience { call: Some(limit), ..ChildPatience::default() },
            input: None,
            walls: None,
        };
        let ended = block_on(run_child(launch, |bytes| output.extend_from_slice(bytes))).expect("sh can be run");
        (ended, String::from_utf8_lossy(&output).into_owned())
    }

    const LONG: Duration = Duration::from_mins(1);
    const SHORT: Duration = Duration::from_secs(1);

    #[test]
    fn output_keeps_the_order_in_which_it_was_written() {
        let (ended, output) = run_line("echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 3", LONG);
        assert_eq!(output, "1\n2\n3\n4\n");
        assert_eq!(ended, ChildEnd { exit: Exit::Code(3), cut: None, flooded: false, left_behind: false });
    }

    #[test]
    fn nothing_can_be_read_and_the_environment_is_what_was_given() {
        let (ended, output) = run_line("cat; env | grep -v -e PWD -e SHLVL -e ^_", LONG);
        assert_eq!(output, "PATH=/usr/bin:/bin\n");
        assert_eq!(ended.exit, Exit::Code(0));
    }

    #[test]
    fn a_signal_has_its_name() {
        assert_eq!(run_line("kill -SEGV $$", LONG).0.exit, Exit::Signal("SIGSEGV".to_owned()));
    }

    #[test]
    fn a_child_that_ignores_sigterm_is_killed_with_what_it_started() {
        let (ended, output) = run_line("trap '' TERM; echo start; sleep 1000 & wait; sleep 1000", SHORT);
        assert_eq!(ended.cut, Some(Cut::Call));
        assert_eq!((ended.exit, output.as_str()), (Exit::Signal("SIGKILL".to_owned()), "start\n"));
    }

    #[test]
    fn last_words_after_sigterm_are_heard() {
        let (ended, output) = run_line("trap 'echo bye; exit 9' TERM; sleep 1000 & wait", SHORT);
        assert_eq!(ended.cut, Some(Cut::Call));
        assert_eq!((ended.exit, output.as_str()), (Exit::Code(9), "bye\n"));
    }

    #[test]
    fn a_process_left_behind_with_the_pipe_does_not_hold_the_call() {
        let (ended, output) = run_line("sleep 1000 & echo done", LONG);
        assert_eq!(ended, ChildEnd { exit: Exit::Code(0), cut: None, flooded: false, left_behind: true });
        assert_eq!(output, "done\n");
    }

    #[test]
    fn dropping_the_call_kills_the_group() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let pid = Mutex::new(String::new());
        let heard = || pid.lock().expect("nobody panics").clone();
        block_on(async {
            let launch = Launch {
                program: SHELL[0],
                arguments: &[SHELL[1], "sleep 1000 & echo $!; wait"],
                dir: dir.path(),
                env: &env,
                patience: ChildPatience { call: Some(LONG), ..ChildPatience::default() },
                input: None,
                walls: None,
            };
            let hear = |bytes: &[u8]| pid.lock().expect("nobody panics").push_str(&String::from_utf8_lossy(bytes));
            let mut call = Box::pin(run_child(launch, hear));
            while !heard().ends_with('\n') {
                assert!(timeout(Duration::from_millis(10), &mut call).await.is_err());
            }
        });
        let pid = heard();
        let pid = nix::unistd::Pid::from_raw(pid.trim().parse().expect("the shell printed the id"));
        // The process that adopts the orphan may reap it late; a zombie has no command line any more.
        let gone = || {
            nix::sys::signal::kill(pid, None).is_err()
                || std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty())
        };
        assert!((0..500).any(|_| gone() || {
            std::thread::sleep(Duration::from_millis(10));
            false
        }));
    }
}
