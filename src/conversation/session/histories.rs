//! Sessions with many compressions: whatever happened to one, it is the same when it is read again, and texts that it
//! no longer shows are not parsed.

use std::fs;

use proptest::prelude::*;

use super::tests::{NOON, begun, compression, found, path, reply, sealed, step, texts, unsealed, user};
use super::{ItemChange, ItemId, Session, SystemPrompt, ViewEdit};
use crate::conversation::event::CallTelemetry;
use crate::conversation::message::{CallAnswer, CallStatus, Handle, Item, Opaque, Origin, ReplyPart, Summary};

/// Something that happens to a session. Numbers count items from the newest back.
#[derive(Debug, Clone)]
enum Happens {
    Said,
    /// A step with this many calls, and the number of those answered.
    Step(usize, usize),
    /// The oldest items are removed, with or without a summary.
    Removed(usize, bool),
    /// An item is removed, wherever it is.
    OneRemoved(usize),
    /// The answer to a call of an item is shortened.
    Shortened(usize, usize),
    /// The text of an item is shortened.
    Text(usize),
    Restored,
    Pinned(usize),
    /// The last pin is taken back.
    Unpinned,
    Switched,
    Briefed,
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let one = prop_oneof![
        3 => Just(Happens::Said),
        6 => (0..3_usize).prop_flat_map(|calls| (Just(calls), 0..=calls)).prop_map(|(c, a)| Happens::Step(c, a)),
        2 => (1..6_usize, any::<bool>()).prop_map(|(count, summary)| Happens::Removed(count, summary)),
        1 => (0..6_usize).prop_map(Happens::OneRemoved),
        3 => (0..6_usize, 0..2_usize).prop_map(|(item, call)| Happens::Shortened(item, call)),
        1 => (0..6_usize).prop_map(Happens::Text),
        1 => Just(Happens::Restored),
        2 => (0..6_usize).prop_map(Happens::Pinned),
        1 => Just(Happens::Unpinned),
        1 => Just(Happens::Switched),
        1 => Just(Happens::Briefed),
    ];
    proptest::collection::vec(one, 1..30)
}

fn happen(session: &mut Session, what: &Happens) {
    // Every call has its answer before anything else.
    session.settle("interrupted", NOON).expect("written");
    let number = |back: usize| session.ids().iter().rev().nth(back).map(|id| id.number);
    let edit =
        |number: Option<u64>, change| number.map(|number| ViewEdit { number, change }).into_iter().collect();
    let (mut summary, edits): (Option<Summary>, Vec<ViewEdit>) = match what {
        Happens::Said => return session.say(user("words of a person"), NOON).expect("written"),
        Happens::Step(calls, answered) => return begin(session, *calls, *answered),
        Happens::Restored => {
            session.restore(NOON).expect("written");
            return;
        }
        Happens::Pinned(back) => {
            let numbers: Vec<u64> = number(*back).into_iter().collect();
            return session.pin(&numbers, NOON).expect("written");
        }
        Happens::Unpinned => {
            session.unpin(None, NOON).expect("written");
            return;
        }
        Happens::Switched => return session.switch("default", "another", NOON),
        Happens::Briefed => {
            return session.set_system(SystemPrompt { text: "brief".to_owned(), ..SystemPrompt::default() }, NOON);
        }
        Happens::Removed(count, summary) => {
            let oldest = session.ids().iter().take(*count);
            let summary = summary.then(|| Summary { text: "in short".to_owned(), ..Summary::default() });
            (summary, oldest.map(|id| ViewEdit { number: id.number, change: ItemChange::Remove }).collect())
        }
        Happens::OneRemoved(back) => (None, edit(number(*back), ItemChange::Remove)),
        Happens::Shortened(back, call) => {
            (None, edit(number(*back), ItemChange::Answer { call: *call, content: "digest".to_owned() }))
        }
        Happens::Text(back) => (None, edit(number(*back), ItemChange::Text { text: "…".to_owned() })),
    };
    session.compress(&compression(), &edits, summary.take(), NOON).expect("written");
}

fn begin(session: &mut Session, calls: usize, answered: usize) {
    let mut asked = reply("text of a reply", &["a", "b"][..calls]);
    let origin = Origin { wire: "anthropic".to_owned(), host: "h".to_owned(), model: "m".to_owned() };
    let opaque = Some(Opaque { origin, data: "signed".into(), bound: true });
    asked.parts.insert(0, ReplyPart::Reasoning { text: "thoughts".to_owned(), opaque });
    let number = session.reply(asked, NOON).expect("written");
    for call in 0..answered {
        let telemetry =
            CallTelemetry { tool_name: "grep".to_owned(), latency_ms: Some(2.5), ..CallTelemetry::default() };
        let answer = CallAnswer::of_text("a long result", CallStatus::Ok);
        session.answer((number, call), answer, telemetry, NOON).expect("written");
    }
}

/// The whole state of a session except the log.
fn state(session: &Session) -> impl PartialEq + std::fmt::Debug + use<> {
    let items: Vec<(ItemId, Item)> = session.ids().iter().copied().zip(session.items().to_vec()).collect();
    (
        items,
        (session.usage(), session.cost_usd(), session.costs().clone()),
        (session.turns(), session.steps(), session.calls()),
        (session.list_pinned().clone(), session.is_held(), session.find_counted()),
        (session.archive().numbers(), session.system().map(|prompt| prompt.text.clone())),
        session.describe().model.to_owned(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The view, the sums and the archive of a session are the same after it was closed and read again.
    #[test]
    fn a_session_is_the_same_when_it_is_read_again(first in happenings(), second in happenings()) {
        let (_dir, store, mut session) = begun();
        for part in [first, second] {
            for what in &part {
                happen(&mut session, what);
            }
            session.settle("interrupted", NOON).expect("written");
            let (id, before) = (session.id().to_owned(), state(&session));
            drop(session);
            let (again, warnings) = store.open(&id, NOON).expect("a sound log");
            prop_assert_eq!(warnings, Vec::<String>::new());
            prop_assert_eq!(state(&again), before);
            session = again;
        }
    }
}

/// A session of which only a summary, `late` and what follows is still shown.
fn shortened() -> (tempfile::TempDir, super::Store, Session) {
    let (dir, store, mut session) = begun();
    for text in ["one", "two"] {
        step(&mut session, text, &["a", "b"]);
    }
    step(&mut session, "late", &["c"]);
    let gone = [1, 2, 3].map(|number| ViewEdit { number, change: ItemChange::Remove });
    let digest = ViewEdit { number: 4, change: ItemChange::Answer { call: 0, content: "digest".to_owned() } };
    let summary = Summary { text: "in short".to_owned(), ..Summary::default() };
    session.compress(&compression(), &[&gone[..], &[digest]].concat(), Some(summary), NOON).expect("written");
    session.say(user("go on"), NOON).expect("written");
    (dir, store, session)
}

#[test]
fn damage_in_what_is_no_longer_shown_is_told_and_changes_nothing_else() {
    let (_dir, store, session) = shortened();
    let (id, path, shown) = (session.id().to_owned(), path(&session), texts(session.items()));
    assert_eq!(shown, ["in short", "late|grep|{}|digest", "go on"]);
    drop(session);
    let log = fs::read_to_string(&path).expect("a log");
    // Without seals, as format 2 has them, damage is found where it breaks the entry.
    let lines: Vec<String> = log.lines().map(unsealed).collect();
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).expect("there is one");
    let (said, answer) = (at(r#"{"type":"said","n":1"#), at(r#"{"type":"answer","n":3,"call":1"#));
    for (damaged, by) in [
        (said, lines[said].replace("\"text\":\"hello\"", "\"text\":\"hel").into_bytes()),
        (said, lines[said].replace("\"text\"", "\"txet\"").into_bytes()),
        (answer, lines[answer].replace("found", "fo\u{1}nd").into_bytes()),
        (answer, lines[answer].replace("\"status\":\"ok\"", "\"status\":7").into_bytes()),
        (answer, [&lines[answer].as_bytes()[..60], b"\xff", &lines[answer].as_bytes()[60..]].concat()),
    ] {
        let mut bytes = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            bytes.extend_from_slice(if index == damaged { &by } else { line.as_bytes() });
            bytes.push(b'\n');
        }
        fs::write(&path, bytes).expect("written");
        let (session, warnings) = store.open(&id, NOON).expect("readable");
        assert_eq!(texts(session.items()), shown);
        let expected = format!("{}:{}: this line is damaged and is skipped: ", path.display(), damaged + 1);
        assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
    }
}

#[test]
fn what_is_no_longer_shown_is_found_by_recall_after_the_log_was_read_again() {
    let (_dir, store, session) = shortened();
    let id = session.id().to_owned();
    drop(session);
    let (session, _) = store.open(&id, NOON).expect("a sound log");
    assert_eq!(session.archive().read(Handle::answer(3, 1)).expect("readable").as_deref(), Some("found"));
    assert_eq!(found(&session, "hello"), ["m1:1: hello"]);
    assert_eq!(
        found(&session, "found"),
        ["c4.1:1: found", "c3.2:1: found", "c3.1:1: found", "c2.2:1: found", "c2.1:1: found"]
    );
}

#[test]
fn a_log_whose_numbers_name_two_items_is_read_as_a_whole() {
    let (_dir, store, session) = shortened();
    let (id, path) = (session.id().to_owned(), path(&session));
    drop(session);
    // The last message gets the number of the first, which a compression removed.
    let log = fs::read_to_string(&path).expect("a log");
    let (before, last) = log.trim_end().rsplit_once('\n').expect("lines");
    let last = sealed(&unsealed(last).replace("\"n\":6", "\"n\":1"));
    fs::write(&path, format!("{before}\n{last}\n")).expect("written");
    let (session, _) = store.open(&id, NOON).expect("readable");
    assert_eq!(texts(session.items()).last().map(String::as_str), Some("go on"));
}
