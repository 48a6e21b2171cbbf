//! A session that has lived long: its log grows, what it still sends does not. Reading it again should cost memory for
//! the one and time for the other; `max alloc` is the memory.
//!
//! ```text
//! cargo bench --bench growth
//! ```
//!
//! Each log is written first, through the program's own way of recording, which waits for the disk with every step.

use std::path::Path;

use agent::facade::conversation::event::{CallTelemetry, Compressed, CompressionReason};
use agent::facade::conversation::message::{
    Call, CallAnswer, CallStatus, FinishReason, Item, ReplyPart, Step, Summary, ToolCall, Usage, UserText,
};
use agent::facade::conversation::session::{About, ItemChange, Session, Store, ViewEdit};
use divan::{AllocProfiler, Bencher};
use jiff::Timestamp;
use tempfile::TempDir;

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// Megabytes of a log.
const LOGS: [usize; 3] = [2, 20, 200];

/// The most bytes of results before the next compression: a context of 150,000 tokens.
const CONTEXT: usize = 600_000;

/// Bytes of results that every log still shows at its end.
const SHOWN: usize = 100_000;

/// `--continue`: the log is read, and all that was compressed away is passed over.
#[divan::bench(args = LOGS, sample_count = 5, sample_size = 1)]
fn continued(bencher: Bencher<'_, '_>, megabytes: usize) {
    let (_dir, store, id) = log(megabytes);
    bencher.bench_local(|| {
        let (session, warnings) = store.read(&id).expect("a sound log");
        let shown: usize = session.items().iter().flat_map(Item::texts).map(str::len).sum();
        assert!(warnings.is_empty() && (SHOWN..2 * SHOWN).contains(&shown), "{shown} bytes, {warnings:?}");
        session
    });
}

/// `recall` of words that were said early on, late, and never.
#[divan::bench(args = [("first", 1), ("last", 1), ("never", 0)], sample_count = 5, sample_size = 1)]
fn recalled_of_20_megabytes(bencher: Bencher<'_, '_>, (when, hits): (&str, usize)) {
    let (_dir, store, id) = log(20);
    let (session, _) = store.read(&id).expect("a sound log");
    let archive = session.archive();
    bencher.bench_local(|| {
        let found = archive.search(&format!("the {when} of all"), 1).expect("readable");
        assert_eq!(found.len(), hits);
    });
}

/// A log of about so many megabytes.
fn log(megabytes: usize) -> (TempDir, Store, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::new(dir.path());
    let about =
        About { workspace: Path::new("/w"), copy: None, is_layer: false, agent: "default", model: "default" };
    let mut session = store.create(about, NOON);
    session.say(UserText::by_person("the first of all"), NOON).expect("written");
    let mut written = 0;
    while written < megabytes * 1_000_000 - SHOWN {
        let before = written;
        while written < before + CONTEXT {
            written += step(&mut session);
        }
        session.say(UserText::by_person("the last of all, so far"), NOON).expect("written");
        compress(&mut session);
    }
    let mut shown = 0;
    while shown < SHOWN {
        shown += step(&mut session);
    }
    let id = session.id().to_owned();
    (dir, store, id)
}

/// A call and its result; returns the bytes of the result.
fn step(session: &mut Session) -> usize {
    let number = session.steps();
    let arguments = format!("{{\"path\":\"src/file_{number}.rs\"}}");
    let request = ToolCall { id: format!("call_{number}"), name: "read_file".to_owned(), arguments };
    let parts = vec![ReplyPart::Call(Call { request, opaque: None, answer: None })];
    let step = Step { parts, finish_reason: FinishReason::ToolCalls, ..Step::default() };
    let number = session.reply(step, NOON).expect("written");
    let line = "    let line = reader.read_line(&mut \"buffer\")?; // größer\n";
    let content = line.repeat([10, 40, 160, 500][usize::try_from(number).expect("small") % 4]);
    let bytes = content.len();
    let telemetry = CallTelemetry { tool_name: "read_file".to_owned(), ..CallTelemetry::default() };
    session.answer((number, 0), CallAnswer::of_text(content, CallStatus::Ok), telemetry, NOON).expect("written");
    bytes
}

/// Removes everything, and leaves a summary in its place.
fn compress(session: &mut Session) {
    let edits: Vec<ViewEdit> =
        session.ids().iter().map(|id| ViewEdit { number: id.number, change: ItemChange::Remove }).collect();
    let done = Compressed {
        reason: CompressionReason::Threshold,
        strategy: "staged".to_owned(),
        tokens_before: 150_000,
        tokens_after: 1_000,
        budget: 160_000,
        masked: 0,
        summarized: edits.len(),
        unloaded: 0,
        usage: Usage::default(),
        cost_usd: None,
    };
    let summary = Summary { text: "What was done so far.".to_owned(), ..Summary::default() };
    session.compress(&done, &edits, Some(summary), NOON).expect("written");
}
