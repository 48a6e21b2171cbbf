//! Skills that a server of tools has: listed with the others, fetched when they are loaded, refused when they are not those
//! that were stated.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;
use crate::tool_servers::file;

#[test]
fn a_skill_of_a_server_is_listed_and_fetched_when_it_is_loaded() {
    for words in [&["skills"][..], &["skills", "old"]] {
        let notes = json!({ "name": "t__make-tea", "path": "my notes.md" });
        let server = Server::start([
            Reply::call("load_skill", &json!({ "name": "t__make-tea" })),
            Reply::call("load_skill_reference", &notes),
            Reply::text("done"),
        ]);
        let output = Run::task(&server, "task").config("mcp/t.yaml", &file(words, "")).args(["-o", "jsonl"]).run();
        output.success();
        let requests = server.requests();
        let listed = "t__make-tea: Makes tea. Use when somebody is cold.";
        assert!(requests[0].system().contains(listed), "{}", requests[0].system());
        let loaded = requests[1].last_result();
        assert!(loaded.contains("Boil water.") && loaded.contains("my notes.md"), "{loaded}");
        assert!(!loaded.contains("Green tea"), "nothing is fetched before it is wanted");
        assert_eq!(requests[2].last_output().trim_end(), "Green tea: 70 degrees.");
    }
}

#[test]
fn a_skill_whose_files_are_not_those_that_were_stated_is_refused() {
    for (word, expected) in [
        ("skills=swapped", "SKILL.md has 104 bytes, but was stated to have 103"),
        ("skills=reheaded", "the head of SKILL.md differs from the one that was stated"),
    ] {
        let server =
            Server::start([Reply::call("load_skill", &json!({ "name": "t__make-tea" })), Reply::text("done")]);
        Run::task(&server, "task").config("mcp/t.yaml", &file(&[word], "")).run().success();
        let refused = server.requests()[1].last_result().to_owned();
        assert!(refused.contains(expected) && !refused.contains("Boil"), "{word}: {refused}");
    }
}

#[test]
fn a_person_loads_a_skill_of_a_server_and_what_it_says_counts_as_from_outside() {
    let server =
        Server::start([Reply::call("write_file", &json!({"path": "a", "content": "x"})), Reply::text("done")]);
    let run = Run::task(&server, "task").config("mcp/t.yaml", &file(&["skills"], ""));
    let output = run.args(["--skill", "t__make-tea", "--approve", "edits"]).run();
    assert_eq!(output.code, 7, "{}", output.shown());
    assert!(server.requests()[0].user().contains("Boil water."));
}
