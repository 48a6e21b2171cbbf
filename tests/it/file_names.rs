//! Files whose names do not fit on a line of text as they are: each tool shows a name by which every other takes the
//! file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Server, between_tags};

/// The bytes of a name, and how it is written.
const NAMES: [(&[u8], &str); 5] = [
    (b"line\nfeed.txt", r#""line\nfeed.txt""#),
    (b"latin-\xe9.txt", r#""latin-\xe9.txt""#),
    (b"\"quoted\".txt\"", r#""\"quoted\".txt\"""#),
    (b"back\\slash\x1b[2J.txt", r#""back\\slash\x1b[2J.txt""#),
    ("turned-\u{202e}.txt".as_bytes(), r#""turned-\xe2\x80\xae.txt""#),
];

fn at(place: &Place, name: &[u8]) -> PathBuf {
    place.workspace().join(OsStr::from_bytes(name))
}

/// A run in a workspace that holds a file of each name.
fn prepared(name: &[u8]) -> Arc<Place> {
    let place = Place::new();
    fs::write(at(&place, name), "needle\n").expect("the file can be made");
    place
}

/// Each of these calls, made in one conversation, as the model reads them.
fn told(place: &Arc<Place>, calls: &[(&str, Value)]) -> Vec<String> {
    let mut replies: Vec<Reply> = calls.iter().map(|(name, arguments)| Reply::call(name, arguments)).collect();
    replies.push(Reply::text("done"));
    let server = Server::start(replies);
    let run = Run::at(place).args(["run", "task", "--approve", "edits"]).server(&server);
    run.config("agents/default.yaml", "tools: ['*', apply_patch]\n").run().success();
    let requests = server.requests();
    let last = requests.last().expect("a request");
    last.tool_results().iter().map(|(_, text)| between_tags(text).to_owned()).collect()
}

#[test]
fn the_name_that_is_shown_opens_the_file() {
    for (name, shown) in NAMES {
        let place = prepared(name);
        let patch = format!("*** Begin Patch\n*** Update File: {shown}\n@@\n-three\n+four\n*** End Patch\n");
        let results = told(
            &place,
            &[
                ("list_dir", json!({})),
                ("glob", json!({"pattern": "*"})),
                ("grep", json!({"pattern": "needle"})),
                ("read_file", json!({"path": shown})),
                ("grep", json!({"pattern": "needle", "path": shown})),
                ("edit_file", json!({"path": shown, "old_text": "needle", "new_text": "two"})),
                ("write_file", json!({"path": shown, "content": "three\n"})),
                ("apply_patch", json!({"patch": patch})),
            ],
        );
        assert_eq!(results[0], format!("{shown} 7 B"));
        assert_eq!(results[1], shown);
        assert_eq!(results[2], format!("{shown}\n1:needle"));
        assert!(results[3].contains("needle"), "{shown}: {}", results[3]);
        assert!(results[4].ends_with("1:needle"), "{shown}: {}", results[4]);
        assert!(results[6].starts_with(&format!("replaced {shown}")), "{}", results[6]);
        assert!(results[7].starts_with(&format!("changed {shown}")), "{}", results[7]);
        assert_eq!(fs::read(at(&place, name)).expect("it is there"), b"four\n", "{shown}");
        assert_eq!(fs::read_dir(place.workspace()).expect("a directory").count(), 1, "no other file was made");
    }
}

#[test]
fn a_directory_of_such_a_name_is_entered_and_hints_read_back() {
    let place = Place::new();
    fs::create_dir(at(&place, b"odd\xff\n")).expect("the directory can be made");
    fs::write(at(&place, b"odd\xff\n/notes.txt"), "needle\n").expect("the file can be made");
    let dir = r#""odd\xff\n""#;
    let results = told(
        &place,
        &[
            ("list_dir", json!({})),
            ("list_dir", json!({"path": dir})),
            ("glob", json!({"pattern": "*.txt", "path": dir})),
            ("read_file", json!({"path": r#""odd\xff\n/note.txt""#})),
            ("write_file", json!({"path": r#""odd\xff\n/new\tfile""#, "content": "x"})),
        ],
    );
    assert_eq!(results[0], format!("{dir}/"));
    assert_eq!(results[1], "notes.txt 7 B");
    assert_eq!(results[2], r#""odd\xff\n/notes.txt""#);
    assert!(results[3].ends_with(r#"near it: "odd\xff\n/notes.txt""#), "{}", results[3]);
    assert!(at(&place, b"odd\xff\n/new\tfile").exists(), "{}", results[4]);
}
