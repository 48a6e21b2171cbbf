//! A terminal that changes, and keys that come, while the chat is in each of its states.

use serde_json::json;

use crate::pty::Terminal;
use crate::repl::{said, start};
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::Server;

/// A chat on a terminal that does not rewrap lines, like the screen of these tests.
fn chat(server: &Server) -> Terminal {
    start(&Run::new().server(server).env("XTERM_VERSION", "XTerm(390)"))
}

/// The number of times that the screen shows `text`.
fn count(terminal: &Terminal, text: &str) -> usize {
    terminal.screen().matches(text).count()
}

#[test]
fn a_screen_of_another_size_leaves_no_garbage_while_one_types_ahead() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("The answer.").gate(&gate, 2), Reply::text("Second.")]);
    let mut terminal = chat(&server);
    terminal.line("one");
    gate.reached();
    terminal.keys("typed ahead");
    terminal.wait_for("typed ahead");
    for (columns, rows) in [(60, 20), (100, 30), (90, 12)] {
        terminal.resize(columns, rows);
    }
    terminal.keys("!");
    terminal.wait_for("typed ahead!");
    terminal.wait_until("it once", |screen| screen.matches("typed ahead").count() == 1);
    gate.open();
    terminal.wait_for("The answer.");
    assert_eq!(count(&terminal, "The answer."), 1, "{}", terminal.screen());
    terminal.wait_until("the prompt", |screen| {
        screen.contains(" out ·") && screen.trim_end().ends_with("> typed ahead!")
    });
    terminal.keys("\r");
    terminal.wait_for("Second.");
    assert_eq!(said(&server), ["one", "typed ahead!"]);
}

#[test]
fn a_screen_of_another_size_leaves_no_garbage_at_a_question() {
    let call = Reply::call("run_command", &json!({"command": "touch made"}));
    let server = Server::start([call, Reply::text("Done.")]);
    let mut terminal = chat(&server);
    terminal.line("make it");
    terminal.wait_for("Allow?");
    for (columns, rows) in [(60, 20), (100, 30)] {
        terminal.resize(columns, rows);
    }
    terminal.wait_until("the question once", |screen| screen.matches("Allow?").count() == 1);
    terminal.line("y");
    terminal.wait_for("Done.");
    assert!(terminal.place.exists("made"));
}

#[test]
fn a_screen_of_another_size_leaves_no_garbage_below_a_running_command() {
    let command = "echo first; cat go; echo last";
    let server = Server::start([Reply::call("run_command", &json!({ "command": command })), Reply::text("Done.")]);
    let run = Run::new().args(["chat", "--approve", "all"]).server(&server).env("XTERM_VERSION", "XTerm(390)");
    let fifo = run.place().workspace().join("go");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("the workspace takes a fifo");
    let mut terminal = start(&run);
    terminal.line("run it");
    terminal.wait_for("│ first");
    for (columns, rows) in [(60, 20), (100, 30)] {
        terminal.resize(columns, rows);
    }
    terminal.wait_until("its output once", |screen| screen.matches("│ first").count() == 1);
    std::fs::write(&fifo, "").expect("the command reads");
    terminal.wait_for("Done.");
    assert_eq!(count(&terminal, "│ first"), 0, "{}", terminal.screen());
}

#[test]
fn words_of_every_script_are_typed_ahead_and_pasted_whole() {
    let gate = Gate::new();
    let words = ["日本語", "👩‍👩‍👧 family", "e\u{301}te\u{301}", "مرحبا"];
    let replies = std::iter::once(Reply::text("First.").gate(&gate, 2));
    let server = Server::start(replies.chain(words.iter().map(|_| Reply::text("Next."))));
    let mut terminal = chat(&server);
    terminal.line("one");
    gate.reached();
    for (at, word) in words.iter().enumerate() {
        match at % 2 {
            0 => terminal.keys(word),
            _ => terminal.paste(word),
        }
        terminal.keys("\r");
    }
    gate.open();
    terminal.wait_until("every answer", |screen| screen.matches("Next.").count() == words.len());
    assert_eq!(said(&server)[1..], words);
}

#[test]
fn control_c_stops_a_command_and_the_chat_goes_on() {
    let server = Server::start([
        Reply::call("run_command", &json!({"command": "echo started; sleep 600"})),
        Reply::text("Fine."),
    ]);
    let mut terminal = start(&Run::new().args(["chat", "--approve", "all"]).server(&server));
    terminal.line("run it");
    terminal.wait_for("│ started");
    terminal.keys("\x03");
    terminal.wait_for("cancelled");
    terminal.line("two");
    terminal.wait_for("Fine.");
    assert_eq!(count(&terminal, "│ started"), 0, "{}", terminal.screen());
}

#[test]
fn a_plain_terminal_shows_what_is_typed_and_gets_no_escapes() {
    let server = Server::start([Reply::text("The **answer**.")]);
    let mut terminal = start(&Run::new().server(&server).env("TERM", "dumb"));
    terminal.keys("hello there");
    terminal.wait_for("> hello there");
    terminal.keys("\r");
    terminal.wait_for("The **answer**.");
    terminal.keys("\x04");
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.raw_to_the_end().contains('\x1b'), "{}", terminal.raw());
    assert_eq!(said(&server), ["hello there"]);
}

#[test]
fn for_a_screen_reader_nothing_moves_and_marks_are_words() {
    let replies = [Reply::call("list_dir", &json!({ "path": "." })), Reply::text("The **answer**.")];
    let server = Server::start(replies);
    let run = Run::new().server(&server).args(["--set", "ui.screen_reader=true"]);
    let mut terminal = start(&run);
    terminal.line("look");
    terminal.wait_for("The **answer**.");
    assert!(terminal.screen().contains("done: list_dir"), "{}", terminal.screen());
    terminal.keys("\x04");
    assert_eq!(terminal.exit_code(), 0);
    let shown = terminal.raw_to_the_end();
    assert!(!shown.contains(['✓', '│', '·', '⠋']), "{shown}");
    assert!(!shown.contains("\x1b[A") && !shown.contains("\x1b[2K") && !shown.contains("\x1b]11"), "{shown}");
}
