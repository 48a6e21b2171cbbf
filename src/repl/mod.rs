//! The interactive front end: a line editor, slash commands, one turn after another.
//!
//! [`run`] reads lines and gives each to the [`Chat`]: a command changes it, a message is a turn in it. A turn that is
//! interrupted is dropped and settled, and the next line is read.

pub mod tables;
pub mod context;
pub mod progress;
pub mod history;
pub mod fuzzy;
mod mentions;
mod at_hand;
mod osc52;
mod own;
mod foreground;
mod chat;
mod switch;
pub mod greeting;
mod commands;
mod shell;
mod offered;
mod find;
mod complete;
mod multiline;
mod pastes;
mod strokes;
mod reflow;
mod interrupts;
mod input;
mod typing;
mod by_line;
mod lines;

use std::io::Write;
use std::sync::Arc;

pub use at_hand::AtHand;
pub use chat::{Chat, Opening};
pub use commands::is_built_in;
pub use complete::Vocabulary;
pub use interrupts::{Interrupter, Interrupts, interrupts};
pub use lines::{Lines, Setup};

use crate::agent::exit::{self, Signal};
use crate::sink::Outlets;
use crate::{terminal, text};
use chat::Ended;
use commands::{Command, Input, Outcome, Run};
use lines::Line;

/// The words that complete in a chat.
#[must_use]
pub fn vocabulary(chat: &Chat) -> Vocabulary {
    Vocabulary {
        skills: chat.services.catalogue.iter().map(|skill| skill.name.clone()).collect(),
        own: chat.own.clone(),
        files: find::Finder::new(chat.workspace.root()),
        config: Some(Arc::clone(&chat.config)),
    }
}

/// Reads lines and takes turns until the lines end. Hints, tables and warnings go to stderr. Returns the exit code: 0
/// for a person, unless a second Ctrl-C ended the chat; for a pipe the code of the last turn that failed.
pub async fn run(chat: &mut Chat, lines: &Lines, interrupts: &mut Interrupts, outlets: &mut Outlets) -> u8 {
    let interactive = lines.interactive();
    let mut code = exit::DONE;
    let steering = chat.run.steering.clone();
    lines.connect(Box::new(move |said| steering.push(said)));
    if chat.is_asked()
        && let Some(code) = taken(chat, None, interrupts, interactive, &mut code).await
    {
        return code;
    }
    loop {
        let input = match heard(chat, lines, interrupts, outlets).await {
            Heard::Input(input) => input,
            Heard::Nothing => continue,
            Heard::End => return code,
            Heard::Failed(code) => return code,
        };
        let outcome = match input {
            Input::Empty => continue,
            Input::Mistake(why) => Outcome::Tell(why),
            Input::Message(message) => Outcome::Turn(message),
            Input::Own(command, arguments) => {
                commands::run_own(chat, &command, &arguments).unwrap_or_else(|why| Outcome::Tell(error(why)))
            }
            Input::Command(command, argument) => {
                let outcome = answer(chat, command, &argument, interrupts).await;
                outlets.display.settle();
                outcome
            }
        };
        let Some(done) = carried_out(chat, outcome, lines, outlets).await else {
            return code;
        };
        // A Ctrl-C for the pager or the editor was no interrupt.
        interrupts.forget();
        let message = match done {
            Done::Message(message) => message,
            Done::Told(text) => {
                tell(outlets, &text);
                continue;
            }
        };
        lines.turn_begins();
        for why in chat.attach_mentioned(&message) {
            tell(outlets, &format!("warning: {why}"));
        }
        if let Some(code) = taken(chat, Some(message), interrupts, interactive, &mut code).await {
            return code;
        }
        lines.put_first(chat.run.steering.take_rest());
    }
}

/// What came of a line.
enum Heard {
    Input(Input),
    /// It was dealt with.
    Nothing,
    End,
    /// The chat ends with this code.
    Failed(u8),
}

/// Reads a line, and deals with what is neither a message nor a command of the chat.
async fn heard(chat: &mut Chat, lines: &Lines, interrupts: &mut Interrupts, outlets: &mut Outlets) -> Heard {
    let interactive = lines.interactive();
    let line = tokio::select! {
        biased;
        line = lines.read() => line,
        // A signal from outside: the editor reads a typed Ctrl-C as a key.
        () = interrupts.next() => {
            if interactive {
                lines.interrupted();
                return Heard::Nothing;
            }
            return Heard::Failed(Signal::Interrupt.code());
        }
    };
    let (text, is_pasted) = match line {
        Line::Text(text) => (text, false),
        Line::Pasted(text) => (text, true),
        Line::Elsewhere(text) => {
            let lent = lines.lend(outlets).await;
            let (text, told) = foreground::go_on(&chat.at_hand, text).await;
            drop(lent);
            interrupts.forget();
            lines.begin_with(&text);
            tell(outlets, &told);
            return Heard::Nothing;
        }
        Line::Cleared => return Heard::Nothing,
        Line::Interrupted => {
            tell(outlets, "Ctrl-D or /exit leaves.");
            return Heard::Nothing;
        }
        Line::Eof => return Heard::End,
        Line::Failed(why) => {
            tell(outlets, &format!("error: no more input: {why}"));
            return Heard::Failed(exit::FAILED);
        }
    };
    Heard::Input(match multiline::block(&text) {
        Some(block) if block.trim().is_empty() => Input::Empty,
        Some(block) => Input::Message(block.to_owned()),
        None if is_pasted => Input::Message(text),
        // What comes through a pipe is not typed by a person.
        None => match shell::parse(&text).filter(|_| interactive) {
            Some(escape) => {
                let lent = lines.lend(outlets).await;
                let told = shell::run(chat, escape).await;
                drop(lent);
                // Ctrl-C was for the command.
                interrupts.forget();
                tell(outlets, &told);
                return Heard::Nothing;
            }
            None => commands::parse(&text, &chat.own),
        },
    })
}

/// What an outcome leads to.
enum Done {
    /// A message for the model.
    Message(String),
    /// Words for the person; none if empty.
    Told(String),
}

/// Does what a command wants of the terminal. `None`: the chat ends.
async fn carried_out(chat: &Chat, outcome: Outcome, lines: &Lines, outlets: &mut Outlets) -> Option<Done> {
    Some(match outcome {
        Outcome::Leave => return None,
        Outcome::Turn(message) => Done::Message(message),
        Outcome::Tell(text) => Done::Told(text),
        Outcome::Page(text) => {
            let _lent = lines.lend(outlets).await;
            Done::Told(foreground::page(&chat.at_hand, &text).await.unwrap_or_default())
        }
        Outcome::Copy(text) => {
            Done::Told(foreground::copy(&chat.at_hand, outlets, &text).await.unwrap_or_else(error))
        }
        Outcome::Compose => {
            let _lent = lines.lend(outlets).await;
            match foreground::compose(&chat.at_hand).await {
                Ok(Some(message)) => Done::Message(message),
                Ok(None) => Done::Told("Nothing was written.".to_owned()),
                Err(why) => Done::Told(error(why)),
            }
        }
    })
}

/// Takes one turn, and keeps the code of one that failed. Returns the code of a chat that ends with it.
async fn taken(
    chat: &mut Chat,
    message: Option<String>,
    interrupts: &mut Interrupts,
    interactive: bool,
    code: &mut u8,
) -> Option<u8> {
    let interrupted = Signal::Interrupt.code();
    let end = match Box::pin(turn(chat, message, interrupts)).await {
        Some(Ended::Unseen) => return Some(*code),
        Some(Ended::With(end)) => end,
        None => return Some(interrupted),
    };
    if !interactive && end != exit::DONE {
        *code = end;
    }
    (!interactive && end == interrupted).then_some(*code)
}

/// Runs a command. Ctrl-C stops it.
async fn answer(chat: &mut Chat, command: &Command, argument: &str, interrupts: &mut Interrupts) -> Outcome {
    let answer = match command.run {
        Run::Now(run) => run(chat, argument),
        Run::Later(run) => {
            interrupts.forget();
            let answer = tokio::select! {
                biased;
                () = interrupts.next() => None,
                answer = run(chat, argument) => Some(answer),
            };
            answer.unwrap_or_else(|| {
                chat.command_interrupted();
                Ok(Outcome::Tell("Stopped.".to_owned()))
            })
        }
    };
    answer.unwrap_or_else(|why| Outcome::Tell(error(why)))
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn error(why: String) -> String {
    format!("error: {why}")
}

/// Takes one turn. Ctrl-C stops it. Returns `None` when a second Ctrl-C came meanwhile.
async fn turn(chat: &mut Chat, message: Option<String>, interrupts: &mut Interrupts) -> Option<Ended> {
    interrupts.forget();
    let ended = tokio::select! {
        biased;
        () = interrupts.next() => None,
        ended = chat.turn(message) => Some(ended),
    };
    if ended.is_some() {
        return ended;
    }
    let ended = chat.interrupted();
    (!interrupts.forget()).then_some(ended)
}

/// Writes to stderr. Errors are ignored: a closed stderr is no reason to stop.
fn tell(outlets: &mut Outlets, text: &str) {
    let text = text.trim_end();
    if text.is_empty() {
        return;
    }
    let folded = terminal::width().map_or(text.into(), |width| text::fold(text, width.saturating_sub(1)));
    let out = &mut outlets.progress;
    let _ = writeln!(out, "{folded}").and_then(|()| out.flush());
}
