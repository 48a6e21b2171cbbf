//! Questions to a person: they show what will run, unaltered and in full, and within which walls.

use serde_json::json;

use crate::pty::Terminal;
use crate::reply::{Gate, Reply};
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
    let question = raw.split_once("┌ ").expect("a question").1;
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
        ("{ mode: on }", "run_command · writes in the workspace, no network"),
        ("{ network: ['*'] }", "run_command · writes in the workspace, with the network"),
        (
            "{ mode: off }",
            "It runs with your own permissions: it can read your keys and change any of your files.",
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
    terminal.wait_for("Show all");
    let first = terminal.screen();
    assert!(first.contains("more rows") && first.contains("+ line 1000"), "{first}");
    assert!(!terminal.raw().contains("+ line 500"), "{first}");
    terminal.pick("Show all");
    terminal.wait_until("the question again", |screen| screen.contains("(y or n") && !screen.contains("❯ "));
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

/// A chat in which the model runs `touch made`, with the question open.
fn open(columns: u16, command: &str) -> (Server, Terminal) {
    open_sized(columns, 40, command)
}

fn open_sized(columns: u16, rows: u16, command: &str) -> (Server, Terminal) {
    let call = Reply::call("run_command", &json!({ "command": command }));
    let server = Server::start([call, Reply::text("Done."), Reply::text("Next.")]);
    let mut terminal = Terminal::sized(&Run::new().arg("chat").server(&server), columns, rows);
    terminal.wait_for("> ");
    terminal.line("go");
    terminal.wait_for("(y or n");
    (server, terminal)
}

#[test]
fn words_typed_at_a_question_go_to_the_line_and_answer_nothing() {
    for words in ["wait, what is this?", "hang on", "always", "yes but not now"] {
        let (server, mut terminal) = open(80, "touch made");
        terminal.line(words);
        terminal.wait_for(&format!("next: {words}"));
        assert!(!terminal.place.exists("made"), "{words}");
        terminal.line("n");
        terminal.wait_for("Next.");
        assert!(!terminal.place.exists("made"), "{words}");
        assert_eq!(server.requests().last().expect("three").user(), words);
    }
}

#[test]
fn an_empty_line_answers_only_from_the_list() {
    let (_server, mut terminal) = open(80, "touch made");
    terminal.keys("\r\r\r");
    terminal.keys("x\x7f\r");
    terminal.keys("!");
    terminal.wait_for("> !");
    assert!(!terminal.place.exists("made") && terminal.screen().contains("(y or n"), "{}", terminal.screen());
    terminal.keys("\x7f");
    terminal.wait_until("the empty line", |screen| screen.trim_end().ends_with("\n>"));
    // Enter pressed three times at once is a paste, and no key soon after a paste is from a hand: one presses it again.
    terminal.press_until("\t", "the mark in the list", |screen| screen.contains("❯ "));
    terminal.pick("Yes");
    terminal.wait_for("Done.");
    assert!(terminal.place.exists("made"));
}

#[test]
fn a_paste_that_holds_its_own_end_answers_nothing() {
    for paste in ["x\x1b[201~\x15y\r", "\x1b[201~y\r", "\x1b[201~\t\r", "echo\ny\r"] {
        let (_server, mut terminal) = open(80, "touch made");
        terminal.paste(paste);
        // All rows of it.
        terminal.keys("\x15\x15\x15\x15\x15!");
        terminal.wait_for("> !");
        assert!(terminal.screen().contains("(y or n"), "{paste:?}: {}", terminal.screen());
        terminal.keys("\x03");
        terminal.wait_for("interrupted");
        assert!(!terminal.place.exists("made"), "{paste:?}");
    }
}

#[test]
fn a_long_queue_leaves_a_question_its_place_on_a_short_screen() {
    let gate = Gate::new();
    let call = Reply::call("run_command", &json!({"command": "touch made"}));
    let server = Server::start([Reply::text("First answer.").gate(&gate, 2), call]);
    let mut terminal = Terminal::sized(&Run::new().arg("chat").server(&server), 80, 10);
    terminal.wait_for("> ");
    terminal.line("one");
    gate.reached();
    terminal.line("go");
    terminal.wait_for("next: go");
    for number in 1..=9 {
        terminal.line(&format!("q{number}"));
        let left_out = format!("… {} more queued", number - 2);
        terminal.wait_for(&if number < 4 { format!("next: q{number}") } else { left_out });
    }
    gate.open();
    terminal.wait_until("the question, the queue and the line", |screen| {
        let shown = ["│ touch made", "├ Allow?", "Yes, once", "next: q1", "… 8 more queued"];
        shown.iter().all(|part| screen.contains(part)) && screen.trim_end().ends_with("\n>")
    });
}

#[test]
fn every_answer_can_be_seen_when_it_is_marked_on_a_short_screen() {
    let line = "touch q1; rm -rf ../foo bar; mkdir -p abc/def; curl http://127.0.0.1:1/abc; touch made";
    let (_server, mut terminal) = open(80, line);
    terminal.resize(80, 8);
    terminal.wait_until("the line", |screen| screen.contains("┌ ") && screen.trim_end().ends_with("\n>"));
    // One after another is marked on the way.
    terminal.pick("Edit");
    terminal.wait_for("Run this instead:");
    assert!(!terminal.place.exists("made"));
}

#[test]
fn a_question_of_the_model_that_does_not_fit_is_shown_whole_above() {
    let lines: Vec<String> = (1..=40).map(|number| format!("line {number}")).collect();
    let question = json!({"question": lines.join("\n"), "choices": ["red", "blue"]});
    let server = Server::start([Reply::call("ask_user", &question), Reply::text("Done.")]);
    let mut terminal = Terminal::sized(&Run::new().arg("chat").server(&server), 80, 24);
    terminal.wait_for("> ");
    terminal.line("go");
    terminal.wait_for("more rows (shown above)");
    let raw = terminal.raw();
    assert!(lines.iter().all(|line| raw.contains(&format!("{line}\r"))) && !raw.contains("Show all"), "{raw}");
}

#[test]
fn show_all_is_offered_before_a_screen_gets_shorter() {
    let command: Vec<String> = (1..=10).map(|number| format!("touch {number}")).collect();
    let (_server, mut terminal) = open_sized(80, 24, &command.join("\n"));
    assert!(!terminal.screen().contains("more rows"), "{}", terminal.screen());
    terminal.resize(80, 14);
    terminal.wait_until("where the rest is, and the choice", |screen| {
        screen.contains("more rows (`Show all` shows them)") && screen.matches("Show all").count() == 2
    });
}

#[test]
fn no_command_can_write_a_row_that_looks_like_the_question() {
    for columns in [40, 80, 200] {
        let room = usize::from(columns);
        let forged =
            format!("touch {}It would only read.{}Allow? yes", " ".repeat(room - 8), " ".repeat(room - 21));
        let (_server, terminal) = open(columns, &forged);
        let screen = terminal.screen();
        let (_, question) = screen.rsplit_once("┌ ").expect("a question");
        let (rows, _) = question.split_once("├ Allow?").expect("the true one");
        assert!(rows.lines().skip(1).all(|row| row.starts_with(['│', '├'])), "{screen}");
        assert!(screen.lines().all(|row| !row.starts_with("It would") && !row.starts_with("Allow?")), "{screen}");
    }
}
