//! A started command: a process group of this system, or a command in the namespaces of the sandbox.

use std::future::Future;
#[cfg(target_os = "linux")]
use std::future::poll_fn;
use std::io;
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};
#[cfg(target_os = "linux")]
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, Command};
#[cfg(target_os = "linux")]
use tokio::time::timeout;

#[cfg(target_os = "linux")]
use super::children;
use crate::safety::sandbox::{self, GroupWatch, Walls};
#[cfg(target_os = "linux")]
use crate::safety::sandbox::{BoundaryEntry, CommandStreams, ConfinedCommand, News};

use super::group::{self, Force, ProcessGroup};
use super::shell::add_arguments;
use super::{Exit, Launch};

/// The reading ends of its output.
pub(super) type Pipes = Vec<Pin<Box<dyn AsyncRead + Send>>>;

/// Reads once from each pipe; returns true if one of them had data. Drops a closed or broken pipe.
pub(super) fn poll_pipes(
    pipes: &mut Pipes,
    buffer: &mut [u8],
    cx: &mut Context<'_>,
    mut seen: impl FnMut(&[u8]),
) -> bool {
    let mut any = false;
    pipes.retain_mut(|pipe| {
        let mut into = ReadBuf::new(buffer);
        let read = pipe.as_mut().poll_read(cx, &mut into);
        let has_data = !into.filled().is_empty();
        if has_data {
            seen(into.filled());
            any = true;
        }
        read.is_pending() || has_data
    });
    any
}

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
            let apart = launch.input.map(|input| (&writer, input));
            let streams = CommandStreams { output: &writer, apart };
            if let Some(inside) = walls.start(&BoundaryEntry { program, arguments, dir, env }, streams) {
                drop(writer);
                let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())?;
                return Ok((Self::Inside { inside: inside?, flooded: false }, vec![Box::pin(reader)]));
            }
        }
        let (child, pipes) = spawn_piped(prepare_command(launch)?, launch.walls)?;
        Ok((Self::lead(child, launch.walls), pipes))
    }

    /// The command of a child that leads a process group.
    pub fn lead(child: Child, walls: Option<&Walls>) -> Self {
        let group = ProcessGroup::lead(&child);
        let watch = group.id.filter(|_| walls.is_some()).map(GroupWatch::start);
        Self::Group { group, watch, child }
    }

    /// Kills it from elsewhere, as long as it runs.
    pub fn killer(&self) -> Option<CommandKiller> {
        match self {
            Self::Group { group, .. } => group.id.map(CommandKiller::Group),
            #[cfg(target_os = "linux")]
            Self::Inside { inside, .. } => Some(CommandKiller::Inside(inside.killer())),
        }
    }

    /// Waits for the end of the command itself.
    pub fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        match self {
            Self::Group { group, child, .. } => {
                let status = ready!(pin!(child.wait()).poll(cx));
                if cfg!(windows) {
                    group.forget();
                }
                Poll::Ready(status.map(describe_exit))
            }
            #[cfg(target_os = "linux")]
            Self::Inside { inside, flooded } => Poll::Ready(match ready!(inside.poll_news(cx)) {
                Ok(News::Ended(end)) => {
                    *flooded = end.flooded;
                    children::count_child(Duration::from_micros(end.cpu), end.peak_memory);
                    Ok(end.status.map_or(Exit::Code(-1), |status| describe_exit(ExitStatus::from_raw(status))))
                }
                Ok(News::Refused { not_found, why }) => {
                    let kind = if not_found { io::ErrorKind::NotFound } else { io::ErrorKind::Other };
                    Err(io::Error::new(kind, why))
                }
                // It was killed from elsewhere with all its processes.
                Ok(News::Finished { .. }) | Err(_) => Ok(Exit::Signal("SIGKILL".to_owned())),
            }),
        }
    }

    /// Signals all of its processes.
    pub fn signal(&mut self, force: Force) {
        let force = if cfg!(windows) { Force::Kill } else { force };
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
                let answer = timeout(super::GRACE, poll_fn(|cx| inside.poll_news(cx))).await;
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

pub(super) fn describe_exit(status: ExitStatus) -> Exit {
    #[cfg(unix)]
    if let Some(signal) = status.signal() {
        let name = nix::sys::signal::Signal::try_from(signal);
        return Exit::Signal(name.map_or_else(|_| format!("signal {signal}"), |name| name.as_str().to_owned()));
    }
    Exit::Code(status.code().unwrap_or(-1))
}

/// The command of a launch, with a group of its own.
pub(super) fn prepare_command(launch: &Launch<'_>) -> io::Result<Command> {
    let prefix = launch.walls.map_or_else(|| Ok(Vec::new()), Walls::prefix)?;
    let mut line: Vec<&str> = prefix.iter().map(String::as_str).collect();
    line.push(launch.program);
    line.extend(launch.arguments);
    let mut command = Command::new(line[0]);
    add_arguments(&mut command, &line[1..]);
    command
        .current_dir(launch.dir)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(launch.input.map(io::PipeReader::try_clone).transpose()?.map_or_else(Stdio::null, Stdio::from))
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// Starts a child. It inherits the boundary of the thread that starts it; this thread's runtime waits for it.
pub(super) fn start_child(command: &mut Command, walls: Option<&Walls>) -> io::Result<Child> {
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
    let out = child.stdout.take().map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead + Send>>);
    let err = child.stderr.take().map(|pipe| Box::pin(pipe) as Pin<Box<dyn AsyncRead + Send>>);
    Ok((child, out.into_iter().chain(err).collect()))
}
