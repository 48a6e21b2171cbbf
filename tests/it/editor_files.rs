//! Files that are changed in an editor and not saved there: calls see them as the person does, and nothing of theirs is lost.

use serde_json::{Value, json};

use crate::editor::Editor;
use crate::reply::Reply;
use crate::run::Place;
use crate::server::Server;

/// An editor with a file `a.rs` that is changed and not saved, after `initialize`.
fn editor_with_unsaved(server: &Server, can: Value, unsaved: &str) -> Editor {
    let place = Place::new();
    std::fs::write(place.workspace().join("a.rs"), "fn one() {}\n").expect("a file");
    let mut editor = Editor::start(&place, Some(server), &["--approve", "edits"]);
    editor.unsaved.insert("a.rs", unsaved.to_owned());
    editor.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": { "fs": can } }));
    editor
}

fn edit(old: &str, new: &str) -> Reply {
    Reply::call("edit_file", &json!({ "path": "a.rs", "old_text": old, "new_text": new }))
}

#[test]
fn a_file_is_read_as_the_editor_has_it_and_saved_before_it_is_changed() {
    let read = Reply::call("read_file", &json!({ "path": "a.rs" }));
    let server = Server::start([read, edit("fn mine() {}", "fn yours() {}"), Reply::text("Done.")]);
    let can = json!({ "readTextFile": true, "writeTextFile": true });
    let mut editor = editor_with_unsaved(&server, can, "fn one() {}\nfn mine() {}\n");
    let session = editor.begin();
    editor.prompt(&session, "rename it");
    let requests = server.requests();
    let seen = requests[1].last_result();
    assert!(
        seen.contains("2\tfn mine() {}") && seen.contains("not saved") || seen.contains("changed a.rs"),
        "{seen}"
    );
    assert_eq!(
        editor.asked_files,
        ["fs/read_text_file a.rs", "fs/read_text_file a.rs", "fs/write_text_file a.rs"]
    );
    let path = editor.place.workspace().join("a.rs");
    let read = |path| std::fs::read_to_string(path).expect("a file");
    assert_eq!(read(&path), "fn one() {}\nfn yours() {}\n");
    // What the person had written is what an undo brings back.
    editor.prompt(&session, "/undo");
    assert_eq!(read(&path), "fn one() {}\nfn mine() {}\n");
}

#[test]
fn a_file_that_the_editor_does_not_save_is_not_changed() {
    let server = Server::start([edit("fn one() {}", "fn two() {}"), Reply::text("Done.")]);
    let mut editor = editor_with_unsaved(&server, json!({ "readTextFile": true }), "fn one() {} // mine\n");
    let session = editor.begin();
    editor.prompt(&session, "rename it");
    let refused = server.requests()[1].last_result().to_owned();
    assert!(refused.contains("Ask the person to save it"), "{refused}");
    let kept = std::fs::read_to_string(editor.place.workspace().join("a.rs"));
    assert_eq!(kept.expect("a file"), "fn one() {}\n");
}

#[test]
fn an_editor_is_asked_about_nothing_that_it_does_not_offer_and_nothing_that_is_denied() {
    for (can, path) in [(json!({}), "a.rs"), (json!({ "readTextFile": true }), "../outside")] {
        let server = Server::start([Reply::call("read_file", &json!({ "path": path })), Reply::text("Done.")]);
        let mut editor = editor_with_unsaved(&server, can, "fn changed() {}\n");
        editor.answer = Some("no");
        let session = editor.begin();
        editor.prompt(&session, "read it");
        assert_eq!(editor.asked_files, [""; 0], "{path}");
    }
}

#[test]
fn other_line_ends_are_no_change() {
    let server = Server::start([edit("fn one() {}", "fn two() {}"), Reply::text("Done.")]);
    let can = json!({ "readTextFile": true, "writeTextFile": true });
    let mut editor = editor_with_unsaved(&server, can, "fn one() {}\n");
    let path = editor.place.workspace().join("a.rs");
    std::fs::write(&path, "fn one() {}\r\n").expect("a file");
    let session = editor.begin();
    editor.prompt(&session, "rename it");
    assert_eq!(editor.asked_files, ["fs/read_text_file a.rs"]);
    assert_eq!(std::fs::read_to_string(path).expect("a file"), "fn two() {}\r\n");
}
