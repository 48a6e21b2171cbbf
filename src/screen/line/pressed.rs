//! What keys do to the line, at the prompt and while the agent works.

use std::time::{Duration, Instant};

use super::asked::QuestionStep;
use super::state::LineState;
use super::typed_text::LineEnd;
use crate::screen::display::Display;
use crate::screen::surface::FramePart;
use crate::screen::terminal::{Edited, Key, Vi};

/// A person whose last key is more recent is still typing.
const TYPING: Duration = Duration::from_millis(400);

impl LineState {
    /// Takes a key; the question gets it first.
    pub fn press(&mut self, key: &Key, by_hand: bool, display: &Display) {
        if *key != Key::Tab {
            self.listed.clear();
        }
        if let Some(key) = self.press_question(key, by_hand, display)
            && (self.settings.takes_messages || self.has_focus())
        {
            self.press_line(&key, by_hand, display);
        }
        match key {
            Key::Char(_) | Key::Backspace | Key::Tab => self.last_key = Some(Instant::now()),
            // After Enter the person is no longer typing.
            Key::Enter => self.last_key = None,
            _ => {}
        }
    }

    /// Gives the question a key first. Returns the key if it is for the line.
    fn press_question(&mut self, key: &Key, by_hand: bool, display: &Display) -> Option<Key> {
        let is_typing = self.last_key.is_some_and(|last| last.elapsed() < TYPING);
        // Esc ends the insert mode of vi first.
        let is_inserting = *key == Key::Escape && self.vi.as_ref().is_some_and(Vi::inserts);
        let Self { question, field, is_fresh, .. } = self;
        let Some(open) = question.as_mut() else { return Some(key.clone()) };
        if !open.take_focus(is_typing) || !by_hand || is_inserting {
            return Some(key.clone());
        }
        let is_listed = open.at.is_some();
        match open.press(key, field, *is_fresh) {
            QuestionStep::Passed => {
                // It may have left the list.
                display.set_now(FramePart::Question, Some(open.picture()));
                return Some(key.clone());
            }
            QuestionStep::Moved => display.set_now(FramePart::Question, Some(open.picture())),
            QuestionStep::Answered(answer) => {
                let is_letter = !is_listed && !open.takes_words();
                open.answer(answer);
                if is_letter {
                    self.take();
                }
            }
        }
        None
    }

    fn press_line(&mut self, key: &Key, by_hand: bool, display: &Display) {
        let was_empty = self.edited().is_empty();
        let before = self.before.take();
        if self.search.is_some() && !self.takes_words() && self.press_search(key) {
            return;
        }
        let mut vi = self.vi.take();
        let left = vi.as_mut().map_or_else(|| Some(key.clone()), |vi| vi.press(self.edited(), key));
        self.vi = vi;
        let Some(key) = left else { return };
        if before == Some(Key::Ctrl('x')) {
            return self.complete_chord(&key);
        }
        let is_pressed = self.press_anywhere(&key)
            || !self.takes_words()
                && (self.press_message(&key, before.as_ref(), display) || self.press_recall(&key));
        if !is_pressed {
            if let (Key::Char('@'), Some(foresee)) = (&key, &self.settings.foresee) {
                foresee(&format!("{}@", self.field.split().0));
            }
            let typed = matches!(key, Key::Char(_));
            if self.edited().press(&key) == Edited::Changed && typed && was_empty {
                self.is_fresh = by_hand && self.has_focus();
            }
        }
        self.is_fresh &= by_hand && !self.field.is_empty();
    }

    /// Keys that mean the same in a message and in an answer. False if it is none of them.
    fn press_anywhere(&mut self, key: &Key) -> bool {
        match key {
            Key::Enter if self.takes_words() || !self.settings.takes_messages => {}
            Key::LineBreak => self.edited().insert("\n"),
            Key::Ctrl('x') => self.before = Some(Key::Ctrl('x')),
            Key::Ctrl('o') if !self.is_prompt => {
                if let Some(wishes) = &self.wishes {
                    (wishes.look)();
                }
            }
            Key::Escape if !self.is_prompt => {
                if let Some(wishes) = &self.wishes {
                    (wishes.stop)();
                }
            }
            Key::Paste(text) => self.paste(text.clone()),
            Key::Backspace if self.drop_paste() => {}
            _ => return false,
        }
        true
    }

    /// Keys of a message. False if it is none of them.
    fn press_message(&mut self, key: &Key, before: Option<&Key>, display: &Display) -> bool {
        match key {
            Key::Enter => self.enter(display),
            Key::Tab => self.complete(),
            Key::AltUp => self.steer(display),
            Key::Ctrl('d') if self.field.is_empty() && self.is_prompt => self.end(LineEnd::Closed),
            Key::Ctrl('d') if self.field.is_empty() && self.question.is_none() => self.ended = true,
            Key::Ctrl('o') => self.leave(LineEnd::Looking),
            Key::Alt('e') => self.leave_for_editor(),
            Key::Ctrl('l') => display.clear(),
            Key::Escape if self.field.is_empty() && before == Some(&Key::Escape) => {
                if let Some(last) = &self.last {
                    self.field.set_text(last);
                }
            }
            Key::Escape => self.before = Some(Key::Escape),
            _ => return false,
        }
        true
    }

    /// Keys that bring earlier messages back. False if it is none of them.
    fn press_recall(&mut self, key: &Key) -> bool {
        let recalled = match key {
            Key::Up | Key::Ctrl('p') if self.field.move_row(true) => None,
            Key::Up | Key::Ctrl('p') if self.field.is_empty() && !self.queue.is_empty() => {
                self.take_back();
                None
            }
            Key::Up | Key::Ctrl('p') => self.recall.go_back(self.field.text()),
            Key::Down | Key::Ctrl('n') if self.field.move_row(false) => None,
            Key::Down | Key::Ctrl('n') => self.recall.go_forward(),
            Key::Alt('<') => self.recall.go_to_oldest(self.field.text()),
            Key::Alt('>') => std::iter::from_fn(|| self.recall.go_forward()).last(),
            Key::Ctrl(direction @ ('r' | 's')) => {
                self.search = Some(self.recall.search(self.field.text(), *direction == 'r'));
                None
            }
            Key::Right | Key::End | Key::Ctrl('e' | 'f') if self.hint().is_some() => {
                let rest = self.hint().unwrap_or_default().to_owned();
                self.field.insert(&rest);
                None
            }
            _ => return false,
        };
        if let Some(recalled) = recalled {
            self.field.set_text(&recalled);
            self.pasted = None;
        }
        true
    }

    /// Takes a key while the history is searched. Returns false if the search ends and the key is for the line.
    fn press_search(&mut self, key: &Key) -> bool {
        let Some(mut search) = self.search.take() else { return false };
        let mut moves = false;
        match key {
            Key::Char(c) => search.words.push(*c),
            Key::Backspace => drop(search.words.pop()),
            Key::Ctrl(direction @ ('r' | 's')) => (moves, search.is_backward) = (true, *direction == 'r'),
            Key::Ctrl('g') => {
                self.field.set_text(&search.before);
                return true;
            }
            key => {
                self.recall.end_search(&search);
                return *key == Key::Escape;
            }
        }
        if let Some(found) = self.recall.find(&mut search, moves) {
            self.field.set_text(&found);
            self.pasted = None;
        }
        self.search = Some(search);
        true
    }

    /// The key after Ctrl-X.
    fn complete_chord(&mut self, key: &Key) {
        match key {
            Key::Ctrl('e') if !self.takes_words() => self.leave_for_editor(),
            Key::Ctrl('u') => drop(self.edited().press(&Key::Ctrl('_'))),
            _ => {}
        }
    }
}
