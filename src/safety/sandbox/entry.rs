//! A command on its way into the boundary.

use std::io::{PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// A command that enters the boundary.
pub struct BoundaryEntry<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub dir: &'a Path,
    /// The whole environment.
    pub env: &'a [(String, String)],
}

/// The ends of a command's streams that it gets.
#[derive(Clone, Copy)]
pub struct CommandStreams<'a> {
    pub output: &'a PipeWriter,
    /// Its stderr and its stdin; without them, errors go to `output`, and there is nothing to read.
    pub apart: Option<(&'a PipeWriter, &'a PipeReader)>,
}

impl CommandStreams<'_> {
    /// The descriptors, in the order in which they are sent.
    pub(super) fn list(&self) -> Vec<BorrowedFd<'_>> {
        let apart = self.apart.into_iter().flat_map(|(errors, input)| [errors.as_fd(), input.as_fd()]);
        std::iter::once(self.output.as_fd()).chain(apart).collect()
    }
}
