//! Questions that are answered by a line, on a terminal that cannot be drawn on.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::{AnswerChoice, AskFunction, ChosenAnswer, find_number, write_label};
use crate::base::text;
use crate::screen::ink::{Line, Style};
use crate::screen::loan::Loan;
use crate::screen::outlets::Outlets;
use crate::screen::sheet::Sheet;
use crate::screen::terminal;
use crate::screen::views;

/// A source of typed lines.
pub trait AskLine: Send + Sync {
    /// Shows the prompt and returns one line without its line feed, or `None` at the end of the input.
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Shows questions on `out`, and reads the answers from `lines`.
pub(in crate::screen) struct ByLines<W> {
    pub lines: Arc<dyn AskLine>,
    pub out: Mutex<W>,
    pub outlets: Outlets,
    pub style: Style,
    /// The columns of the screen, if there is one.
    pub columns: fn() -> Option<usize>,
}

impl<W: Write + Send> ByLines<W> {
    fn write(&self, text: &str) {
        let mut out = self.out.lock().expect("nobody panics while writing a question");
        // An error needs no handling here: reading the answer fails as well.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl<W: Write + Send> AskFunction for ByLines<W> {
    fn show(&self, lines: Vec<Line>) {
        self.write(&lines.iter().map(|line| line.painted(self.style) + "\n").collect::<String>());
    }

    fn choose<'a>(
        &'a self,
        sheet: &'a Sheet,
        ask: &'a str,
        choices: &'a [AnswerChoice],
    ) -> BoxFuture<'a, Option<ChosenAnswer>> {
        async move {
            // A plain terminal always shows the whole question.
            self.show(sheet.draw(views::count_columns((self.columns)())).all());
            let prompt = format!("{ask} {}: ", format_offer(choices));
            loop {
                let line = self.lines.ask(&prompt).await?;
                if let Some(chosen) = parse_choice(&line, choices) {
                    return Some(chosen);
                }
                let keys: Vec<String> = choices.iter().map(AnswerChoice::typed).collect();
                self.write(&format!(
                    "Please answer {} (a reason may follow n: `n use the test database`).\n",
                    keys.join(", ")
                ));
            }
        }
        .boxed()
    }

    fn text<'a>(&'a self, question: &'a str, begun: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            if !begun.is_empty() {
                self.write(&format!("It is now: {}\n", text::reveal(begun)));
            }
            let line = self.lines.ask(&format!("{question} (empty: go back) ")).await?;
            Some(line).filter(|line| !line.trim().is_empty())
        }
        .boxed()
    }

    fn pick<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        async move {
            self.write(&format!("{question}\n"));
            for (number, choice) in (1..).zip(choices) {
                self.write(&format!("  {number}. {}\n", write_label(choice)));
            }
            let prompt = if choices.is_empty() { "Answer: " } else { "Answer (a number or words): " };
            loop {
                let line = self.lines.ask(prompt).await?;
                if let Some(answer) = pick_choice(&line, choices) {
                    return Some(answer);
                }
                self.write("Please type an answer, or Ctrl-D for none.\n");
            }
        }
        .boxed()
    }

    fn lend(&self) -> BoxFuture<'_, Loan> {
        Loan::take(None, &self.outlets).boxed()
    }
}

/// Formats the choices: `[y]es, [n]o, n WHY, always: cargo test *`.
fn format_offer(choices: &[AnswerChoice]) -> String {
    let offer = |choice: &AnswerChoice| match (choice.key, choice.word.strip_prefix(choice.key)) {
        ('n', _) => "[n]o, n WHY".to_owned(),
        (ALWAYS, _) => choice.label.replacen('A', "a", 1),
        (key, Some(rest)) => format!("[{key}]{rest}"),
        (key, None) => format!("[{key}] {}", choice.word),
    };
    choices.iter().map(offer).collect::<Vec<_>>().join(", ")
}

/// The choice that takes its whole word: one letter is too easily typed for it.
const ALWAYS: char = 'a';

impl AnswerChoice {
    /// What a person types for it.
    fn typed(&self) -> String {
        if self.key == ALWAYS { self.word.to_owned() } else { self.key.to_string() }
    }
}

/// Parses a line; `None` if it is not an answer. Words after a key are accepted only after a no, as the reason.
fn parse_choice(line: &str, choices: &[AnswerChoice]) -> Option<ChosenAnswer> {
    let line = line.trim();
    let (word, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = word.trim_end_matches([',', ':', '.']).to_lowercase();
    let choice = choices.iter().find(|choice| {
        let first = choice.word.split(' ').next().unwrap_or_default();
        word == choice.typed() || word == first
    })?;
    let words = words.trim();
    (words.is_empty() || choice.key == 'n').then(|| ChosenAnswer { key: choice.key, words: words.to_owned() })
}

/// Returns the choice of a number, or the words as they are. `None` if nothing was typed.
fn pick_choice(line: &str, choices: &[String]) -> Option<String> {
    let line = line.trim();
    let choice = find_number(line.trim_end_matches('.'), choices);
    choice.or_else(|| Some(line.to_owned()).filter(|line| !line.is_empty()))
}

/// Reads answers from plain stdin (`agent run` on a plain terminal). A separate thread reads, so a run that is over
/// never waits for a line.
pub struct StdinLines {
    requests: std::sync::mpsc::Sender<String>,
    answers: tokio::sync::Mutex<mpsc::Receiver<Option<String>>>,
    /// True while a requested line has not arrived. If it is true when the next question begins, the earlier question
    /// was
    /// given up.
    waiting: AtomicBool,
}

impl StdinLines {
    /// Starts the thread. It writes everything in `outlets` before it shows a prompt.
    pub fn spawn(outlets: Outlets) -> Self {
        let (requests, wanted) = std::sync::mpsc::channel::<String>();
        let (sender, answers) = mpsc::channel(1);
        std::thread::spawn(move || {
            for prompt in wanted {
                outlets.wait();
                let answer = read_answer(&prompt);
                if sender.blocking_send(answer).is_err() {
                    return;
                }
            }
        });
        Self { requests, answers: tokio::sync::Mutex::new(answers), waiting: AtomicBool::new(false) }
    }
}

impl AskLine for StdinLines {
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            let mut answers = self.answers.lock().await;
            // Discards the answer to a question that was given up.
            if self.waiting.load(Ordering::Relaxed) {
                answers.recv().await?;
            }
            self.requests.send(prompt.to_owned()).ok()?;
            self.waiting.store(true, Ordering::Relaxed);
            let answer = answers.recv().await?;
            self.waiting.store(false, Ordering::Relaxed);
            answer
        }
        .boxed()
    }
}

fn read_answer(prompt: &str) -> Option<String> {
    drop(terminal::typed_ahead());
    let mut stderr = io::stderr();
    // Reads the answer even if the prompt cannot be shown.
    let _ = stderr.write_all(prompt.as_bytes()).and_then(|()| stderr.flush());
    let mut line = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(count) if count > 0 => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        _ => {
            let _ = stderr.write_all(b"\n");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_always_allowed_stands_as_it_is() {
        let label = "Always: `git branch -D Foo`".to_owned();
        let offered = format_offer(&[AnswerChoice { key: ALWAYS, word: "always", label }]);
        assert_eq!(offered, "always: `git branch -D Foo`");
    }
}
