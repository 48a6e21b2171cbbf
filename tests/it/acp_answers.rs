//! `agent acp`: what an editor learns of the message that is being answered, of retries, and of what it embedded itself.

use serde_json::json;

use crate::editor::{Editor, say};
use crate::reply::{Act, Gate, Reply};
use crate::run::Place;
use crate::server::Server;

fn write_file(path: &str) -> Reply {
    Reply::call("write_file", &json!({ "path": path, "content": "new\n" }))
}

#[test]
fn a_mode_is_chosen_while_a_message_is_answered_and_holds_for_the_next() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("one").gate(&gate, 0), write_file("a.txt"), Reply::text("done")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let session = editor.begin();
    let running = editor.send("session/prompt", &say(&session, "go"));
    gate.reached();
    let wrong = editor.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "nope" }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let set = editor.ask("session/set_mode", &json!({ "sessionId": session, "modeId": "all" }));
    assert_eq!(set["result"], json!({}));
    gate.open();
    assert_eq!(editor.wait(running)["result"]["stopReason"], "end_turn");
    editor.prompt(&session, "write");
    assert!(editor.questions.is_empty() && editor.place.exists("a.txt"), "nobody is asked now");
    assert_eq!(editor.updates_of("current_mode_update")[0]["currentModeId"], "all");
}

#[test]
fn an_editor_is_told_that_an_answer_starts_again_and_what_is_waited_for() {
    let server = Server::start([
        Reply::error(429, "too many").header("retry-after-ms", "5"),
        Reply::text("A whole answer.").then(3, Act::Reset),
        Reply::text("A whole answer."),
    ]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let session = editor.begin();
    assert_eq!(editor.prompt(&session, "go")["result"]["stopReason"], "end_turn");
    let thoughts = editor.texts("agent_thought_chunk");
    assert!(thoughts.contains("retry 2/5 in "), "{thoughts}");
    let answer = editor.texts("agent_message_chunk");
    assert!(answer.contains("\nretry 3/5 in "), "{answer}");
    assert!(answer.ends_with("the answer above was cut off and starts again\n\nA whole answer."), "{answer}");
}

#[test]
fn what_an_editor_embeds_is_no_part_of_the_title_or_of_the_message_that_is_shown_again() {
    let server = Server::start([Reply::text("Seen.")]);
    let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
    let session = editor.begin();
    let empty = editor.ask("session/prompt", &json!({ "sessionId": session, "prompt": [] }));
    assert_eq!(empty["error"]["code"], -32602, "{empty}");
    let mut params = say(&session, "look at this");
    let resource = json!({ "type": "resource", "resource": { "uri": "file:///x/b.rs", "text": "fn b() {}" } });
    params["prompt"].as_array_mut().expect("a list").push(resource);
    editor.ask("session/prompt", &params);
    let listed = editor.ask("session/list", &json!({}));
    assert_eq!(listed["result"]["sessions"][0]["title"], "look at this", "{listed}");
    let place = json!({ "sessionId": session, "cwd": editor.place.workspace(), "mcpServers": [] });
    editor.ask("session/load", &place);
    assert_eq!(editor.texts("user_message_chunk"), "look at this");
}
