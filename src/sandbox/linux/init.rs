//! The first process of a command's pid namespace: it starts the command inside the boundary, reaps what is orphaned,
//! and tells how the command ended. When it ends, the kernel kills everything in the namespace.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use super::confinement::Confinement;
use super::messages::{Account, End, News, Order, Request, Stage, Status};
use super::{mounts, part, powers, wire};
use crate::sandbox::{MOST_PROCESSES, Profile};

/// How long processes that are ending anyway are waited for.
const MOMENT: Duration = Duration::from_millis(20);
/// Between SIGTERM and SIGKILL for what a command left behind.
const GRACE: Duration = Duration::from_millis(300);
/// Between two looks at the number of processes.
const LOOK: Duration = Duration::from_millis(50);
/// How often a flood of processes is signalled.
const ROUNDS: usize = 10;

/// Runs one command.
pub(super) fn run() -> io::Result<()> {
    let keeper = part::socket()?;
    let Some((stage, _)) = wire::receive::<Stage>(&keeper)? else { return Ok(()) };
    let rules = match set_up(&stage) {
        Ok(rules) => rules,
        Err(error) => return wire::send(&keeper, &Account::Failed(error.to_string()), &[]),
    };
    wire::send(&keeper, &Account::Ready, &[])?;
    let Some(((), mut beside)) = wire::receive::<()>(&keeper)? else { return Ok(()) };
    let Some(socket) = beside.pop().map(UnixStream::from) else { return Ok(()) };
    let Some((order, output)) = wire::receive::<Order>(&socket)? else { return Ok(()) };
    match start(&stage, &order, output, rules) {
        Ok(command) => serve(&socket, command),
        Err(error) => wire::send(&socket, &refused(&error), &[]),
    }
}

fn refused(error: &io::Error) -> News {
    News::Refused { not_found: error.kind() == io::ErrorKind::NotFound, why: error.to_string() }
}

/// The rules for either profile, made before it is known which one is wanted.
struct Rules {
    reading: Confinement,
    writing: Confinement,
}

fn set_up(stage: &Stage) -> io::Result<Rules> {
    mounts::processes()?;
    // Without a session of its own, a command could reach the terminal of this program.
    rustix::process::setsid()?;
    powers::limit_ourselves();
    // Its descriptors are no business of the command.
    powers::hide_this_process();
    let rules = |profile| Confinement::within(stage, profile).map_err(io::Error::other);
    Ok(Rules { reading: rules(Profile::Read)?, writing: rules(Profile::Write)? })
}

/// Starts the command; returns its number in this namespace.
fn start(stage: &Stage, order: &Order, output: Vec<OwnedFd>, rules: Rules) -> io::Result<Pid> {
    mounts::set(stage, order)?;
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .current_dir(&order.dir)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .process_group(0);
    let mut output = output.into_iter();
    let out = output.next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    command.stderr(out.try_clone()?).stdout(out);
    let rules = if order.writes { rules.writing } else { rules.reading };
    let child = rules.inside(|| command.spawn())??;
    Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()).ok_or_else(|| io::Error::other("no process"))
}

/// The processes of the command, as its waiter sees them.
#[derive(Default)]
struct Family {
    /// All are gone.
    is_gone: Mutex<bool>,
    gone: Condvar,
}

impl Family {
    /// Waits until all are gone, but no longer than this; true when they are.
    fn is_gone_within(&self, most: Duration) -> bool {
        let is_gone = self.is_gone.lock().expect("no holder panics");
        *self.gone.wait_timeout_while(is_gone, most, |is_gone| !*is_gone).expect("no holder panics").0
    }

    fn is_gone(&self) {
        *self.is_gone.lock().expect("no holder panics") = true;
        self.gone.notify_all();
    }
}

/// Waits for the command and obeys requests meanwhile, until nobody holds the other end any more.
fn serve(socket: &UnixStream, command: Pid) -> io::Result<()> {
    let family = Arc::new(Family::default());
    let (waiting, telling) = (Arc::clone(&family), socket.try_clone()?);
    std::thread::spawn(move || wait_for_all(command, &waiting, &telling));
    while let Ok(Some((request, _))) = wire::receive::<Request>(socket) {
        match request {
            Request::Terminate => signal_all(Signal::SIGTERM),
            Request::Finish => {
                let left_behind = !family.is_gone_within(MOMENT);
                if left_behind {
                    signal_all(Signal::SIGTERM);
                    family.is_gone_within(GRACE);
                    signal_all(Signal::SIGKILL);
                }
                wire::send(socket, &News::Finished { left_behind }, &[])?;
            }
        }
    }
    // This process ends now, and everything that the command started with it.
    Ok(())
}

/// Reaps every process of the namespace; tells when the command itself ends.
fn wait_for_all(command: Pid, family: &Family, socket: &UnixStream) {
    let flood = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&flood);
    std::thread::spawn(move || watch(&watched));
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process == command => {
                let end = end(status, flood.load(Ordering::Relaxed));
                // Nobody may be left to hear it.
                let _ = wire::send(socket, &News::Ended(end), &[]);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    family.is_gone();
}

fn end(status: WaitStatus, flooded: bool) -> End {
    let of = |whose| {
        let usage = getrusage(whose).ok()?;
        let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Some((u64::try_from(cpu).ok()?, u64::try_from(usage.max_rss()).ok()? * 1024))
    };
    let (cpu, peak) = of(UsageWho::RUSAGE_CHILDREN).unwrap_or_default();
    // A child begins with the mark of this process.
    let own = of(UsageWho::RUSAGE_SELF).map_or(u64::MAX, |(_, peak)| peak + peak / 8);
    End { exit: exit(status), flooded, cpu, peak_memory: (peak > own).then_some(peak) }
}

fn exit(status: WaitStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Code(-1),
    }
}

/// Signals every process of this namespace but this one.
fn signal_all(signal: Signal) {
    // There may be none.
    let _ = kill(nix::unistd::Pid::from_raw(-1), signal);
}

/// Ends everything once there are more processes than a command may have. The kernel's own limit does not hold for the
/// superuser.
fn watch(flood: &AtomicBool) {
    loop {
        std::thread::sleep(LOOK);
        if processes_ever() > MOST_PROCESSES && processes() > MOST_PROCESSES {
            flood.store(true, Ordering::Relaxed);
            signal_all(Signal::SIGSTOP);
            // What was started while they were counted is killed by the next signals.
            (0..ROUNDS).for_each(|_| signal_all(Signal::SIGKILL));
        }
    }
}

/// The newest process number of this namespace: one read, where counting costs one for each process.
fn processes_ever() -> usize {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().last().and_then(|last| last.parse().ok()).unwrap_or(usize::MAX)
}

fn processes() -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())).count()
}
