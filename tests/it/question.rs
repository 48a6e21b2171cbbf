//! Questions to a person: they show what will run, unaltered and in full, and within which walls.

use serde_json::json;

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// Asks about a command and answers no; the question as the terminal got it.
fn asked(command: &str, settings: &str, variables: &[(&str, &str)]) -> String {
    let server =
        Server::start([Reply::call("run_command", &json!({"command": command})), Reply::text("Left it.")]);
    let mut run = Run::task(&server, "task").config("agent.yaml", settings).env("NO_COLOR", "1");
    for (name, value) in variables {
        run = run.env(name, *value);
    }
    let mut terminal = Terminal::sized(&run, 200, 40);
    terminal.wait_for("Allow?");
    terminal.line("n");
    terminal.exit_code();
    let raw = terminal.raw();
    let question = raw.split_once("wants to run").expect("a question").1;
    question.split_once("Allow?").expect("asked").0.to_owned()
}

#[test]
fn nothing_that_looks_like_a_key_swallows_a_part_of_the_command() {
    let line = "a1B2c3D4".repeat(8);
    let begin = "-----BEGIN PRIVATE KEY-----";
    let end = "-----END PRIVATE KEY-----";
    let command = format!("true '{begin}\n{line}\n'; curl evil.example; echo '{line}\n{end}'; cargo test");
    let shown = asked(&command, "", &[]);
    for part in [begin, &line, "curl evil.example", end, "cargo test"] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    let key = format!("ghp_{}", "a1B2c3D4".repeat(5));
    assert!(asked(&format!("touch {key}"), "", &[]).contains(&key));
}

#[test]
fn a_known_secret_is_hidden_and_that_is_said() {
    let shown = asked("echo hunter2hunter2; touch x", "", &[("MYSQL_PWD", "hunter2hunter2")]);
    assert!(shown.contains("echo ***; touch x") && !shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("is hidden as ***: the text shown is not exactly what would run"), "{shown}");
    assert!(!asked("echo '***'; touch x", "", &[]).contains("is hidden"), "nothing is");
}

#[test]
fn the_walls_around_the_command_are_said() {
    let settings = |sandbox: &str| format!("sandbox: {sandbox}\n");
    for (sandbox, said) in [
        ("{ mode: on }", "It would run in the sandbox: writes in the workspace, no network."),
        ("{ network: ['*'] }", "It would run in the sandbox: writes in the workspace, with the network."),
        (
            "{ mode: off }",
            "It would run outside the sandbox: with your own permissions on this machine, it can read your keys and \
             change any of your files.",
        ),
    ] {
        let shown = asked("touch x", &settings(sandbox), &[]);
        assert!(shown.contains(said), "{shown}");
    }
}

#[test]
fn what_cannot_be_seen_stands_as_its_code() {
    let command = "touch a\u{200b}b\u{3164}c\u{2800}d\u{e0041}e\u{202e}f\u{1b}[8mg\u{a0}h";
    let shown = asked(command, "", &[]);
    let expected = "touch a\\u{200b}b\\u{3164}c\\u{2800}d\\u{e0041}e\\u{202e}f␛[8mg\\u{a0}h";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn what_is_too_long_for_the_screen_is_counted_and_a_key_shows_it() {
    let content: String = (1..=1000).map(|number| format!("line {number}\n")).collect();
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "new.txt", "content": content})),
        Reply::text("Written."),
    ]);
    let mut terminal = Terminal::start(&Run::task(&server, "task"));
    terminal.wait_for("[v]iew all");
    let first = terminal.raw();
    assert!(first.contains("more lines (v shows all)") && first.contains("+ line 1000"), "{first}");
    assert!(!first.contains("+ line 500"), "{first}");
    terminal.line("v");
    terminal.wait_for("+ line 985");
    terminal.wait_for("[v]iew all");
    assert!(terminal.raw().contains("+ line 500"));
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert_eq!(terminal.place.read("new.txt"), content);
}

#[test]
fn a_terminal_that_draws_nothing_is_shown_all() {
    let content: String = (1..=200).map(|number| format!("line {number}\n")).collect();
    let server = Server::start([
        Reply::call("write_file", &json!({"path": "new.txt", "content": content})),
        Reply::text("Left it."),
    ]);
    let mut terminal = Terminal::start(&Run::task(&server, "task").env("TERM", "dumb"));
    terminal.wait_for("Allow?");
    let shown = terminal.raw();
    assert!((1..=200).all(|number| shown.contains(&format!("+ line {number}\r\n"))), "{shown}");
    terminal.line("n");
    terminal.exit_code();
}
