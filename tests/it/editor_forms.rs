//! What an editor answers by a form, and its person's leave.

use serde_json::json;

use crate::editor::Editor;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

#[test]
fn the_agent_asks_for_words_by_a_form_where_the_editor_shows_forms() {
    let ask = |choices: &[&str]| Reply::call("ask_user", &json!({ "question": "Which?", "choices": choices }));
    for (capabilities, choices, shown, answer) in [
        (json!({ "elicitation": { "form": {} } }), &["red", "green"][..], "choice", "the blue one"),
        (json!({ "elicitation": { "form": {} } }), &[], "words", "the blue one"),
        (json!({}), &["red", "green"], "", "green"),
    ] {
        let server = Server::start([ask(choices), Reply::text("Fine.")]);
        let mut editor = Editor::start(&Place::new(), Some(&server), &[]);
        editor.answer = Some("1");
        let begun = editor.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
        assert!(begun["result"]["agentCapabilities"]["auth"]["logout"].is_object(), "{begun}");
        let session = editor.begin();
        editor.prompt(&session, "choose");
        let question = &editor.questions[0];
        assert_eq!(question["requestedSchema"]["properties"][shown].is_object(), !shown.is_empty(), "{question}");
        let result = server.requests()[1].last_result().to_owned();
        assert!(result.contains(answer), "{result}");
    }
}

#[test]
fn a_logout_removes_the_keys_that_were_kept() {
    let place = Place::new();
    Run::at(&place).args(["key", "set", "openai"]).stdin("sk-kept-0123456789\n").run().success();
    let mut editor = Editor::of(&Run::at(&place).arg("acp"));
    editor.begin();
    assert_eq!(editor.ask("logout", &json!({}))["result"], json!({}));
    let params = json!({ "cwd": editor.place.workspace(), "mcpServers": [] });
    assert_eq!(editor.ask("session/new", &params)["error"]["code"], -32000);
    Run::at(&place).args(["key", "list"]).run().success().stdout_has("No key is set");
}
