//! While a question waits.

use serde_json::json;

use super::{After, Probe, State, is_prompted, none, nothing};
use crate::chat_commands;
use crate::reply::Reply;

/// The whole list of choices is drawn.
fn is_listed(screen: &str) -> bool {
    screen.contains("1. ") && screen.contains("Esc gives no answer") && is_prompted(screen)
}

/// All of them.
pub const ASKING: [State; 5] = [APPROVAL, TELLING, ASK_USER, PICKER, TRUST];

pub const APPROVAL: State = State {
    name: "an approval waits",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: |_| vec![Reply::call("run_command", &json!({"command": "touch made"}))],
    enter: |at| at.terminal.line("one"),
    shows: |screen| screen.contains("Allow? (y or n"),
    once: "Allow?",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.contains("Allow? (y or n"),
    go_on: |at| {
        at.terminal.line("y");
        at.answered();
        assert!(at.place().exists("made"));
    },
    control_c: After::Says("interrupted"),
    control_d: After::GoesOn,
};

pub const TELLING: State = State {
    name: "words for the model are typed at an approval",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: APPROVAL.replies,
    enter: |at| {
        (APPROVAL.enter)(at);
        at.terminal.wait_for("Allow? (y or n");
        at.terminal.pick("No, because");
        at.terminal.wait_for("(Enter sends");
        at.terminal.keys("not");
    },
    shows: |screen| screen.trim_end().ends_with("> not"),
    once: "What should it do instead?",
    probe: Probe::Keys(["!", "> not!", "\x7f"]),
    continued: |screen| screen.trim_end().ends_with("> not"),
    go_on: |at| {
        at.terminal.keys(" this\r");
        at.answered();
        assert!(at.server.requests()[1].raw.contains("not this"));
        assert!(!at.place().exists("made"));
    },
    control_c: After::Says("interrupted"),
    control_d: After::Nothing,
};

pub const ASK_USER: State = State {
    name: "the model asks",
    begins_at_the_prompt: true,
    args: &[],
    prepare: nothing,
    replies: |_| {
        let question = json!({"question": "Which of the two colours that there are should all of it have?", "choices": ["red", "blue"]});
        vec![Reply::call("ask_user", &question)]
    },
    enter: |at| at.terminal.line("one"),
    shows: |screen| screen.contains("▸ ask_user") && is_listed(screen),
    once: "1. red",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.contains("1. red"),
    go_on: |at| {
        at.terminal.line("2");
        at.answered();
        assert!(at.server.requests()[1].last_result().contains("blue"));
    },
    control_c: After::Says("interrupted"),
    control_d: After::GoesOn,
};

pub const PICKER: State = State {
    name: "a model is picked",
    begins_at_the_prompt: true,
    args: &[],
    prepare: chat_commands::two,
    replies: none,
    enter: |at| at.terminal.line("/model"),
    shows: is_listed,
    once: "Which model?",
    probe: Probe::Keys(["!", "> !", "\x7f"]),
    continued: |screen| screen.contains("1. "),
    go_on: |at| {
        at.terminal.keys("\x1b");
        at.terminal.wait_for("The model stays.");
        at.prompted();
        at.terminal.line("one");
    },
    control_c: After::Says("Stopped."),
    control_d: After::Says("The model stays."),
};

pub const TRUST: State = State {
    name: "the question of trust",
    begins_at_the_prompt: false,
    args: &[],
    prepare: |run| run.file(".agent/agents/theirs.yaml", "description: x\n"),
    replies: none,
    enter: |_| {},
    shows: |screen| screen.contains("[y/N] "),
    once: "Files:",
    probe: Probe::Nothing,
    continued: |_| true,
    go_on: |at| {
        at.terminal.line("n");
        at.prompted();
        at.terminal.line("one");
    },
    control_c: After::Leaves(130),
    control_d: After::Clears,
};
