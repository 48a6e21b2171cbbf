//! The events in the body of a reply, in whichever frames a server puts them: server-sent events, lines, or the binary
//! event stream of Amazon (`application/vnd.amazon.eventstream`), in which Bedrock wraps the events of a model.
//!
//! A binary frame is: its length, the length of its headers and the CRC-32 of both (4 bytes each, big endian), the
//! headers, the payload, and the CRC-32 of all before.

use serde::Deserialize;
use serde_json::json;

use super::sse::{SseDecoder, SseEvent, TooLong};
use crate::base::image::decode_base64;

/// The bytes before the headers, and those after the payload.
const PRELUDE: usize = 12;
const TRAILER: usize = 4;
/// The largest frame: 24 MiB, by Amazon's description of the format.
const LARGEST_FRAME: usize = 24 << 20;

/// The ways to put events into a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    ServerSent,
    /// Each line is a JSON object.
    Lines,
    /// The binary event stream of Amazon.
    Binary,
}

/// Finds the events in the bytes of a body.
pub enum EventFinder {
    Text(SseDecoder),
    Binary(FrameDecoder),
}

impl EventFinder {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::ServerSent => Self::Text(SseDecoder::default()),
            Framing::Lines => Self::Text(SseDecoder::by_lines()),
            Framing::Binary => Self::Binary(FrameDecoder::default()),
        }
    }

    /// Reads bytes and passes every event that they complete to `on_event`, which returns whether to continue.
    ///
    /// # Errors
    /// An event is longer than any reply.
    pub fn feed(&mut self, bytes: &[u8], on_event: impl FnMut(SseEvent<'_>) -> bool) -> Result<(), TooLong> {
        match self {
            Self::Text(decoder) => decoder.feed(bytes, on_event),
            Self::Binary(decoder) => decoder.feed(bytes, on_event),
        }
    }

    /// Ends the stream. What was not closed counts where its end can be told.
    pub fn finish(&mut self, on_event: impl FnMut(SseEvent<'_>) -> bool) {
        if let Self::Text(decoder) = self {
            decoder.finish(on_event);
        }
    }
}

/// The frame that has begun and not ended.
#[derive(Default)]
pub struct FrameDecoder {
    frame: Vec<u8>,
    /// True if the body is none of frames: it is read whole.
    is_other: bool,
}

impl FrameDecoder {
    fn feed(&mut self, bytes: &[u8], mut on_event: impl FnMut(SseEvent<'_>) -> bool) -> Result<(), TooLong> {
        self.is_other |= self.frame.is_empty() && bytes.first() == Some(&b'{');
        if self.is_other {
            return Ok(());
        }
        self.frame.extend_from_slice(bytes);
        while let Some(length) = read_number(&self.frame) {
            if !(PRELUDE + TRAILER..=LARGEST_FRAME).contains(&length) {
                return Err(TooLong);
            }
            if self.frame.len() < length {
                break;
            }
            let rest = self.frame.split_off(length);
            let frame = std::mem::replace(&mut self.frame, rest);
            let (name, data) = match open_frame(&frame) {
                Some(opened) => opened,
                None => describe_error("api_error", "a frame of the event stream is damaged"),
            };
            if !on_event(SseEvent { name, data: &data }) {
                break;
            }
        }
        Ok(())
    }
}

/// The payload of an event, and the words of an exception.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    /// The event of the model, in base64.
    bytes: String,
    message: String,
}

/// The event in a frame: its name, and its data, which is empty if it says nothing. `None` if the frame is damaged.
fn open_frame(frame: &[u8]) -> Option<(&'static [u8], Vec<u8>)> {
    let (covered, sum) = frame.split_at(frame.len() - TRAILER);
    let (prelude, rest) = covered.split_at(PRELUDE);
    if read_number(sum)? != compute_crc(covered) || read_number(&prelude[8..])? != compute_crc(&prelude[..8]) {
        return None;
    }
    let (headers, payload) = rest.split_at_checked(read_number(&prelude[4..])?)?;
    let header = |name: &str| find_header(headers, name).unwrap_or_default();
    let payload = || serde_json::from_slice::<Payload>(payload).unwrap_or_default();
    match header(":message-type").as_str() {
        "event" => Some((b"", decode_base64(&payload().bytes)?)),
        "exception" => Some(describe_error(&header(":exception-type"), &payload().message)),
        "error" => Some(describe_error(&header(":error-code"), &header(":error-message"))),
        _ => Some((b"", Vec::new())),
    }
}

/// An error, as the Messages API sends it in mid-stream.
fn describe_error(kind: &str, message: &str) -> (&'static [u8], Vec<u8>) {
    let error = json!({"type": "error", "error": {"type": kind, "message": message}});
    (b"error", error.to_string().into_bytes())
}

/// The text of a header. Each is: the length of its name (1 byte), the name, a type (7: text), and for text its length
/// (2 bytes) and the text. Headers of other types are not asked for, and end the search.
fn find_header(mut headers: &[u8], name: &str) -> Option<String> {
    loop {
        let (length, rest) = headers.split_first()?;
        let (key, rest) = rest.split_at_checked(usize::from(*length))?;
        let (&[7, high, low], rest) = rest.split_first_chunk::<3>()? else { return None };
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        if key == name.as_bytes() {
            return Some(String::from_utf8_lossy(value).into_owned());
        }
        headers = rest;
    }
}

fn read_number(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(*bytes.first_chunk()?)).ok()
}

/// CRC-32 (ISO 3309), as in zip.
fn compute_crc(bytes: &[u8]) -> usize {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    usize::try_from(!crc).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as `.ci/clouds` makes it, which botocore reads.
    #[expect(clippy::cast_possible_truncation, reason = "frames of tests are small")]
    fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend_from_slice(name.as_bytes());
            head.push(7);
            head.extend_from_slice(&(value.len() as u16).to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let length = (PRELUDE + head.len() + payload.len() + TRAILER) as u32;
        let mut frame = [length.to_be_bytes(), (head.len() as u32).to_be_bytes()].concat();
        frame.extend_from_slice(&(compute_crc(&frame) as u32).to_be_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(payload);
        let sum = compute_crc(&frame) as u32;
        frame.extend_from_slice(&sum.to_be_bytes());
        frame
    }

    fn read(bytes: &[u8], size: usize) -> Result<Vec<String>, TooLong> {
        let (mut finder, mut events) = (EventFinder::new(Framing::Binary), Vec::new());
        for piece in bytes.chunks(size) {
            finder.feed(piece, |event| {
                events.push(format!("{} {}", event.name.escape_ascii(), String::from_utf8_lossy(event.data)));
                true
            })?;
        }
        Ok(events)
    }

    #[test]
    fn frames_are_read_however_they_are_cut() {
        let event = [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
        let exception = [(":exception-type", "throttlingException"), (":message-type", "exception")];
        let mut bytes = frame(&event, br#"{"bytes":"eyJ0eXBlIjoicGluZyJ9","p":"abc"}"#);
        bytes.extend(frame(&exception, br#"{"message":"Too many requests"}"#));
        let expected = [
            r#" {"type":"ping"}"#,
            r#"error {"type":"error","error":{"type":"throttlingException","message":"Too many requests"}}"#,
        ];
        for size in [1, 7, 100, 10_000] {
            assert_eq!(read(&bytes, size).as_deref(), Ok(&expected.map(str::to_owned)[..]), "{size}");
        }
    }

    #[test]
    fn what_is_damaged_is_an_error_and_what_is_no_frame_is_no_event() {
        let whole = frame(&[(":message-type", "event")], br#"{"bytes":""}"#);
        for at in 4..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            let events = read(&bytes, 10_000).expect("its length is sound");
            assert!(events[0].contains("damaged"), "byte {at}: {events:?}");
        }
        assert_eq!(read(&[0xff; 64], 10), Err(TooLong));
        assert_eq!(read(&[0; 64], 64), Err(TooLong));
        assert_eq!(read(br#"{"message":"no"}"#, 3), Ok(Vec::new()));
        assert_eq!(compute_crc(b"123456789"), 0xCBF4_3926);
    }
}
