//! The state of the line, and what keys do to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::asked::OpenQuestion;
use super::multiline::Joined;
use super::offered::{Offer, Offered, find_common_start};
use super::pastes::Pastes;
use super::recall::{EarlierLines, HistorySearch};
use super::typed_text::{LineEnd, TypedText};
use crate::base::text;
use crate::config::EditMode;
use crate::screen::display::Display;
use crate::screen::ink::{Ink, Line as InkLine};
use crate::screen::surface::draw_sent;
use crate::screen::terminal::{Key, TextField, Vi};

/// Completes the word at the cursor (a byte of the line), for whoever waits that long for words that are still looked up.
/// Returns the start of the word and what may replace it; `None` as long as that is not known.
pub type CompleteLine = Arc<dyn Fn(&str, usize, Duration) -> Option<(usize, Vec<Offer>)> + Send + Sync>;

/// The longest time that a Tab waits.
const PATIENCE: Duration = Duration::from_millis(300);

/// The command that gives the rest of a line to the running turn.
const NOW: &str = "/now ";

/// Hears the line before the cursor.
pub type ForeseeLine = Box<dyn Fn(&str) + Send>;

/// What a line needs to know of the program that it belongs to.
#[derive(Default)]
pub struct LineSettings {
    pub edit_mode: EditMode,
    pub pastes: Pastes,
    pub complete: Option<CompleteLine>,
    /// Lines are messages. Otherwise they only answer questions.
    pub takes_messages: bool,
    /// What a line may go on with is shown behind it, in another colour.
    pub hints: bool,
    /// Hears what stands before the cursor once `@` was typed, to prepare what completes it.
    pub foresee: Option<ForeseeLine>,
}

/// The functions by which the user reaches a running turn.
pub struct LineWishes {
    /// A text for its next step.
    pub steer: Box<dyn Fn(String) + Send>,
    /// Shows the full output of its last call.
    pub look: Box<dyn Fn() + Send>,
    /// Stops it.
    pub stop: Box<dyn Fn() + Send>,
}

#[derive(Default)]
pub(super) struct LineState {
    pub field: TextField,
    /// The start of the line, if it was pasted.
    pub pasted: Option<String>,
    pub queue: VecDeque<TypedText>,
    /// A message is awaited: Enter sends the line. Otherwise it queues it.
    pub is_prompt: bool,
    /// The ends of lines that nobody has taken yet.
    pub ends: VecDeque<LineEnd>,
    /// Ctrl-D was pressed behind the queue.
    pub ended: bool,
    /// Ctrl-C ended the line, and no message is awaited yet: another is the same one.
    is_interrupted: bool,
    pub recall: EarlierLines,
    pub search: Option<HistorySearch>,
    /// The last message, as it stood in the line.
    pub last: Option<String>,
    pub offered: Offered,
    /// The offers of the last Tab, below the line until the next other key.
    pub listed: Vec<String>,
    /// With the keys of vi.
    pub vi: Option<Vi>,
    /// The key before, if it goes on to matter: Ctrl-X, Esc, and Tab as long as it is not known what completes the line.
    pub before: Option<Key>,
    pub settings: LineSettings,
    pub wishes: Option<LineWishes>,
    pub question: Option<OpenQuestion>,
    /// The line was begun by a hand after the question was seen.
    pub is_fresh: bool,
    /// The time of the last character.
    pub last_key: Option<Instant>,
}

impl LineState {
    pub fn new(settings: LineSettings) -> Self {
        let vi = (settings.edit_mode == EditMode::Vi).then(Vi::default);
        Self { vi, settings, ..Self::default() }
    }

    /// True if there is anything to show.
    pub fn is_shown(&self) -> bool {
        self.is_prompt || !self.field.is_empty() || !self.queue.is_empty() || self.ended || self.question.is_some()
    }

    /// Shows the prompt, or ends its line with what is queued. Does nothing while a line, or its end, is waited for.
    pub fn await_message(&mut self, display: &Display) {
        if !self.ends.is_empty() || std::mem::replace(&mut self.is_prompt, true) {
            return;
        }
        self.is_interrupted = false;
        if let Some(message) = self.queue.pop_front() {
            self.send(message, display);
        } else if std::mem::take(&mut self.ended) {
            self.end(LineEnd::Closed);
        }
    }

    /// Ctrl-C at the prompt: ends a search, clears the line, or ends an empty one. False if no message is awaited.
    pub fn interrupt(&mut self) -> bool {
        if !self.is_prompt {
            return self.is_interrupted;
        }
        self.listed.clear();
        if let Some(search) = self.search.take() {
            self.field.set_text(&search.before);
        } else if self.field.is_empty() {
            self.is_interrupted = true;
            self.end(LineEnd::Interrupted);
        } else {
            let line = self.take().text;
            self.field.keep_cut(line.clone());
            self.recall.keep_cleared(line);
        }
        self.vi.iter_mut().for_each(Vi::begin_line);
        true
    }

    /// Puts a text at the start of the line.
    pub fn begin_with(&mut self, begun: TypedText) {
        let typed = self.field.take();
        let text = self.settings.pastes.shorten(begun.text);
        self.field.set_text(&format!("{text}{typed}"));
        (self.pasted, self.is_fresh) = (begun.pasted, false);
    }

    /// Takes the line.
    pub fn take(&mut self) -> TypedText {
        self.recall.forget_place();
        TypedText { text: self.field.take(), pasted: self.pasted.take() }
    }

    /// The rest of an earlier message that begins as the line does.
    pub fn hint(&self) -> Option<&str> {
        let text = self.field.text();
        let is_wanted = self.settings.hints && self.search.is_none() && !self.takes_words();
        let is_wanted = is_wanted && self.field.is_at_end() && !text.trim().is_empty();
        is_wanted.then(|| self.recall.hint(text)).flatten()
    }

    /// True if the question gets the keys.
    pub fn has_focus(&self) -> bool {
        self.question.as_ref().is_some_and(|open| open.has_focus)
    }

    /// True if what is typed now is the answer to the question.
    pub fn takes_words(&self) -> bool {
        self.question.as_ref().is_some_and(|open| open.has_focus && open.takes_words())
    }

    /// The text that keys edit.
    pub fn edited(&mut self) -> &mut TextField {
        match &mut self.question {
            Some(open) if open.has_focus && open.takes_words() => &mut open.words,
            _ => &mut self.field,
        }
    }

    pub fn enter(&mut self, display: &Display) {
        if self.field.text().trim().is_empty() {
            return;
        }
        let mut joined = Joined::default();
        let TypedText { text, pasted } = self.take();
        match joined.add(&text) {
            Some(text) if !self.is_prompt && pasted.is_none() && text.starts_with(NOW) => {
                self.field.set_text(&text[NOW.len()..]);
                self.steer(display);
            }
            Some(text) if self.is_prompt => self.send(TypedText { text, pasted }, display),
            Some(text) => self.queue.push_back(TypedText { text, pasted }),
            // The message continues in the next line.
            None => {
                self.field.set_text(&joined.rest().unwrap_or_default());
                self.pasted = pasted;
            }
        }
    }

    /// Ends the line with a message, which stays on the screen.
    pub fn send(&mut self, message: TypedText, display: &Display) {
        display.lines(draw_sent(&message.text));
        self.end(LineEnd::Message(message));
    }

    /// Ends the line that a message was awaited in.
    pub fn end(&mut self, end: LineEnd) {
        self.is_prompt = false;
        self.ends.push_back(end);
    }

    /// Ends the line at the prompt; what was typed goes on later.
    pub fn leave(&mut self, end: fn(TypedText) -> LineEnd) {
        if self.is_prompt {
            let line = self.take();
            self.end(end(line));
        }
    }

    pub fn leave_for_editor(&mut self) {
        let pastes = self.settings.pastes.clone();
        if self.is_prompt {
            let line = self.take().expand(&pastes);
            self.end(LineEnd::Elsewhere(line));
        }
    }

    /// Gives the line to the running turn.
    pub fn steer(&mut self, display: &Display) {
        let is_wanted = !self.is_prompt && !self.field.text().trim().is_empty();
        let Some(wishes) = self.wishes.as_ref().filter(|_| is_wanted) else { return };
        let said = self.settings.pastes.expand(&self.field.take());
        self.pasted = None;
        let shown = format!("for the next step: {}", text::one_line(&said, 200));
        (wishes.steer)(said);
        display.lines(vec![InkLine::from((Ink::Dim, shown.as_str()))]);
    }

    pub fn take_back(&mut self) {
        if let Some(message) = self.queue.pop_back() {
            self.field.set_text(&message.text);
            self.pasted = message.pasted;
        }
    }

    /// Inserts a paste: a long one as the words that stand for it.
    pub fn paste(&mut self, text: String) {
        let shown = self.settings.pastes.shorten(text);
        if !self.takes_words() && self.field.cursor() == 0 {
            self.pasted = Some(shown.clone());
        }
        self.edited().insert(&shown);
    }

    /// Deletes a long paste before the cursor as a whole. False if there is none.
    pub fn drop_paste(&mut self) -> bool {
        let pastes = self.settings.pastes.clone();
        let field = self.edited();
        let start = pastes.at_end_of(field.split().0);
        if let Some(start) = start {
            field.replace_before(start, "");
        }
        start.is_some()
    }

    /// Lists the commands that begin as the line does, while the name of one is typed, and files while one is mentioned.
    pub fn list_live(&mut self) {
        let (before, after) = self.field.split();
        let word = &before[before.rfind(char::is_whitespace).map_or(0, |at| at + 1)..];
        let is_command = before.starts_with('/') && !before[1..].contains('/') && word == before;
        let is_name = (is_command || word.starts_with('@')) && after.is_empty() && !self.takes_words();
        let Some(complete) = self.settings.complete.as_ref().filter(|_| is_name && self.pasted.is_none()) else {
            return;
        };
        let (start, offers) = complete(before, before.len(), Duration::ZERO).unwrap_or_default();
        if offers.iter().any(|offer| offer.inserted.trim_end() != &before[start..]) {
            self.listed = offers.into_iter().map(|offer| offer.shown).collect();
        }
    }

    /// Does what a Tab asked for, now that it is known what completes the line.
    pub fn complete_late(&mut self) {
        if self.before.take_if(|key| *key == Key::Tab).is_some() {
            self.complete();
        }
    }

    /// Completes what has one end. Of several the common start is taken and all are listed; each further Tab takes the
    /// next of them.
    pub fn complete(&mut self) {
        let Some(complete) = self.settings.complete.clone() else { return };
        let (before, _) = self.field.split();
        let (text, pos) = (self.field.text(), before.len());
        if let Some((start, offer)) = self.offered.again(text, pos) {
            self.field.replace_before(start, &offer.inserted);
            self.offered.move_to(self.field.text(), self.field.cursor());
            return;
        }
        let Some((start, offers)) = complete(before, pos, PATIENCE) else {
            self.before = Some(Key::Tab);
            return;
        };
        self.offered.keep(text, pos, start, &offers);
        let common = find_common_start(&offers);
        // What several have in common may lack letters that were typed.
        if offers.len() == 1 || common.starts_with(&before[start..]) {
            self.field.replace_before(start, common);
        }
        if offers.len() > 1 {
            self.offered.move_to(self.field.text(), self.field.cursor());
            self.listed = offers.into_iter().map(|offer| offer.shown).collect();
        }
    }
}
