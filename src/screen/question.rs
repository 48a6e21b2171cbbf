//! The text of a permission question: the exact command or change, in full, and the limits that it would run within.
//!
//! Characters that would be invisible or misleading (controls, unusual spaces, marks that reorder a line) are shown as
//! codes.

use super::sheet::{Sheet, SheetBody};
use crate::safety::{Enclosure, Question};
use crate::screen::ink::{Ink, Line};

/// Formats a question.
pub(super) fn format_sheet(question: &Question<'_>) -> Sheet {
    let is_outside = question.enclosure == Some(Enclosure::Outside);
    let mut title = Line::from((Ink::Bold, question.describe_tool()));
    if let Some(place) = question.describe_place() {
        title = title.add(Ink::Dim, " · ").add(if is_outside { Ink::Yellow } else { Ink::Dim }, &place);
    }
    let reason = question.describe_reason().map(|reason| Line::from((Ink::Dim, reason)));
    let warnings = question.list_warnings().map(|words| Line::from((Ink::Yellow, words)));
    let body = if question.is_change {
        SheetBody::Change(question.preview.to_owned())
    } else {
        SheetBody::from_text(question.preview)
    };
    Sheet { title, body, notes: reason.into_iter().chain(warnings).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(preview: &str) -> Question<'_> {
        Question::about("run_command", preview)
    }

    fn text(question: &Question<'_>) -> String {
        format_sheet(question)
            .draw(80)
            .all()
            .iter()
            .map(|line| line.text().trim_end_matches('─').to_owned() + "\n")
            .collect()
    }

    #[test]
    fn the_walls_are_said_in_words() {
        for (enclosure, network, title, note) in [
            (Enclosure::Read, false, "only reads, no network", ""),
            (Enclosure::Write, false, "writes in the workspace, no network", ""),
            (Enclosure::Write, true, "writes in the workspace, with the network", ""),
            (Enclosure::Outside, true, "outside the sandbox", "├ It runs with your own permissions"),
        ] {
            let sheet = text(&Question { enclosure: Some(enclosure), network, ..question("ls") });
            assert!(sheet.starts_with(&format!("┌ run_command · {title} \n│ ls\n{note}")), "{sheet}");
        }
        assert_eq!(text(&question("ls")), "┌ run_command \n│ ls\n");
        let sheet = text(&Question { hidden: true, ..question("echo ***") });
        assert!(sheet.contains("not exactly what"), "{sheet}");
    }

    #[test]
    fn a_change_has_the_numbers_of_its_lines_and_hides_nothing() {
        let diff = "--- a/x\n+++ b/x\n@@ -9 +9,2 @@\n-one two\r\n+one three\u{200b}\n+\u{1b}[8mfour\n";
        let shown = text(&Question { is_change: true, ..question(diff) });
        assert_eq!(
            shown,
            "┌ run_command \n│ x\n│  9    - one two␍\n│     9 + one three\\u{200b}\n│    10 + ␛[8mfour\n"
        );
        let line = "word ".repeat(40);
        let long = format!("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{line}\n");
        let rows = format_sheet(&Question { is_change: true, ..question(&long) }).draw(60).all();
        assert!(rows.iter().all(|row| row.columns() <= 60), "{rows:?}");
        let shown: String = rows[1..].iter().map(Line::text).collect();
        assert_eq!(shown.matches('w').count(), 40, "{shown}");
    }

    #[test]
    fn a_command_that_holds_a_diff_is_shown_as_it_is() {
        let command = "patch <<X\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nX\n";
        let shown = text(&question(command));
        assert!(shown.ends_with("│ patch <<X\n│ --- a/x\n│ +++ b/x\n│ @@ -1 +1 @@\n│ -a\n│ +b\n│ X\n"), "{shown}");
    }

    #[test]
    fn nothing_in_it_looks_like_the_question_itself() {
        let marks = "\u{301}".repeat(9);
        let command = format!("a{marks}\nAllow? y\r\n");
        let shown = text(&Question { why: "one\ntwo", ..question(&command) });
        let capped = format!("a{}{}", "\u{301}".repeat(4), "\\u{301}".repeat(5));
        assert_eq!(shown, format!("┌ run_command \n│ {capped}\n│ Allow? y␍\n├ asked because one␊two\n"));
    }
}
