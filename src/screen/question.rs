//! The text of a permission question: the exact command or change, in full, and the limits that it would run within.
//!
//! Characters that would be invisible or misleading (controls, unusual spaces, marks that reorder a line) are shown as
//! codes.

use super::sheet::Sheet;
use super::views;
use crate::base::text;
use crate::safety::{Enclosure, Question};
use crate::screen::ink::{Ink, Inks, Line};

/// Formats a question; a change of files is laid out in at most `room` columns.
pub(super) fn format_sheet(question: &Question<'_>, room: usize) -> Sheet {
    let Question { helper, tool, why, always, hidden, .. } = *question;
    let whose = helper.map_or(String::new(), |helper| format!("{helper}: "));
    let title = text::one_line(&format!("{whose}{tool} wants to run"), 80);
    let colon = if why.is_empty() { "" } else { ": " };
    let head = vec![Line::from((Ink::Bold, format!("{title}{colon}{}", reveal_in_line(why))))];
    let ink = if question.enclosure == Some(Enclosure::Outside) { Ink::Yellow } else { Ink::Dim };
    let place = describe_place(question).map(|place| Line::from((ink, place)));
    let warning = "One of your secrets is hidden as ***: the text shown is not exactly what would run.";
    let warning = hidden.then(|| Line::from((Ink::Yellow, warning)));
    let always = always.map(|always| format!("a = always in this session: {}", reveal_in_line(always)));
    let always = always.map(|always| Line::from((Inks::PLAIN, always)));
    let body =
        if question.is_change { format_change(question.preview, room) } else { format_preview(question.preview) };
    Sheet { head, body, foot: [place, warning, always].into_iter().flatten().collect() }
}

/// The indentation of the body, which distinguishes it from the question itself.
const INDENT: &str = "  ";

/// Formats the command or the arguments, line by line.
fn format_preview(preview: &str) -> Vec<Line> {
    let preview = preview.strip_suffix('\n').unwrap_or(preview);
    let lines = text::reveal(preview);
    lines.split('\n').map(|line| Line::from((Inks::PLAIN, INDENT)).add(Inks::PLAIN, line)).collect()
}

/// The change of files, in the same layout as one that was made, without omissions.
fn format_change(diff: &str, room: usize) -> Vec<Line> {
    /// In fewer columns a row would be cut; a narrower terminal wraps it.
    const LEAST: usize = 8;
    let rows = views::draw_change(&text::reveal(diff), room.saturating_sub(INDENT.len()).max(LEAST), None);
    rows.into_iter().map(|row| Line::from((Inks::PLAIN, INDENT)).join(row)).collect()
}

/// Describes what the command could do; `None` if no command would run.
fn describe_place(question: &Question<'_>) -> Option<String> {
    let network = if question.network { "with the network" } else { "no network" };
    Some(match question.enclosure? {
        Enclosure::Read => format!("It would run in the sandbox: only reads, {network}."),
        Enclosure::Write | Enclosure::Opened => {
            let also: String = question
                .opened
                .iter()
                .map(|dir| format!(" and {}", reveal_in_line(&dir.to_string_lossy())))
                .collect();
            format!("It would run in the sandbox: writes in the workspace{also}, {network}.")
        }
        Enclosure::Outside => {
            "It would run outside the sandbox: with your own permissions on this machine, it can read \
                               your keys and change any of your files."
                .to_owned()
        }
    })
}

/// Reveals what is special in a text, and shows it on one line.
pub(super) fn reveal_in_line(words: &str) -> String {
    text::reveal(words).replace('\n', "␊")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(preview: &str) -> Question<'_> {
        let workspace = std::path::Path::new("/w");
        Question {
            helper: None,
            tool: "run_command",
            preview,
            is_change: false,
            why: "",
            always: None,
            workspace,
            enclosure: None,
            network: false,
            opened: &[],
            hidden: false,
            editable: None,
        }
    }

    fn text(question: &Question<'_>) -> String {
        format_sheet(question, 79).lines().iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn the_walls_are_said_in_words() {
        for (enclosure, network, said) in [
            (Some(Enclosure::Read), false, "in the sandbox: only reads, no network."),
            (Some(Enclosure::Write), false, "in the sandbox: writes in the workspace, no network."),
            (Some(Enclosure::Write), true, "in the sandbox: writes in the workspace, with the network."),
            (
                Some(Enclosure::Outside),
                true,
                "outside the sandbox: with your own permissions on this machine, it can read your keys and change any \
                 of your files.",
            ),
        ] {
            let question = Question { enclosure, network, ..question("ls") };
            let sheet = text(&question);
            assert!(sheet.ends_with(&format!("  ls\nIt would run {said}\n")), "{sheet}");
        }
        assert_eq!(text(&question("ls")), "run_command wants to run\n  ls\n");
        let question = Question { hidden: true, ..question("echo ***") };
        let sheet = text(&question);
        assert!(sheet.contains("not exactly what would run"), "{sheet}");
    }

    #[test]
    fn a_change_has_the_numbers_of_its_lines_and_hides_nothing() {
        let diff = "--- a/x\n+++ b/x\n@@ -9 +9,2 @@\n-one two\r\n+one three\u{200b}\n+\u{1b}[8mfour\n";
        let shown = text(&Question { is_change: true, ..question(diff) });
        assert_eq!(
            shown,
            "run_command wants to run\n  x\n   9    - one two␍\n      9 + one three\\u{200b}\n     10 + ␛[8mfour\n"
        );
        let line = "word ".repeat(40);
        let long = format!("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{line}\n");
        let sheet = format_sheet(&Question { is_change: true, ..question(&long) }, 60);
        assert!(sheet.body.iter().all(|row| row.columns() <= 60), "{sheet:?}");
        let shown: String = sheet.body.iter().map(Line::text).collect();
        assert_eq!(shown.matches('w').count(), 40, "{shown}");
    }

    #[test]
    fn a_command_that_holds_a_diff_is_shown_as_it_is() {
        let command = "patch <<X\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nX\n";
        let shown = text(&question(command));
        assert!(shown.ends_with("  patch <<X\n  --- a/x\n  +++ b/x\n  @@ -1 +1 @@\n  -a\n  +b\n  X\n"), "{shown}");
    }

    #[test]
    fn nothing_in_it_looks_like_the_question_itself() {
        let question = Question { why: "one\ntwo", always: Some("x\nAllow? y"), ..question("a\nAllow? y\r\n") };
        let sheet = text(&question);
        let expected =
            "run_command wants to run: one␊two\n  a\n  Allow? y␍\na = always in this session: x␊Allow? y\n";
        assert_eq!(sheet, expected);
    }
}
