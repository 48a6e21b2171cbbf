//! The line that is typed while a turn runs: it completes, folds long pastes and knows the keys of vi, as the one between
//! turns does.

use crate::pty::Terminal;
use crate::repl::{said, start};
use crate::reply::{Gate, Reply};
use crate::run::{Place, Run};
use crate::server::Server;

/// A chat whose first turn waits at the gate.
fn in_a_turn(run: Run) -> (Server, Terminal, Gate) {
    let gate = Gate::new();
    let server = Server::start([Reply::text("First answer.").gate(&gate, 2), Reply::text("Second answer.")]);
    let mut terminal = start(&run.server(&server));
    terminal.line("one");
    gate.reached();
    (server, terminal, gate)
}

fn lines() -> String {
    (1..=84).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn tab_lists_what_completes_the_line_below_it() {
    let (server, mut terminal, gate) = in_a_turn(Run::new().file("notes.md", "one\n"));
    terminal.keys("/sk\t");
    terminal.wait_for("> /skill\n/skills  /skill");
    terminal.keys("\t");
    terminal.wait_for("> /skills\n/skills  /skill");
    // The names of commands are listed as they are typed.
    terminal.keys("\x15/too");
    terminal.wait_until("what begins so", |screen| screen.trim_end().ends_with("> /too\n/tools"));
    terminal.keys("\t");
    terminal.wait_for("> /tools");
    // So are files.
    terminal.keys("\x15see @no");
    terminal.wait_until("the file", |screen| screen.trim_end().ends_with("> see @no\nnotes.md · 1 tokens"));
    terminal.keys("\x15/tools\r");
    gate.open();
    terminal.wait_for("read_file");
    assert_eq!(said(&server), ["one"]);
}

#[test]
fn a_long_paste_is_shown_by_its_size_and_sent_whole() {
    let (server, mut terminal, gate) = in_a_turn(Run::new());
    terminal.keys("see ");
    terminal.paste(&lines().replace('\n', "\r"));
    terminal.wait_for("> see [pasted 84 lines]");
    // Deleted as one thing.
    terminal.keys("\x7f");
    terminal.wait_until("no paste", |screen| !screen.contains("pasted"));
    terminal.paste(&lines());
    terminal.keys(", please\r");
    terminal.wait_for("next: see [pasted 84 lines], please");
    gate.open();
    terminal.wait_for("Second answer.");
    assert_eq!(said(&server)[1], format!("see {}, please", lines()));
    let screen = terminal.screen();
    assert!(screen.contains("> see [pasted 84 lines], please") && !screen.contains("line 42"), "{screen}");
}

#[test]
fn what_follows_a_slash_command_in_one_burst_is_one_message_that_runs_nothing() {
    let server = Server::start([Reply::text("First answer."), Reply::text("Second answer.")]);
    let place = Place::new();
    let mut terminal = start(&Run::at(&place).server(&server));
    terminal.keys("/cost\rrow 1\r!touch ran\r/exit\r");
    terminal.wait_for("First answer.");
    terminal.line("two");
    terminal.wait_for("Second answer.");
    assert!(!place.exists("ran"));
    assert_eq!(said(&server), ["row 1\n!touch ran\n/exit", "two"]);
}

#[test]
fn a_long_paste_that_was_not_sent_goes_on_in_the_editor() {
    let (server, mut terminal, gate) = in_a_turn(Run::new());
    terminal.paste(&lines());
    terminal.keys(" what is it?");
    terminal.wait_for("> [pasted 84 lines] what is it?");
    gate.open();
    terminal.wait_until("the prompt", |screen| {
        screen.contains("First answer.") && screen.trim_end().ends_with("> [pasted 84 lines] what is it?")
    });
    terminal.keys("\r");
    terminal.wait_for("Second answer.");
    assert_eq!(said(&server)[1], format!("{} what is it?", lines()));
}

#[test]
fn the_keys_of_vi_edit_it_where_they_are_set() {
    let (server, mut terminal, gate) = in_a_turn(Run::new().config("agent.yaml", "ui: { edit_mode: vi }\n"));
    terminal.keys("one two three");
    terminal.wait_for("> one two three");
    terminal.keys("\x1b0");
    terminal.keys("dwA!");
    terminal.wait_for("> two three!");
    terminal.keys("\r");
    gate.open();
    terminal.wait_for("Second answer.");
    assert_eq!(said(&server), ["one", "two three!"]);
}

#[test]
fn escape_stops_the_turn_and_never_the_chat() {
    let (server, mut terminal, _gate) = in_a_turn(Run::new());
    terminal.keys("half a line");
    terminal.wait_for("> half a line");
    terminal.keys("\x1b");
    terminal.wait_for("interrupted");
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with("> half a line"));
    terminal.keys("\r");
    terminal.wait_for("Second answer.");
    assert!(said(&server).last().is_some_and(|said| said.ends_with("half a line")));
}

#[test]
fn alt_enter_breaks_the_line_and_alt_up_gives_it_to_the_turn() {
    let (server, mut terminal, gate) = in_a_turn(Run::new());
    terminal.keys("one line\x1b\rand another");
    terminal.wait_for("> one line\n  and another");
    terminal.keys("\r");
    terminal.wait_for("next: one line (and 1 more line");
    terminal.keys("for the turn\x1b[1;3A");
    terminal.wait_for("for the next step: for the turn");
    gate.open();
    terminal.wait_for("Second answer.");
    assert!(said(&server).iter().any(|said| said == "one line\nand another" || said == "for the turn"));
}

#[test]
fn now_gives_a_text_to_the_turn_as_alt_up_does() {
    let (server, mut terminal, gate) = in_a_turn(Run::new());
    terminal.line("/now shorter, please");
    terminal.wait_for("for the next step: shorter, please");
    gate.open();
    terminal.wait_for("Second answer.");
    assert_eq!(said(&server).last().map(String::as_str), Some("shorter, please"));
}
