//! Questions above the line, on a terminal that is drawn on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{AnswerChoice, AskFunction, ChosenAnswer, write_label};
use crate::base::text;
use crate::config::Notify;
use crate::screen::ink::{Ink, Inks, Line};
use crate::screen::line::{AskedQuestion, InputLine, ListedChoice, QuestionAnswer, Takes};
use crate::screen::loan::Loan;
use crate::screen::notice::{self, LONG};
use crate::screen::outlets::Outlets;
use crate::screen::sheet::{Sheet, frame};
use crate::screen::terminal::{self, Console};
use crate::screen::views;

/// Where the rows of a question are that do not fit.
const IN_A_CHOICE: &str = " (`Show all` shows them)";
const IN_A_LARGER_WINDOW: &str = " (a larger window shows them)";
/// The rows around a question of the model and its choices.
const AROUND: usize = 6;
/// The rows of it that there is always room for.
const LEAST: usize = 2;

/// Asks on the screen, by the keys of the console.
pub struct Keyed {
    pub console: Arc<Console>,
    pub line: InputLine,
    pub outlets: Outlets,
    /// The way to notify a person who is looking elsewhere.
    pub notify: Notify,
}

impl Keyed {
    /// Asks. Notifies a person who does not react for long.
    async fn ask(&self, asked: AskedQuestion) -> Option<QuestionAnswer> {
        let _read = self.console.focus().await;
        let (asked, began) = (self.line.ask(asked), Instant::now());
        tokio::pin!(asked);
        tokio::select! {
            answer = &mut asked => return answer,
            () = tokio::time::sleep(Duration::from_secs(LONG)) => {}
        }
        if !self.line.was_pressed_since(began) {
            notice::send_notice(&self.outlets.display, self.notify, "agent: a question waits");
        }
        asked.await
    }
}

impl AskFunction for Keyed {
    fn show(&self, lines: Vec<Line>) {
        self.outlets.display.lines(lines);
    }

    fn choose<'a>(
        &'a self,
        sheet: &'a Sheet,
        ask: &'a str,
        choices: &'a [AnswerChoice],
    ) -> BoxFuture<'a, Option<ChosenAnswer>> {
        async move {
            // Choices without a label are not in the list, and come last.
            let (listed, others): (Vec<_>, Vec<_>) = choices.iter().partition(|choice| !choice.label.is_empty());
            let all: Vec<&AnswerChoice> = listed.into_iter().chain(others).collect();
            let choices = all.iter().map(|choice| ListedChoice {
                letter: Some(choice.key).filter(|key| ['y', 'n'].contains(key)),
                label: choice.label.clone(),
            });
            let shows_all = all.iter().any(|choice| choice.key == 'v');
            let asked = AskedQuestion {
                sheet: sheet.clone(),
                ask: ask.to_owned(),
                choices: choices.collect(),
                takes: Takes::Letters,
                elsewhere: if shows_all { IN_A_CHOICE } else { IN_A_LARGER_WINDOW },
            };
            let answer = self.ask(asked).await?;
            let QuestionAnswer::Choice(at) = answer else { return None };
            let chosen = all.get(at)?;
            let size = terminal::measure_size();
            let room = views::count_columns(size.map(|(columns, _)| columns));
            let mut rows = sheet.draw(room).fit(size.map_or(usize::MAX, |(_, rows)| rows / 2), "");
            let answer = Line::from((Ink::Bold, ask)).add(Inks::PLAIN, &format!(" {}", chosen.said()));
            rows.extend(frame("└ ", &answer, room));
            self.show(rows);
            Some(ChosenAnswer { key: chosen.key, words: String::new() })
        }
        .boxed()
    }

    fn text<'a>(&'a self, question: &'a str, begun: &'a str) -> BoxFuture<'a, Option<String>> {
        async move {
            let takes = Takes::Text(begun.to_owned());
            let asked = AskedQuestion { sheet: Sheet::ask(question), takes, ..AskedQuestion::default() };
            let QuestionAnswer::Words(words) = self.ask(asked).await? else { return None };
            self.show(format_answer(question, &words));
            Some(words)
        }
        .boxed()
    }

    fn pick<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        async move {
            let listed = choices.iter().map(|choice| ListedChoice { letter: None, label: write_label(choice) });
            let mut asked = AskedQuestion {
                sheet: Sheet::ask(question),
                ask: String::new(),
                choices: listed.collect(),
                takes: Takes::WordsOrNumber,
                elsewhere: IN_A_LARGER_WINDOW,
            };
            let size = terminal::measure_size();
            let rows = asked.sheet.draw(views::count_columns(size.map(|(columns, _)| columns)));
            let room = size.map_or(usize::MAX, |(_, rows)| rows.saturating_sub(choices.len() + AROUND));
            if rows.exceed(room.max(LEAST)) {
                self.show(rows.all());
                asked.elsewhere = " (shown above)";
            }
            let answer = match self.ask(asked).await? {
                QuestionAnswer::Choice(at) => choices.get(at)?.clone(),
                QuestionAnswer::Words(words) => words,
                QuestionAnswer::Declined => return None,
            };
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
