//! While a turn runs.

use serde_json::json;

use super::{After, LAST, Probe, State, nothing};
use crate::reply::Reply;

/// All of them.
pub const WORKING: [State; 4] = [THINKING, STREAMING, TYPING_AHEAD, COMMAND];

pub const THINKING: State = State {
    name: "the model thinks",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: |gate| vec![Reply::text(LAST).gate(gate, 0)],
    enter: |at| {
        at.terminal.line("one");
        at.gate.reached();
    },
    shows: |screen| screen.contains("thinking"),
    once: "thinking",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.contains("thinking"),
    go_on: |at| at.gate.open(),
    control_c: After::Says("interrupted"),
    control_d: After::LeavesLater,
};

pub const STREAMING: State = State {
    name: "an answer streams",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: |gate| {
        vec![Reply::text("It begins here, takes more than one row of a narrow screen, and then it goes on from here to its end at some other time than now. That is all.").gate(gate, 2)]
    },
    enter: |at| {
        at.terminal.line("one");
        at.gate.reached();
    },
    shows: |screen| screen.contains("thinking") && screen.contains("It begins here"),
    once: "It begins here, takes more than one row",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.contains("It begins here"),
    go_on: |at| at.gate.open(),
    control_c: After::Says("interrupted"),
    control_d: After::LeavesLater,
};

pub const TYPING_AHEAD: State = State {
    name: "one types while an answer streams",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: STREAMING.replies,
    enter: |at| {
        (STREAMING.enter)(at);
        at.terminal.keys("typed ahead of an answer that is long in coming, on two rows");
    },
    shows: |screen| {
        screen.contains("thinking")
            && screen.contains("It begins here")
            && screen.trim_end().ends_with("> typed ahead of an answer that is long in coming, on two rows")
    },
    once: "> typed ahead",
    probe: Probe::Keys(["!", "two rows!", "\x7f"]),
    continued: |screen| {
        screen.trim_end().ends_with("> typed ahead of an answer that is long in coming, on two rows")
    },
    go_on: |at| {
        at.gate.open();
        at.terminal.wait_for(LAST);
        at.terminal.wait_until("the line in the editor", |screen| {
            screen.contains(" out ·")
                && screen.trim_end().ends_with("> typed ahead of an answer that is long in coming, on two rows")
        });
        at.terminal.keys("\x15");
    },
    control_c: After::Keeps("interrupted", "> typed ahead of an answer that is long in coming, on two rows"),
    control_d: After::Nothing,
};

pub const COMMAND: State = State {
    name: "a command runs",
    begins_at_the_prompt: true,
    args: &["--approve", "all"],
    prepare: |run| {
        let fifo = run.place().workspace().join("go");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("the workspace takes a fifo");
        run
    },
    replies: |_| vec![Reply::call("run_command", &json!({"command": "echo first; cat go"}))],
    enter: |at| at.terminal.line("one"),
    shows: |screen| screen.contains("│ first"),
    once: "│ first",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.contains("│ first"),
    go_on: |at| std::fs::write(at.place().workspace().join("go"), "").expect("the command reads"),
    control_c: After::Says("interrupted"),
    control_d: After::LeavesLater,
};
