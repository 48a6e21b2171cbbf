//! Ctrl-C, Ctrl-D and Ctrl-Z in every state of a chat, as the table in docs/chat.md tells them.

use nix::sys::termios::LocalFlags;
use serde_json::json;

use crate::plans::{accepted, plan, step};
use crate::pty::Terminal;
use crate::reply::{Gate, Reply};
use crate::run::Run;
use crate::server::Server;
use crate::states::{ASKING, AWAY, After, At, LAST, State, TRUST, TYPING, WORKING};

/// Presses a key in each of these states, and holds what follows.
#[track_caller]
fn press(key: &str, states: &[State], after: fn(&State) -> After) {
    for state in states {
        let mut at = state.entered();
        at.terminal.keys(key);
        follows(state, &mut at, after(state));
        assert_cooked(&at.terminal);
    }
}

fn follows(state: &State, at: &mut At, after: After) {
    let code = match after {
        After::Says(words) => {
            at.terminal.wait_for(words);
            at.takes_the_next_message();
            None
        }
        After::Keeps(words, line) => {
            at.terminal.wait_for(words);
            at.terminal.wait_until("the line", |screen| screen.trim_end().ends_with(line));
            at.terminal.keys("\x15");
            None
        }
        After::Clears => {
            at.takes_the_next_message();
            None
        }
        After::GoesOn => {
            at.answered();
            None
        }
        After::Nothing => {
            (state.go_on)(at);
            at.answered();
            None
        }
        After::Elsewhere(words) => {
            at.terminal.wait_for(words);
            (state.go_on)(at);
            at.answered();
            None
        }
        After::Leaves(code) => Some(code),
        After::LeavesLater => {
            (state.go_on)(at);
            Some(0)
        }
    };
    let code = code.unwrap_or_else(|| {
        at.prompted();
        at.terminal.line("/exit");
        0
    });
    assert_eq!(at.terminal.exit_code(), code, "{}", at.terminal.screen());
    at.terminal.raw_to_the_end();
}

/// The modes are those that a shell expects.
#[track_caller]
fn assert_cooked(terminal: &Terminal) {
    let modes = terminal.modes();
    let wanted = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG;
    assert!(modes.contains(wanted), "{modes:?}");
    assert!(terminal.is_plain(), "{:?}", terminal.raw());
}

#[test]
fn control_c_at_the_prompt() {
    press("\x03", &TYPING, |state| state.control_c);
}

#[test]
fn control_c_while_a_turn_runs() {
    press("\x03", &WORKING, |state| state.control_c);
}

#[test]
fn control_c_while_a_question_waits() {
    press("\x03", &ASKING, |state| state.control_c);
}

#[test]
fn control_c_while_another_program_has_the_terminal() {
    press("\x03", &AWAY, |state| state.control_c);
}

#[test]
fn control_d_at_the_prompt() {
    press("\x04", &TYPING, |state| state.control_d);
}

#[test]
fn control_d_while_a_turn_runs() {
    press("\x04", &WORKING, |state| state.control_d);
}

#[test]
fn control_d_while_a_question_waits() {
    press("\x04", &ASKING, |state| state.control_d);
}

#[test]
fn control_d_while_another_program_has_the_terminal() {
    press("\x04", &AWAY, |state| state.control_d);
}

/// Stops a chat in each of these states in a shell, and brings it back.
#[track_caller]
fn stop(states: &[State]) {
    for state in states {
        let mut at = state.on(Run::script("sh", "exec sh -i").env("PS1", "ready: "));
        at.terminal.wait_for("ready:");
        at.terminal.line(&state.line());
        state.enter(&mut at);
        at.terminal.keys("\x1a");
        at.terminal.wait_for("Stopped");
        at.terminal.wait_until("the shell", |screen| screen.trim_end().ends_with("ready:"));
        assert_cooked(&at.terminal);
        // The blank is for a program that reads one more byte before it stops.
        at.terminal.line(" echo $((40 + 2)) at the shell");
        at.terminal.wait_for("42 at the shell");
        at.terminal.line("clear; fg");
        at.terminal.wait_until("the state again", |screen| {
            screen.split_once(&state.line()).is_some_and(|(_, after)| (state.continued)(after))
        });
        (state.go_on)(&mut at);
        at.terminal.wait_for(LAST);
        at.prompted();
        at.terminal.line("/exit");
        at.terminal.wait_until("the shell", |screen| screen.trim_end().ends_with("ready:"));
        assert_cooked(&at.terminal);
    }
}

#[test]
fn control_z_at_the_prompt() {
    stop(&TYPING);
}

#[test]
fn control_z_while_a_turn_runs() {
    stop(&WORKING);
}

#[test]
fn control_z_while_a_question_waits() {
    stop(&ASKING);
}

#[test]
fn control_z_while_another_program_has_the_terminal() {
    stop(&AWAY);
}

#[test]
fn the_question_of_trust_is_answered_by_nothing_that_was_typed_before_it() {
    let mut at = TRUST.on(Run::script("sh", "exec sh -i").env("PS1", "ready: "));
    at.terminal.wait_for("ready:");
    at.terminal.keys("agent chat\ry\r");
    at.terminal.wait_for("[y/N] ");
    at.terminal.keys("\x04");
    at.prompted();
    assert!(at.terminal.screen().contains("[y/N] \n"), "{}", at.terminal.screen());
    at.terminal.line("/agent theirs");
    at.terminal.wait_for("error: ");
}

#[test]
fn control_z_stops_a_run_and_fg_brings_it_back() {
    let shell = || Run::script("sh", "exec sh -i").env("PS1", "ready: ");
    let stops = |terminal: &mut Terminal| {
        terminal.keys("\x1a");
        terminal.wait_for("Stopped");
        terminal.wait_until("the shell", |screen| screen.trim_end().ends_with("ready:"));
        assert_cooked(terminal);
        terminal.line(" echo $((40 + 2)) at the shell");
        terminal.wait_for("42 at the shell");
        terminal.line("clear; fg");
    };
    let ends = |terminal: &mut Terminal| {
        terminal.wait_for(LAST);
        terminal.wait_until("the shell", |screen| screen.trim_end().ends_with("ready:"));
        assert_cooked(terminal);
    };

    let gate = Gate::new();
    let server = Server::start([Reply::text(LAST).gate(&gate, 0)]);
    let mut terminal = Terminal::start(&shell().server(&server));
    terminal.line("agent run one");
    gate.reached();
    terminal.wait_for("thinking");
    stops(&mut terminal);
    terminal.wait_for("thinking");
    gate.open();
    ends(&mut terminal);

    let call = Reply::call("run_command", &json!({"command": "touch made"}));
    let server = Server::start([call, Reply::text(LAST)]);
    let mut terminal = Terminal::start(&shell().server(&server));
    terminal.line("agent run one");
    terminal.wait_for("Allow? (y or n");
    stops(&mut terminal);
    terminal.wait_for("Allow? (y or n");
    terminal.line("y");
    ends(&mut terminal);
    assert!(terminal.place.exists("made"));

    let plan = plan(&[step(1, "list_dir", &json!({"path": "."}), &[])]);
    let server = Server::start([plan, accepted(), Reply::text(LAST)]);
    let run = shell().server(&server).file("editor.sh", "echo it has the terminal\nread -r key\n");
    let mut terminal = Terminal::start(&run.env("EDITOR", "sh editor.sh"));
    terminal.line("agent run --mode plan one");
    terminal.wait_for("Run it? (y or n");
    terminal.pick("Edit");
    terminal.wait_for("it has the terminal");
    stops(&mut terminal);
    terminal.wait_for("agent run");
    terminal.line("k");
    terminal.wait_for("Run it? (y or n");
    terminal.line("y");
    ends(&mut terminal);
}
