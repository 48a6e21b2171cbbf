//! Screens of another size, in every state of a chat: on a terminal that cuts lines, and in tmux, which rewraps them.

use std::process::Command;

use crate::run::Run;
use crate::states::{ASKING, At, LAST, Probe, State, TYPING, WORKING};
use crate::tmux;

/// The widths that the screen takes one after another.
const WIDTHS: [u16; 3] = [40, 120, 80];
const ROWS: u16 = 30;

/// Resizes the screen of a chat in its state, and holds that nothing is left over or lost.
#[track_caller]
fn resize(state: &State, at: &mut At, breaks: bool) {
    let before = steady(&at.terminal.screen());
    for columns in WIDTHS {
        at.resize(columns);
        match state.probe {
            Probe::Keys([keys, shown, undo]) => {
                at.terminal.keys(keys);
                at.terminal.wait_until(shown, |screen| joined(screen).contains(shown));
                at.terminal.keys(undo);
                at.terminal.wait_until("the state without it", |screen| !joined(screen).contains(shown));
            }
            Probe::Nothing => {}
        }
        at.terminal.wait_until("the state once", |screen| joined(screen).matches(state.once).count() == 1);
    }
    if breaks {
        // Rows that left the screen at its top may not come back.
        at.terminal.wait_until(&format!("what it showed before:\n{before}"), |screen| {
            before.ends_with(&steady(screen)) && screen.contains(state.once)
        });
    }
    (state.go_on)(at);
    at.terminal.wait_for(LAST);
    at.prompted();
    let screen = at.terminal.screen();
    assert_eq!(screen.matches(LAST).count(), 1, "{screen}");
}

impl At {
    /// Resizes the screen. Returns once the program has been told, and has taken notice.
    fn resize(&mut self, columns: u16) {
        // tmux gathers the sizes of a quarter of a second before it tells them.
        self.shell("sleep 0.3");
        self.terminal.resize(columns, ROWS);
        self.shell(&format!("until stty size < \"$(cat tty)\" | grep -q ' {columns}$'; do :; done"));
        self.shell("until grep -q 'ShdPnd:.0*$' /proc/$(cat pid)/status; do :; done");
    }

    fn shell(&self, script: &str) {
        let ended = Command::new("timeout")
            .args(["180", "sh", "-c", script])
            .current_dir(self.place().workspace())
            .status();
        assert!(ended.expect("the system has timeout").success());
    }
}

/// The line that starts the chat of this state, and keeps the name of its terminal and its number.
fn line(state: &State) -> String {
    format!("sh -c 'tty > tty; echo $$ > pid; exec {}'", state.line())
}

/// A screen whose lines may be broken into rows.
fn joined(screen: &str) -> String {
    screen.replace("\n  ", "").replace('\n', "")
}

#[test]
fn a_terminal_that_cuts_lines() {
    for state in TYPING.iter().chain(&WORKING).chain(&ASKING) {
        let run = Run::script("sh", &format!("exec {}", line(state)));
        let mut at = state.on(run.env("XTERM_VERSION", "XTerm(390)"));
        state.enter(&mut at);
        resize(state, &mut at, false);
    }
}

#[test]
fn a_terminal_that_breaks_lines_anew() {
    for state in TYPING.iter().chain(&WORKING).chain(&ASKING) {
        let Some(run) = tmux::run() else { return };
        let mut at = state.on(run);
        at.terminal.wait_for("ready:");
        at.terminal.line(&line(state));
        state.enter(&mut at);
        resize(state, &mut at, true);
    }
}

/// A screen without what a clock decides: of the lines about work that goes on, only how they begin.
fn steady(screen: &str) -> String {
    let line = |line: &str| match line.split_once(' ') {
        Some((mark, rest)) if mark == "▸" || rest.starts_with("thinking") => {
            rest.split(' ').next().unwrap_or_default().to_owned() + "\n"
        }
        _ => format!("{line}\n"),
    };
    screen.lines().map(line).collect()
}
