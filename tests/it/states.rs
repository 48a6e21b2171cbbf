//! The states of a chat at a terminal: how a person gets into each, what it shows, what the keys of a shell do in it,
//! and how the person goes on.

mod asking;
mod away;
mod typing;
mod working;

pub use asking::{ASKING, TRUST};
pub use away::AWAY;
pub use typing::TYPING;
pub use working::WORKING;

use crate::pty::Terminal;
use crate::reply::{Gate, Reply};
use crate::run::{Place, Run};
use crate::server::{Server, assert_answered_once};

/// A state of a chat.
pub struct State {
    pub name: &'static str,
    /// Arguments behind `agent chat`.
    pub args: &'static [&'static str],
    /// Files and variables.
    pub prepare: fn(Run) -> Run,
    pub replies: fn(&Gate) -> Vec<Reply>,
    /// The chat shows its prompt before it comes into the state.
    pub begins_at_the_prompt: bool,
    /// Brings a chat at its prompt into the state.
    pub enter: fn(&mut At),
    /// True if this part of the screen shows the state.
    pub shows: fn(&str) -> bool,
    /// A text that the screen shows exactly once in it.
    pub once: &'static str,
    pub probe: Probe,
    /// True if the screen, which was cleared meanwhile, shows the state after a stop.
    pub continued: fn(&str) -> bool,
    /// The person's next action. The last answer follows.
    pub go_on: fn(&mut At),
    pub control_c: After,
    pub control_d: After,
}

/// The sign that the screen was drawn for its present width.
#[derive(Debug, Clone, Copy)]
pub enum Probe {
    /// The first keys show this, and the last ones undo it.
    Keys([&'static str; 3]),
    /// It is never drawn again.
    Nothing,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy)]
pub enum After {
    /// The chat says this, and the prompt takes the next message.
    Says(&'static str),
    /// The chat says the first, and the second stands in the line.
    Keeps(&'static str, &'static str),
    /// Nothing is said; the prompt is empty, and takes the next message.
    Clears,
    /// The turn goes on to its end.
    GoesOn,
    /// Nothing changes.
    Nothing,
    /// The program that has the terminal shows this. The chat hears nothing of the key.
    Elsewhere(&'static str),
    /// The program ends with this code.
    Leaves(u32),
    /// The turn goes on to its end, and then the program ends with 0.
    LeavesLater,
}

/// A chat in a state.
pub struct At {
    pub terminal: Terminal,
    pub server: Server,
    pub gate: Gate,
}

impl State {
    /// The chat on a terminal of its own, in the state.
    pub fn entered(&self) -> At {
        let mut at = self.on(Run::new().arg("chat").args(self.args.iter().copied()));
        self.enter(&mut at);
        at
    }

    /// A terminal with `run`, which starts the chat or a shell.
    #[expect(clippy::print_stdout, reason = "a test that fails in one of many states says in which")]
    pub fn on(&self, run: Run) -> At {
        println!("state: {}", self.name);
        let gate = Gate::new();
        let end = std::iter::repeat_with(|| Reply::text(LAST)).take(4);
        let server = Server::start((self.replies)(&gate).into_iter().chain(end));
        let terminal = Terminal::sized(&(self.prepare)(run.server(&server)), 80, 30);
        At { terminal, server, gate }
    }

    /// Goes from the start of the chat into the state.
    pub fn enter(&self, at: &mut At) {
        if self.begins_at_the_prompt {
            at.prompted();
        }
        (self.enter)(at);
        at.terminal.wait_until(self.name, |screen| (self.shows)(screen));
    }

    /// The command line that starts it in a shell.
    pub fn line(&self) -> String {
        ["agent", "chat"].iter().chain(self.args).copied().collect::<Vec<_>>().join(" ")
    }
}

impl At {
    /// The prompt takes a message, and the model hears it next.
    #[track_caller]
    pub fn takes_the_next_message(&mut self) {
        self.prompted();
        let (answers, requests) = (self.terminal.screen().matches(LAST).count(), self.server.requests().len());
        self.terminal.line("the next one");
        self.terminal.wait_until("the answer to the next one", |screen| screen.matches(LAST).count() > answers);
        let requests = self.server.requests().split_off(requests);
        let [request] = requests.as_slice() else { panic!("{} requests", requests.len()) };
        // A turn that ended without an answer has left its message before it.
        assert!(request.user().ends_with("the next one"), "{}", request.user());
        assert_answered_once(request);
    }

    /// Waits for an empty prompt.
    #[track_caller]
    pub fn prompted(&self) {
        self.terminal.wait_until("the empty prompt", is_prompted);
    }

    /// Waits for the last answer.
    #[track_caller]
    pub fn answered(&self) {
        self.terminal.wait_for(LAST);
        self.prompted();
    }

    pub fn place(&self) -> &Place {
        &self.terminal.place
    }
}

pub fn is_prompted(screen: &str) -> bool {
    screen.trim_end().ends_with("\n>")
}

/// The answer with which every chat ends.
pub const LAST: &str = "That is all.";

fn nothing(run: Run) -> Run {
    run
}

fn none(_: &Gate) -> Vec<Reply> {
    Vec::new()
}
