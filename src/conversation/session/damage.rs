//! Logs that are damaged, old, or no logs; and what lists say of them.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::tests::{NOON, about, begun, compression, path, remove, step, texts, unsealed, user};
use super::{About, SessionError, Store};

/// The fixture, as the log of a session in a new store.
fn store_of_format_2() -> (tempfile::TempDir, Store, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::new(dir.path());
    let path = store.path(Path::new("/w/project"), "20270115-080000-3k9wzq");
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(&path, include_str!("../../../tests/session_cases/format-2.jsonl")).expect("written");
    (dir, store, path)
}

#[test]
fn a_log_of_format_2_is_read_and_continued() {
    let (_dir, store, path) = store_of_format_2();
    let (mut session, warnings) = store.open("20270115", NOON).expect("readable");
    assert_eq!(warnings, Vec::<String>::new());
    let shown = ["in short", "grep|{}|digest", "go on"];
    assert_eq!((texts(session.items()), session.calls()), (shown.map(str::to_owned).to_vec(), 2));
    session.say(user("and on"), NOON).expect("written");
    drop(session);
    let log = fs::read_to_string(&path).expect("a log");
    assert!(log.lines().last().is_some_and(|line| line.contains("\"sum\":")), "{log}");
    fs::write(&path, log.replace("and on", "and off")).expect("written");
    let (session, warnings) = store.open("20270115", NOON).expect("readable");
    assert!(warnings.len() == 1 && warnings[0].contains("it is not as it was written"), "{warnings:?}");
    assert_eq!(texts(session.items()), shown);
}

#[test]
fn a_damaged_first_line_is_rebuilt_from_the_rest_and_the_name() {
    let (_dir, store, mut session) = begun();
    session.end_turn("completed", 0, NOON).expect("written");
    let (id, path) = (session.id().to_owned(), path(&session));
    drop(session);
    let log = fs::read_to_string(&path).expect("a log");
    let (first, rest) = log.split_once('\n').expect("lines");
    let format_2: Vec<String> = log.lines().map(unsealed).collect();
    for damaged in [
        format!("\u{feff}{log}"),
        format!("\u{feff}{}\n", format_2.join("\n")),
        format!("{}\n{rest}", first.replace("/w/project", "/w/porject")),
        format!("{}\n{rest}", first.replace("\"v\":3", "\"v\":2")),
        format!("{}\n{rest}", first.replace("\"v\":3", "\"v\":7")),
        format!("{}\n{rest}", "\0".repeat(first.len())),
        format!("\n{rest}"),
        rest.to_owned(),
    ] {
        fs::write(&path, &damaged).expect("written");
        let (session, warnings) = store.open(&id, NOON).expect(&damaged);
        assert!(warnings.len() == 1 && warnings[0].contains(":1: this line is damaged"), "{warnings:?}");
        let About { workspace, agent, model, .. } = session.describe();
        assert_eq!((workspace, agent, model), (Path::new("/w/project"), "default", "scripted"), "{damaged}");
        assert_eq!((session.id(), session.started_at(), session.items().len()), (&*id, NOON, 1));
        drop(session);
        let latest = store.latest(Path::new("/w/project"), NOON).expect("readable").0.expect("it is one");
        assert_eq!((latest.id, &*latest.title), (id.clone(), "hello"));
    }
}

#[test]
fn every_flipped_bit_of_a_log_is_told() {
    let (_dir, store, mut session) = begun();
    for text in ["one", "two", "three"] {
        step(&mut session, text, &["a", "b"]);
        session.say(user("go on, and äöü"), NOON).expect("written");
    }
    session.compress(&compression(), &[remove(1), remove(2)], None, NOON).expect("written");
    session.end_turn("completed", 0, NOON).expect("written");
    let (id, path) = (session.id().to_owned(), path(&session));
    drop(session);
    let sound = fs::read(&path).expect("a log");
    let bits = 8 * sound.len();
    // A stride that meets every place of a byte, and every line.
    for bit in (0..1_000).map(|number| number * 7919 % bits) {
        let mut log = sound.clone();
        log[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, log).expect("written");
        let warnings = store.read(&id).expect("readable").1;
        assert!(!warnings.is_empty(), "bit {bit} of {bits}");
    }
}

#[test]
fn what_is_no_log_holds_nothing_up_and_is_named() {
    let (_dir, store, session) = begun();
    let log = path(&session);
    let place = |name: &str| log.with_file_name(name);
    fs::create_dir(place("20290101-000000-aaaaaa.jsonl")).expect("made");
    fs::write(place("20290101-000000-bbbbbb.jsonl"), "not a log\n").expect("written");
    #[cfg(unix)]
    {
        let name = place("20290101-000000-cccccc.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(name).status().expect("it runs").success());
        std::os::unix::net::UnixListener::bind(place("20290101-000000-dddddd.jsonl")).expect("a socket");
    }
    let listed = store.list(Some(Path::new("/w/project")), NOON).expect("readable");
    assert_eq!(listed.sessions.len(), 1);
    let whys: Vec<String> = listed.left_out.iter().map(ToString::to_string).collect();
    let expected = if cfg!(unix) { 4 } else { 2 };
    assert!(whys.len() == expected && whys.iter().all(|why| why.contains("is not a session log: ")), "{whys:?}");
    let (latest, left_out) = store.latest(Path::new("/w/project"), NOON).expect("readable");
    assert_eq!((latest.expect("one").id, left_out.len()), (session.id().to_owned(), expected));
    if cfg!(unix) {
        assert!(matches!(store.open("20290101-000000-cccccc", NOON), Err(SessionError::NotALog { .. })));
    }
}

#[test]
fn what_was_written_last_is_the_latest_whatever_its_times_say() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::new(dir.path());
    let now = Timestamp::now();
    let hour = jiff::SignedDuration::from_hours(1);
    let ids = [now + hour * 24_000, now - hour * 2, now - hour].map(|began| {
        let mut session = store.create(about(Path::new("/w/project")), began);
        session.say(user("hello"), began).expect("written");
        let file = fs::File::options().append(true).open(path(&session)).expect("a log");
        file.set_modified(began.into()).expect("set");
        session.id().to_owned()
    });
    let listed = store.list(Some(Path::new("/w/project")), now + hour).expect("readable").sessions;
    // The time that lies ahead is not believed: the system wrote that file just now.
    assert_eq!(listed.iter().map(|session| &session.id).collect::<Vec<_>>(), [&ids[0], &ids[2], &ids[1]]);
    let ages = listed.iter().map(|session| session.describe_age(now + hour + hour / 2)).collect::<Vec<_>>();
    assert_eq!(ages, ["1 hour ago", "2 hours ago", "3 hours ago"]);
}

#[test]
fn a_session_whose_first_message_was_undone_has_the_title_of_the_next() {
    let (_dir, store, mut session) = begun();
    session.end_turn("completed", 0, NOON).expect("written");
    let id = session.id().to_owned();
    let title = || store.list(None, NOON).expect("readable").sessions.remove(0).title;
    session.undo(1, NOON).expect("written");
    assert_eq!(title(), "");
    let (mut session, _) = store.open(&id, NOON).expect("sound");
    session.start_turn("run", NOON);
    session.say(user("second"), NOON).expect("written");
    assert_eq!(title(), "second", "while the turn runs");
    step(&mut session, "", &["c"]);
    session.end_turn("completed", 0, NOON).expect("written");
    drop(session);
    let (mut session, _) = store.open(&id, NOON).expect("sound");
    session.say(user("third"), NOON).expect("written");
    session.end_turn("completed", 0, NOON).expect("written");
    assert_eq!(title(), "second");
}
