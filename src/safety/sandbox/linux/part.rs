//! The parts of this program that are separate processes: this program, run again with a socket as its stdin.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;

/// This program, even if its file was replaced or removed.
const OURSELVES: &str = "/proc/self/exe";

/// The first argument of such a process.
const MARK: &str = "__sandbox";

/// A part that is a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxPart {
    /// Keeps the namespaces of a run.
    Keeper,
    /// The first process of a command's namespace.
    Init,
    /// Renders templates that could run away.
    Renderer,
    /// Tries whether a directory can have a layer.
    Layer,
}

impl SandboxPart {
    const fn name(self) -> &'static str {
        match self {
            Self::Keeper => "keeper",
            Self::Init => "init",
            Self::Renderer => "renderer",
            Self::Layer => "layer",
        }
    }

    /// The part that these arguments of a process name.
    pub fn parse(arguments: &[OsString]) -> Option<Self> {
        let [_, mark, name] = arguments else { return None };
        let parts = [Self::Keeper, Self::Init, Self::Renderer, Self::Layer];
        parts.into_iter().find(|part| mark == MARK && name == part.name())
    }

    /// The command that starts it.
    pub fn command(self, socket: UnixStream) -> Command {
        let mut command = Command::new(OURSELVES);
        command.args([MARK, self.name()]).env_clear().current_dir("/");
        command.stdin(OwnedFd::from(socket)).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// The second argument of a process that becomes another program.
const TETHER: &str = "tether";

/// The words before a command line whose program ends with the thread that starts it, whatever ends this process.
pub fn tether_words() -> Vec<String> {
    [OURSELVES, MARK, TETHER].map(str::to_owned).into()
}

/// Becomes the program that these arguments of a process name, tethered to the process that started it. `None` if they
/// are other arguments.
pub(super) fn become_tethered(arguments: &[OsString]) -> Option<io::Error> {
    let [_, mark, name, program, rest @ ..] = arguments else { return None };
    if mark != MARK || name != TETHER {
        return None;
    }
    let tethered = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let error = tethered.map_or_else(io::Error::from, |()| Command::new(program).args(rest).exec());
    Some(io::Error::new(error.kind(), format!("{} cannot be started: {error}", program.display())))
}

/// The socket that is this process's stdin.
pub(super) fn take_socket() -> io::Result<UnixStream> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}
