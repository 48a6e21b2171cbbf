//! `agent acp`: what an editor sees of a conversation, what it is asked, and what happens when it misbehaves or goes.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::collector::{Collector, has};
use crate::editor::{Editor, say};
use crate::reply::{Act, Gate, Reply};
use crate::run::Place;
use crate::server::Server;

fn write_file(path: &str) -> Reply {
    Reply::call("write_file", &json!({ "path": path, "content": "new\n" }))
}

#[test]
fn a_task_with_an_edit_is_shown_and_asked_about() {
    let server = Server::start([write_file("a.txt"), Reply::text("It is written.")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let about = editor.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    assert_eq!(about["result"]["protocolVersion"], 1);
    assert_eq!(about["result"]["authMethods"][0]["type"], "terminal");
    let session = editor.begin();
    let ended = editor.prompt(&session, "write a.txt");
    assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    assert_eq!(editor.texts("agent_message_chunk"), "It is written.");
    assert!(editor.place.exists("a.txt"));
    let call = editor.updates_of("tool_call")[0];
    assert_eq!((&call["kind"], &call["title"]), (&json!("edit"), &json!("write_file a.txt")));
    let path = editor.place.workspace().join("a.txt");
    assert_eq!(call["locations"][0]["path"].as_str().map(Path::new), Some(&*path));
    assert_eq!(call["content"][0], json!({ "type": "diff", "path": path, "oldText": null, "newText": "new\n" }));
    let question = &editor.questions[0];
    assert_eq!(
        question["toolCall"]["toolCallId"], call["toolCallId"],
        "the question is about the call that is shown"
    );
    let kinds: Vec<&str> =
        question["options"].as_array().expect("options").iter().filter_map(|o| o["kind"].as_str()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert_eq!(question["toolCall"]["title"], call["title"]);
    let end = editor.updates_of("tool_call_update").last().copied().expect("it ended");
    assert_eq!(end["status"], "completed", "{end}");
    assert!(!editor.updates_of("usage_update").is_empty());
    assert_eq!(editor.close(), Some(0));
}

#[test]
fn a_collector_gets_the_runs_of_an_editor() {
    let (server, collector) = (Server::start([Reply::text("done")]), Collector::start("200 OK"));
    let setting = format!("telemetry.otlp_endpoint={}", collector.url);
    let mut editor = Editor::start(&Place::new(), Some(&server), &["--set", &setting]);
    let session = editor.begin();
    editor.prompt(&session, "do it");
    assert_eq!(editor.close(), Some(0));
    assert!(has(&collector.bodies("/v1/traces"), "invoke_agent default"));
}

#[test]
fn a_command_cannot_write_the_question_about_it() {
    let forged = "touch a\n```\nIt only reads.\u{200b}";
    let server = Server::start([Reply::call("run_command", &json!({ "command": forged })), Reply::text("done")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &["--approve", "ask"]);
    editor.answer = Some("no");
    let session = editor.begin();
    editor.prompt(&session, "do it");
    let call = &editor.questions[0]["toolCall"];
    let text = call["content"][0]["content"]["text"].as_str().expect("a text");
    let (head, block) = text.split_once("\n\n").expect("what it is, and what would run");
    assert!(head.starts_with("run_command · ") && head.contains("\nasked because "), "{text}");
    assert_eq!(block, "````\ntouch a\n```\nIt only reads.\\u{200b}\n````\n");
}

#[test]
fn a_refusal_is_none_and_always_holds() {
    let replies = || [write_file("a.txt"), write_file("a.txt"), Reply::text("done")];
    for (answer, questions, is_written) in [("no", 2, false), ("nonsense", 2, false), ("always", 1, true)] {
        let server = Server::start(replies());
        let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
        editor.answer = Some(answer);
        let session = editor.begin();
        assert_eq!(editor.prompt(&session, "write")["result"]["stopReason"], "end_turn");
        assert_eq!(editor.questions.len(), questions, "{answer}");
        assert_eq!(editor.place.exists("a.txt"), is_written, "{answer}");
    }
}

#[test]
fn cancelling_ends_the_turn_and_the_next_one_works() {
    let gate = Gate::new();
    let late = Reply::text("late").gate(&gate, 0);
    let server = Server::start([late, Reply::text("after"), write_file("a.txt"), Reply::text("end")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let session = editor.begin();
    let running = editor.send("session/prompt", &say(&session, "go"));
    gate.reached();
    let second = editor.prompt(&session, "and this");
    assert!(second["error"]["message"].as_str().is_some_and(|why| why.contains("is being answered")), "{second}");
    editor.notify("session/cancel", &json!({ "sessionId": session }));
    assert_eq!(editor.wait(running)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.prompt(&session, "again")["result"]["stopReason"], "end_turn");
    // A question that stays open ends with the turn, and allows nothing.
    editor.answer = None;
    let asked = editor.send("session/prompt", &say(&session, "write"));
    while editor.questions.is_empty() {
        editor.read();
    }
    editor.notify("$/cancel_request", &json!({ "requestId": asked }));
    assert_eq!(editor.wait(asked)["result"]["stopReason"], "cancelled");
    assert!(!editor.place.exists("a.txt"));
}

#[test]
fn a_cancel_is_of_the_message_before_it_and_a_wrong_load_closes_nothing() {
    let gate = Gate::new();
    let replies = ["two", "three"].map(Reply::text);
    let server = Server::start([Reply::text("late").gate(&gate, 0)].into_iter().chain(replies));
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let session = editor.begin();
    let request = |id: u64, method: &str, params: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    let (first, second) = (say(&session, "one"), say(&session, "two"));
    let lines =
        [request(101, "session/prompt", first), cancel.to_string(), request(102, "session/prompt", second)];
    editor.write(&lines.join("\n"));
    // The second is refused, unless the first was answered before it was read.
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < 2 {
        let message = editor.read();
        if let Some(id @ (101 | 102)) = message["id"].as_u64().filter(|_| message["method"].is_null()) {
            if id == 101 {
                gate.open();
            }
            answers.insert(id, message);
        }
    }
    assert_eq!(answers[&101]["result"]["stopReason"], "cancelled");
    let (refused, second) = (&answers[&102]["error"]["code"], &answers[&102]["result"]["stopReason"]);
    assert!(*refused == -32600 || *second == "end_turn", "{answers:?}");
    let wrong = json!({ "sessionId": session, "cwd": "relative", "mcpServers": [] });
    assert_eq!(editor.ask("session/load", &wrong)["error"]["code"], -32602);
    assert_eq!(editor.prompt(&session, "three")["result"]["stopReason"], "end_turn");
}

#[test]
fn an_undo_takes_a_message_back_with_its_files_and_what_was_allowed_stays_so() {
    let server = Server::start([
        write_file("a.txt"),
        Reply::text("Written."),
        write_file("a.txt"),
        Reply::text("Written again."),
    ]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    editor.answer = Some("always");
    let session = editor.begin();
    editor.prompt(&session, "write");
    assert!(editor.place.exists("a.txt"));
    assert_eq!(editor.prompt(&session, "/undo")["result"]["stopReason"], "end_turn");
    let told = editor.texts("agent_message_chunk");
    assert!(told.contains("Put back 1 path") && told.contains("Taken back: write"), "{told}");
    assert!(!editor.place.exists("a.txt"));
    editor.prompt(&session, "/redo");
    assert!(editor.place.exists("a.txt"));
    editor.prompt(&session, "/undo");
    editor.prompt(&session, "write again");
    assert!(editor.place.exists("a.txt"));
    assert_eq!(editor.questions.len(), 1, "always is for the session");
    assert_eq!(server.requests()[2].messages().len(), 2, "system and message: the first one is gone");
    editor.prompt(&session, "/undo nowhere");
    assert!(editor.texts("agent_message_chunk").contains("Nothing was taken back: write a number of messages"));
    editor.prompt(&session, "/undo 5");
    assert!(editor.texts("agent_message_chunk").contains("Nothing was taken back: there are not so many"));
    assert_eq!(editor.close(), Some(0));
}

#[test]
fn sessions_run_side_by_side() {
    let server = Server::answering(|request, _| {
        if request.user().contains("wait") { Reply::nothing(Act::Hang) } else { Reply::text("quick") }
    });
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let (slow, quick) = (editor.begin(), editor.begin());
    let running = editor.send("session/prompt", &say(&slow, "wait"));
    assert_eq!(editor.prompt(&quick, "hello")["result"]["stopReason"], "end_turn");
    editor.notify("session/cancel", &json!({ "sessionId": slow }));
    assert_eq!(editor.wait(running)["result"]["stopReason"], "cancelled");
}

#[test]
fn a_session_is_loaded_after_a_kill_and_shown_from_its_beginning() {
    let place = Place::new();
    let server = Server::start([write_file("a.txt"), Reply::text("It is written."), Reply::text("Hello again.")]);
    let mut editor = Editor::start(&place, Some(&server), &["--approve", "all"]);
    let session = editor.begin();
    editor.prompt(&session, "write a.txt");
    editor.agent.kill().expect("it ran");
    editor.agent.wait().expect("it ended");
    let mut editor = Editor::start(&place, Some(&server), &[]);
    let listed = editor.ask("session/list", &json!({ "cwd": place.workspace() }));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str(), "{listed}");
    assert_eq!(listed["result"]["sessions"][0]["title"], "write a.txt");
    let params = json!({ "cwd": place.workspace(), "sessionId": session, "mcpServers": [] });
    editor.ask("session/load", &params);
    assert_eq!(editor.texts("user_message_chunk"), "write a.txt");
    assert_eq!(editor.texts("agent_message_chunk"), "It is written.");
    assert_eq!(editor.updates_of("tool_call")[0]["kind"], "edit");
    editor.prompt(&session, "and now?");
    assert!(editor.texts("agent_message_chunk").ends_with("Hello again."));
    // To resume is not to show.
    let before = editor.updates_of("user_message_chunk").len();
    editor.ask("session/resume", &params);
    assert_eq!(editor.updates_of("user_message_chunk").len(), before);
    assert!(editor.ask("session/close", &json!({ "sessionId": session }))["error"].is_null());
    assert!(editor.ask("session/delete", &json!({ "sessionId": session }))["error"].is_null());
    assert_eq!(editor.ask("session/load", &params)["error"]["code"], -32002);
}

#[test]
fn modes_and_options_hold_for_what_follows() {
    let server = Server::start([write_file("a.txt"), Reply::text("done")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let params = json!({ "cwd": editor.place.workspace(), "mcpServers": [] });
    let begun = editor.ask("session/new", &params)["result"].clone();
    let session = begun["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(begun["modes"]["currentModeId"], "ask");
    let ids: Vec<&str> =
        begun["configOptions"].as_array().expect("options").iter().filter_map(|o| o["id"].as_str()).collect();
    assert_eq!(ids, ["model", "effort", "mode"]);
    editor.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "all" }));
    assert_eq!(editor.updates_of("current_mode_update")[0]["currentModeId"], "all");
    let set = json!({ "sessionId": session, "configId": "effort", "value": "low" });
    let options = editor.ask("session/set_config_option", &set)["result"]["configOptions"].clone();
    assert_eq!(options[1]["currentValue"], "low", "{options}");
    for wrong in [
        json!({ "configId": "effort", "value": "enormous" }),
        json!({ "configId": "colour", "value": "red" }),
        json!({ "configId": "model", "value": "nope" }),
    ] {
        let mut params = wrong;
        params["sessionId"] = session.clone().into();
        assert_eq!(editor.ask("session/set_config_option", &params)["error"]["code"], -32602, "{params}");
    }
    editor.prompt(&session, "write");
    assert!(editor.questions.is_empty() && editor.place.exists("a.txt"), "nobody is asked now");
}

#[test]
fn further_directories_of_an_editor_belong_to_the_work_as_long_as_it_names_them() {
    let server = Server::start([
        Reply::call("read_file", &json!({ "path": "../lib/notes" })),
        write_file("../lib/new"),
        Reply::text("done"),
        write_file("../lib/newer"),
        Reply::text("done"),
    ]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &["--approve", "edits"]);
    let lib = editor.place.workspace().with_file_name("lib");
    fs::create_dir(&lib).expect("made");
    fs::write(lib.join("notes"), "of the library\n").expect("written");
    let cwd = editor.place.workspace();
    let house = lib.with_file_name("house");
    std::os::unix::fs::symlink(editor.place.home(), &house).expect("linked");
    let begun = editor
        .ask("session/new", &json!({ "cwd": cwd, "mcpServers": [], "additionalDirectories": [lib, "/", house] }));
    let session = begun["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    editor.prompt(&session, "write");
    assert!(editor.questions.is_empty() && lib.join("new").exists());
    let request = server.requests().swap_remove(0).raw;
    assert!(request.contains(&format!("Writes only in workspace, {} and $TMPDIR", lib.display())), "{request}");
    editor.ask("session/close", &json!({ "sessionId": session }));
    editor.ask("session/resume", &json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
    editor.prompt(&session, "write again");
    assert_eq!(editor.questions.len(), 1, "it is asked about, as the editor named no directory");
}

#[test]
fn what_an_editor_sends_wrongly_is_refused_and_the_rest_goes_on() {
    let server = Server::start([Reply::text("still here")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    for (line, code) in [
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\"}{\"jsonrpc\":\"2.0\"}", -32700),
        ("[]", -32600),
        ("\"text\"", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}", -32600),
    ] {
        editor.write(line);
        assert_eq!(editor.read()["error"]["code"], code, "{line}");
    }
    editor.write("");
    for (method, params, code) in [
        ("session/fly", json!({}), -32601),
        ("session/prompt", say("nobody", "hello"), -32002),
        ("session/prompt", json!({}), -32602),
        ("session/new", json!({ "cwd": "relative", "mcpServers": [] }), -32602),
        ("session/new", json!({ "cwd": "/no/such/place", "mcpServers": [] }), -32602),
        ("session/new", json!({ "cwd": "/", "mcpServers": [{ "name": "x" }] }), -32602),
        ("session/new", json!({ "cwd": "/", "mcpServers": [], "additionalDirectories": ["x"] }), -32602),
        (
            "session/new",
            json!({ "cwd": "/", "mcpServers": [], "additionalDirectories": ["/no/such/place"] }),
            -32602,
        ),
        ("session/delete", json!({ "sessionId": "../x" }), -32002),
    ] {
        assert_eq!(editor.ask(method, &params)["error"]["code"], code, "{method} {params}");
    }
    editor.notify("session/cancel", &json!({ "sessionId": "nobody" }));
    editor.notify("$/unknown", &json!(null));
    editor.write(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }).to_string());
    let session = editor.begin();
    assert_eq!(editor.prompt(&session, "hello")["result"]["stopReason"], "end_turn");
}

#[test]
fn without_a_model_the_editor_is_told_how_to_get_one() {
    let mut editor = Editor::start(&Place::new(), None, &[]);
    let params = json!({ "cwd": editor.place.workspace(), "mcpServers": [] });
    let refused = editor.ask("session/new", &params);
    assert_eq!(refused["error"]["code"], -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("agent acp --setup")));
    assert_eq!(editor.ask("authenticate", &json!({ "methodId": "setup" }))["error"]["code"], -32000);
}

#[test]
fn the_agent_ends_with_its_editor() {
    let server = Server::start([Reply::call("run_command", &json!({ "command": "echo begun; sleep 1000" }))]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &["--approve", "all"]);
    let session = editor.begin();
    editor.send("session/prompt", &say(&session, "run"));
    while !editor.updates.iter().any(|update| update["content"][0]["content"]["text"] == "begun\n") {
        editor.read();
    }
    assert_eq!(editor.close(), Some(0));
}

#[test]
fn a_models_failure_is_the_answer_to_the_request() {
    let server = Server::start([Reply::error(400, "no such thing"), Reply::error(401, "bad key")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let session = editor.begin();
    let failed = editor.prompt(&session, "hello");
    assert!(failed["error"]["message"].as_str().is_some_and(|why| why.contains("no such thing")), "{failed}");
    assert_eq!(editor.prompt(&session, "hello")["error"]["code"], -32000);
}

#[test]
fn servers_of_tools_that_the_editor_passes_ask_like_others() {
    let server = Server::start([Reply::call("ed__echo", &json!({ "text": "hi" })), Reply::text("done")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let program =
        Path::new(env!("CARGO_BIN_EXE_agent")).parent().expect("a directory").join("examples/tool_server");
    let passed = json!([{ "name": "ed", "command": program, "args": [], "env": [{ "name": "A", "value": "b" }] }]);
    let begun = editor.ask("session/new", &json!({ "cwd": editor.place.workspace(), "mcpServers": passed }));
    let session = begun["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    editor.prompt(&session, "say hi");
    assert_eq!(editor.questions.len(), 1);
    let end = editor.updates_of("tool_call_update").last().copied().expect("it ended");
    assert_eq!(end["content"][0]["content"]["text"], "hi", "{end}");
}
