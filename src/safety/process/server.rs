//! A program that serves this one over its stdin and stdout for as long as it is wanted.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncWrite};

use super::subject::{StartedCommand, prepare_command, start_child};
use super::{ChildPatience, Exit, Launch};
use crate::safety::sandbox::{self, Walls};

/// A program to start. It sees only `env`.
#[derive(Clone, Copy)]
pub struct ServerLaunch<'a> {
    /// Program and arguments.
    pub line: &'a [String],
    pub dir: &'a Path,
    pub env: &'a [(String, String)],
    /// The walls around it; `None` if it runs with the user's own permissions.
    pub walls: Option<&'a Walls>,
}

/// A server that runs. Dropping it kills all of its processes, as far as they can be found.
pub struct ServerProcess(StartedCommand);

/// Its ends on this side.
pub struct ServerStreams {
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    pub output: Pin<Box<dyn AsyncRead + Send>>,
    pub errors: Pin<Box<dyn AsyncRead + Send>>,
}

impl ServerProcess {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// The system does not tell.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        poll_fn(|cx| self.0.poll_exit(cx)).await
    }
}

impl ServerLaunch<'_> {
    /// Starts the program. Call it within a runtime. On Linux it ends with the calling thread, whatever ends this process.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self) -> io::Result<(ServerProcess, ServerStreams)> {
        sandbox::hide_this_process();
        let mut words = if self.walls.is_some() { Vec::new() } else { sandbox::tether_words() };
        words.extend_from_slice(self.line);
        let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let program = words.first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (dir, env, walls) = (self.dir, self.env, self.walls);
        let launch = Launch {
            program,
            arguments: &arguments,
            dir,
            env,
            patience: ChildPatience::default(),
            input: None,
            walls,
        };
        #[cfg(target_os = "linux")]
        if let Some(walls) = walls {
            use tokio::net::unix::pipe::{Receiver, Sender};
            let entry = sandbox::BoundaryEntry { program, arguments: &arguments, dir, env };
            let ((output, out), (errors, err), (input, into)) = (io::pipe()?, io::pipe()?, io::pipe()?);
            let ends = sandbox::CommandStreams { output: &out, apart: Some((&err, &input)) };
            if let Some(inside) = walls.start(&entry, ends) {
                let streams = ServerStreams {
                    input: Box::pin(Sender::from_owned_fd(into.into())?),
                    output: Box::pin(Receiver::from_owned_fd(output.into())?),
                    errors: Box::pin(Receiver::from_owned_fd(errors.into())?),
                };
                return Ok((ServerProcess(StartedCommand::Inside { inside: inside?, flooded: false }), streams));
            }
        }
        let mut command = prepare_command(&launch)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start_child(&mut command, walls)?;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let streams = ServerStreams {
            input: Box::pin(child.stdin.take().ok_or_else(gone)?),
            output: Box::pin(child.stdout.take().ok_or_else(gone)?),
            errors: Box::pin(child.stderr.take().ok_or_else(gone)?),
        };
        Ok((ServerProcess(StartedCommand::lead(child, walls)), streams))
    }
}
