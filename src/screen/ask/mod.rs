//! The two ways to ask a person: by keys on a terminal that is drawn on, and by lines on a plain one.

mod keys;
mod lines;

use futures_util::future::BoxFuture;

pub use keys::Keyed;
pub(super) use lines::ByLines;
pub use lines::{AskLine, StdinLines};

use super::loan::Loan;
use crate::base::text;
use crate::screen::ink::Line;
use crate::screen::sheet::Sheet;

/// A choice as one line. Blanks stay, so that choices with columns keep them.
fn write_label(choice: &str) -> String {
    const WIDTH: usize = 200;
    let line = choice.replace(['\n', '\r', '\t'], " ");
    text::cut_to_width(&text::make_visible(&line), WIDTH).into_owned()
}

/// The choice with the typed number.
fn find_number(typed: &str, choices: &[String]) -> Option<String> {
    choices.get(typed.parse::<usize>().ok()?.checked_sub(1)?).cloned()
}

/// An answer that a question offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerChoice {
    pub key: char,
    /// The meaning of the key in a word or a few, which may begin with the key.
    pub word: &'static str,
    /// The words in a list; without any, only its letter chooses it.
    pub label: String,
}

impl AnswerChoice {
    /// The words for what was chosen.
    fn said(&self) -> &str {
        if self.label.is_empty() { self.word } else { &self.label }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenAnswer {
    pub key: char,
    /// The words typed after it, if a line was read.
    pub words: String,
}

/// A way to ask.
pub trait AskFunction: Send + Sync {
    /// Writes lines that stay.
    fn show(&self, lines: Vec<Line>);

    /// Shows the sheet and asks for one of the choices. `None` if no answer will come.
    fn choose<'a>(
        &'a self,
        sheet: &'a Sheet,
        ask: &'a str,
        choices: &'a [AnswerChoice],
    ) -> BoxFuture<'a, Option<ChosenAnswer>>;

    /// Asks for a text, starting from `begun`. `None` if the person declines.
    fn text<'a>(&'a self, question: &'a str, begun: &'a str) -> BoxFuture<'a, Option<String>>;

    /// Asks for one of the choices, or for other words. `None` if no answer will come.
    fn pick<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>>;

    /// Lends the terminal to another program until the loan is dropped.
    fn lend(&self) -> BoxFuture<'_, Loan>;
}
