//! The interactive front end: a line editor, slash commands, one turn after another.
//!
//! [`run_chat`] reads lines and passes each to the [`Chat`]: a command changes it, a message begins a turn. An interrupted
//! turn is dropped and settled, then the next line is read.

pub mod tables;
pub mod context;
pub mod progress;
pub mod history;
pub mod undo;
pub mod trial;
pub mod fuzzy;
mod mentions;
mod at_hand;
mod own;
mod foreground;
mod look;
mod chat_session;
mod switch;
pub mod greeting;
mod commands;
mod shell;
mod find;
mod complete;
mod interrupts;
mod by_line;
mod lines;
mod beside;

use std::io::Write;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::mpsc;

pub use at_hand::AtHand;
pub use chat_session::{Chat, FirstInput, Opening};
pub use commands::is_built_in;
pub use complete::{ArgumentNames, list_models, list_prompts};
pub use interrupts::{Interrupter, Interrupts, create_interrupts};
pub use lines::{EditorSetup, MessageLines};
pub use own::write_message;

use crate::agent::exit::{self, Signal};
use crate::base::text;
use crate::screen::Outlets;
use crate::screen::line::{LineWishes, TypedText, strip_fences};
use crate::screen::terminal;
use beside::{Beside, take_turn};
use commands::{CommandFunction, ParsedInput, SlashCommand, SlashOutcome};
use lines::LineInput;

/// Collects the words to complete in a chat.
fn collect_vocabulary(chat: &Chat) -> ArgumentNames {
    ArgumentNames {
        skills: chat.services.catalogue.iter().map(|skill| skill.name.clone()).collect(),
        own: chat.own.clone(),
        files: find::Finder::new(chat.workspace.root()),
        config: Some(Arc::clone(&chat.config)),
        servers: chat.services.agent.tools.servers().map(Arc::downgrade).unwrap_or_default(),
    }
}

/// Reads lines and takes turns until the lines end. Hints, tables and warnings go to stderr. Returns the exit code: 0
/// for a person, unless a second Ctrl-C ended the chat; for a pipe the code of the last turn that failed.
pub async fn run_chat(
    chat: &mut Chat,
    lines: &MessageLines,
    interrupts: &mut Interrupts,
    outlets: &mut Outlets,
) -> u8 {
    let mut code = exit::DONE;
    let steering = chat.run.steering.clone();
    let (look, looks) = mpsc::unbounded_channel();
    let steer = Box::new(move |said| steering.push(said));
    let look = Box::new(move || {
        // Without a receiver the chat is over.
        let _ = look.send(());
    });
    let interrupter = lines.interrupter().clone();
    let stop = Box::new(move || interrupter.stop());
    if let Some(typing) = lines.typing() {
        typing.connect(LineWishes { steer, look, stop });
    }
    lines.learn_words(collect_vocabulary(chat));
    let mut beside = Beside { lines, outlets: outlets.clone(), looks };
    if chat.is_asked()
        && let Some(code) = take_message(chat, None, interrupts, &mut beside, &mut code).await
    {
        return code;
    }
    loop {
        let heard = match chat.first.take() {
            Some(FirstInput::Message(message)) => {
                if lines.interactive() {
                    tell_person(outlets, &format!("> {message}"));
                }
                Continue(Some(ParsedInput::Message(message)))
            }
            Some(FirstInput::Resume) => Continue(Some(commands::parse_input("/resume", &[]))),
            None => hear_line(chat, lines, interrupts, outlets).await,
        };
        let input = match heard {
            Continue(Some(input)) => input,
            Continue(None) => continue,
            Break(end) => return end.unwrap_or(code),
        };
        let outcome = match input {
            ParsedInput::Empty => continue,
            ParsedInput::Mistake(why) => SlashOutcome::Tell(why),
            ParsedInput::Message(message) => SlashOutcome::Turn(message),
            ParsedInput::Own(command, arguments) => commands::run_own(chat, &command, &arguments).into(),
            ParsedInput::Command(command, argument) => {
                let outcome = answer_command(chat, command, &argument, interrupts).await;
                lines.learn_words(collect_vocabulary(chat));
                outlets.display.settle();
                outcome
            }
        };
        let Continue(message) = carry_out(chat, outcome, lines, outlets).await else { return code };
        // A Ctrl-C in the pager or the editor was not an interrupt.
        interrupts.forget();
        let Some(message) = message else { continue };
        let refused = tokio::select! {
            biased;
            () = interrupts.next() => {
                tell_person(outlets, "Stopped. Nothing was sent; Up brings the message back.");
                continue;
            }
            refused = chat.attach_mentioned(&message) => refused,
        };
        for why in refused {
            tell_person(outlets, &format!("warning: {why}"));
        }
        if let Some(code) = take_message(chat, Some(message), interrupts, &mut beside, &mut code).await {
            return code;
        }
        let rest = chat.run.steering.take_rest();
        if let Some(typing) = lines.typing() {
            typing.put_first(rest);
        }
    }
}

/// Reads a line. Handles it at once if it is neither a message nor a command of the chat. Breaks at the end of the
/// lines, or with the code of the chat.
async fn hear_line(
    chat: &mut Chat,
    lines: &MessageLines,
    interrupts: &mut Interrupts,
    outlets: &mut Outlets,
) -> ControlFlow<Option<u8>, Option<ParsedInput>> {
    let interactive = lines.interactive();
    let line = {
        // A title is asked for while the person reads and types. A pipe waits for it: its end may be next.
        let mut titling = pin!(chat.give_title());
        let mut is_titled = false;
        let line = loop {
            tokio::select! {
                biased;
                line = lines.read(), if interactive || is_titled => break line,
                // A signal from outside: a typed Ctrl-C is a key.
                () = interrupts.next() => {
                    if interactive {
                        lines.interrupted();
                        return Continue(None);
                    }
                    return Break(Some(Signal::Interrupt.code()));
                }
                () = &mut titling, if !is_titled => is_titled = true,
            }
        };
        let is_said = matches!(&line, LineInput::Text(it) | LineInput::Pasted(it) if !it.starts_with('/'));
        if is_said && !is_titled {
            tokio::select! {
                biased;
                () = interrupts.next() => {}
                () = titling => {}
            }
        }
        outlets.display.settle();
        line
    };
    let (text, is_pasted) = match line {
        LineInput::Text(text) => (text, false),
        LineInput::Pasted(text) => (text, true),
        LineInput::Elsewhere(TypedText { text, pasted }) => {
            let mut lent = lines.lend(outlets).await;
            let (text, told) = foreground::go_on(&chat.at_hand, text).await;
            interrupts.forget();
            lent.reveal();
            tell_person(outlets, &told);
            lines.begin_with(TypedText { text, pasted });
            lines.begin();
            drop(lent);
            return Continue(None);
        }
        LineInput::Looking(begun) => {
            let shown = commands::show_last(chat, "").into();
            // What is shown neither ends the chat nor is it a message.
            let _ = carry_out(chat, shown, lines, outlets).await;
            interrupts.forget();
            lines.begin_with(begun);
            return Continue(None);
        }
        LineInput::Interrupted => {
            if interrupts.ends_chat() {
                return Break(None);
            }
            tell_person(outlets, "Ctrl-C again, Ctrl-D or /exit leaves.");
            return Continue(None);
        }
        LineInput::Eof => return Break(None),
        LineInput::Failed(why) => {
            tell_person(outlets, &format!("error: no more input: {why}"));
            return Break(Some(exit::FAILED));
        }
    };
    Continue(Some(match strip_fences(&text) {
        Some(block) if block.trim().is_empty() => ParsedInput::Empty,
        Some(block) => ParsedInput::Message(block.to_owned()),
        None if is_pasted => ParsedInput::Message(text),
        // Shell commands are only for a person: a pipe may carry text from elsewhere.
        None => match shell::parse_escape(&text).filter(|_| interactive) {
            Some(escape) => {
                let lent = lines.lend(outlets).await;
                let told = shell::run_escape(chat, escape).await;
                drop(lent);
                // A Ctrl-C was for the command.
                interrupts.forget();
                tell_person(outlets, &told);
                return Continue(None);
            }
            None => commands::parse_input(&text, &chat.own),
        },
    }))
}

/// Does what a command asks of the terminal. Returns a message for the model, if there is one; breaks to end the chat.
async fn carry_out(
    chat: &Chat,
    outcome: SlashOutcome,
    lines: &MessageLines,
    outlets: &mut Outlets,
) -> ControlFlow<(), Option<String>> {
    let told = match outcome {
        SlashOutcome::Leave => return Break(()),
        SlashOutcome::Turn(message) => return Continue(Some(message)),
        SlashOutcome::Tell(text) => text,
        SlashOutcome::Page(text) => {
            let _lent = lines.lend(outlets).await;
            foreground::page_text(&chat.at_hand, &text).await.unwrap_or_default()
        }
        SlashOutcome::Copy(text) => foreground::copy_text(&chat.at_hand, outlets, &text).await,
        SlashOutcome::Compose => {
            let _lent = lines.lend(outlets).await;
            match foreground::compose_message(&chat.at_hand).await {
                Ok(Some(message)) => return Continue(Some(message)),
                Ok(None) => "Nothing was written.".to_owned(),
                Err(why) => format!("error: {why}"),
            }
        }
    };
    tell_person(outlets, &told);
    Continue(None)
}

/// Takes one turn, and stores its code if it failed. Returns the exit code if the chat ends with it.
async fn take_message(
    chat: &mut Chat,
    message: Option<String>,
    interrupts: &mut Interrupts,
    beside: &mut Beside<'_>,
    code: &mut u8,
) -> Option<u8> {
    let interrupted = Signal::Interrupt.code();
    let interactive = beside.lines.interactive();
    let end = match Box::pin(take_turn(chat, message, interrupts, beside)).await {
        None => return Some(interrupted),
        // stdout is closed: nobody sees later output.
        Some(Ok(end)) if !end.is_seen => return Some(*code),
        Some(Ok(end)) => end.ending.code,
        Some(Err(refused)) => {
            tell_person(&mut beside.outlets, &format!("error: {}", refused.reason));
            refused.code
        }
    };
    if !interactive && end != exit::DONE {
        *code = end;
    }
    (!interactive && end == interrupted).then_some(*code)
}

/// Runs a command. Ctrl-C stops it.
async fn answer_command(
    chat: &mut Chat,
    command: &SlashCommand,
    argument: &str,
    interrupts: &mut Interrupts,
) -> SlashOutcome {
    match command.run {
        CommandFunction::Now(run) => run(chat, argument).into(),
        CommandFunction::Later(run) => {
            interrupts.forget();
            tokio::select! {
                biased;
                () = interrupts.next() => SlashOutcome::Tell("Stopped.".to_owned()),
                answer = run(chat, argument) => answer.into(),
            }
        }
    }
}

/// Writes to stderr. Errors are ignored: a closed stderr does not stop the chat.
fn tell_person(outlets: &mut Outlets, text: &str) {
    let text = text.trim_end();
    if text.is_empty() {
        return;
    }
    let folded =
        terminal::measure_width().map_or(text.into(), |width| text::fold_to_width(text, width.saturating_sub(1)));
    let out = &mut outlets.progress;
    let _ = writeln!(out, "{folded}").and_then(|()| out.flush());
}
