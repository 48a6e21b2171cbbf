//! Ctrl-O: the full output of the last or the running call in the pager, while a turn runs and between turns.

use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use serde_json::json;

use crate::chat_commands::program;
use crate::pty::Terminal;
use crate::repl::start;
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::Server;

const CONTROL_O: &str = "\x0f";

/// A chat whose pager keeps what it shows, and ends with a line.
fn chat(run: Run) -> Terminal {
    let pager = program(
        &run,
        "pager",
        "trap '' INT; cat > \"$HOME/seen\"; echo \"the pager has it\"; read -r key < /dev/tty; echo \"closed by $key\"",
    );
    start(&run.env("PAGER", pager))
}

/// The text that the pager got last.
fn paged(terminal: &Terminal) -> String {
    std::fs::read_to_string(terminal.place.home().join("seen")).expect("it was paged")
}

/// A command that says many lines, waits for its fifo to be written, and says one more.
fn waiting() -> Reply {
    Reply::call("run_command", &json!({ "command": "seq -f 'line %g' 300; cat go; echo the end" }))
}

fn fifo(run: &Run) -> PathBuf {
    let path = run.place().workspace().join("go");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("the workspace takes a fifo");
    path
}

fn let_go(fifo: &Path) {
    std::fs::write(fifo, "").expect("the command reads");
}

/// The position of `text` in the output to the terminal, where it occurs once.
#[track_caller]
fn place_of(raw: &str, text: &str) -> usize {
    let places: Vec<usize> = raw.match_indices(text).map(|(at, _)| at).collect();
    assert_eq!(places.len(), 1, "{text:?} in {raw:?}");
    places[0]
}

#[test]
fn control_o_opens_what_the_running_command_has_said_and_the_turn_goes_on_behind_it() {
    let gate = Gate::new();
    let server = Server::start([waiting(), Reply::text("All counted.").gate(&gate, 2), Reply::text("Next.")]);
    let run = Run::new().args(["chat", "--approve", "all"]).server(&server);
    let fifo = fifo(&run);
    let mut terminal = chat(run);
    terminal.line("count");
    terminal.wait_for("│ line 300");
    terminal.keys("typed");
    terminal.wait_for("> typed");
    terminal.keys(CONTROL_O);
    terminal.wait_for("the pager has it");
    let text = paged(&terminal);
    assert!(text.contains("run_command") && text.contains("still running"), "{text}");
    assert!(text.contains("\nline 1\n") && text.contains("\nline 300\n") && !text.contains("\nthe end"), "{text}");
    // The pager's, not the turn's.
    terminal.keys("\x03");
    let_go(&fifo);
    gate.reached();
    gate.open();
    terminal.line("q");
    terminal.wait_for("All counted.");
    let raw = terminal.raw();
    assert!(place_of(&raw, "closed by q") < place_of(&raw, "All counted."), "{raw:?}");
    assert_eq!(raw.matches("✓").count(), 1, "the line of the call is shown: {raw:?}");
    // The line that was typed is still there.
    terminal.keys(" on\r");
    terminal.wait_for("Next.");
    assert_eq!(crate::repl::said(&server).last().map(String::as_str), Some("typed on"));
}

#[test]
fn a_question_waits_for_the_end_of_the_pager() {
    let gate = Gate::new();
    let touch = Reply::call("run_command", &json!({ "command": "touch made" }));
    let server = Server::start([waiting(), touch.gate(&gate, 0), Reply::text("Made.")]);
    let run = Run::new().server(&server);
    let fifo = fifo(&run);
    let mut terminal = chat(run);
    terminal.line("count, then make it");
    terminal.wait_for("│ line 300");
    terminal.keys(CONTROL_O);
    terminal.wait_for("the pager has it");
    let_go(&fifo);
    gate.reached();
    gate.open();
    // An answer to the pager is none to the question.
    terminal.line("y");
    terminal.wait_for("touch made");
    assert!(!terminal.place.exists("made"));
    let raw = terminal.raw();
    assert!(place_of(&raw, "closed by y") < place_of(&raw, "asked because"), "{raw:?}");
    terminal.wait_until("the question", |screen| screen.contains("(y or n"));
    terminal.line("y");
    terminal.wait_for("Made.");
    assert!(terminal.place.exists("made"));
}

#[test]
fn control_o_looks_back_while_a_question_waits() {
    let seq = Reply::call("run_command", &json!({ "command": "seq -f 'line %g' 300" }));
    let touch = Reply::call("run_command", &json!({ "command": "touch made" }));
    let server = Server::start([seq, touch, Reply::text("Made.")]);
    let mut terminal = chat(Run::new().server(&server));
    terminal.line("count, then make it");
    terminal.wait_for("touch made");
    terminal.wait_until("the question", |screen| screen.contains("(y or n"));
    terminal.keys(CONTROL_O);
    terminal.wait_for("the pager has it");
    let text = paged(&terminal);
    assert!(text.starts_with("✓ run_command") && text.contains("\nline 1\n"), "{text}");
    terminal.line("q");
    terminal.wait_until("the question again", |screen| screen.contains("(y or n"));
    terminal.line("y");
    terminal.wait_for("Made.");
}

#[test]
fn control_o_at_the_prompt_keeps_the_line() {
    let server = Server::start([
        Reply::call("run_command", &json!({ "command": "seq 200" })),
        Reply::text("Counted."),
        Reply::text("Fine."),
    ]);
    let mut terminal = chat(Run::new().args(["chat", "--approve", "all"]).server(&server));
    terminal.keys(CONTROL_O);
    terminal.wait_for("no tool was called yet");
    terminal.line("count");
    terminal.wait_for("Counted.");
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    terminal.keys("half a line");
    terminal.wait_for("> half a line");
    terminal.keys(CONTROL_O);
    terminal.wait_for("the pager has it");
    assert!(paged(&terminal).contains("\n200\n"), "{}", paged(&terminal));
    terminal.line("q");
    terminal.wait_until("the line", |screen| screen.trim_end().ends_with("> half a line"));
    terminal.keys(" more\r");
    terminal.wait_for("Fine.");
    assert_eq!(crate::repl::said(&server).last().map(String::as_str), Some("half a line more"));
}

#[test]
fn control_o_before_anything_ran_says_so() {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First answer.").gate(&gate, 2)]);
    let mut terminal = chat(Run::new().server(&server));
    terminal.line("one");
    gate.reached();
    terminal.keys(CONTROL_O);
    terminal.wait_for("Nothing was run since this chat began");
    gate.open();
    terminal.wait_for("First answer.");
}
