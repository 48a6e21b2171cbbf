//! A command in the namespaces, from this program's side.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::inits::Inits;
use super::messages::{CommandEnd, InitRequest, News, StageView};
use super::wire;

/// A command in the namespaces. Dropping it ends all of its processes.
pub struct ConfinedCommand {
    news: tokio::net::UnixStream,
    /// Bytes of a message that has not arrived as a whole.
    begun: Vec<u8>,
    place: InitLease,
}

/// Returns the init of a command when it is dropped: to the others that wait, or to its end.
struct InitLease {
    socket: Arc<UnixStream>,
    /// True if nothing of the command is left, and its init waits for another.
    is_over: bool,
    view: StageView,
    inits: Arc<Inits>,
}

impl ConfinedCommand {
    pub(super) fn new(socket: Arc<UnixStream>, view: StageView, inits: Arc<Inits>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let place = InitLease { socket, is_over: false, view, inits };
        Ok(Self { news: tokio::net::UnixStream::from_std(place.socket.try_clone()?)?, begun: Vec::new(), place })
    }

    /// The next news of the command.
    ///
    /// # Errors
    /// The boundary ended before the command, as it does when somebody kills it.
    pub fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<News>> {
        loop {
            if let Some(news) = wire::take_message(&mut self.begun)? {
                self.place.is_over = matches!(news, News::Ended(CommandEnd { is_over: true, .. }));
                return Poll::Ready(Ok(news));
            }
            ready!(self.news.poll_read_ready(cx))?;
            match self.news.try_read_buf(&mut self.begun) {
                Ok(0) => return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof))),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Poll::Ready(Err(error)),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// True if the command left nothing behind.
    pub fn is_over(&self) -> bool {
        self.place.is_over
    }

    /// Sends SIGTERM to all of its processes.
    pub fn terminate(&self) {
        // If the init is gone, nothing is left to end.
        let _ = wire::send_message(&self.place.socket, &InitRequest::Terminate, &[]);
    }

    /// Asks to end the processes that the command left behind; [`News::Finished`] answers.
    pub fn finish(&self) {
        let _ = wire::send_message(&self.place.socket, &InitRequest::Finish, &[]);
    }

    /// A handle that ends it from elsewhere.
    pub fn killer(&self) -> SpaceKiller {
        SpaceKiller(Arc::clone(&self.place.socket))
    }

    /// Ends all of its processes at once.
    pub fn kill(&self) {
        if !self.place.is_over {
            self.killer().kill();
        }
    }
}

impl Drop for InitLease {
    fn drop(&mut self) {
        if self.is_over {
            self.inits.keep(self.view.clone(), Arc::clone(&self.socket));
        } else {
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

/// Ends a command in the namespaces. Drop it with the command, as its init may serve another one.
#[derive(Debug)]
pub struct SpaceKiller(Arc<UnixStream>);

impl SpaceKiller {
    /// Ends all of its processes at once.
    pub fn kill(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}
