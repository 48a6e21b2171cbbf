//! Questions that take one key, at the bottom of the screen.
//!
//! A question takes keys only once it is on the screen. Text typed before stays in the line.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{AnswerChoice, AskFunction, ChosenAnswer, find_number, list_offers, write_label};
use crate::base::text;
use crate::config::Notify;
use crate::screen::display::Suspended;
use crate::screen::ink::{Ink, Inks, Line, Theme};
use crate::screen::loan::Loan;
use crate::screen::notice::{self, LONG};
use crate::screen::outlets::Outlets;
use crate::screen::surface::{DrawMoment, FramePart, Picture, Sketch, draw_typed};
use crate::screen::terminal::{Console, Edited, Focus, Key, Listener, TextField};

/// Asks on the screen, by the keys of the console.
pub struct Keyed {
    pub console: Arc<Console>,
    pub outlets: Outlets,
    /// The way to notify a person who is looking elsewhere.
    pub notify: Notify,
}

/// A question on the screen. Dropping it removes the question.
struct OpenQuestion<'k> {
    keyed: &'k Keyed,
    focus: Focus,
    /// True until the person reacts.
    is_waiting: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.keyed.outlets.display.set(FramePart::Question, None);
    }
}

impl Keyed {
    /// Shows a question, which takes keys once it is on the screen.
    async fn open(&self, picture: Picture) -> OpenQuestion<'_> {
        let focus = self.console.focus().await;
        self.outlets.display.ask(picture, focus.gate());
        OpenQuestion { keyed: self, focus, is_waiting: true }
    }

    fn draw(&self, picture: Picture) {
        self.outlets.display.set_now(FramePart::Question, Some(picture));
    }
}

impl OpenQuestion<'_> {
    /// Waits for the next key. Notifies a person who takes long.
    async fn key(&mut self) -> Option<Key> {
        if std::mem::take(&mut self.is_waiting) {
            tokio::select! {
                key = self.focus.keys.recv() => return key,
                () = tokio::time::sleep(Duration::from_secs(LONG)) => {
                    notice::send_notice(&self.keyed.outlets.display, self.keyed.notify, "agent: a question waits");
                }
            }
        }
        self.focus.keys.recv().await
    }
}

impl AskFunction for Keyed {
    fn show(&self, lines: Vec<Line>) {
        self.outlets.display.lines(lines);
    }

    fn choose<'a>(
        &'a self,
        question: &'a str,
        choices: &'a [AnswerChoice],
    ) -> BoxFuture<'a, Option<ChosenAnswer>> {
        async move {
            let asked = Line::from((Ink::Bold, question));
            let prompt = format!("{question} {}", list_offers(choices).collect::<Vec<_>>().join("  "));
            let mut open = self
                .open(Box::new(move |moment: &DrawMoment| Sketch::from(fold_words(&prompt, moment.room))))
                .await;
            loop {
                let key = match open.key().await? {
                    Key::Ctrl('d') => return None,
                    Key::Char(c) => c.to_ascii_lowercase(),
                    _ => continue,
                };
                if let Some(choice) = choices.iter().find(|choice| choice.key == key) {
                    drop(open);
                    self.show(vec![asked.add(Inks::PLAIN, " ").add(Inks::PLAIN, choice.word)]);
                    return Some(ChosenAnswer { key, words: String::new() });
                }
            }
        }
        .boxed()
    }

    fn text<'a>(&'a self, question: &'a str, begun: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            let mut field = TextField::from_text(begun);
            let mut open = self.open(draw_form(question, &field)).await;
            loop {
                match open.key().await? {
                    Key::Enter => break,
                    Key::AltEnter => field.insert("\n"),
                    Key::Escape | Key::Ctrl('g') => return None,
                    Key::Ctrl('d') if field.is_empty() => return None,
                    key => {
                        field.press(&key);
                    }
                }
                self.draw(draw_form(question, &field));
            }
            drop(open);
            let text = field.take();
            self.show(format_answer(question, &text));
            Some(text)
        }
        .boxed()
    }

    fn pick<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        async move {
            let mut list = ChoiceList { choices: choices.to_vec(), at: 0, field: TextField::default() };
            let mut open = self.open(list.picture(question)).await;
            let answer = loop {
                let key = open.key().await?;
                match list.press(&key) {
                    Pressed::Done(answer) => break answer,
                    Pressed::GivenUp => return None,
                    Pressed::Changed => self.draw(list.picture(question)),
                }
            };
            drop(open);
            self.show(format_answer(question, &answer));
            Some(answer)
        }
        .boxed()
    }

    fn lend(&self) -> BoxFuture<'_, Loan> {
        Loan::take(Some(&self.console), &self.outlets).boxed()
    }
}

/// Formats a question and its answer for the scrollback.
fn format_answer(question: &str, answer: &str) -> Vec<Line> {
    let answer = text::make_visible(answer);
    let mut rows = answer.lines();
    let first = format!(" {}", rows.next().unwrap_or_default());
    let asked = Line::from((Ink::Bold, question)).add(Inks::PLAIN, &first);
    std::iter::once(asked).chain(rows.map(|row| Line::from((Inks::PLAIN, format!("  {row}"))))).collect()
}

fn fold_words(words: &str, room: usize) -> Vec<Line> {
    text::fold_to_width(words, room).lines().map(|line| Line::from((Ink::Bold, line))).collect()
}

/// Draws a question with a line to type in.
fn draw_form(question: &str, field: &TextField) -> Picture {
    let question = format!("{question} (Enter sends, Esc goes back)");
    let field = field.clone();
    Box::new(move |moment: &DrawMoment| {
        put_below(fold_words(&question, moment.room), draw_typed(&field, moment.room))
    })
}

/// Puts the typed line, with its cursor, below other lines.
fn put_below(mut above: Vec<Line>, typed: Sketch) -> Sketch {
    let cursor = typed.cursor.map(|(row, column)| (row + above.len(), column));
    above.extend(typed.lines);
    Sketch { lines: above, cursor }
}

/// A list of choices, one of them marked, and a line to type another answer.
#[derive(Clone)]
struct ChoiceList {
    choices: Vec<String>,
    at: usize,
    field: TextField,
}

enum Pressed {
    Done(String),
    GivenUp,
    Changed,
}

impl ChoiceList {
    fn press(&mut self, key: &Key) -> Pressed {
        /// Up to this many choices, one digit picks at once.
        const DIGITS: usize = 9;
        let last = self.choices.len().saturating_sub(1);
        match key {
            Key::Up if self.field.is_empty() => self.at = self.at.checked_sub(1).unwrap_or(last),
            Key::Down if self.field.is_empty() => self.at = if self.at == last { 0 } else { self.at + 1 },
            Key::Enter => {
                let typed = Some(self.field.text().trim().to_owned()).filter(|typed| !typed.is_empty());
                let answer = typed.or_else(|| self.choices.get(self.at).cloned());
                let answer = answer.map(|answer| find_number(&answer, &self.choices).unwrap_or(answer));
                return answer.map_or(Pressed::Changed, Pressed::Done);
            }
            Key::Escape | Key::Ctrl('g') => return Pressed::GivenUp,
            Key::Ctrl('d') if self.field.is_empty() => return Pressed::GivenUp,
            Key::Char(c) if self.field.is_empty() && self.choices.len() <= DIGITS => {
                if let Some(choice) = find_number(c.encode_utf8(&mut [0; 4]), &self.choices) {
                    return Pressed::Done(choice);
                }
                self.field.press(key);
            }
            key => {
                let _: Edited = self.field.press(key);
            }
        }
        Pressed::Changed
    }

    fn picture(&self, question: &str) -> Picture {
        let (list, question) = (self.clone(), question.to_owned());
        Box::new(move |moment: &DrawMoment| list.draw(&question, moment))
    }

    fn draw(&self, question: &str, moment: &DrawMoment) -> Sketch {
        let mut lines = fold_words(question, moment.room);
        let line = draw_typed(&self.field, moment.room);
        let room = moment.rows.saturating_sub(lines.len() + line.lines.len() + 1).max(1);
        let from = (self.at + 1).saturating_sub(room).min(self.choices.len().saturating_sub(room));
        for (index, choice) in self.choices.iter().enumerate().skip(from).take(room) {
            let is_marked = index == self.at && self.field.is_empty();
            let mark = if is_marked { "❯" } else { " " };
            let inks = if is_marked { Inks::from(Ink::Bold).add(Ink::Cyan) } else { Inks::PLAIN };
            lines.push(Line::from((inks, format!("{mark} {}. {}", index + 1, write_label(choice)))));
        }
        let hint = if self.choices.is_empty() {
            "Enter sends, Esc gives no answer"
        } else {
            "↑ ↓ or a number, Enter; or type another answer; Esc gives none"
        };
        lines.push(Line::from((Ink::Dim, hint)));
        put_below(lines, line)
    }
}

/// Ignores keys: for a run, where only questions read the terminal.
pub struct Bystander {
    pub outlets: Outlets,
    pub stopped: Option<Suspended>,
}

impl Listener for Bystander {
    fn press(&mut self, _: Key) {}

    fn learn(&mut self, theme: Theme) {
        self.outlets.display.set_theme(theme);
    }

    fn stop(&mut self, stops: bool) {
        self.stopped = stops.then(|| self.outlets.display.suspend(false));
        self.outlets.wait();
    }

    /// Marks around pastes were not switched on.
    fn come_back(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(choices: &[&str], keys: &[Key]) -> Option<String> {
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        let mut list = ChoiceList { choices, at: 0, field: TextField::default() };
        keys.iter().find_map(|key| match list.press(key) {
            Pressed::Done(answer) => Some(answer),
            Pressed::GivenUp => Some("given up".to_owned()),
            Pressed::Changed => None,
        })
    }

    #[test]
    fn a_choice_is_picked_by_arrows_by_its_number_or_other_words_are_typed() {
        let typed = |words: &str| words.chars().map(Key::Char).chain([Key::Enter]).collect::<Vec<_>>();
        let choices = ["red", "blue", "green"];
        for (keys, expected) in [
            (vec![Key::Enter], "red"),
            (vec![Key::Down, Key::Enter], "blue"),
            (vec![Key::Up, Key::Enter], "green"),
            (vec![Key::Char('2')], "blue"),
            (typed("mauve 3"), "mauve 3"),
            (typed("9"), "9"),
            (vec![Key::Escape], "given up"),
            (vec![Key::Ctrl('d')], "given up"),
        ] {
            assert_eq!(pressed(&choices, &keys).as_deref(), Some(expected), "{keys:?}");
        }
        assert_eq!(pressed(&[], &[Key::Enter]), None);
        let many = ["x"; 12];
        assert_eq!(pressed(&many, &[Key::Char('1')]), None, "a second digit may follow");
    }

    #[test]
    fn a_long_list_shows_what_is_marked_in_the_rows_that_there_are() {
        let choices = (1..=50).map(|number| format!("choice {number}")).collect();
        let list = ChoiceList { choices, at: 30, field: TextField::default() };
        let moment = DrawMoment { room: 40, rows: 12, tick: 0 };
        let sketch = list.draw("Which?", &moment);
        assert!(sketch.lines.len() <= 12);
        assert!(sketch.lines.iter().any(|line| line.text() == "❯ 31. choice 31"), "{sketch:?}");
    }
}
