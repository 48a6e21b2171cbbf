//! While another program has the terminal.

use serde_json::json;

use super::{After, Probe, State, none};
use crate::plans::{accepted, plan, step};
use crate::reply::Reply;

/// All of them.
pub const AWAY: [State; 3] = [EDITOR, PAGER, PLAN_EDITOR];

/// Says what it was told until it gets a line. The shell waits, and another one, which no interrupt reaches, reads: an
/// interrupt that comes between the start of a shell's `read` and its system call is kept until a key is pressed.
const PROGRAM: &str = "trap 'echo told' INT\n\
                       { echo it has the terminal; until read -r key < /dev/tty; do echo again; done\n\
                       echo \"got $key\"; } &\n\
                       until wait $!; do :; done\n";

pub const EDITOR: State = State {
    name: "an editor has the line",
    begins_at_the_prompt: true,
    args: &[],
    prepare: |run| run.file("editor.sh", PROGRAM).env("EDITOR", "sh editor.sh"),
    replies: none,
    enter: |at| at.terminal.keys("begun\x18\x05"),
    shows: |screen| screen.contains("it has the terminal"),
    once: "it has the terminal",
    probe: Probe::Nothing,
    continued: |_| true,
    go_on: |at| {
        at.terminal.line("k");
        at.terminal.wait_for("got k");
        at.terminal.wait_until("the line again", |screen| screen.trim_end().ends_with("> begun"));
        at.terminal.keys("\r");
        at.answered();
        assert_eq!(at.server.requests()[0].user(), "begun");
    },
    control_c: After::Elsewhere("told"),
    control_d: After::Elsewhere("again"),
};

pub const PAGER: State = State {
    name: "a pager shows a text",
    begins_at_the_prompt: true,
    args: &["--approve", "all"],
    prepare: |run| run.file("pager.sh", PROGRAM).env("PAGER", "sh pager.sh"),
    replies: |_| vec![Reply::call("run_command", &json!({"command": "seq 200"})), Reply::text("Counted.")],
    enter: |at| {
        at.terminal.line("count");
        at.terminal.wait_for("Counted.");
        at.prompted();
        at.terminal.line("/last");
    },
    shows: |screen| screen.contains("it has the terminal"),
    once: "it has the terminal",
    probe: Probe::Nothing,
    continued: |_| true,
    go_on: |at| {
        at.terminal.line("k");
        at.terminal.wait_for("got k");
        at.prompted();
        at.terminal.line("one");
    },
    control_c: After::Elsewhere("told"),
    control_d: After::Elsewhere("again"),
};

pub const PLAN_EDITOR: State = State {
    name: "an editor has the plan of a turn",
    begins_at_the_prompt: true,
    args: &["--approve", "all", "--mode", "plan"],
    prepare: EDITOR.prepare,
    replies: |_| vec![plan(&[step(1, "list_dir", &json!({"path": "."}), &[])]), accepted()],
    enter: |at| {
        at.terminal.line("one");
        at.terminal.wait_for("Run it? (y or n");
        at.terminal.pick("Edit");
    },
    shows: EDITOR.shows,
    once: "it has the terminal",
    probe: Probe::Nothing,
    continued: |_| true,
    go_on: |at| {
        at.terminal.line("k");
        at.terminal.wait_for("got k");
        at.terminal.wait_for("Run it? (y or n");
        at.terminal.line("y");
    },
    control_c: After::Elsewhere("told"),
    control_d: After::Elsewhere("again"),
};
