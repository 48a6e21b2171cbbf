//! A started command: a process group of this system, or a command in the namespaces of the sandbox.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::children;
use crate::safety::sandbox::{self, GroupWatch, Walls};
#[cfg(target_os = "linux")]
use crate::safety::sandbox::{BoundaryEntry, CommandEnd, ConfinedCommand, News, ProcessStatus};

use super::group::{self, Force, ProcessGroup};
use super::{Exit, Launch};

/// The reading ends of its output.
pub(super) type Pipes = Vec<Pin<Box<dyn AsyncRead + Send>>>;

/// A started command. Dropping it kills all of its processes, as far as they can be found.
pub(super) enum StartedCommand {
    /// The group is dropped, and so killed, before the child.
    Group { group: ProcessGroup, watch: Option<GroupWatch>, child: Child },
    #[cfg(target_os = "linux")]
    Inside { inside: ConfinedCommand, flooded: bool },
}

/// Kills a command from elsewhere.
#[derive(Debug)]
pub(super) enum CommandKiller {
    Group(i32),
    #[cfg(target_os = "linux")]
    Inside(sandbox::SpaceKiller),
}

impl CommandKiller {
    pub fn kill(&self) {
        match self {
            Self::Group(group) => group::kill_group(*group),
            #[cfg(target_os = "linux")]
            Self::Inside(killer) => killer.kill(),
        }
    }
}

impl StartedCommand {
    pub fn start(launch: &Launch<'_>) -> io::Result<(Self, Pipes)> {
        #[cfg(target_os = "linux")]
        if let Some(walls) = launch.walls {
            let (reader, writer) = io::pipe()?;
            let Launch { program, arguments, dir, env, .. } = *launch;
            if let Some(inside) = walls.start(&BoundaryEntry { program, arguments, dir, env }, writer) {
                let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())?;
                return Ok((Self::Inside { inside: inside?, flooded: false }, vec![Box::pin(reader)]));
            }
        }
        let line = match launch.walls {
            Some(walls) => walls.command_line(launch.program, launch.arguments)?,
            None => [&[launch.program], launch.arguments].concat().into_iter().map(str::to_owned).collect(),
        };
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .current_dir(launch.dir)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let (child, pipes) = spawn_piped(command, launch.walls)?;
        let group = ProcessGroup::lead(&child);
        let watch = launch.walls.zip(group.id()).map(|(walls, group)| walls.watch(group));
        Ok((Self::Group { group, watch, child }, pipes))
    }

    /// Kills it from elsewhere, as long as it runs.
    pub fn killer(&self) -> Option<CommandKiller> {
        match self {
            Self::Group { group, .. } => group.id().map(CommandKiller::Group),
            #[cfg(target_os = "linux")]
            Self::Inside { inside, .. } => Some(CommandKiller::Inside(inside.killer())),
        }
    }

    /// Waits for the end of the command itself.
    pub fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        match self {
            Self::Group { child, .. } => pin!(child.wait()).poll(cx).map(|status| status.map(describe_exit)),
            #[cfg(target_os = "linux")]
            Self::Inside { inside, flooded } => match inside.poll_news(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(News::Ended(CommandEnd { exit, flooded: too_many, cpu, peak_memory, .. }))) => {
                    *flooded = too_many;
                    children::count_child(Duration::from_micros(cpu), peak_memory);
                    Poll::Ready(Ok(match exit {
                        ProcessStatus::Code(code) => Exit::Code(code),
                        ProcessStatus::Signal(signal) => Exit::of_signal(signal),
                    }))
                }
                Poll::Ready(Ok(News::Refused { not_found, why })) => {
                    let kind = if not_found { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
                    Poll::Ready(Err(io::Error::new(kind, why)))
                }
                // It was killed from elsewhere with all its processes.
                Poll::Ready(Ok(News::Finished { .. }) | Err(_)) => {
                    Poll::Ready(Ok(Exit::Signal("SIGKILL".to_owned())))
                }
            },
        }
    }

    /// Signals all of its processes.
    pub fn signal(&mut self, force: Force) {
        match (self, force) {
            (Self::Group { group, child, .. }, _) => {
                if !group.signal(force) {
                    // Without groups, or if the group is already gone, only the child is left to kill.
                    let _ = child.start_kill();
                }
            }
            #[cfg(target_os = "linux")]
            (Self::Inside { inside, .. }, Force::Ask) => inside.terminate(),
            #[cfg(target_os = "linux")]
            (Self::Inside { inside, .. }, Force::Kill) => inside.kill(),
        }
    }

    /// True if it had more processes than the limit.
    pub fn is_flooded(&self) -> bool {
        match self {
            Self::Group { watch, .. } => watch.as_ref().is_some_and(GroupWatch::is_flooded),
            #[cfg(target_os = "linux")]
            Self::Inside { flooded, .. } => *flooded,
        }
    }

    /// Asks the processes that it left behind to end; returns false if there were none.
    pub async fn ask_survivors(&mut self) -> bool {
        match self {
            Self::Group { group, .. } => group.signal(Force::Ask),
            #[cfg(target_os = "linux")]
            Self::Inside { inside, .. } if inside.is_over() => false,
            #[cfg(target_os = "linux")]
            Self::Inside { inside, .. } => {
                inside.finish();
                let answer = poll_fn(|cx| inside.poll_news(cx));
                let answer = timeout(super::GRACE, answer).await;
                // They have ended when the answer comes.
                matches!(answer, Ok(Ok(News::Finished { left_behind: true })) | Err(_))
            }
        }
    }

    /// True if anything that it left behind may still run.
    pub fn is_alive(&self) -> bool {
        match self {
            Self::Group { group, .. } => group.is_alive(),
            #[cfg(target_os = "linux")]
            Self::Inside { .. } => false,
        }
    }

    /// Ends what it left behind, and forgets it.
    pub fn end_survivors(&mut self, are_left: bool) {
        match self {
            Self::Group { group, .. } => {
                if are_left {
                    group.signal(Force::Kill);
                }
                group.forget();
            }
            #[cfg(target_os = "linux")]
            Self::Inside { inside, .. } => inside.kill(),
        }
    }
}

impl Exit {
    #[cfg(unix)]
    fn of_signal(signal: i32) -> Self {
        let name = nix::sys::signal::Signal::try_from(signal);
        Self::Signal(name.map_or_else(|_| format!("signal {signal}"), |name| name.as_str().to_owned()))
    }
}

pub(super) fn describe_exit(status: ExitStatus) -> Exit {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Exit::of_signal(signal);
    }
    Exit::Code(status.code().unwrap_or(-1))
}

/// Starts a child. It inherits the boundary of the thread that starts it; this thread's runtime waits for it.
fn start_child(command: &mut Command, walls: Option<&Walls>) -> io::Result<Child> {
    let Some(walls) = walls else {
        let child = command.spawn()?;
        child.id().into_iter().for_each(sandbox::lift_limits);
        return Ok(child);
    };
    let runtime = tokio::runtime::Handle::current();
    walls.run_inside(|| {
        let _entered = runtime.enter();
        command.spawn()
    })?
}

/// Uses one pipe for both streams, so that the kernel keeps their order.
#[cfg(unix)]
pub(super) fn spawn_piped(mut command: Command, walls: Option<&Walls>) -> io::Result<(Child, Pipes)> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let child = start_child(&mut command, walls)?;
    // The command has the writing end: the pipe would not close while it lives.
    drop(command);
    let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())?;
    Ok((child, vec![Box::pin(reader)]))
}

#[cfg(not(unix))]
pub(super) fn spawn_piped(mut command: Command, walls: Option<&Walls>) -> io::Result<(Child, Pipes)> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start_child(&mut command, walls)?;
    let mut pipes: Pipes = Vec::new();
    pipes.extend(child.stdout.take().map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead + Send>>));
    pipes.extend(child.stderr.take().map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead + Send>>));
    Ok((child, pipes))
}
