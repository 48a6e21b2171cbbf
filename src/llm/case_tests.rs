//! The wires as servers speak them. Each file of `tests/wire_cases/WIRE/` is a body as it was sent and what it reads
//! as: adding a case is adding a file. A line `# flags: {...}` at its head sets flags of the wire.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;
use futures_util::stream;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::assembly::{Assembly, Broken};
use super::decode::Reading;
use super::dialect::Dialect;
use super::reply::HttpReply;
use super::tests::{block_on, describe, openai, read_all};
use super::wire_log::Exchange;
use super::{sse, wires};
use crate::config::Wire;
use crate::contract::{Delta, ReplyEnd};
use crate::message::Origin;
use crate::yaml;

const EXPECTED: &str = "\n=== reads as\n";

const WIRES: [Wire; 3] = [Wire::Chat, Wire::Responses, Wire::Anthropic];

/// The id of a call in the conversation before.
const USED: &str = "used";

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

/// Where a connection breaks, there is an error, or only usage and what else means nothing was lost. A shorter reply
/// never passes for the whole one.
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
        // Of a reply that broke, more has been seen where it came slowly.
        if end.is_some() {
            prop_assert_eq!(deltas, whole.0, "{}", case.name);
        }
    }

    /// Whatever stands in events, of this wire or of another, they end: no panic, and no two calls with one id.
    #[test]
    fn mutated_events_end(
        case in any::<prop::sample::Index>(),
        wire in prop::option::weighted(0.2, prop::sample::select(&WIRES[..])),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), mutation()), 1..6),
    ) {
        let case = case.get(&CASES);
        let mut events = case.events();
        for (event, place, mutation) in mutations {
            if events.is_empty() {
                break;
            }
            let at = event.index(events.len());
            mutation.apply(at, &mut events, place);
        }
        let mut reading = case.reading(wire.unwrap_or(case.wire));
        // What is broken is read on: a decoder that has failed once must bear whatever follows.
        for (name, event) in &events {
            let _ = reading.event(name, event.to_string().as_bytes());
        }
        let mut whole = case.reading(wire.unwrap_or(case.wire));
        if let Some((_, event)) = events.first() {
            let is_reply = whole.whole(event.to_string().as_bytes());
            prop_assert!(is_reply != Ok(true) || whole.reply.is_finished());
        }
        for mut reading in [reading, whole] {
            let end = reading.reply.end(|| 0);
            let ids: HashSet<&str> = end.calls().map(|call| call.id.as_str()).collect();
            prop_assert_eq!(ids.len(), end.calls().count());
            prop_assert!(!ids.contains("") && !ids.contains(USED));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens to a body on its way, it ends: as a reply or as an error, never in a panic.
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

/// The readings of a body that is cut at one byte after the other. A reading of the whole events is kept while what is
/// left behind them is no event: such a rest must leave no trace.
struct Cuts<'a> {
    case: &'a Case,
    /// The end of the last whole event.
    complete: usize,
    /// The reading of what is complete; `None` once it is broken or spent.
    kept: Option<Reading>,
}

impl<'a> Cuts<'a> {
    fn of(case: &'a Case) -> Self {
        Self { case, complete: 0, kept: None }
    }

    /// The reply that the first `end` bytes hold; `None` where they hold no whole one. `end` may only grow, by one.
    fn reply_of(&mut self, end: usize) -> Option<ReplyEnd> {
        let body = self.case.body.as_bytes();
        let mut has_event = false;
        let mut see = |_: sse::Event<'_>| {
            has_event = true;
            true
        };
        let mut decoder = sse::Decoder::default();
        decoder.feed(&body[self.complete..end], &mut see).expect("short enough");
        if has_event {
            (self.complete, self.kept) = (end, None);
        }
        if self.complete == 0 {
            return self.case.decode([&body[..end]]).1;
        }
        let mut reading = self.kept.take().or_else(|| self.case.reading_of(&body[..self.complete]))?;
        let mut rest = None;
        let mut decoder = sse::Decoder::default();
        let mut take = |event: sse::Event<'_>| {
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

/// A change to the events of a stream.
#[derive(Debug, Clone)]
enum Mutation {
    /// The value at a place is another one.
    Set(Value),
    /// The field, or the element, at a place is missing.
    Remove,
    /// The event comes twice.
    Repeat,
    /// The event comes first.
    First,
    Unnamed,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("{}"),
        json!([]),
        json!({}),
        json!([null, "x", {"type": "text", "text": "x"}]),
        json!({"type": "function_call", "name": "f", "arguments": {"x": 1}}),
    ];
    prop_oneof![
        6 => prop::sample::select(values.to_vec()).prop_map(Mutation::Set),
        3 => Just(Mutation::Remove),
        1 => Just(Mutation::Repeat),
        1 => Just(Mutation::First),
        1 => Just(Mutation::Unnamed),
    ]
}

type Events = Vec<(Vec<u8>, Value)>;

impl Mutation {
    /// Changes the event at `at`, which there is, perhaps at a place in it.
    fn apply(&self, at: usize, events: &mut Events, place: prop::sample::Index) {
        match self {
            Self::Set(_) | Self::Remove => {
                let event = &mut events[at].1;
                let mut place = place.index(count(event));
                self.change(event, &mut place);
            }
            Self::Repeat => events.push(events[at].clone()),
            Self::First => events.swap(0, at),
            Self::Unnamed => events[at].0.clear(),
        }
    }

    /// Walks to the value that has this place, in the order of the text; false where it lies further on.
    fn change(&self, value: &mut Value, place: &mut usize) -> bool {
        if *place == 0 {
            *value = if let Self::Set(other) = self { other.clone() } else { Value::Null };
            return true;
        }
        *place -= 1;
        let removes = matches!(self, Self::Remove);
        match value {
            Value::Array(values) if removes && *place < values.len() => {
                values.remove(*place);
                true
            }
            Value::Object(fields) if removes && *place < fields.len() => {
                let key = fields.keys().nth(*place).cloned();
                key.and_then(|key| fields.shift_remove(&key)).is_some()
            }
            Value::Array(values) => values.iter_mut().any(|value| self.change(value, place)),
            Value::Object(fields) => fields.values_mut().any(|value| self.change(value, place)),
            _ => false,
        }
    }
}

/// The values in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// A file of the folder.
struct Case {
    name: String,
    wire: Wire,
    dialect: Dialect,
    body: String,
    expected: String,
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire_cases");
    let mut cases: Vec<Case> = Vec::new();
    for wire in WIRES {
        let Ok(files) = std::fs::read_dir(folder.join(wire.name())) else { continue };
        cases.extend(files.map(|entry| Case::open(wire, &entry.expect("an entry").path())));
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
});

impl Case {
    fn open(wire: Wire, path: &Path) -> Self {
        let case = std::fs::read_to_string(path).expect("a readable case");
        let (text, expected) = case.split_once(EXPECTED).expect("`=== reads as`");
        let (mut head, mut body) = text.split_once('\n').unwrap_or((text, ""));
        let mut flags = serde_json::Map::new();
        while let Some(words) = head.strip_prefix('#') {
            if let Some(yaml) = words.trim().strip_prefix("flags:") {
                flags.insert(wire.name().to_owned(), yaml::parse(yaml).expect("flags"));
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
                HttpReply::new(body, reading, model.endpoint(), (request, Exchange::default()), Instant::now());
            let (deltas, end) = read_all(&mut reply).await;
            describe(&deltas, end)
        })
    }
    fn reading(&self, wire: Wire) -> Reading {
        let origin = Origin { wire: wire.name().to_owned(), host: "h".to_owned(), model: "m".to_owned() };
        let reply = Assembly::new(origin, [USED.to_owned()].into());
        Reading::new(wires::decoder(wire, &self.dialect, &[]), reply)
    }

    /// A reading of whole events; `None` where one of them breaks it.
    fn reading_of(&self, events: &[u8]) -> Option<Reading> {
        let (mut reading, mut is_sound) = (self.reading(self.wire), true);
        let take = |event: sse::Event<'_>| {
            is_sound &= reading.event(event.name, event.data).is_ok();
            is_sound
        };
        sse::Decoder::default().feed(events, take).expect("short enough");
        is_sound.then_some(reading)
    }

    /// The deltas of a body that comes in these pieces, neighbouring texts joined, and its end; `None` where it is no
    /// whole reply. What [`HttpReply`] does, without a connection.
    fn decode<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Delta>, Option<ReplyEnd>) {
        let (mut reading, mut decoder) = (self.reading(self.wire), sse::Decoder::default());
        let (mut deltas, mut body) = (Vec::new(), Vec::new());
        let (mut saw_event, mut is_whole) = (false, true);
        let mut take = |event: sse::Event<'_>, reading: &mut Reading| {
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

    /// The events of the body that are JSON, with their names; a body without events as one.
    fn events(&self) -> Events {
        let mut events = Vec::new();
        let mut take = |event: sse::Event<'_>| {
            events.extend(serde_json::from_slice(event.data).ok().map(|json| (event.name.to_vec(), json)));
            true
        };
        let mut decoder = sse::Decoder::default();
        decoder.feed(self.body.as_bytes(), &mut take).expect("short enough");
        decoder.finish(&mut take);
        events.extend(serde_json::from_str(&self.body).ok().map(|json| (Vec::new(), json)));
        events
    }
}

/// Takes all deltas that are ready.
fn join(deltas: &mut Vec<Delta>, reading: &mut Reading) {
    while let Some(delta) = reading.reply.take() {
        match (deltas.last_mut(), &delta) {
            (Some(Delta::Text(last)), Delta::Text(text))
            | (Some(Delta::Reasoning(last)), Delta::Reasoning(text)) => last.push_str(text),
            _ => deltas.push(delta),
        }
    }
}
