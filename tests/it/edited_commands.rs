//! A command by which a person replaces the model's.

use agent::facade::safety::Approval;
use serde_json::{Value, json};

use crate::in_process::{Answering, Taken, turn};
use crate::reply::Reply;
use crate::run::{KEY, Run};
use crate::server::Server;

/// One call, answered with another command; the turn, and what the model read of the call.
fn edited(
    rules: &str,
    (tool, arguments): (&str, &Value),
    line: &str,
) -> (Taken, String, Vec<Option<String>>, Run) {
    let server = Server::start([Reply::call(tool, arguments), Reply::text("done")]);
    let run = Run::new().server(&server).file("a.txt", "a\n").config("agent.yaml", rules);
    let person = Answering::with(Approval::Edited(line.to_owned()));
    let taken = turn(&run, &[], "task", person.clone(), Box::new(|_, _| {}));
    (taken, server.requests()[1].last_result().to_owned(), person.offered(), run)
}

const TOUCH: &str = "touch model.txt";

#[test]
fn it_runs_in_place_of_the_models_and_the_model_is_told_which() {
    let touch = json!({"command": TOUCH});
    let (taken, read, offered, run) = edited("", ("run_command", &touch), "touch mine.txt; echo mine");
    assert_eq!(offered, [Some(TOUCH.to_owned())], "one question, with the line to edit");
    assert!(run.place().exists("mine.txt") && !run.place().exists("model.txt"));
    assert!(
        read.contains("[The user changed your command to:\ntouch mine.txt; echo mine\n]\nexit 0\nmine"),
        "{read}"
    );
    let started: Vec<&Value> = taken.of("tool.started").collect();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0]["subject"], "touch mine.txt; echo mine");
    assert_eq!(started[0]["arguments"]["command"], "touch mine.txt; echo mine");
    let resolved: Vec<&Value> = taken.of("permission.resolved").collect();
    assert_eq!(resolved.len(), 1);
    assert_eq!((&resolved[0]["verdict"], &resolved[0]["by"]), (&json!("allowed"), &json!("person")));
}

#[test]
fn the_result_as_data_names_it_too() {
    let rules = "tool_output: { format: raw }\n";
    let (_, read, _, _) = edited(rules, ("run_command", &json!({"command": TOUCH})), "echo mine");
    assert!(read.contains("command_of_user") && read.contains("echo mine"), "{read}");
}

#[test]
fn a_rule_that_denies_still_denies_it() {
    let rules = "permissions: { rules: [ { deny: run_command, command: [\"rm\", \"*\"] } ] }\n";
    let (taken, read, offered, run) = edited(rules, ("run_command", &json!({"command": TOUCH})), "rm a.txt");
    assert_eq!(offered.len(), 1, "nobody is asked twice");
    assert!(run.place().exists("a.txt"));
    assert!(read.contains("changed your command to:\nrm a.txt\n") && read.contains("Not run: "), "{read}");
    let resolved: Vec<&Value> = taken.of("permission.resolved").collect();
    assert_eq!((&resolved[0]["verdict"], &resolved[0]["by"]), (&json!("denied"), &json!("rule")));
}

#[test]
fn an_unchanged_line_is_a_yes() {
    let (_, read, _, run) = edited("", ("run_command", &json!({"command": TOUCH})), TOUCH);
    assert!(run.place().exists("model.txt") && !read.contains("changed"), "{read}");
}

#[test]
fn only_a_command_of_the_model_that_holds_no_secret_is_offered() {
    let write = json!({"path": "new.txt", "content": "x\n"});
    let (_, read, offered, run) = edited("", ("write_file", &write), "echo mine");
    assert_eq!(offered, [None]);
    assert!(!run.place().exists("new.txt"));
    assert!(read.contains("did not allow this call and asked for this instead: echo mine"), "{read}");
    let secret = json!({"command": format!("echo {KEY} > b.txt")});
    let (_, _, offered, _) = edited("", ("run_command", &secret), "echo mine");
    assert_eq!(offered, [None]);
}
