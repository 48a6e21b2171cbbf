//! What a server of tools asks the person, and what a person waits for of it.

use serde_json::json;

use crate::repl::start;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;
use crate::tool_servers::{file, program, result_of};

#[test]
fn a_server_asks_the_person_while_its_call_runs() {
    for words in [&["old"][..], &["new"]] {
        let server = Server::start([
            Reply::call("t__ask", &json!({})),
            Reply::call("t__page", &json!({})),
            Reply::call("t__ask", &json!({})),
            Reply::text("Sent."),
        ]);
        let few = file(words, "tools: [ask, page]\npermission: allow\ntimeout: 1s\n");
        let mut terminal =
            start(&Run::new().server(&server).args(["chat", "--approve", "all"]).config("mcp/t.yaml", &few));
        terminal.line("send it");
        terminal.wait_for("The server `t` asks: Where shall it go?");
        terminal.line("上海");
        terminal.wait_for("fast");
        terminal.line("1");
        terminal.wait_for("https://example.org/pay");
        terminal.line("1");
        terminal.wait_until("the second form", |screen| screen.matches("Where shall it go?").count() >= 2);
        terminal.line("decline");
        terminal.wait_for("Sent.");
        terminal.line("/exit");
        assert_eq!(terminal.exit_code(), 0);
        let requests = server.requests();
        let results: Vec<&str> =
            requests.last().expect("four").tool_results().iter().map(|(_, text)| *text).collect();
        assert!(results[0].contains(r#""action":"accept""#) && results[0].contains("上海"), "{}", results[0]);
        assert!(results[0].contains(r#""fast":true"#), "{}", results[0]);
        assert!(results[1].contains(r#""action":"accept""#) && !results[1].contains("content"), "{}", results[1]);
        assert!(results[2].contains(r#""action":"decline""#), "{}", results[2]);
    }
}

#[test]
fn a_call_that_becomes_a_task_is_awaited_asks_and_is_cancelled_with_its_run() {
    let few = |words: &[&str]| file(words, "tools: [long]\npermission: allow\n");
    let server = Server::start([Reply::call("t__long", &json!({})), Reply::text("Sent.")]);
    let mut terminal = start(&Run::new().server(&server).args(["chat"]).config("mcp/t.yaml", &few(&["new"])));
    terminal.line("send it");
    terminal.wait_for("Which town?");
    terminal.line("上海");
    terminal.wait_for("Sent.");
    terminal.line("/exit");
    assert_eq!(terminal.exit_code(), 0);
    assert!(server.requests()[1].last_result().contains("上海"), "{}", server.requests()[1].last_result());
    // Without a person the task fails; a server of the old era knows no tasks.
    let failed = result_of(&few(&["new"]), &[], "t__long", &json!({}));
    assert!(failed.contains("nobody said where"), "{failed}");
    assert!(result_of(&few(&["old"]), &[], "t__long", &json!({})).contains("not as a task"));

    let place = Place::new();
    let cancelled = place.home().join("cancelled");
    let word = format!("cancelled={}", cancelled.display());
    let limit = format!("{}timeout: 1s\n", few(&["new", "endless", &word]));
    let server = Server::start([Reply::call("t__long", &json!({})), Reply::text("done")]);
    let run = Run::at(&place).server(&server).args(["run", "task"]).config("mcp/t.yaml", &limit).run().success();
    assert!(server.requests()[1].last_result().contains("longer than 1s"), "{}", run.shown());
    assert_eq!(std::fs::read_to_string(&cancelled).ok().as_deref(), Some("\"t1\""), "{}", run.shown());
}

#[test]
fn without_a_person_no_question_of_a_server_is_answered() {
    for words in [&["old"][..], &["new"]] {
        let few = file(words, "tools: [ask]\n");
        let result = result_of(&few, &["--approve", "all"], "t__ask", &json!({}));
        assert!(result.contains(r#""action":"cancel""#), "{result}");
    }
}

#[test]
fn tab_completes_the_names_of_resources_and_prompts() {
    let server = Server::always(Reply::text("Fine."));
    let mut terminal = start(&Run::new().server(&server).arg("chat").config("mcp/t.yaml", &file(&["new"], "")));
    terminal.press_until("\x15/t:ti\t", "the prompt", |screen| screen.contains("> /t:tidy"));
    // The server knows the values of arguments.
    terminal.press_until("\x15/t:tidy des\t", "the argument", |screen| screen.contains("> /t:tidy desk"));
    terminal.press_until("\x15/t:tidy desk how=s\t", "its name", |screen| screen.contains("desk how=slowly"));
    terminal.press_until("\x15See @t:diary://mo\t", "the day", |screen| screen.contains("@t:diary://monday"));
    terminal.keys("\x15What is on @t:no\t");
    terminal.wait_for("> What is on @t:note://");
    terminal.wait_for("@t:note://today · what to buy");
    terminal.keys("to\t?\r");
    terminal.wait_for("Fine.");
    assert!(server.requests()[0].user().contains("Buy milk."), "{}", server.requests()[0].user());
}

#[test]
fn control_c_stops_the_wait_for_a_resource() {
    let server = Server::always(Reply::text("Fine."));
    let mut terminal = start(&Run::new().server(&server).arg("chat").config("mcp/t.yaml", &file(&["old"], "")));
    terminal.line("What is in @t:note://never?");
    terminal.press_until("\x03", "the stop", |screen| screen.contains("Nothing was sent"));
    assert_eq!(server.requests().len(), 0);
    terminal.line("Hello");
    terminal.wait_for("Fine.");
    assert_eq!(server.requests().pop().expect("a request").user(), "Hello");
}

#[test]
fn a_call_by_hand_starts_its_server_once() {
    let started = format!("echo up >> starts; exec '{}' old", program());
    let line = json!(["sh", "-c", started]);
    let run = Run::new().config("mcp/t.yaml", &format!("command: {line}\npermission: allow\n"));
    let called = run.args(["mcp", "call", "t__echo", r#"{"text": "hi"}"#]).run().success();
    assert!(called.stdout.contains("hi"), "{}", called.shown());
    assert_eq!(called.place.read("starts"), "up\n");
}
