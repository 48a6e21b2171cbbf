//! Server-sent events: bytes in, events out. Pure and incremental: the same events come however the bytes are cut.
//!
//! More lenient than the standard where servers are sloppy: a last event without its blank line is still an event, and
//! a byte order mark is skipped. Invalid UTF-8 is left to the reader of the data.

/// The longest line or event that is read, in bytes. Anything longer is a broken server, not a reply.
const LONGEST: usize = 16 * 1024 * 1024;

/// One event. Comments are not events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The value of `event:`, empty if there is none.
    pub name: &'a [u8],
    /// The lines of `data:`, joined by line feeds.
    pub data: &'a [u8],
}

/// The error of a line or an event that is longer than any reply.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// The state of a stream of events.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The line that has begun and not ended.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    past_first_line: bool,
    /// True if the last byte was a carriage return, to which a line feed that follows belongs.
    after_cr: bool,
    /// True if every line that is a JSON object is an event (NDJSON).
    by_lines: bool,
}

impl SseDecoder {
    /// A stream of JSON objects, one in each line. Other lines are no events.
    pub fn by_lines() -> Self {
        Self { by_lines: true, ..Self::default() }
    }

    /// Reads bytes and passes every event that they complete to `on_event`, which returns whether to continue.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> bool,
    ) -> Result<(), TooLong> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            let go_on = if self.line.is_empty() {
                self.read_line(line, &mut on_event)
            } else {
                self.line.extend_from_slice(line);
                let whole = std::mem::take(&mut self.line);
                let go_on = self.read_line(&whole, &mut on_event);
                self.line = whole;
                self.line.clear();
                go_on
            };
            bytes = match rest {
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            if !go_on {
                return Ok(());
            }
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LONGEST || self.data.len() > LONGEST { Err(TooLong) } else { Ok(()) }
    }

    /// Ends the stream. A last line or event that was not closed counts.
    pub fn finish(&mut self, mut on_event: impl FnMut(SseEvent<'_>) -> bool) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() || self.read_line(&line, &mut on_event) {
            self.read_line(b"", &mut on_event);
        }
    }

    fn read_line(&mut self, line: &[u8], on_event: &mut impl FnMut(SseEvent<'_>) -> bool) -> bool {
        let is_first = !self.past_first_line;
        let line = if self.past_first_line { line } else { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) };
        self.past_first_line = true;
        if self.by_lines {
            let is_object = line.starts_with(b"{") && line.trim_ascii_end().ends_with(b"}");
            return !is_object || on_event(SseEvent { name: b"", data: line });
        }
        if line.is_empty() {
            return self.dispatch(on_event);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Errors in mid-stream that are no events: `error: {…}` and `{"error": …}`.
            b"error" if value.starts_with(b"{") && !self.has_data => self.take_error(value),
            br#"{"error""# if !is_first && !self.has_data => self.take_error(line),
            // A comment (the field before the colon is empty), `id`, `retry`, or something unknown.
            _ => {}
        }
        true
    }

    fn take_error(&mut self, data: &[u8]) {
        self.name = b"error".to_vec();
        self.data = data.to_vec();
        self.has_data = true;
    }

    fn dispatch(&mut self, on_event: &mut impl FnMut(SseEvent<'_>) -> bool) -> bool {
        let go_on = !self.has_data || on_event(SseEvent { name: &self.name, data: &self.data });
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        go_on
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut keep = |event: SseEvent<'_>| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            events.push((text(event.name), text(event.data)));
            true
        };
        let mut decoder = SseDecoder::default();
        for piece in pieces {
            decoder.feed(piece, &mut keep).expect("short enough");
        }
        decoder.finish(&mut keep);
        events
    }

    #[test]
    fn events_as_servers_write_them() {
        for (name, bytes, expected) in [
            ("plain", "data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")][..]),
            ("crlf", "data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]),
            ("cr alone", "data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]),
            ("no space", "data:a\n\n", &[("", "a")]),
            ("one space of two is data", "data:  a\n\n", &[("", " a")]),
            ("several lines", "data: a\ndata: b\n\n", &[("", "a\nb")]),
            ("name", "event: error\ndata: a\n\n", &[("error", "a")]),
            ("the name holds for one event", "event: x\ndata: a\n\ndata: b\n\n", &[("x", "a"), ("", "b")]),
            ("comments", ": ping\n\n:\n\ndata: a\n: ping\n\n", &[("", "a")]),
            ("other fields", "id: 1\nretry: 5\nnonsense\ndata: a\n\n", &[("", "a")]),
            ("byte order mark", "\u{feff}data: a\n\n", &[("", "a")]),
            ("no blank line at the end", "data: a\n\ndata: b\n", &[("", "a"), ("", "b")]),
            ("no line end at the end", "data: a\n\ndata: b", &[("", "a"), ("", "b")]),
            ("blank lines", "\n\n\ndata: a\n\n\n\n", &[("", "a")]),
            ("empty data", "data\n\n", &[("", "")]),
            ("an error that is no event", "data: a\n\nerror: {}\n\n", &[("", "a"), ("error", "{}")]),
            ("an error alone", "data: a\n\n{\"error\":1}\n", &[("", "a"), ("error", "{\"error\":1}")]),
            ("a whole body is no event", "{\"error\":1}\n", &[]),
            ("nothing", "", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
            assert_eq!(decode([bytes.as_bytes()]), expected, "{name}");
            let one_by_one: Vec<_> = bytes.as_bytes().chunks(1).collect();
            assert_eq!(decode(one_by_one), expected, "{name}, byte by byte");
        }
    }

    #[test]
    fn whoever_reads_can_stop() {
        let mut decoder = SseDecoder::default();
        let mut count = 0;
        let read = decoder.feed(b"data: a\n\ndata: b\n\n", |_| {
            count += 1;
            false
        });
        assert_eq!((read, count), (Ok(()), 1));
    }

    proptest! {
        /// Any bytes, cut anywhere: the same events, and no panic.
        #[test]
        fn cuts_do_not_matter(
            lines in prop::collection::vec("(data: ?|event: ?|:|)[a-zé日🙂 ]{0,6}(\n|\r|\r\n|\n\n)", 0..20),
            noise in prop::collection::vec(any::<u8>(), 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let mut bytes = lines.concat().into_bytes();
            bytes.extend(noise);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(pieces), decode([&bytes[..]]));
        }
    }
}
