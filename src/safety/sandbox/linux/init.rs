//! The first process of a pid namespace, in which commands of one view run, one at a time. When it ends, the kernel
//! kills everything in the namespace.
//!
//! One of its threads starts commands. It is permanently bound by their rules and does everything that a command needs,
//! so a later command needs no set-up. Another keeps the rights that the rules remove, and helps on request: it mounts,
//! and signals processes of any user. A third watches what is mounted ([`watch`]). The namespace is reused only if it is empty and a command has
//! not changed this process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::UsageWho;
use nix::sys::signal::Signal;
use rustix::process::Pid;

use super::confinement::Confinement;
use super::family::{Census, ProcessEvent, ProcessFamily, measure_spent, signal_all};
use super::lids::Lids;
use super::messages::{CommandOrder, InitRequest, News, RoleReport, RunStage, StageView};
use super::powers::{self, Nature};
use super::{mounts, part, reading, watch, wire};
use crate::safety::sandbox::SandboxProfile;

/// The wait for processes that are ending anyway.
const MOMENT: Duration = Duration::from_millis(20);
/// The time between SIGTERM and SIGKILL for processes that a command left behind.
const GRACE: Duration = Duration::from_millis(300);
/// The number of times that a flood of processes is signalled.
const ROUNDS: usize = 10;

/// Runs commands as long as the other end of the socket is open.
pub(super) fn run_init() -> io::Result<()> {
    let socket = part::take_socket()?;
    let Some((stage, _)) = wire::receive_message::<RunStage>(&socket)? else { return Ok(()) };
    let lids = match set_up(&stage) {
        Ok(lids) => lids,
        Err(error) => return wire::send_message(&socket, &RoleReport::Failed(error.to_string()), &[]),
    };
    wire::send_message(&socket, &RoleReport::Ready, &[])?;
    // The first order determines the view of the later ones.
    let Some((InitRequest::Run(order), streams)) = wire::receive_message::<InitRequest>(&socket)? else {
        return Ok(());
    };
    let view = order.view.clone();
    let (asking, asked) = mpsc::channel();
    let (lids, rules) = match for_view(&stage, &view, lids) {
        Ok(ready) => ready,
        Err(error) => return wire::send_message(&socket, &report_refusal(&error), &[]),
    };
    let lids = Arc::new(Mutex::new(lids));
    if view.profile == SandboxProfile::Write {
        let lids = Arc::clone(&lids);
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || watch::watch_lids(&lids))?;
    }
    let work = move || match rules.close_in() {
        Ok(()) => Bound::new(socket, Helper(asking), lids).serve(&order, streams),
        Err(error) => wire::send_message(&socket, &report_refusal(&error), &[]),
    };
    let bound = std::thread::Builder::new().name("bound".to_owned()).spawn(work)?;
    for work in asked {
        work(&stage, &view);
    }
    // This process ends now, and everything that a command started with it.
    bound.join().map_err(|_| io::Error::other("the thread that starts commands panicked"))?
}

fn report_refusal(error: &io::Error) -> News {
    News::Refused { not_found: error.kind() == io::ErrorKind::NotFound, why: error.to_string() }
}

/// The set-up that does not depend on the kind of command.
fn set_up(stage: &RunStage) -> io::Result<Lids> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mounts::mount_processes()?;
    // Without a session of its own, a command could reach the terminal of this program.
    rustix::process::setsid()?;
    powers::limit_ourselves();
    // The command must not see its descriptors.
    powers::hide_this_process();
    Lids::mount_common(stage)
}

fn for_view(stage: &RunStage, view: &StageView, mut lids: Lids) -> io::Result<(Lids, Confinement)> {
    if view.profile == SandboxProfile::Read {
        if stage.network || stage.proxy {
            unshare(CloneFlags::CLONE_NEWNET)?;
        }
        reading::clear_view(stage)?;
        // Their directories are others now.
        lids = Lids::mount_common(stage)?;
    }
    lids.complete(stage, view)?;
    Ok((lids, Confinement::create_in_stage(stage, view.profile).map_err(io::Error::other)?))
}

/// Work for the thread that is not bound.
type HelperWork = Box<dyn FnOnce(&RunStage, &StageView) + Send>;

/// The thread that is not bound, from the view of the other one.
struct Helper(Sender<HelperWork>);

impl Helper {
    /// Mounts all lids again.
    fn lay(&self) -> io::Result<Lids> {
        self.ask(|stage, view| {
            let mut lids = Lids::mount_common(stage)?;
            lids.complete(stage, view)?;
            Ok(lids)
        })?
    }

    /// Signals all processes of the command.
    fn signal_all(&self, signal: Signal) -> io::Result<()> {
        self.ask(move |_, _| signal_all(signal))
    }

    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RunStage, &StageView) -> T + Send + 'static,
    ) -> io::Result<T> {
        let gone = || io::Error::other("the thread that mounts ended");
        let (answer, answered) = mpsc::channel();
        let answering = move |stage: &RunStage, view: &StageView| {
            // A thread that ended needs no answer.
            let _ = answer.send(work(stage, view));
        };
        self.0.send(Box::new(answering)).map_err(|_| gone())?;
        answered.recv().map_err(|_| gone())
    }
}

/// The thread that is bound by the rules of commands.
struct Bound {
    socket: UnixStream,
    helper: Helper,
    lids: Arc<Mutex<Lids>>,
    census: Census,
    /// The attributes of this process before the first command.
    nature: Nature,
}

impl Bound {
    fn new(socket: UnixStream, helper: Helper, lids: Arc<Mutex<Lids>>) -> Self {
        Self { socket, helper, lids, census: Census::default(), nature: Nature::now() }
    }

    /// Runs the first command, and those that are sent later.
    fn serve(mut self, first: &CommandOrder, streams: Vec<OwnedFd>) -> io::Result<()> {
        let mut serves_on = self.run(first, streams)?;
        while serves_on && let Some((request, beside)) = wire::receive_message::<InitRequest>(&self.socket)? {
            if let InitRequest::Run(order) = request {
                serves_on = self.run(&order, beside)?;
            }
        }
        Ok(())
    }

    /// Runs a command to its end; returns true if another one may follow.
    fn run(&mut self, order: &CommandOrder, streams: Vec<OwnedFd>) -> io::Result<bool> {
        match self.start(order, streams) {
            Ok(family) => self.see_through(family),
            Err(error) => wire::send_message(&self.socket, &report_refusal(&error), &[]).map(|()| true),
        }
    }

    fn start(&mut self, order: &CommandOrder, streams: Vec<OwnedFd>) -> io::Result<ProcessFamily> {
        let mut lids =
            self.lids.lock().map_err(|_| io::Error::other("the thread that watches mounts panicked"))?;
        if !lids.hold() {
            *lids = self.helper.lay()?;
        }
        drop(lids);
        let mut command = Command::new(&order.program);
        command
            .args(&order.arguments)
            .current_dir(&order.dir)
            .env_clear()
            .envs(order.env.iter().map(|(name, value)| (name, value)))
            .process_group(0);
        let mut streams = streams.into_iter();
        let out = streams.next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let errors = streams.next().map_or_else(|| out.try_clone(), Ok)?;
        command.stdin(streams.next().map_or_else(Stdio::null, Stdio::from)).stderr(errors).stdout(out);
        let before = measure_spent(UsageWho::RUSAGE_CHILDREN);
        let child = command.spawn()?;
        let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        ProcessFamily::start(number.ok_or_else(|| io::Error::other("no process"))?, before)
    }

    /// Waits for a command and handles requests meanwhile; returns true if nothing is left of it.
    fn see_through(&mut self, mut family: ProcessFamily) -> io::Result<bool> {
        let mut flooded = false;
        loop {
            if family.reap() {
                let is_over = family.is_gone && Nature::now() == self.nature;
                wire::send_message(&self.socket, &News::Ended(family.end(flooded, is_over)), &[])?;
                if is_over {
                    return Ok(true);
                }
            }
            match family.wait(&self.socket)? {
                ProcessEvent::Ended => {}
                ProcessEvent::Look => flooded |= self.stop_a_flood()?,
                ProcessEvent::Asked => match wire::receive_message::<InitRequest>(&self.socket)? {
                    Some((InitRequest::Terminate, _)) => self.helper.signal_all(Signal::SIGTERM)?,
                    Some((InitRequest::Finish, _)) => {
                        let left_behind = self.finish(&mut family)?;
                        wire::send_message(&self.socket, &News::Finished { left_behind }, &[])?;
                        return Ok(false);
                    }
                    Some((InitRequest::Run(_), _)) | None => return Ok(false),
                },
            }
        }
    }

    /// Ends the processes that a command left behind; returns true if there were any.
    fn finish(&self, family: &mut ProcessFamily) -> io::Result<bool> {
        if family.is_gone_within(MOMENT) {
            return Ok(false);
        }
        self.helper.signal_all(Signal::SIGTERM)?;
        family.is_gone_within(GRACE);
        self.helper.signal_all(Signal::SIGKILL)?;
        Ok(true)
    }

    /// Ends everything once there are more processes than a command may have.
    fn stop_a_flood(&mut self) -> io::Result<bool> {
        let is_flood = self.census.is_over();
        if is_flood {
            self.helper.signal_all(Signal::SIGSTOP)?;
            // Processes started while they were counted are killed by the next signals.
            (0..ROUNDS).try_for_each(|_| self.helper.signal_all(Signal::SIGKILL))?;
        }
        Ok(is_flood)
    }
}
