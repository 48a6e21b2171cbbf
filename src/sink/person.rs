//! Asks a person at the terminal, or nobody.
//!
//! A question shows all that is to be judged. Only a plain yes allows. Keys typed before the question appeared never
//! answer it.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::editor::Editor;
use super::look::{AnswerTo, Look};
use super::outlet::{Outlet, Outlets};
use super::question::{Sheet, Size};
use super::review::Review;
use super::spinner::Spinner;
use crate::contract::{Approval, Approver, PlanReview, PlanSheet, Question};
use crate::ink::{Ink, Style};
use crate::{terminal, text};

/// A source of typed answers: the line editor of a chat, or plain stdin.
pub trait AskLine: Send + Sync {
    /// Shows the prompt and returns one line without its line feed, or `None` at the end of the input.
    fn ask<'a>(&'a self, prompt: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// Denies every question: nobody is there to answer.
pub struct Nobody;

impl Approver for Nobody {
    fn present(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Approval> {
        std::future::ready(Approval::Nobody).boxed()
    }

    fn review_plan<'a>(&'a self, _sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        std::future::ready(PlanReview::Refuse(String::new())).boxed()
    }

    fn answer<'a>(&'a self, _question: &'a str, _choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }
}

/// A person who reads `out` (stderr) and types into `lines`.
pub struct Person<W> {
    lines: Arc<dyn AskLine>,
    out: Mutex<W>,
    style: Style,
    /// The size of the screen, where there is one. Called for each question, because windows are resized.
    size: fn() -> Option<Size>,
    spinner: Spinner,
    /// Opens plans and proposals; without one they are not edited.
    editor: Option<Editor>,
    /// The answer is written to the screen as it comes.
    sees_answer: bool,
    /// Held while a question is open, so that parallel calls ask one at a time.
    turn: tokio::sync::Mutex<()>,
}

impl Person<Outlet> {
    /// Shows questions on stderr. The spinner is hidden while a question is open. A terminal that draws nothing is
    /// shown the whole of each question.
    #[must_use]
    pub fn new(lines: Arc<dyn AskLine>, outlets: &Outlets, look: &Look) -> Self {
        let size = if look.spinner { terminal::size } else { || None };
        let sees_answer = look.answer == AnswerTo::Live && look.answer_on_terminal;
        let reading = Self::reading(outlets.progress.clone(), lines, look.style, outlets.spinner.clone());
        Self { size, sees_answer, ..reading }
    }

    /// The same, with an editor.
    #[must_use]
    pub fn with_editor(self, editor: Editor) -> Self {
        Self { editor: Some(editor), ..self }
    }
}

impl<W: Write + Send> Person<W> {
    fn reading(out: W, lines: Arc<dyn AskLine>, style: Style, spinner: Spinner) -> Self {
        let turn = tokio::sync::Mutex::new(());
        let (out, editor) = (Mutex::new(out), None);
        Self { lines, out, style, size: || None, spinner, editor, sees_answer: false, turn }
    }

    fn show(&self, text: &str) {
        let mut out = self.out.lock().expect("nobody panics while writing a question");
        // An error needs no handling here: reading the answer fails as well.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

impl<W: Write + Send> Approver for Person<W> {
    fn present(&self) -> bool {
        true
    }

    fn approve<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Approval> {
        async move {
            let _turn = self.turn.lock().await;
            let _hold = self.spinner.hold();
            let sheet = Sheet::new(&question, self.style, (self.size)());
            self.show(&sheet.first());
            let (prompt, again) = match (question.always, sheet.is_abridged()) {
                (Some(_), false) => ("Allow? [y]es, [n]o, n WHY, or [a]lways: ", "Please answer y, n or a"),
                (None, false) => ("Allow? [y]es, [n]o, or n WHY: ", "Please answer y or n"),
                (Some(_), true) => {
                    ("Allow? [v]iew all, [y]es, [n]o, n WHY, or [a]lways: ", "Please answer v, y, n or a")
                }
                (None, true) => ("Allow? [v]iew all, [y]es, [n]o, or n WHY: ", "Please answer v, y or n"),
            };
            loop {
                let Some(line) = self.lines.ask(prompt).await else {
                    return Approval::Deny(String::new());
                };
                if sheet.is_abridged() && matches!(line.trim(), "v" | "V") {
                    self.show(&sheet.whole());
                    continue;
                }
                if let Some(approval) = verdict(&line, question.always.is_some()) {
                    return approval;
                }
                self.show(&format!("{again} (`n use the test database` says why).\n"));
            }
        }
        .boxed()
    }

    fn review_plan<'a>(&'a self, sheet: PlanSheet<'a>) -> BoxFuture<'a, PlanReview> {
        async move {
            let _turn = self.turn.lock().await;
            let _hold = self.spinner.hold();
            let review = Review::new(sheet, self.style, (self.size)(), self.sees_answer);
            self.show(&review.first());
            let (view, edit) = (review.is_abridged(), self.editor.is_some());
            let keys = [(view, "[v]iew all"), (true, "[y]es"), (true, "[n]o"), (true, "n WHY"), (edit, "[e]dit")];
            let keys: Vec<&str> = keys.iter().filter(|(is_offered, _)| *is_offered).map(|(_, key)| *key).collect();
            let prompt = format!("{} {}: ", review.question, keys.join(", "));
            loop {
                let Some(line) = self.lines.ask(&prompt).await else {
                    return PlanReview::Refuse(String::new());
                };
                match (line.trim(), &self.editor) {
                    ("v" | "V", _) if view => self.show(&review.whole()),
                    ("e" | "E" | "edit", Some(editor)) => {
                        match editor.edit(&sheet.form(), sheet.extension()).await {
                            Ok(Some(text)) => return PlanReview::Edited(text),
                            Ok(None) => self.show("Nothing was changed.\n"),
                            Err(why) => self.show(&format!("{}\n", text::revealed(&why))),
                        }
                    }
                    (answer, _) => match verdict(answer, false) {
                        Some(Approval::Allow) => return PlanReview::Run,
                        Some(Approval::Deny(why)) => return PlanReview::Refuse(why),
                        _ => self
                            .show("Please answer with one of these keys (`n use the test database` says why).\n"),
                    },
                }
            }
        }
        .boxed()
    }

    fn answer<'a>(&'a self, question: &'a str, choices: &'a [String]) -> BoxFuture<'a, Option<String>> {
        async move {
            let _turn = self.turn.lock().await;
            let _hold = self.spinner.hold();
            self.show(&format!("{}\n", self.style.paint(Ink::Bold, &text::revealed(question))));
            for (number, choice) in (1..).zip(choices) {
                self.show(&format!("  {number}. {}\n", text::one_line(choice, 200)));
            }
            let prompt = if choices.is_empty() { "Answer: " } else { "Answer (a number or words): " };
            loop {
                let line = self.lines.ask(prompt).await?;
                if let Some(answer) = chosen(&line, choices) {
                    return Some(answer);
                }
                self.show("Please type an answer, or Ctrl-D for none.\n");
            }
        }
        .boxed()
    }
}

/// Parses the answer to `Allow?`. `None` if the line is not an answer.
fn verdict(line: &str, may_be_always: bool) -> Option<Approval> {
    let line = line.trim();
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = word.trim_end_matches([',', ':', '.']).to_lowercase();
    match (word.as_str(), reason.trim()) {
        ("y" | "yes", "") => Some(Approval::Allow),
        ("a" | "always", "") if may_be_always => Some(Approval::Always),
        ("n" | "no", reason) => Some(Approval::Deny(reason.to_owned())),
        _ => None,
    }
}

/// Returns the choice of a number, or the words as they are. `None` if nothing was typed.
fn chosen(line: &str, choices: &[String]) -> Option<String> {
    let line = line.trim();
    let number = line.trim_end_matches('.').parse::<usize>().ok();
    let choice = number.and_then(|number| number.checked_sub(1)).and_then(|index| choices.get(index));
    choice.cloned().or_else(|| Some(line.to_owned()).filter(|line| !line.is_empty()))
}

/// Reads answers from plain stdin (`agent run` on a terminal). A separate thread reads, so a run that is over never
/// waits for a line.
pub struct StdinLines {
    requests: std::sync::mpsc::Sender<String>,
    answers: tokio::sync::Mutex<mpsc::Receiver<Option<String>>>,
    /// A line was requested and has not arrived; its question was given up.
    waiting: AtomicBool,
}

impl StdinLines {
    /// Starts the thread. It writes everything in `outlets` before it shows a prompt.
    #[must_use]
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

    /// Answers with these lines, then with nothing.
    struct Typed(Mutex<Vec<&'static str>>);

    impl AskLine for Typed {
        fn ask<'a>(&'a self, _prompt: &'a str) -> BoxFuture<'a, Option<String>> {
            let mut lines = self.0.lock().expect("one test, one thread");
            let line = (!lines.is_empty()).then(|| lines.remove(0).to_owned());
            std::future::ready(line).boxed()
        }
    }

    fn person(lines: &[&'static str]) -> Person<Vec<u8>> {
        let lines = Arc::new(Typed(Mutex::new(lines.to_vec())));
        Person::reading(Vec::new(), lines, Style::default(), Spinner::default())
    }

    fn approve(lines: &[&'static str], preview: &str) -> (Approval, String) {
        approve_or_always(lines, preview, None)
    }

    fn approve_or_always(lines: &[&'static str], preview: &str, always: Option<&str>) -> (Approval, String) {
        let person = person(lines);
        let workspace = std::path::Path::new("/w");
        let question = Question {
            helper: None,
            tool: "run_command",
            preview,
            why: "it executes",
            always,
            workspace,
            enclosure: None,
            network: false,
            hidden: false,
            editable: None,
        };
        let approval = person.approve(question).now_or_never().expect("the lines are there");
        let out = person.out.into_inner().expect("nobody panicked");
        (approval, String::from_utf8(out).expect("text"))
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
        let (approval, shown) = approve_or_always(&["a"], "cargo test", Some("run_command `cargo test *`"));
        assert_eq!(approval, Approval::Always);
        assert!(
            shown.ends_with("  cargo test\na = always in this session: run_command `cargo test *`\n"),
            "{shown}"
        );
        assert_eq!(approve_or_always(&["a x", "always"], "x", Some("x")).0, Approval::Always);
    }

    #[test]
    fn what_is_allowed_is_shown_with_nothing_hidden_in_it() {
        let (_, shown) = approve(&["y"], "echo \u{1b}[8mhidden\u{202e}\nrm -rf x");
        assert_eq!(shown, "run_command wants to run: it executes\n  echo ␛[8mhidden\\u{202e}\n  rm -rf x\n");
    }

    #[test]
    fn a_key_shows_what_did_not_fit() {
        let long: Vec<String> = (1..=100).map(|number| format!("+{number}\n")).collect();
        let long = long.concat();
        let lines = Arc::new(Typed(Mutex::new(vec!["v", "y"])));
        let mut person = Person::reading(Vec::new(), lines, Style::default(), Spinner::default());
        person.size = || Some((80, 24));
        let workspace = std::path::Path::new("/w");
        let question = Question {
            helper: None,
            tool: "write_file",
            preview: &long,
            why: "",
            always: None,
            workspace,
            enclosure: None,
            network: false,
            hidden: false,
            editable: None,
        };
        let approval = person.approve(question).now_or_never().expect("the lines are there");
        assert_eq!(approval, Approval::Allow);
        let shown = String::from_utf8(person.out.into_inner().expect("nobody panicked")).expect("text");
        let (first, whole) = shown.split_once("+100\n").expect("the end is shown");
        assert!(first.contains("more lines (v shows all)") && !first.contains("+50"), "{first}");
        assert!(whole.contains("+50\n"), "{whole}");
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
            let answer = person(&lines).answer("Which?", &choices).now_or_never().expect("the lines are there");
            assert_eq!(answer.as_deref(), expected, "{lines:?}");
        }
    }

    /// Writes an editor that runs these lines of a shell on the file `$1`.
    fn editor(dir: &std::path::Path, line: &str) -> Editor {
        let script = dir.join("editor.sh");
        std::fs::write(&script, format!("set -e\n{line}\n")).expect("written");
        Editor { line: format!("sh {}", script.display()), dir: dir.join("drafts") }
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
            (vec!["a", "v", "ok", "y"], "", PlanReview::Run, "Please answer with one of these keys"),
            (vec!["e"], "echo new > \"$1\"", PlanReview::Edited("new\n".to_owned()), ""),
            (vec!["e", "n"], ":", refuse(""), "Nothing was changed."),
            (vec!["e", "y"], "exit 3", PlanReview::Run, "failed; nothing was changed"),
        ] {
            let mut person = person(&lines);
            person.editor = Some(editor(dir.path(), edits));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let review = runtime.block_on(person.review_plan(PlanSheet::Proposal("old")));
            assert_eq!(review, expected, "{lines:?} {edits}");
            let shown = String::from_utf8(person.out.into_inner().expect("nobody panicked")).expect("text");
            assert!(shown.starts_with("This is a proposal; nothing was changed.\nold\n"), "{shown}");
            assert!(shown.contains(said), "{shown}");
        }
        let left = std::fs::read_dir(dir.path().join("drafts")).expect("made").count();
        assert_eq!(left, 0, "no draft is left behind");
        let review = person(&["e", "y"]).review_plan(PlanSheet::Proposal("old")).now_or_never();
        assert_eq!(review, Some(PlanReview::Run), "without an editor `e` is no answer");
    }
}
