//! The line that is typed while a turn runs: it completes, folds long pastes and knows the keys of vi, as the one between
//! turns does.

use crate::pty::Terminal;
use crate::repl::{said, start};
use crate::reply::{Gate, Reply};
use crate::run::Run;
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
    let (server, mut terminal, gate) = in_a_turn(Run::new());
    terminal.keys("/sk\t");
    terminal.wait_for("> /skill\n/skills  /skill");
    terminal.keys("\t");
    terminal.wait_for("> /skills\n/skills  /skill");
    // Whatever is typed takes the list away.
    terminal.keys("\x15/too");
    terminal.wait_until("the line alone", |screen| screen.trim_end().ends_with("> /too"));
    terminal.keys("\t");
    terminal.wait_for("> /tools");
    terminal.keys("\r");
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
