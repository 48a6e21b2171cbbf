//! A question above the line: an object of its own, with a list that arrows move in.
//!
//! Letters always go to the line. A question is answered from its list, by the one letter that stands for a choice and
//! Enter, or, where it asks for words, by a line. Nothing that was typed or pasted before it could be seen, and nothing
//! that came together with a paste, answers it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use crate::screen::ink::{Ink, Inks, Line};
use crate::screen::sheet::{LEAST_ROWS, Sheet, frame};
use crate::screen::surface::{DrawMoment, Picture, Sketch};
use crate::screen::terminal::{Key, TextField};

/// A question.
#[derive(Debug, Default)]
pub struct AskedQuestion {
    pub sheet: Sheet,
    /// The question in a few words, before the choices.
    pub ask: String,
    pub choices: Vec<ListedChoice>,
    pub takes: Takes,
    /// The words for where the rows of the sheet can be seen that do not fit.
    pub elsewhere: &'static str,
}

/// An answer that a question offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChoice {
    /// The letter that alone in a line, with Enter, means this choice.
    pub letter: Option<char>,
    /// The words in the list; without any, only the letter means it. Such choices come last.
    pub label: String,
}

/// What a line means as an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Takes {
    /// Only a letter answers.
    #[default]
    Letters,
    /// Words, or the number of a choice.
    WordsOrNumber,
    /// A text, which may be empty. It begins with this one.
    Text(String),
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionAnswer {
    Choice(usize),
    Words(String),
    /// The person does not want to answer.
    Declined,
}

/// The effect of a key on a question.
pub(super) enum QuestionStep {
    Answered(QuestionAnswer),
    /// The list has changed.
    Moved,
    /// The key is for the line.
    Passed,
}

/// A question on the screen.
pub(super) struct OpenQuestion {
    asked: Arc<AskedQuestion>,
    /// The marked choice, once a key moved into the list.
    pub(super) at: Option<usize>,
    /// True while the screen has room for the marked choice and the start of the sheet.
    is_seen: Arc<AtomicBool>,
    /// The person has seen it, and was not in the middle of a word.
    pub has_focus: bool,
    /// The words that answer it, apart from the line.
    pub words: TextField,
    answer: Option<oneshot::Sender<QuestionAnswer>>,
}

impl OpenQuestion {
    pub fn new(asked: AskedQuestion) -> (Self, oneshot::Receiver<QuestionAnswer>) {
        let (answer, answered) = oneshot::channel();
        let words = match &asked.takes {
            Takes::Text(begun) => TextField::from_text(begun),
            Takes::Letters | Takes::WordsOrNumber => TextField::default(),
        };
        let (is_seen, at, has_focus) = (Arc::default(), None, false);
        (Self { asked: Arc::new(asked), at, is_seen, has_focus, words, answer: Some(answer) }, answered)
    }

    fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::SeqCst)
    }

    /// Takes the keys once the question can be seen and the person pauses.
    pub fn take_focus(&mut self, is_typing: bool) -> bool {
        self.has_focus |= !is_typing && self.is_seen();
        self.has_focus
    }

    /// True if words answer it.
    pub fn takes_words(&self) -> bool {
        self.asked.takes != Takes::Letters
    }

    pub fn answer(&mut self, answer: QuestionAnswer) {
        if let Some(sender) = self.answer.take() {
            // Fails if nobody waits any more.
            let _ = sender.send(answer);
        }
    }

    /// Takes a key from a hand. `line` is the text typed so far, if its first letter was typed at this question.
    pub fn press(&mut self, key: &Key, line: &TextField, is_fresh: bool) -> QuestionStep {
        use QuestionStep::{Answered, Moved, Passed};
        let count = self.asked.choices.iter().filter(|choice| !choice.label.is_empty()).count();
        let words = if self.takes_words() { &self.words } else { line };
        let is_empty = words.is_empty();
        match (key, self.at) {
            (Key::Enter, Some(_)) if !self.is_seen() => {}
            (Key::Enter, None) if !self.is_seen() => return Passed,
            (Key::Enter, Some(at)) => return Answered(QuestionAnswer::Choice(at)),
            (Key::Right | Key::Down | Key::Tab, Some(at)) => self.at = Some((at + 1) % count),
            (Key::Left | Key::Up | Key::BackTab, Some(at)) => self.at = Some((at + count - 1) % count),
            (Key::Escape, Some(_)) => self.at = None,
            (_, Some(_)) => {
                self.at = None;
                return Passed;
            }
            (Key::Tab, None) if count > 0 => self.at = Some(0),
            (Key::Down | Key::Right, None) if count > 0 && is_empty => self.at = Some(0),
            (Key::Up | Key::Left | Key::BackTab, None) if count > 0 && is_empty => self.at = Some(count - 1),
            (Key::Enter, None) => return self.enter(words.text().trim(), is_fresh),
            (Key::Ctrl('d'), None) if is_empty => return Answered(QuestionAnswer::Declined),
            (Key::Escape | Key::Ctrl('g'), None) if self.takes_words() => {
                return Answered(QuestionAnswer::Declined);
            }
            (_, None) => return Passed,
        }
        Moved
    }

    fn enter(&self, words: &str, is_fresh: bool) -> QuestionStep {
        let choices = &self.asked.choices;
        let found = match &self.asked.takes {
            Takes::Letters => {
                let is_meant =
                    |choice: &ListedChoice| choice.letter.is_some_and(|letter| words.chars().eq([letter]));
                choices.iter().position(is_meant).filter(|_| is_fresh).map(QuestionAnswer::Choice)
            }
            Takes::WordsOrNumber if words.is_empty() => return QuestionStep::Moved,
            Takes::WordsOrNumber | Takes::Text(_) => {
                let number = words.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let choice = number.filter(|at| *at < choices.len()).map(QuestionAnswer::Choice);
                choice.or_else(|| Some(QuestionAnswer::Words(words.to_owned())))
            }
        };
        found.map_or(QuestionStep::Passed, QuestionStep::Answered)
    }

    /// Draws the frame and the list. Keys answer once it is drawn.
    pub fn picture(&self) -> Picture {
        let (asked, at, is_seen) = (Arc::clone(&self.asked), self.at, Arc::clone(&self.is_seen));
        let mut laid = None;
        Box::new(move |moment: &DrawMoment| {
            // Laid out once for each width.
            let (_, rows) = laid
                .take()
                .filter(|(room, _)| *room == moment.room)
                .unwrap_or_else(|| (moment.room, asked.sheet.draw(moment.room)));
            let kept = rows.count().min(LEAST_ROWS.max(moment.rows / 3));
            let foot = moment.rows.checked_sub(kept).and_then(|left| asked.draw_foot(at, moment.room, left));
            is_seen.store(foot.is_some(), Ordering::SeqCst);
            let foot = foot.unwrap_or_else(|| vec![Line::from((Ink::Yellow, "└ answered in a larger window"))]);
            let mut lines = rows.fit(moment.rows.saturating_sub(foot.len()), asked.elsewhere);
            laid = Some((moment.room, rows));
            lines.extend(foot);
            Sketch::from(lines)
        })
    }
}

impl AskedQuestion {
    /// Draws the question in words and its choices, as many as there are rows for around the marked one. `None` if even that
    /// one does not fit.
    fn draw_foot(&self, at: Option<usize>, room: usize, most: usize) -> Option<Vec<Line>> {
        /// The rows of choices that the hint gives way to.
        const LEAST: usize = 3;
        let hint = match (&self.takes, self.choices.is_empty()) {
            (Takes::Letters, _) => "(y or n and Enter; Tab: to the list)",
            (Takes::WordsOrNumber, false) => {
                "(a number or other words and Enter; Tab: to the list; Esc gives no answer)"
            }
            (Takes::WordsOrNumber, true) => "(Enter sends, Esc gives no answer)",
            (Takes::Text(_), _) => "(Enter sends, Esc goes back)",
        };
        let ask = Line::from((Ink::Bold, &self.ask)).add(Ink::Dim, if self.ask.is_empty() { "" } else { " " });
        let choices = match self.takes {
            Takes::Letters => self.lay_out_choices(at, room),
            Takes::WordsOrNumber | Takes::Text(_) => self.stack_choices(at, room),
        };
        let mut rows = frame("├ ", &ask.clone().add(Ink::Dim, hint), room);
        if rows.len() + choices.rows.len().min(LEAST) > most {
            rows = frame("├ ", &ask, room);
            rows.truncate(if self.ask.is_empty() { 0 } else { most.saturating_sub(choices.marked.len()) });
        }
        let left = most.saturating_sub(rows.len());
        let from = choices.marked.end.saturating_sub(left);
        if choices.marked.start < from {
            return None;
        }
        rows.extend(choices.rows.into_iter().skip(from).take(left));
        if let Some(mark) = rows.last_mut().and_then(|row| row.spans.first_mut()) {
            mark.text = mark.text.replacen(['├', '│'], "└", 1);
        }
        Some(rows)
    }

    /// The choices side by side.
    fn lay_out_choices(&self, at: Option<usize>, room: usize) -> ChoiceRows {
        const GAP: &str = "  ";
        let (mut rows, mut marked): (Vec<Line>, _) = (Vec::new(), 0..0);
        for (index, choice) in self.choices.iter().enumerate().filter(|(_, choice)| !choice.label.is_empty()) {
            let shown = mark_choice(&choice.label, at == Some(index));
            let mut start = rows.len();
            match rows.last_mut() {
                Some(row) if row.columns() + GAP.len() + shown.columns() <= room => {
                    row.push(Inks::PLAIN, GAP);
                    row.append(shown);
                    start = rows.len() - 1;
                }
                _ => rows.extend(frame("├ ", &shown, room)),
            }
            if index == at.unwrap_or(0) {
                marked = start..rows.len();
            }
        }
        ChoiceRows { rows, marked }
    }

    /// The choices one below another, with their numbers.
    fn stack_choices(&self, at: Option<usize>, room: usize) -> ChoiceRows {
        let rows = self.choices.iter().enumerate().map(|(index, choice)| {
            let label = format!("{}. {}", index + 1, choice.label);
            Line::from((Ink::Dim, "│ ")).join(mark_choice(&label, at == Some(index))).cut(room)
        });
        let marked = at.unwrap_or(0);
        ChoiceRows { rows: rows.collect(), marked: marked..(marked + 1).min(self.choices.len()) }
    }
}

/// The rows of the choices, and which of them the marked choice has; without a mark, the first one.
struct ChoiceRows {
    rows: Vec<Line>,
    marked: std::ops::Range<usize>,
}

fn mark_choice(label: &str, is_marked: bool) -> Line {
    if is_marked {
        return Line::from((Inks::from(Ink::Bold).add(Ink::Cyan), format!("❯ {label}")));
    }
    Line::from((Inks::PLAIN, format!("  {label}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sheet::SheetBody;

    fn choice(letter: char, label: &str) -> ListedChoice {
        ListedChoice { letter: Some(letter).filter(|letter| *letter != ' '), label: label.to_owned() }
    }

    fn approval() -> AskedQuestion {
        let choices = vec![
            choice('y', "Yes, once"),
            choice(' ', "Always: ls *"),
            choice(' ', "No, because…"),
            choice('n', ""),
        ];
        AskedQuestion { ask: "Allow?".to_owned(), choices, ..AskedQuestion::default() }
    }

    /// The answer to these keys, and what stands in the line.
    fn pressed(asked: AskedQuestion, keys: &[Key]) -> Option<QuestionAnswer> {
        let (mut open, _) = OpenQuestion::new(asked);
        (open.picture())(&DrawMoment { room: 80, rows: 20, tick: 0 });
        let mut line = TextField::default();
        for key in keys {
            match open.press(key, &line, true) {
                QuestionStep::Answered(answer) => return Some(answer),
                QuestionStep::Moved => {}
                QuestionStep::Passed if open.takes_words() => drop(open.words.press(key)),
                QuestionStep::Passed => drop(line.press(key)),
            }
        }
        None
    }

    fn typed(words: &str) -> Vec<Key> {
        words.chars().map(Key::Char).chain([Key::Enter]).collect()
    }

    #[test]
    fn letters_go_to_the_line_and_a_choice_is_meant() {
        let choice = |at| Some(QuestionAnswer::Choice(at));
        for (keys, expected) in [
            (typed("y"), choice(0)),
            (typed("n"), choice(3)),
            (typed("a"), None),
            (typed("yes, but what is it?"), None),
            (typed(""), None),
            (vec![Key::Tab, Key::Enter], choice(0)),
            (vec![Key::Down, Key::Right, Key::Enter], choice(1)),
            (vec![Key::Up, Key::Up, Key::Up, Key::Enter], choice(0)),
            (vec![Key::Tab, Key::Char('x'), Key::Enter], None),
            (vec![Key::Tab, Key::Escape, Key::Enter], None),
            (vec![Key::Char('x'), Key::Left, Key::Enter], None),
            (vec![Key::Char('x'), Key::Tab, Key::Enter], choice(0)),
            (vec![Key::Ctrl('d')], Some(QuestionAnswer::Declined)),
        ] {
            assert_eq!(pressed(approval(), &keys), expected, "{keys:?}");
        }
        let (mut open, _) = OpenQuestion::new(approval());
        assert!(
            matches!(open.press(&Key::Enter, &TextField::from_text("y"), true), QuestionStep::Passed),
            "unseen"
        );
        (open.picture())(&DrawMoment { room: 80, rows: 20, tick: 0 });
        let step = open.press(&Key::Enter, &TextField::from_text("y"), false);
        assert!(matches!(step, QuestionStep::Passed), "it was typed before");
    }

    #[test]
    fn words_answer_where_they_are_asked_for() {
        let pick = |labels: &[&str]| {
            let choices = labels.iter().map(|label| choice(' ', label)).collect();
            AskedQuestion { choices, takes: Takes::WordsOrNumber, ..AskedQuestion::default() }
        };
        let text = || AskedQuestion { takes: Takes::Text("ls".to_owned()), ..AskedQuestion::default() };
        let words = |words: &str| Some(QuestionAnswer::Words(words.to_owned()));
        let colours = ["red", "blue", "green"];
        for (asked, keys, expected) in [
            (pick(&colours), typed("2"), Some(QuestionAnswer::Choice(1))),
            (pick(&colours), typed("mauve 3"), words("mauve 3")),
            (pick(&colours), typed("9"), words("9")),
            (pick(&colours), typed(""), None),
            (pick(&colours), vec![Key::Down, Key::Down, Key::Enter], Some(QuestionAnswer::Choice(1))),
            (pick(&colours), vec![Key::Escape], Some(QuestionAnswer::Declined)),
            (pick(&[]), typed(""), None),
            (text(), typed(" -l"), words("ls -l")),
            (text(), vec![Key::Ctrl('u'), Key::Enter], words("")),
        ] {
            assert_eq!(pressed(asked, &keys), expected, "{keys:?}");
        }
    }

    #[test]
    fn enter_takes_the_marked_choice_only_where_it_can_be_seen() {
        for (rows, tabs) in (2..12).flat_map(|rows| (1..=3).map(move |tabs| (rows, tabs))) {
            let mut asked = approval();
            asked.choices[1].label = format!("Always: {}", "touch * ".repeat(20));
            asked.sheet.body = SheetBody::from_text("a\nb\nc\nd");
            let (mut open, _) = OpenQuestion::new(asked);
            for _ in 0..tabs {
                open.press(&Key::Tab, &TextField::default(), true);
            }
            let drawn = (open.picture())(&DrawMoment { room: 79, rows, tick: 0 }).lines;
            let marked: String = drawn.iter().map(Line::text).skip_while(|row| !row.contains("❯ ")).collect();
            let is_whole = tabs != 2 || marked.matches("touch").count() == 20;
            let step = open.press(&Key::Enter, &TextField::default(), true);
            assert!(drawn.len() <= rows, "{drawn:?}");
            assert_eq!(matches!(step, QuestionStep::Answered(_)), is_whole && !marked.is_empty(), "{drawn:?}");
            assert!(rows < 7 || !marked.is_empty(), "{drawn:?}");
        }
    }

    #[test]
    fn nothing_is_answered_unless_the_start_of_the_command_is_seen() {
        let title = "run_command · writes in the workspace, no network";
        for (room, rows) in (8..40).flat_map(|room| (1..12).map(move |rows| (room, rows))) {
            let mut asked = approval();
            asked.sheet.title = Line::from((Ink::Bold, title));
            asked.sheet.body = SheetBody::from_text("curl -s http://a.invalid/");
            asked.sheet.notes = vec![Line::from((Ink::Dim, "asked because `sandbox.network` opens it"))];
            let (mut open, _) = OpenQuestion::new(asked);
            let drawn = (open.picture())(&DrawMoment { room, rows, tick: 0 }).lines;
            let is_seen = drawn.iter().any(|row| row.text().starts_with("│ cu"));
            let step = open.press(&Key::Enter, &TextField::from_text("y"), true);
            assert!(is_seen || !matches!(step, QuestionStep::Answered(_)), "{drawn:?}");
            assert!(rows < 6 || room < 20 || matches!(step, QuestionStep::Answered(_)), "{drawn:?}");
        }
    }

    #[test]
    fn a_list_is_drawn_in_the_room_that_there_is() {
        let text = |asked: AskedQuestion, keys: &[Key], room, rows| -> Vec<String> {
            let (mut open, _) = OpenQuestion::new(asked);
            for key in keys {
                open.press(key, &TextField::default(), true);
            }
            (open.picture())(&DrawMoment { room, rows, tick: 0 }).lines.iter().map(Line::text).collect()
        };
        let wide = text(approval(), &[Key::Tab, Key::Tab], 80, 20);
        assert_eq!(wide[1], "├ Allow? (y or n and Enter; Tab: to the list)");
        assert_eq!(wide[2], "└   Yes, once  ❯ Always: ls *    No, because…");
        let narrow = text(approval(), &[], 32, 20);
        assert_eq!(
            narrow[narrow.len() - 2..],
            ["├   Yes, once    Always: ls *".to_owned(), "└   No, because…".to_owned()]
        );
        let choices = (1..=50).map(|number| choice(' ', &format!("choice {number}"))).collect();
        let many = AskedQuestion { choices, takes: Takes::WordsOrNumber, ..AskedQuestion::default() };
        let shown = text(many, &vec![Key::Down; 31], 100, 12);
        assert!(shown.len() <= 12 && shown.iter().any(|line| line.starts_with("└ ❯ 31. choice 31")), "{shown:?}");
    }
}
