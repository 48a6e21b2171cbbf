//! A home directory as the workspace: it is reported, and credentials and names with a leading dot need permission.

use serde_json::{Value, json};

use crate::kernel::has_walls;
use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// One call in a workspace that is the home; the output, and what the model read.
fn called(mode: &str, tool: &str, arguments: &Value) -> (Output, String) {
    let server = Server::start([Reply::call(tool, arguments), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", mode]);
    let home = run.place().workspace().to_string_lossy().into_owned();
    let run = run
        .file(".ssh/id_rsa", "the key\n")
        .file(".psql_history", "the password\n")
        .file("notes.txt", "the text\n");
    let output = run.env("HOME", home).run();
    let read = server.requests()[1].last_result().to_owned();
    (output, read)
}

#[test]
fn it_is_told_once_and_ordinary_files_are_free() {
    let (output, _) = called("edits", "write_file", &json!({"path": "new.txt", "content": "x"}));
    let output = output.success();
    assert!(output.place.exists("new.txt"));
    assert_eq!(output.stderr.matches("contains a whole home directory").count(), 1, "{}", output.shown());
}

#[test]
fn what_starts_with_a_dot_asks_under_edits() {
    for path in [".bash_aliases", ".config/tool/settings", "project/.env"] {
        let (output, read) = called("edits", "write_file", &json!({"path": path, "content": "x"}));
        let output = output.exits(7);
        assert!(!output.place.exists(path), "{path}");
        assert!(read.contains(path), "{read}");
    }
}

#[test]
fn credentials_ask_and_are_left_out_of_searches() {
    let (_, read) = called("ask", "read_file", &json!({"path": ".ssh/id_rsa"}));
    assert!(read.contains("may contain credentials") && !read.contains("the key"), "{read}");
    let (_, read) = called("ask", "grep", &json!({"pattern": "the "}));
    assert!(read.contains("the text") && read.contains("2 entries left out"), "{read}");
    assert!(!read.contains("the key") && !read.contains("the password"), "{read}");
}

#[test]
fn one_below_the_temporary_directory_is_not_writable_to_commands() {
    if !has_walls() {
        return;
    }
    let home = tempfile::tempdir_in("/tmp").expect("a directory");
    let line = json!({ "command": "sh write.sh; touch made" });
    let server = Server::start([Reply::call("run_command", &line), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", "edits"]);
    let run = run.file("write.sh", "echo x > $HOME/.bashrc\n");
    let output = run.env("HOME", home.path().to_string_lossy()).run();
    assert!(output.place.exists("made") && !home.path().join(".bashrc").exists());
}
