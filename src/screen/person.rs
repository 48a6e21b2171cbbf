//! The person at the terminal, who approves.
//!
//! A question shows everything that is to be judged. Only a plain yes allows. Keys typed before the question appeared
//! never answer it.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::ask::{AnswerChoice, AskFunction, AskLine, ByLines, Keyed, StdinLines};
use super::editor::ExternalEditor;
use super::line::{InputLine, LineKeys, LineSettings};
use super::look::{AnswerTo, Look};
use super::outlets::Outlets;
use super::sheet::{ScreenSize, Sheet};
use super::{question, review, views};
use crate::base::text;
use crate::config::Notify;
use crate::safety::{Approval, Approver, Enclosure, PlanReview, PlanSheet, Question};
use crate::screen::ink::{Ink, Inks, Line};
use crate::screen::terminal::{self, Console};

/// A person at the terminal.
pub struct Person {
    ask: Arc<dyn AskFunction>,
    /// Returns the size of the screen, if there is one. Called for each question, because windows are resized.
    size: fn() -> Option<ScreenSize>,
    /// The editor for plans and proposals; without one they cannot be edited.
    editor: Option<ExternalEditor>,
    /// True if the answer is written to the screen as it comes.
    sees_answer: bool,
    /// Held while a question is open, so that parallel calls ask one at a time.
    turn: tokio::sync::Mutex<()>,
}

fn offer(key: char, word: &'static str, label: impl Into<String>) -> AnswerChoice {
    AnswerChoice { key, word, label: label.into() }
}

impl Person {
    /// Creates a person who answers by keys, on a screen that is drawn on.
    pub fn by_keys(keyed: Keyed, look: &Look) -> Self {
        Self::ask_through(Arc::new(keyed), terminal::measure_size, sees_answer(look))
    }

    /// Creates a person who answers by lines. A plain terminal always shows the whole question.
    pub fn by_lines(lines: Arc<dyn AskLine>, outlets: &Outlets, look: &Look) -> Self {
        let out = Mutex::new(outlets.progress.clone());
        let (style, columns) = (look.style, terminal::measure_width as fn() -> Option<usize>);
        let ask = ByLines { lines, out, outlets: outlets.clone(), style, columns };
        Self::ask_through(Arc::new(ask), || None, sees_answer(look))
    }

    /// Creates a person beside a run, where only questions read the terminal.
    pub fn new(outlets: &Outlets, look: &Look, notify: Notify) -> Self {
        let line = InputLine::new(outlets.display.clone(), LineSettings::default());
        let keys = LineKeys::new(line.clone(), outlets.clone());
        match look.live.then(|| Console::open(Box::new(keys), false)).flatten() {
            Some(console) => {
                let (console, outlets) = (Arc::new(console), outlets.clone());
                Self::by_keys(Keyed { console, line, outlets, notify }, look)
            }
            None => Self::by_lines(Arc::new(StdinLines::spawn(outlets.clone())), outlets, look),
        }
    }

    /// Adds an editor.
    pub fn with_editor(self, editor: ExternalEditor) -> Self {
        Self { editor: Some(editor), ..self }
    }

    fn ask_through(ask: Arc<dyn AskFunction>, size: fn() -> Option<ScreenSize>, sees_answer: bool) -> Self {
        Self { ask, size, editor: None, sees_answer, turn: tokio::sync::Mutex::new(()) }
    }

    /// True if a sheet is longer than the screen, or may be once somebody makes that smaller.
    fn exceeds_screen(&self, sheet: &Sheet) -> bool {
        /// The rows for the choices, the line and some work that goes on.
        const AROUND: usize = 8;
        (self.size)()
            .is_some_and(|(columns, rows)| sheet.draw(columns).exceed(rows.saturating_sub(AROUND) * 2 / 3))
    }

    /// Shows a whole sheet, above what is asked.
    fn show_all(&self, sheet: &Sheet) {
        self.ask.show(sheet.draw(views::count_columns((self.size)().map(|(columns, _)| columns))).all());
    }

    fn say(&self, words: &str) {
        self.ask.show(words.lines().map(|line| Line::from((Inks::PLAIN, line))).collect());
    }

    async fn edit_sheet(&self, editor: &ExternalEditor, sheet: PlanSheet<'_>) -> Option<String> {
        let edited = {
            let _lent = self.ask.lend().await;
            editor.edit(&sheet.form(), sheet.extension()).await
        };
        match edited {
            Ok(Some(text)) => return Some(text),
            Ok(None) => self.say("Nothing was changed."),
            Err(why) => self.say(&text::reveal(&why)),
        }
        None
    }
}

fn sees_answer(look: &Look) -> bool {
    look.answer == AnswerTo::Live && look.answer_on_terminal
}

/// Keeps the choices that are offered.
fn keep_offered<const N: usize>(choices: [(bool, AnswerChoice); N]) -> Vec<AnswerChoice> {
    choices.into_iter().filter(|(is_offered, _)| *is_offered).map(|(_, choice)| choice).collect()
}

impl Approver for Person {
    fn present(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        async move {
            let _turn = self.turn.lock().await;
            let sheet = question::format_sheet(&question);
            let edits = question.editable.is_some();
            let always = question.always.map(|always| format!("Always: {}", text::reveal_in_line(always)));
            let choices = keep_offered([
                (true, offer('y', "yes", "Yes, once")),
                (true, offer('n', "no", "")),
                (always.is_some(), offer('a', "always", always.unwrap_or_default())),
                (true, offer('t', "tell it what to do instead", "No, because…")),
                (edits, offer('e', "edit", "Edit")),
                (self.exceeds_screen(&sheet), offer('v', "view all", "Show all")),
                (true, offer('?', "explain", "Explain")),
            ]);
            loop {
                let Some(chosen) = self.ask.choose(&sheet, "Allow?", &choices).await else {
                    return Approval::Deny(String::new());
                };
                match chosen.key {
                    'y' => return Approval::Allow,
                    'a' => return Approval::Always,
                    'n' => return Approval::Deny(chosen.words),
                    'v' => self.show_all(&sheet),
                    'e' => {
                        let command = question.editable.unwrap_or_default();
                        match self.ask.text("Run this instead:", command).await.unwrap_or_default() {
                            edited if edited.trim().is_empty() => {}
                            edited if edited == command => return Approval::Allow,
                            edited => return Approval::Edited(edited),
                        }
                    }
                    't' => {
                        if let Some(words) = self.ask.text("What should it do instead?", "").await {
                            return Approval::Deny(words);
                        }
                    }
                    _ => self.ask.show(explain_answers(&question)),
                }
            }
        }
        .boxed()
    }

    fn review_plan<'a>(&'a self, sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        async move {
            let _turn = self.turn.lock().await;
            let (shown, question) = review::format_sheet(sheet, self.sees_answer);
            let choices = keep_offered([
                (true, offer('y', "yes", "Yes")),
                (true, offer('n', "no", "")),
                (true, offer('t', "tell it what to change", "No, because…")),
                (self.editor.is_some(), offer('e', "edit", "Edit")),
                (self.exceeds_screen(&shown), offer('v', "view all", "Show all")),
            ]);
            loop {
                let Some(chosen) = self.ask.choose(&shown, question, &choices).await else {
                    return PlanReview::Refuse(String::new());
                };
                match (chosen.key, &self.editor) {
                    ('y', _) => return PlanReview::Run,
                    ('n', _) => return PlanReview::Refuse(chosen.words),
                    ('v', _) => self.show_all(&shown),
                    ('e', Some(editor)) => {
                        if let Some(text) = self.edit_sheet(editor, sheet).await {
                            return PlanReview::Edited(text);
                        }
                    }
                    _ => {
                        if let Some(words) = self.ask.text("What should change?", "").await {
                            return PlanReview::Refuse(words);
                        }
                    }
                }
            }
        }
        .boxed()
    }

    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        async move {
            let _turn = self.turn.lock().await;
            self.ask.pick(&text::reveal(question), choices).await
        }
        .boxed()
    }
}

/// Explains each answer in a line.
fn explain_answers(question: &Question<'_>) -> Vec<Line> {
    let meaning =
        |choice: &str, meaning: &str| Line::from((Ink::Bold, format!("  {choice}  "))).add(Inks::PLAIN, meaning);
    let mut lines = vec![
        meaning("yes", "runs exactly what is shown above, this once."),
        meaning("no", "refuses it; the model learns of that, and of your reason, and goes on."),
    ];
    if question.editable.is_some() {
        lines.push(meaning("edit", "lets you change the command, then runs the changed one."));
    }
    lines.extend(
        question.always.map(text::reveal_in_line).map(|always| {
            meaning("always", &format!("runs it, and no longer asks in this session about: {always}"))
        }),
    );
    let walls = match question.enclosure {
        Some(Enclosure::Read | Enclosure::Write | Enclosure::Opened) => {
            "The system enforces these limits, whatever the command tries; credentials are hidden from it."
        }
        Some(Enclosure::Outside) => "Nothing limits the command: it can do whatever you can.",
        None => "No command runs: the tool itself makes the change that is shown.",
    };
    lines.push(Line::from((Ink::Dim, format!("     {walls}"))));
    if !question.why.is_empty() {
        let why = text::reveal_in_line(question.why);
        lines.push(Line::from((Ink::Dim, format!("     You are asked because {why}."))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::ink::Style;

    /// Answers with these lines, then with the end of the input.
    struct Typed(Mutex<Vec<&'static str>>);

    impl AskLine for Typed {
        fn ask<'a>(&'a self, _prompt: &'a str) -> BoxFuture<'a, Option<String>> {
            let mut lines = self.0.lock().expect("one test, one thread");
            let line = (!lines.is_empty()).then(|| lines.remove(0).to_owned());
            std::future::ready(line).boxed()
        }
    }

    /// Keeps everything that is written, where the test can read it.
    #[derive(Clone, Default)]
    struct Shown(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("one test, one thread").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Shown {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("one test, one thread").clone()).expect("text")
        }
    }

    fn person(lines: &[&'static str]) -> (Person, Shown) {
        let lines = Arc::new(Typed(Mutex::new(lines.to_vec())));
        let shown = Shown::default();
        let ask = ByLines {
            lines,
            out: Mutex::new(shown.clone()),
            outlets: Outlets::nowhere(),
            style: Style::default(),
            columns: || None,
        };
        (Person::ask_through(Arc::new(ask), || None, false), shown)
    }

    fn approve(lines: &[&'static str], preview: &str) -> (Approval, String) {
        approve_or_always(lines, preview, None)
    }

    fn approve_or_always(lines: &[&'static str], preview: &str, always: Option<&str>) -> (Approval, String) {
        let (person, shown) = person(lines);
        let question = Question { why: "it executes", always, ..Question::about("run_command", preview) };
        let approval = person.approve(question).now_or_never().expect("the lines are there");
        (approval, shown.text())
    }

    #[test]
    fn only_a_plain_yes_allows() {
        let deny = |reason: &str| Approval::Deny(reason.to_owned());
        for (lines, expected) in [
            (vec!["y"], Approval::Allow),
            (vec![" YES "], Approval::Allow),
            (vec!["n"], deny("")),
            (vec!["n  use the other one "], deny("use the other one")),
            (vec!["no, too risky"], deny("too risky")),
            (vec![], deny("")),
            (vec!["", "yes please", "what?", "y"], Approval::Allow),
            (vec!["yep"], deny("")),
        ] {
            assert_eq!(approve(&lines, "rm x").0, expected, "{lines:?}");
        }
    }

    #[test]
    fn always_is_an_answer_only_where_it_is_said_what_it_means() {
        assert_eq!(approve_or_always(&["a"], "rm x", None).0, Approval::Deny(String::new()));
        let (approval, _) = approve_or_always(&["always"], "cargo test", Some("run_command `cargo test *`"));
        assert_eq!(approval, Approval::Always);
        assert_eq!(
            approve_or_always(&["a", "n"], "x", Some("x")).0,
            Approval::Deny(String::new()),
            "a letter is too little"
        );
    }

    #[test]
    fn what_is_allowed_is_shown_with_nothing_hidden_in_it() {
        let (_, shown) = approve(&["y"], "echo \u{1b}[8mhidden\u{202e}\nrm -rf x");
        let shown = shown.replace('─', "");
        assert_eq!(shown, "┌ run_command \n│ echo ␛[8mhidden\\u{202e}\n│ rm -rf x\n├ asked because it executes\n");
    }

    #[test]
    fn a_number_picks_a_choice_and_other_words_answer_themselves() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        for (lines, expected) in [
            (vec!["2"], Some("blue")),
            (vec!["1."], Some("red")),
            (vec!["3"], Some("3")),
            (vec!["", "green"], Some("green")),
            (vec![], None),
        ] {
            let answer = person(&lines).0.answer("Which?", &choices).now_or_never().expect("the lines are there");
            assert_eq!(answer.as_deref(), expected, "{lines:?}");
        }
    }

    /// Writes an editor that runs these lines of a shell on the file `$1`.
    fn editor(dir: &std::path::Path, line: &str) -> ExternalEditor {
        let script = dir.join("editor.sh");
        std::fs::write(&script, format!("set -e\n{line}\n")).expect("written");
        ExternalEditor { line: format!("sh {}", script.display()), dir: dir.join("drafts") }
    }

    #[test]
    fn a_proposal_is_run_refused_or_edited() {
        let dir = tempfile::tempdir().expect("a directory");
        let refuse = |why: &str| PlanReview::Refuse(why.to_owned());
        for (lines, edits, expected, said) in [
            (vec!["y"], "", PlanReview::Run, ""),
            (vec!["n"], "", refuse(""), ""),
            (vec!["n not that file"], "", refuse("not that file"), ""),
            (vec![], "", refuse(""), ""),
            (vec!["a", "v", "ok", "y"], "", PlanReview::Run, "Please answer y, n, t, e"),
            (vec!["e"], "echo new > \"$1\"", PlanReview::Edited("new\n".to_owned()), ""),
            (vec!["e", "n"], ":", refuse(""), "Nothing was changed."),
            (vec!["e", "y"], "exit 3", PlanReview::Run, "failed; nothing was changed"),
        ] {
            let (mut person, shown) = person(&lines);
            person.editor = Some(editor(dir.path(), edits));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let review = runtime.block_on(person.review_plan(PlanSheet::Proposal("old")));
            assert_eq!(review, expected, "{lines:?} {edits}");
            let shown = shown.text();
            assert!(shown.starts_with("┌ This is a proposal; nothing was changed. ─"), "{shown}");
            assert!(shown.contains("│ old\n"), "{shown}");
            assert!(shown.contains(said), "{shown}");
        }
        let left = std::fs::read_dir(dir.path().join("drafts")).expect("made").count();
        assert_eq!(left, 0, "no draft is left behind");
        let review = person(&["e", "y"]).0.review_plan(PlanSheet::Proposal("old")).now_or_never();
        assert_eq!(review, Some(PlanReview::Run), "without an editor `e` is no answer");
    }
}
