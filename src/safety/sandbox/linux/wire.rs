//! Messages between this program and the processes of its boundary, over a stream socket: a length and JSON; file
//! descriptors are sent along with the length.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::messages::RoleReport;

/// The most bytes of a message: arguments and environment of a command are bounded by the kernel far below.
const MOST_BYTES: usize = 16 << 20;
/// The most descriptors beside a message.
const MOST_DESCRIPTORS: usize = 3;
/// The bytes of the length.
const HEADER: usize = 4;

/// Sends a message with descriptors.
///
/// # Errors
/// The other end is gone, or the message is too long.
pub(super) fn send_message(
    socket: &UnixStream,
    message: &impl Serialize,
    beside: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= MOST_BYTES);
    let header = length.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !beside.is_empty() && !control.push(SendAncillaryMessage::ScmRights(beside)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // Four bytes are sent at once or not at all.
    sendmsg(socket, &[IoSlice::new(&header)], &mut control, SendFlags::NOSIGNAL)?;
    (&mut &*socket).write_all(&text)
}

/// Waits for a message; `None` if the other end closed.
///
/// # Errors
/// The message is not of this kind or was cut.
pub(super) fn receive_message<T: DeserializeOwned>(socket: &UnixStream) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut header = [0; HEADER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let got = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut header)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            got => break got?.bytes,
        }
    };
    if got == 0 {
        return Ok(None);
    }
    let mut beside = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            beside.extend(descriptors);
        }
    }
    if got < HEADER {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut text = vec![0; usize::try_from(u32::from_le_bytes(header)).unwrap_or(usize::MAX).min(MOST_BYTES)];
    (&mut &*socket).read_exact(&mut text)?;
    Ok(Some((serde_json::from_slice(&text)?, beside)))
}

/// Waits for what a part reports of its set-up: the descriptors that come with its end; `None` if its ids are to be
/// mapped first.
///
/// # Errors
/// The system refuses a step, or the other end closed.
pub(super) fn receive_ready(socket: &UnixStream) -> io::Result<Option<Vec<OwnedFd>>> {
    match receive_message(socket)?.ok_or(io::ErrorKind::UnexpectedEof)? {
        (RoleReport::Ready, beside) => Ok(Some(beside)),
        (RoleReport::Unmapped, _) => Ok(None),
        (RoleReport::Failed(why), _) => Err(io::Error::other(why)),
    }
}

/// Takes a message from the beginning of the received bytes; `None` if it is incomplete.
///
/// # Errors
/// The message is not of this kind.
pub(super) fn take_message<T: DeserializeOwned>(arrived: &mut Vec<u8>) -> io::Result<Option<T>> {
    let Some((header, rest)) = arrived.split_first_chunk::<HEADER>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*header)).unwrap_or(usize::MAX).min(MOST_BYTES);
    let Some(text) = rest.get(..length) else { return Ok(None) };
    let message = serde_json::from_slice(text)?;
    arrived.drain(..HEADER + length);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_message_arrives_with_its_descriptor() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        send_message(&here, &["a", "中"], &[writer.as_fd()]).expect("sent");
        drop((here, writer));
        let (text, beside): (Vec<String>, _) = receive_message(&there).expect("received").expect("a message");
        assert_eq!(text, ["a", "中"]);
        io::PipeWriter::from(beside.into_iter().next().expect("a descriptor")).write_all(b"x").expect("written");
        let mut heard = String::new();
        reader.read_to_string(&mut heard).expect("read");
        assert_eq!(heard, "x");
        assert!(receive_message::<Vec<String>>(&there).expect("the end").is_none());
    }
}
