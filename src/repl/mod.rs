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
mod chat;
pub mod greeting;
mod commands;
mod shell;
mod offered;
mod find;
mod complete;
mod multiline;
mod pastes;
mod strokes;
mod interrupts;
mod input;
mod typing;
mod lines;

use std::io::Write;

pub use chat::{Chat, Hands, Opening};
pub use complete::Vocabulary;
pub use find::Finder;
pub use interrupts::{Interrupter, Interrupts, interrupts};
pub use lines::{Lines, Setup};

use crate::agent::exit::{self, Signal};
use crate::sink::Outlets;
use crate::{terminal, text};
use chat::Ended;
use commands::{Command, Input, Outcome, Run};
use lines::Line;

/// Reads lines and takes turns until the lines end. Hints, tables and warnings go to stderr. Returns the exit code: 0
/// for a person, unless a second Ctrl-C ended the chat; for a pipe the code of the last turn that failed.
pub async fn run(chat: &mut Chat, lines: &Lines, interrupts: &mut Interrupts, outlets: &mut Outlets) -> u8 {
    let interactive = lines.interactive();
    let interrupted = Signal::Interrupt.code();
    let mut code = exit::DONE;
    if chat.is_asked()
        && let Some(code) = taken(chat, None, interrupts, interactive, &mut code).await
    {
        return code;
    }
    loop {
        let line = tokio::select! {
            biased;
            line = lines.read() => line,
            // A signal from outside: the editor reads a typed Ctrl-C as a key.
            () = interrupts.next() => {
                if interactive {
                    lines.interrupted();
                    continue;
                }
                return interrupted;
            }
        };
        let (text, is_pasted) = match line {
            Line::Text(text) => (text, false),
            Line::Pasted(text) => (text, true),
            Line::Elsewhere(text) => {
                if let Some(told) = edited(chat, lines, text).await {
                    tell(outlets, &told);
                }
                interrupts.forget();
                continue;
            }
            Line::Cleared => continue,
            Line::Interrupted => {
                tell(outlets, "Ctrl-D or /exit leaves.");
                continue;
            }
            Line::Eof => return code,
            Line::Failed(why) => {
                tell(outlets, &format!("error: no more input: {why}"));
                return exit::FAILED;
            }
        };
        let input = match multiline::block(&text) {
            Some(block) if block.trim().is_empty() => Input::Empty,
            Some(block) => Input::Message(block.to_owned()),
            None if is_pasted => Input::Message(text),
            // What comes through a pipe is not typed by a person.
            None => match shell::parse(&text).filter(|_| interactive) {
                Some(escape) => {
                    let lent = lines.lend().await;
                    let told = shell::run(chat, escape).await;
                    drop(lent);
                    // Ctrl-C was for the command.
                    interrupts.forget();
                    tell(outlets, &told);
                    continue;
                }
                None => commands::parse(&text),
            },
        };
        let outcome = match input {
            Input::Empty => continue,
            Input::Mistake(why) => Outcome::Tell(why),
            Input::Message(message) => Outcome::Turn(message),
            Input::Command(command, argument) => {
                let outcome = answer(chat, command, &argument, interrupts).await;
                outlets.display.settle();
                outcome
            }
        };
        let message = match outcome {
            Outcome::Leave => return code,
            Outcome::Tell(text) => {
                tell(outlets, &text);
                continue;
            }
            Outcome::Turn(message) => message,
        };
        lines.turn_begins();
        for why in chat.attach_mentioned(&message) {
            tell(outlets, &format!("warning: {why}"));
        }
        if let Some(code) = taken(chat, Some(message), interrupts, interactive, &mut code).await {
            return code;
        }
    }
}

/// Lets the person go on with a text in their own editor, and puts it back into the line. Returns why that failed.
async fn edited(chat: &Chat, lines: &Lines, text: String) -> Option<String> {
    let lent = lines.lend().await;
    let saved = chat.hands.editor.edit(&text, "md").await;
    drop(lent);
    let (text, told) = match saved {
        Ok(saved) => (saved.unwrap_or(text), None),
        Err(why) => (text, Some(format!("error: {why}"))),
    };
    // Editors end the last line, which would be a line more at the prompt.
    lines.begin_with(text.trim_end_matches(['\n', '\r']));
    told
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
    answer.unwrap_or_else(|why| Outcome::Tell(format!("error: {why}")))
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
