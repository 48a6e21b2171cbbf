//! Sessions on disk and in memory: recorded entries can be read back, even from a damaged log.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::{About, ItemChange, Session, SessionError, StateChange, Store, SystemPrompt, ViewEdit};
use crate::base::seal::seal_line;
use crate::conversation::event::{CallTelemetry, Compressed, CompressionReason};
use crate::conversation::message::{
    Call, CallAnswer, CallStatus, FinishReason, Handle, Item, ReplyPart, Step, Summary, ToolCall, Usage, UserText,
};

pub(super) const NOON: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(super) fn about(workspace: &Path) -> About<'_> {
    About { workspace, copy: None, is_layer: false, agent: "default", model: "scripted" }
}

pub(super) fn user(text: &str) -> UserText {
    UserText::by_person(text)
}

pub(super) fn reply(text: &str, calls: &[&str]) -> Step {
    let call = |id: &&str| {
        let request = ToolCall { id: (*id).to_owned(), name: "grep".to_owned(), arguments: "{}".to_owned() };
        ReplyPart::Call(Call { request, opaque: None, answer: None })
    };
    let mut step = Step {
        usage: Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() },
        cost_usd: Some(0.5),
        ..Step::of_text(text, FinishReason::Stop)
    };
    step.parts.extend(calls.iter().map(call));
    step
}

/// A store with a session of one user message.
pub(super) fn begun() -> (tempfile::TempDir, Store, Session) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::new(dir.path().join("sessions"));
    let mut session = store.create(about(Path::new("/w/project")), NOON);
    session.start_turn("run", NOON);
    session.say(user("hello"), NOON).expect("written");
    (dir, store, session)
}

/// Adds a reply with calls and answers all of them.
pub(super) fn step(session: &mut Session, text: &str, calls: &[&str]) -> u64 {
    let number = session.reply(reply(text, calls), NOON).expect("written");
    for call in 0..calls.len() {
        let (answer, telemetry) = (CallAnswer::of_text("found", CallStatus::Ok), CallTelemetry::default());
        session.answer((number, call), answer, telemetry, NOON).expect("written");
    }
    number
}

pub(super) fn path(session: &Session) -> PathBuf {
    session.path().expect("kept").to_path_buf()
}

pub(super) fn append(path: &Path, text: &str) {
    let log = fs::read_to_string(path).expect("a log");
    fs::write(path, log + text).expect("written");
}

/// A line as the log holds it.
pub(super) fn sealed(line: &str) -> String {
    let mut bytes = line.as_bytes().to_vec();
    seal_line(&mut bytes, 0);
    String::from_utf8(bytes).expect("text")
}

/// The line without its seal, as format 2 has it.
pub(super) fn unsealed(line: &str) -> String {
    let (body, _) = line.rsplit_once(",\"sum\":").expect("a seal");
    format!("{body}}}").replace("{\"v\":3,", "{\"v\":2,")
}

pub(super) fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.texts().collect::<Vec<_>>().join("|")).collect()
}

pub(super) fn last(session: &Session) -> &Step {
    session.items().last().and_then(Item::as_step).expect("a step")
}

#[test]
fn what_was_recorded_is_read_again() {
    let (_dir, store, mut session) = begun();
    for text in ["old", "new"] {
        let basis = [("model".to_owned(), text.to_owned())].into();
        session.set_system(SystemPrompt { text: text.to_owned(), basis }, NOON);
    }
    step(&mut session, "", &["c1"]);
    step(&mut session, "done", &[]);
    session.end_turn("completed", 0, NOON).expect("written");
    let (id, items) = (session.id().to_owned(), session.items().to_vec());
    drop(session);
    let (session, warnings) = store.open(&id, NOON).expect("a sound log");
    assert_eq!((session.items(), warnings), (&items[..], vec![]));
    assert_eq!(session.system().map(|prompt| prompt.text.as_str()), Some("new"), "the last prompt counts");
    assert_eq!((session.turns(), session.steps(), session.calls()), (1, 2, 1));
    assert_eq!((session.usage().total(), session.cost_usd()), (22, Some(1.0)));
    assert_eq!(session.started_at(), NOON);
    assert_eq!(session.describe().model, "scripted");
}

pub(super) fn compression() -> Compressed {
    Compressed {
        reason: CompressionReason::Threshold,
        strategy: "staged".to_owned(),
        tokens_before: 9,
        tokens_after: 4,
        budget: 10,
        masked: 1,
        summarized: 0,
        unloaded: 0,
        usage: Usage { input_tokens: 8, output_tokens: 2, ..Usage::default() },
        cost_usd: Some(0.25),
    }
}

pub(super) fn remove(number: u64) -> ViewEdit {
    ViewEdit { number, change: ItemChange::Remove }
}

fn shown(session: &Session) -> Vec<(u64, String)> {
    session.ids().iter().map(|id| id.number).zip(texts(session.items())).collect()
}

fn shows(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(number, text)| (*number, (*text).to_owned())).collect()
}

/// The archive's matches, as `handle:line: text`.
pub(super) fn found(session: &Session, query: &str) -> Vec<String> {
    let found = session.archive().search(query, 9).expect("readable");
    let rows = found.iter().flat_map(|text| text.rows.iter().map(move |row| (&text.id, row)));
    rows.map(|(id, row)| format!("{id}:{}: {}", row.line, row.text)).collect()
}

#[test]
fn what_recall_was_asked_and_returned_is_not_found_again() {
    let (_dir, _store, mut session) = begun();
    let mut asked = reply("I look for the needle", &["c1", "c2", "c3"]);
    for (part, (name, arguments)) in asked.parts[1..].iter_mut().zip([
        ("recall", r#"{"query":"needle"}"#),
        ("call_tool", r#"{"name":"recall","arguments":{"query":"x"}}"#),
        ("grep", "{}"),
    ]) {
        let ReplyPart::Call(call) = part else { unreachable!("they are calls") };
        (call.request.name, call.request.arguments) = (name.to_owned(), arguments.to_owned());
    }
    let number = session.reply(asked, NOON).expect("written");
    for call in 0..3 {
        let answer = CallAnswer::of_text(format!("needle {call}"), CallStatus::Ok);
        session.answer((number, call), answer, CallTelemetry::default(), NOON).expect("written");
    }
    step(&mut session, "needle later", &[]);
    let summary = Summary { text: "in short".to_owned(), ..Summary::default() };
    session.compress(&compression(), &[remove(1), remove(2), remove(3)], Some(summary), NOON).expect("written");
    assert_eq!(
        found(&session, "needle"),
        ["m3:1: needle later", "c2.3:1: needle 2", "m2:1: I look for the needle"],
        "the newest first"
    );
    assert_eq!(session.archive().search("needle", 1).expect("readable").len(), 1);
    assert_eq!(session.archive().numbers(), [1, 2, 3]);
}

#[test]
#[cfg(unix)]
fn a_file_that_the_log_names_is_synced_before_it() {
    type Sync = fn(&mut Session) -> Result<(), SessionError>;
    // All ways to sync the log. A pipe cannot be synced, so waiting for it fails.
    let syncs: [Sync; 4] = [
        Session::sync,
        |session| session.end_turn("completed", 0, NOON),
        |session| session.pin(&[1], NOON),
        |session| session.begin_sync()?.map_or(Ok(()), super::Syncing::wait),
    ];
    for sync in syncs {
        let (_dir, _store, mut session) = begun();
        let number = session.reply(reply("", &["c1"]), NOON).expect("written");
        let (_, unsyncable) = std::io::pipe().expect("a pipe");
        session.sync_before(vec![std::os::fd::OwnedFd::from(unsyncable).into()]);
        let answer = CallAnswer::of_text("recall id=r1 reads the whole", CallStatus::Ok);
        session.answer((number, 0), answer, CallTelemetry::default(), NOON).expect("it is written, not synced");
        sync(&mut session).expect_err("the log is not synced without it");
        session.sync().expect_err("and that is not forgotten");
    }
}

#[test]
fn an_edit_changes_what_is_sent_and_never_what_was_said() {
    let (dir, store, kept) = begun();
    let ephemeral = {
        let mut session = Session::ephemeral(about(dir.path()), NOON);
        session.say(user("hello"), NOON).expect("in memory");
        session
    };
    for mut session in [kept, ephemeral] {
        step(&mut session, "a", &["c1"]);
        step(&mut session, "b", &[]);
        assert_eq!(shown(&session), shows(&[(1, "hello"), (2, "a|grep|{}|found"), (3, "b")]));
        let said = session.originals().expect("readable");
        let summary = Summary { text: "in short".to_owned(), ..Summary::default() };
        session.compress(&compression(), &[remove(1), remove(2)], Some(summary), NOON).expect("written");
        session.say(user("go on"), NOON).expect("written");
        let shorter = ViewEdit { number: 3, change: ItemChange::Text { text: "…".to_owned() } };
        session.compress(&compression(), &[shorter], None, NOON).expect("written");
        session.pin(&[3], NOON).expect("written");
        step(&mut session, "c", &[]);
        let after = shows(&[(4, "in short"), (3, "…"), (5, "go on"), (6, "c")]);
        assert_eq!(shown(&session), after);
        assert_eq!(session.originals().expect("readable")[..said.len()], said);
        assert_eq!((session.usage().total(), session.cost_usd()), (53, Some(2.0)), "summaries are paid for");

        let archive = session.archive();
        let read = |handle| archive.read(handle).expect("readable");
        assert_eq!(read(Handle::item(1)).as_deref(), Some("hello"));
        assert_eq!(read(Handle::answer(2, 0)).as_deref(), Some("found"));
        assert_eq!(read(Handle::item(2)).as_deref(), Some("a\ngrep {}"));
        assert_eq!(read(Handle::item(3)).as_deref(), Some("b"));
        assert_eq!((read(Handle::item(9)), read(Handle::answer(2, 1))), (None, None));
        assert_eq!(found(&session, "HELL"), ["m1:1: hello"]);
        assert_eq!(found(&session, "found"), ["c2.1:1: found"]);
        assert_eq!(found(&session, "go on"), Vec::<String>::new(), "what is still sent is not looked for");

        let restored = shows(&[(1, "hello"), (2, "a|grep|{}|found"), (3, "b"), (5, "go on"), (6, "c")]);
        if session.path().is_some() {
            let id = session.id().to_owned();
            drop(session);
            let (mut session, warnings) = store.open(&id, NOON).expect("a sound log");
            assert_eq!((shown(&session), warnings), (after, vec![]), "read again, the view is the same");
            assert!(session.list_pinned().contains(&3) && !session.is_held());
            assert_eq!((session.usage().total(), session.cost_usd()), (53, Some(2.0)));
            assert_eq!(session.restore(NOON).expect("written"), 3);
            assert_eq!(shown(&session), restored);
            session.say(user("more"), NOON).expect("written");
            drop(session);
            let (session, _) = store.read(&id).expect("sound");
            assert_eq!((session.items().len(), session.is_held()), (6, true), "and it stays restored");
        } else {
            assert_eq!(session.restore(NOON).expect("in memory"), 3);
            assert_eq!(shown(&session), restored);
        }
    }
}

#[test]
fn what_came_in_from_outside_stays_known_when_its_item_is_compressed() {
    let (_dir, store, mut session) = begun();
    assert!(session.mark_tainted("content of `/x`", NOON) && !session.mark_tainted("content of `/y`", NOON));
    session.say(user("go on"), NOON).expect("written");
    session.compress(&compression(), &[remove(1)], None, NOON).expect("written");
    let id = session.id().to_owned();
    drop(session);
    let (session, _) = store.open(&id, NOON).expect("a sound log");
    assert_eq!(session.taint(), Some("content of `/x`"));
}

#[test]
fn a_switch_of_agent_or_model_is_remembered() {
    let (_dir, store, mut session) = begun();
    session.switch("default", "another", NOON);
    session.say(user("go on"), NOON).expect("written");
    let id = session.id().to_owned();
    drop(session);
    let (session, _) = store.open(&id, NOON).expect("a sound log");
    assert_eq!((session.describe().agent, session.describe().model), ("default", "another"));
}

#[test]
fn the_format_is_versioned_from_the_first_line() {
    let (_dir, store, session) = begun();
    let log = fs::read_to_string(path(&session)).expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    let expected = [
        format!(
            "{{\"v\":3,\"type\":\"session\",\"id\":\"{}\",\"workspace\":\"/w/project\",\"agent\":\"default\",\
             \"model\":\"scripted\",\"created_at\":\"2027-01-15T08:00:00.000Z\"}}",
            session.id()
        ),
        "{\"type\":\"turn.started\",\"run_id\":\"run\",\"workspace\":\"/w/project\",\"agent\":\"default\",\
         \"model\":\"scripted\",\"time\":\"2027-01-15T08:00:00.000Z\"}"
            .to_owned(),
        r#"{"type":"said","n":1,"time":"2027-01-15T08:00:00.000Z","text":"hello"}"#.to_owned(),
    ];
    assert_eq!(lines, expected.map(|line| sealed(&line)));

    let (id, path) = (session.id().to_owned(), path(&session));
    drop(session);
    append(&path, &(sealed("{\"type\":\"from.the.future\",\"x\":[1]}") + "\n"));
    assert!(store.open(&id, NOON).expect("unknown types are passed over").1.is_empty());
    for (other, writer, advice) in [(1, "an older", ""), (4, "a newer", ": update agent to open it")] {
        let first = sealed(&unsealed(lines[0]).replacen("\"v\":2", &format!("\"v\":{other}"), 1));
        fs::write(&path, log.replacen(lines[0], &first, 1)).expect("written");
        let error = store.open(&id, NOON).expect_err("another format");
        let expected =
            format!("was written by {writer} version of agent (format {other}; this one reads 2 to 3){advice}");
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
    fs::write(&path, "hello\n").expect("written");
    assert!(matches!(store.open(&id, NOON), Err(SessionError::NotALog { .. })));
}

#[test]
fn one_process_at_a_time() {
    let (_dir, store, session) = begun();
    let id = session.id().to_owned();
    let error = store.open(&id, NOON).expect_err("in use").to_string();
    assert!(error.contains("is in use by another process"), "{error}");
    assert!(store.read(&id).is_ok(), "looking is allowed");
    drop(session);
    assert!(store.open(&id, NOON).is_ok());
}

#[test]
fn a_failing_disk_loses_nothing_in_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let blocked = dir.path().join("sessions");
    fs::write(&blocked, "in the way").expect("written");
    let store = Store::new(&blocked);
    let mut session = store.create(about(dir.path()), NOON);
    let error = session.say(user("one"), NOON).expect_err("no directory").to_string();
    assert!(error.contains("sessions") && error.contains("cannot be created"), "{error}");
    assert_eq!(session.items().len(), 1);
    fs::remove_file(&blocked).expect("out of the way");
    session.say(user("two"), NOON).expect("written, with what came before");
    assert_eq!(store.read(session.id()).expect("sound").0.items(), session.items());
}

#[test]
fn an_ephemeral_session_and_one_without_words_leave_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut session = Session::ephemeral(about(dir.path()), NOON);
    session.say(user("secret"), NOON).expect("nothing to write");
    session.end_turn("completed", 0, NOON).expect("nothing to write");
    assert_eq!((session.path(), session.items().len()), (None, 1));
    let store = Store::new(dir.path().join("sessions"));
    let mut silent = store.create(about(dir.path()), NOON);
    silent.set_system(SystemPrompt { text: "You are …".to_owned(), ..SystemPrompt::default() }, NOON);
    drop(silent);
    assert_eq!(store.list(None, NOON).expect("nothing there").sessions, []);
}

#[test]
fn the_state_is_restored_and_null_removes_a_key() {
    use crate::conversation::knowledge::{FileChange, SkillChange};
    let (_dir, store, mut session) = begun();
    let changes = |value: serde_json::Value| value.as_object().cloned().expect("an object");
    let file = |digest: &str| FileChange { path: "/w/a".to_owned(), digest: digest.to_owned() };
    let loaded = |name: &str| SkillChange::Loaded { name: name.to_owned(), path: String::new(), fingerprint: 7 };
    session.update_state(
        StateChange {
            changes: changes(json!({"todo": ["a"], "gone": 1})),
            files: vec![file("01")],
            skills: vec![loaded("x"), loaded("y")],
        },
        NOON,
    );
    session.update_state(
        StateChange {
            changes: changes(json!({"todo": ["a", "b"], "gone": null})),
            files: vec![file("02")],
            skills: vec![SkillChange::Unloaded { name: "x".to_owned() }],
        },
        NOON,
    );
    session.say(user("go on"), NOON).expect("written");
    let id = session.id().to_owned();
    drop(session);
    let (session, _) = store.open(&id, NOON).expect("it opens");
    let state = session.state();
    assert_eq!(serde_json::Value::from(state.keys.clone()), json!({"todo": ["a", "b"]}));
    assert_eq!(state.files.get("/w/a").map(String::as_str), Some("02"));
    assert_eq!(state.skills, [loaded("y")]);
}

#[cfg(unix)]
#[test]
fn logs_are_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, _store, session) = begun();
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let path = path(&session);
    let workspace = path.parent().expect("a directory");
    assert_eq!(mode(&path), 0o600);
    assert_eq!((mode(workspace), mode(workspace.parent().expect("the store"))), (0o700, 0o700));
}
