//! The inits of a run: one that is ready for any command, and those that have served one and are ready for another of
//! the same view. A command prefers the latter: it starts at once, without a new process.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};

use super::messages::{CommandOrder, InitRequest, KeeperRequest, StageView};
use super::wire;

/// The most that wait for a command of their view. Few views are in use at a time; each costs a small process.
const MOST_WAITING: usize = 4;

/// The inits that run no command.
pub(super) struct Inits(Mutex<Idle>);

struct Idle {
    keeper: UnixStream,
    /// One that has no view yet; `None` while the keeper makes it.
    spare: Option<UnixStream>,
    /// Those that have one, the last used at the end.
    waiting: Vec<(StageView, Arc<UnixStream>)>,
}

impl Inits {
    /// With the keeper to ask for more, and the first one.
    pub fn new(keeper: UnixStream, first: UnixStream) -> Self {
        Self(Mutex::new(Idle { keeper, spare: Some(first), waiting: Vec::new() }))
    }

    /// Starts a command in one of them, and returns its socket.
    ///
    /// # Errors
    /// The keeper is gone, or the command is too long.
    pub fn start(&self, order: CommandOrder, streams: &[BorrowedFd<'_>]) -> io::Result<Arc<UnixStream>> {
        let mut idle = self.idle();
        let at = idle.waiting.iter().rposition(|(view, _)| *view == order.view);
        let waiting = at.map(|at| idle.waiting.remove(at).1);
        let request = InitRequest::Run(order);
        // Somebody may have killed it.
        if let Some(socket) = waiting.filter(|socket| hand_over(socket, &request, streams).is_ok()) {
            return Ok(socket);
        }
        let mut socket = idle.spare()?;
        if hand_over(&socket, &request, streams).is_err() {
            wire::send_message(&idle.keeper, &KeeperRequest::Another, &[])?;
            socket = idle.spare()?;
            hand_over(&socket, &request, streams)?;
        }
        wire::send_message(&idle.keeper, &KeeperRequest::Another, &[])?;
        Ok(Arc::new(socket))
    }

    /// Takes back an init whose command has ended.
    pub fn keep(&self, view: StageView, socket: Arc<UnixStream>) {
        let mut idle = self.idle();
        idle.waiting.push((view, socket));
        if idle.waiting.len() > MOST_WAITING {
            idle.waiting.remove(0);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().expect("no holder of the sockets panics")
    }
}

impl Idle {
    fn spare(&mut self) -> io::Result<UnixStream> {
        if let Some(spare) = self.spare.take() {
            return Ok(spare);
        }
        wire::send_message(&self.keeper, &KeeperRequest::Hurry, &[])?;
        let mut beside = wire::receive_ready(&self.keeper)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(beside.pop().map(UnixStream::from).ok_or(io::ErrorKind::InvalidData)?)
    }
}

/// Sends a command. The socket may have been made not to block for its last one, and an order can be long.
fn hand_over(socket: &UnixStream, request: &InitRequest, streams: &[BorrowedFd<'_>]) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    wire::send_message(socket, request, streams)
}
