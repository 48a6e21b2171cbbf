//! The wires as servers speak them. Each file of `tests/wire_cases/WIRE/` is a body as it was sent and what it reads
//! as: adding a case is adding a file. A line `# flags: {...}` at its head sets flags of the wire.

use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use futures_util::stream;
use proptest::prelude::*;
use tokio::time::Instant;

use super::assembly::Assembly;
use super::decode::Reading;
use super::dialect::Dialect;
use super::reply::HttpReply;
use super::tests::{block_on, describe, openai, read_all};
use super::wire_log::Exchange;
use super::wires;
use crate::config::Wire;
use crate::message::Origin;
use crate::yaml;

const EXPECTED: &str = "\n=== reads as\n";

#[test]
fn every_wire_case() {
    let cases = wire_cases();
    let mut failures = String::new();
    for case in &cases {
        let body = case.body.as_bytes();
        for (how, size) in [("whole", usize::MAX), ("byte by byte", 1), ("by sevens", 7)] {
            let read = case.read(body, size.min(body.len().max(1)));
            if read != case.expected {
                let _ = writeln!(failures, "--- {} ({how})\n{read}", case.name);
            }
        }
    }
    assert!(failures.is_empty(), "these cases read differently:\n{failures}");
    assert!(cases.len() > 30);
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
        let cases = wire_cases();
        let case = &cases[case.index(cases.len())];
        let mut body = case.body.clone().into_bytes();
        let start = at.index(body.len() + 1);
        let end = (start + length).min(body.len());
        let part = body[start..end].to_vec();
        body.splice(start..end, if again { [&part[..], &noise, &part].concat() } else { noise });
        let read = case.read(&body, 16);
        prop_assert!(read.contains("finished ") || read.contains("error "), "{}", read);
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

fn wire_cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire_cases");
    let wires = [Wire::Chat, Wire::Responses, Wire::Anthropic];
    let mut cases: Vec<Case> = Vec::new();
    for wire in wires {
        let Ok(files) = std::fs::read_dir(folder.join(wire.name())) else { continue };
        cases.extend(files.map(|entry| Case::open(wire, &entry.expect("an entry").path())));
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

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
        let origin = Origin { wire: self.wire.name().to_owned(), host: "h".to_owned(), model: "m".to_owned() };
        let reply = Assembly::new(origin, ["used".to_owned()].into());
        let reading = Reading::new(wires::decoder(self.wire, &self.dialect, &[]), reply);
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
}
