//! The wires as servers speak them. Each file of `tests/wire_cases/WIRE/` is a body as it was sent and the reply that
//! is read from it: to add a case, add a file. A line `# flags: {...}` at its head sets flags of the wire.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use futures_util::stream;
use proptest::prelude::*;
use tokio::time::Instant;

use super::super::assembly::{Assembly, Broken};
use super::super::decode::ReplyReading;
use super::super::dialect::Dialect;
use super::super::reply::HttpReply;
use super::super::wire_log::Exchange;
use super::super::{sse, wires};
use super::server::{block_on, describe, openai, read_all};
use crate::base::yaml;
use crate::config::Wire;
use crate::conversation::message::Origin;
use crate::model::{Delta, ReplyEnd};

const EXPECTED: &str = "\n=== reads as\n";

/// The id of an earlier call in the conversation.
pub(super) const USED: &str = "used";

#[test]
fn every_wire_case() {
    let mut failures = String::new();
    for case in CASES.iter() {
        let body = case.body.as_bytes();
        for (how, size) in [("whole", usize::MAX), ("byte by byte", 1), ("by sevens", 7)] {
            let read = case.read(body, size.min(body.len().max(1)));
            if read != case.expected {
                let _ = writeln!(failures, "--- {} ({how})\n{read}", case.name);
            }
        }
    }
    assert!(failures.is_empty(), "these cases read differently:\n{failures}");
    assert!(CASES.len() > 30);
}

/// If a connection breaks, the result is an error, unless only usage or other accessories were lost. A truncated
/// reply never passes for a complete one.
#[test]
fn a_cut_body_is_no_shorter_reply() {
    let mut cut_successes = 0;
    for case in CASES.iter() {
        let body = case.body.as_bytes();
        let whole = case.decode([body]).1.map(|end| (end.parts, end.finish));
        let mut cuts = Cuts::of(case);
        for end in 0..body.len() {
            if let Some(cut) = cuts.reply_of(end) {
                let cut = Some((cut.parts, cut.finish));
                assert_eq!(cut, whole, "{}: {}", case.name, String::from_utf8_lossy(&body[..end]));
                cut_successes += 1;
            }
        }
    }
    assert!(cut_successes > 100, "{cut_successes} cuts lost nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A body reads the same however it is cut into pieces.
    #[test]
    fn splits_do_not_matter(
        case in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let case = case.get(&CASES);
        let body = case.body.as_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        at.extend([0, body.len()]);
        at.sort_unstable();
        let (deltas, end) = case.decode(at.windows(2).map(|pair| &body[pair[0]..pair[1]]));
        let whole = case.decode([body]);
        prop_assert_eq!(&end, &whole.1, "{}", case.name);
        // Of a reply that broke, more has been seen if it came slowly.
        if end.is_some() {
            prop_assert_eq!(deltas, whole.0, "{}", case.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever damage a body suffers, reading it ends in a reply or an error, never in a panic.
    #[test]
    fn a_damaged_body_ends(
        case in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        length in 0_usize..200,
        noise in prop::collection::vec(any::<u8>(), 0..8),
        again in any::<bool>(),
    ) {
        let case = case.get(&CASES);
        let mut body = case.body.clone().into_bytes();
        let start = at.index(body.len() + 1);
        let end = (start + length).min(body.len());
        let part = body[start..end].to_vec();
        body.splice(start..end, if again { [&part[..], &noise, &part].concat() } else { noise });
        let read = case.read(&body, 16);
        prop_assert!(read.contains("finished ") || read.contains("error "), "{}", read);
    }
}

/// The readings of a body that is cut at each byte in turn. The reading of the complete events is kept as long as the
/// rest behind them is not a complete event: such a rest must leave no trace.
struct Cuts<'a> {
    case: &'a WireCase,
    /// The end of the last whole event.
    complete: usize,
    /// The reading of what is complete; `None` once it is broken or spent.
    kept: Option<ReplyReading>,
}

impl<'a> Cuts<'a> {
    fn of(case: &'a WireCase) -> Self {
        Self { case, complete: 0, kept: None }
    }

    /// The reply in the first `end` bytes; `None` if they contain no complete one. `end` may only grow, by one.
    fn reply_of(&mut self, end: usize) -> Option<ReplyEnd> {
        let body = self.case.body.as_bytes();
        let ends_line = body[..end].ends_with(b"\n") || body[..end].ends_with(b"\r");
        let mut has_event = false;
        if ends_line {
            let see = |_: sse::SseEvent<'_>| {
                has_event = true;
                true
            };
            self.case
                .reading(self.case.wire)
                .find_events()
                .feed(&body[self.complete..end], see)
                .expect("short enough");
        }
        if has_event {
            (self.complete, self.kept) = (end, None);
        }
        if self.complete == 0 {
            return self.case.decode([&body[..end]]).1;
        }
        let mut reading = self.kept.take().or_else(|| self.case.reading_of(&body[..self.complete]))?;
        let mut rest = None;
        let mut decoder = reading.find_events();
        let mut take = |event: sse::SseEvent<'_>| {
            rest = Some(reading.event(event.name, event.data));
            true
        };
        decoder.feed(&body[self.complete..end], &mut take).expect("short enough");
        decoder.finish(take);
        let is_whole = !matches!(rest, Some(Err(_))) && reading.reply.is_finished();
        if is_whole {
            return Some(reading.reply.end(|| 0));
        }
        let leaves_no_trace = matches!(rest, None | Some(Err(Broken::Unreadable(_))));
        self.kept = leaves_no_trace.then_some(reading);
        None
    }
}

/// A file of the folder.
pub(super) struct WireCase {
    name: String,
    pub wire: Wire,
    dialect: Dialect,
    pub body: String,
    expected: String,
}

/// All files of the folder.
pub(super) static CASES: LazyLock<Vec<WireCase>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire_cases");
    let mut cases: Vec<WireCase> = Vec::new();
    for wire in Wire::ALL {
        let Ok(files) = std::fs::read_dir(folder.join(wire.name())) else { continue };
        cases.extend(files.map(|entry| WireCase::open(wire, &entry.expect("an entry").path())));
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
});

impl WireCase {
    fn open(wire: Wire, path: &Path) -> Self {
        let case = std::fs::read_to_string(path).expect("a readable case");
        let (text, expected) = case.split_once(EXPECTED).expect("`=== reads as`");
        let (mut head, mut body) = text.split_once('\n').unwrap_or((text, ""));
        let mut flags = serde_json::Map::new();
        while let Some(words) = head.strip_prefix('#') {
            if let Some(yaml) = words.trim().strip_prefix("flags:") {
                flags.insert(wire.name().to_owned(), yaml::parse_document(yaml).expect("flags"));
            }
            match body.split_once('\n') {
                Some((next, rest)) if next.starts_with('#') => (head, body) = (next, rest),
                _ => break,
            }
        }
        Self {
            name: path.display().to_string(),
            wire,
            dialect: serde_json::from_value(flags.into()).expect("flags of the wire"),
            body: body.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// Reads a body that is cut into pieces of `size` bytes, and shows the result.
    fn read(&self, body: &[u8], size: usize) -> String {
        let model = openai("http://127.0.0.1:1/v1");
        let reading = self.reading(self.wire);
        let pieces: Vec<_> = body.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let body = Box::pin(stream::iter(pieces));
        let request = Bytes::from_static(b"forty bytes of a request, more or less..");
        block_on(async {
            let mut reply =
                HttpReply::new(body, reading, model.endpoint(), request, Exchange::default(), Instant::now());
            let (deltas, end) = read_all(&mut reply).await;
            describe(&deltas, end)
        })
    }
    /// A reading of a reply on a wire.
    pub fn reading(&self, wire: Wire) -> ReplyReading {
        let origin = Origin { wire: wire.name().to_owned(), host: "h".to_owned(), model: "m".to_owned() };
        let reply = Assembly::new(origin, [USED.to_owned()].into());
        ReplyReading::new(wires::create_decoder(wire, &self.dialect, &[]), reply)
    }

    /// A reading of whole events; `None` if one of them breaks it.
    fn reading_of(&self, events: &[u8]) -> Option<ReplyReading> {
        let (mut reading, mut is_sound) = (self.reading(self.wire), true);
        let take = |event: sse::SseEvent<'_>| {
            is_sound &= reading.event(event.name, event.data).is_ok();
            is_sound
        };
        self.reading(self.wire).find_events().feed(events, take).expect("short enough");
        is_sound.then_some(reading)
    }

    /// The deltas of a body that comes in these pieces, neighbouring texts joined, and its end; `None` if it is not a
    /// complete reply. Does what [`HttpReply`] does, without a connection.
    fn decode<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Delta>, Option<ReplyEnd>) {
        let mut reading = self.reading(self.wire);
        let mut decoder = reading.find_events();
        let (mut deltas, mut body) = (Vec::new(), Vec::new());
        let (mut saw_event, mut is_whole) = (false, true);
        let mut take = |event: sse::SseEvent<'_>, reading: &mut ReplyReading| {
            saw_event = true;
            is_whole &= reading.event(event.name, event.data).is_ok();
            is_whole
        };
        for piece in pieces {
            body.extend_from_slice(piece);
            decoder.feed(piece, |event| take(event, &mut reading)).expect("short enough");
            join(&mut deltas, &mut reading);
        }
        decoder.finish(|event| take(event, &mut reading));
        if !saw_event {
            is_whole = reading.whole(&body) == Ok(true);
        }
        join(&mut deltas, &mut reading);
        let is_whole = is_whole && reading.reply.is_finished();
        (deltas, is_whole.then(|| reading.reply.end(|| 0)))
    }
}

/// Takes all deltas that are ready.
fn join(deltas: &mut Vec<Delta>, reading: &mut ReplyReading) {
    while let Some(delta) = reading.reply.take() {
        match (deltas.last_mut(), &delta) {
            (Some(Delta::Text(last)), Delta::Text(text))
            | (Some(Delta::Reasoning(last)), Delta::Reasoning(text)) => last.push_str(text),
            _ => deltas.push(delta),
        }
    }
}
