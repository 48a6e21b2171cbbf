//! The lines of a log, all borrowed from one buffer: a line that nobody wants is skipped without a copy.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use memchr::{memchr, memchr2_iter, memrchr};

/// The bytes that are read at once. The buffer grows if a line is longer.
const BLOCK: usize = 256 * 1024;

/// True if a line contains `needle`, ignoring the case of ASCII letters.
pub(super) fn contains_ignoring_case(line: &[u8], needle: &[u8]) -> bool {
    let rank = |byte: u8| FREQUENT.iter().position(|other| *other == byte.to_ascii_lowercase());
    let rarest = needle.iter().enumerate().max_by_key(|(_, byte)| rank(**byte).unwrap_or(FREQUENT.len()));
    let Some((before, byte)) = rarest else { return true };
    let mut places = memchr2_iter(byte.to_ascii_lowercase(), byte.to_ascii_uppercase(), line);
    places.any(|at| {
        let begin = at.checked_sub(before);
        let found = begin.and_then(|begin| line.get(begin..begin + needle.len()));
        found.is_some_and(|found| found.eq_ignore_ascii_case(needle))
    })
}

/// The bytes that are frequent in logs, the most frequent first: the scan looks for the rarest one of the words.
const FREQUENT: &[u8] = b"\" eatonrisl,:cdu_mph\\{}gf0.1b/-2wyv3kx=546978()jqz";

/// How far a reading is that may take long: what is done, and what there is in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Far {
    /// Of one log, in bytes.
    Bytes(u64, u64),
    /// Logs of a list.
    Logs(u64, u64),
}

/// Reads line by line.
pub(super) struct LogLines<R> {
    from: R,
    buffer: Vec<u8>,
    /// The beginning of the next line in the buffer, and the end of the bytes that were read.
    begin: usize,
    end: usize,
}

impl<R: Read> LogLines<R> {
    pub fn new(from: R) -> Self {
        Self { from, buffer: vec![0; BLOCK], begin: 0, end: 0 }
    }

    /// The next line with its line break, which the last one may lack; `None` at the end.
    pub fn read(&mut self) -> io::Result<Option<&[u8]>> {
        let mut unsearched = self.begin;
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[unsearched..self.end]) {
                return Ok(Some(self.take(unsearched + at + 1)));
            }
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            (self.begin, unsearched) = (0, self.end);
            if self.end == self.buffer.len() {
                self.buffer.resize(2 * self.end, 0);
            }
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) if self.end == 0 => return Ok(None),
                Ok(0) => return Ok(Some(self.take(self.end))),
                Ok(more) => self.end += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, end: usize) -> &[u8] {
        let begin = std::mem::replace(&mut self.begin, end);
        &self.buffer[begin..end]
    }
}

/// Reads line by line, the last one first.
pub(super) struct LinesBack<R> {
    from: R,
    /// The bytes that were read but not returned yet, and their position in the file.
    buffer: Vec<u8>,
    offset: u64,
    /// The bytes to read next: few at first, as the last lines are often all that is wanted.
    block: usize,
}

impl<R: Read + Seek> LinesBack<R> {
    pub fn new(mut from: R) -> io::Result<Self> {
        let offset = from.seek(SeekFrom::End(0))?;
        Ok(Self { from, buffer: Vec::new(), offset, block: BLOCK / 64 })
    }

    /// The line before, with its line break, which the last one may lack; `None` at the beginning.
    pub fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        // The line ends with its own line break, not with that of the line before.
        let mut unsearched = self.buffer.len().saturating_sub(1);
        loop {
            if let Some(at) = memrchr(b'\n', &self.buffer[..unsearched]) {
                return Ok(Some(self.buffer.split_off(at + 1)));
            }
            if self.offset == 0 {
                return Ok(Some(std::mem::take(&mut self.buffer)).filter(|line| !line.is_empty()));
            }
            unsearched = self.prepend()?;
        }
    }

    /// Reads the block before the buffer. Returns the number of bytes that were not searched yet.
    fn prepend(&mut self) -> io::Result<usize> {
        // In proportion to the buffer, so that a long line is not moved again and again.
        let wanted = self.buffer.len().max(self.block);
        self.block = BLOCK.min(2 * self.block);
        let length = usize::try_from(self.offset).map_or(wanted, |offset| offset.min(wanted));
        self.offset -= length as u64;
        self.from.seek(SeekFrom::Start(self.offset))?;
        let mut block = vec![0; length];
        self.from.read_exact(&mut block)?;
        let is_first = self.buffer.is_empty();
        block.append(&mut self.buffer);
        self.buffer = block;
        Ok(if is_first { length - 1 } else { length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }

    #[test]
    fn lines_are_whole_however_they_arrive() {
        let long = "x".repeat(3 * BLOCK);
        for text in ["", "\n", "a", "a\n", "a\n\nb", &format!("a\n{long}\nb\n"), &format!("{long}\n{long}")] {
            for at_once in [1 << 20, 1 << 16, 4099] {
                let mut lines = LogLines::new(Slow(text.as_bytes(), at_once));
                let mut read = Vec::new();
                while let Some(line) = lines.read().expect("memory can be read") {
                    read.push(line.to_vec());
                }
                let expected: Vec<Vec<u8>> = text.split_inclusive('\n').map(Into::into).collect();
                assert_eq!(read, expected);
                let mut lines = LinesBack::new(io::Cursor::new(text)).expect("memory can be read");
                let mut back = Vec::new();
                while let Some(line) = lines.read().expect("memory can be read") {
                    back.insert(0, line);
                }
                assert_eq!(back, expected);
            }
        }
    }
}
