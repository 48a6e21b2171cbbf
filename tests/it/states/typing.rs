//! At the prompt.

use super::{After, Probe, State, is_prompted, none, nothing};

/// All of them.
pub const TYPING: [State; 5] = [EMPTY, TYPED, CONTINUED, SEARCH, COMPLETION];

pub const EMPTY: State = State {
    name: "an empty prompt",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: none,
    enter: |_| {},
    shows: is_prompted,
    once: "scripted-model at",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.trim_end().ends_with('>'),
    go_on: |at| at.terminal.line("one"),
    control_c: After::Says("Ctrl-D or /exit leaves."),
    control_d: After::Leaves(0),
};

pub const TYPED: State = State {
    name: "text at the prompt",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: none,
    enter: |at| at.terminal.keys("half a line that takes more than one row of a narrow screen"),
    shows: |screen| screen.trim_end().ends_with("> half a line that takes more than one row of a narrow screen"),
    once: "> half a line that takes more than one row of a narrow screen",
    probe: Probe::Keys(["!", "narrow screen!", "\x7f"]),
    continued: |screen| {
        screen.trim_end().ends_with("> half a line that takes more than one row of a narrow screen")
    },
    go_on: |at| {
        at.terminal.keys(", and its end\r");
        at.answered();
        assert_eq!(
            at.server.requests()[0].user(),
            "half a line that takes more than one row of a narrow screen, and its end"
        );
    },
    control_c: After::Clears,
    control_d: After::Nothing,
};

pub const CONTINUED: State = State {
    name: "the second line of a message",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: none,
    enter: |at| {
        at.terminal.line("first \\");
        at.terminal.wait_for("> first \n  ");
        at.terminal.keys("second");
    },
    shows: |screen| screen.trim_end().ends_with("> first \n  second"),
    once: "> first",
    probe: Probe::Keys(["!", "second!", "\x7f"]),
    continued: |screen| screen.trim_end().ends_with("  second"),
    go_on: |at| {
        at.terminal.keys(" half\r");
        at.answered();
        assert_eq!(at.server.requests()[0].user(), "first \nsecond half");
    },
    control_c: After::Clears,
    control_d: After::Nothing,
};

pub const SEARCH: State = State {
    name: "a search of the history",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: none,
    enter: |at| {
        at.terminal.line("/stats");
        at.terminal.wait_for("No tool was called.");
        at.prompted();
        at.terminal.keys("\x12sta");
    },
    shows: |screen| screen.contains("`sta': /stats"),
    once: "`sta'",
    probe: Probe::Keys(["t", "`stat'", "\x7f"]),
    continued: |screen| screen.contains("`sta': /stats"),
    go_on: |at| {
        at.terminal.keys("\x05\x15");
        at.prompted();
        at.terminal.line("one");
    },
    control_c: After::Clears,
    // It deletes a character, as in a shell.
    control_d: After::Nothing,
};

pub const COMPLETION: State = State {
    name: "a list of completions",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: none,
    enter: |at| at.terminal.keys("/s\t"),
    shows: |screen| screen.contains("> /s\n/set"),
    once: "> /s",
    probe: Probe::Nothing,
    continued: |screen| screen.contains("> /s\n/set"),
    go_on: |at| {
        at.terminal.keys("tats\r");
        at.terminal.wait_for("No tool was called.");
        at.prompted();
        at.terminal.line("one");
    },
    control_c: After::Clears,
    control_d: After::Nothing,
};
