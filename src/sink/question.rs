//! The text of a permission question: the exact command or change, in full, and the limits that it would run within.
//!
//! Characters that would be invisible or misleading (controls, odd blanks, marks that reorder a line) are shown as
//! codes.

use super::sheet::Sheet;
use crate::contract::{Enclosure, Question};
use crate::ink::{Ink, Inks, Line};
use crate::text;

/// Formats a question.
pub(super) fn sheet(question: &Question<'_>) -> Sheet {
    let Question { helper, tool, why, always, hidden, .. } = *question;
    let whose = helper.map_or(String::new(), |helper| format!("{helper}: "));
    let title = text::one_line(&format!("{whose}{tool} wants to run"), 80);
    let why = on_one_line(why);
    let title = if why.is_empty() { title } else { format!("{title}: {why}") };
    let mut foot = Vec::new();
    if let Some(place) = place(question) {
        let ink = if question.enclosure == Some(Enclosure::Outside) { Ink::Yellow } else { Ink::Dim };
        foot.push(Line::from((ink, place.as_str())));
    }
    if hidden {
        let warning = "One of your secrets is hidden as ***: the text shown is not exactly what would run.";
        foot.push(Line::from((Ink::Yellow, warning)));
    }
    if let Some(always) = always {
        foot.push(Line::from((
            Inks::PLAIN,
            format!("a = always in this session: {}", on_one_line(always)).as_str(),
        )));
    }
    Sheet { head: vec![Line::from((Ink::Bold, title.as_str()))], body: shown(question.preview), foot }
}

/// Formats the command or the diff, line by line.
fn shown(preview: &str) -> Vec<Line> {
    let preview = preview.strip_suffix('\n').unwrap_or(preview);
    let lines = text::revealed(preview);
    lines.split('\n').map(|line| Line::from((Inks::PLAIN, "  ")).with(ink_of(line), line)).collect()
}

/// The colour of a line of a diff.
pub(super) fn ink_of(line: &str) -> Inks {
    match line.as_bytes() {
        [b'+', ..] => Ink::Green.into(),
        [b'-', ..] => Ink::Red.into(),
        _ => Inks::PLAIN,
    }
}

/// Describes what the command could do; `None` if no command would run.
fn place(question: &Question<'_>) -> Option<String> {
    let network = if question.network { "with the network" } else { "no network" };
    Some(match question.enclosure? {
        Enclosure::Read => format!("It would run in the sandbox: only reads, {network}."),
        Enclosure::Write => format!("It would run in the sandbox: writes in the workspace, {network}."),
        Enclosure::Outside => {
            "It would run outside the sandbox: with your own permissions on this machine, it can read \
                               your keys and change any of your files."
                .to_owned()
        }
    })
}

fn on_one_line(words: &str) -> String {
    text::revealed(words).replace('\n', "␊")
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
            why: "",
            always: None,
            workspace,
            enclosure: None,
            network: false,
            hidden: false,
            editable: None,
        }
    }

    fn text(question: &Question<'_>) -> String {
        sheet(question).lines().iter().map(|line| line.text() + "\n").collect()
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
    fn nothing_in_it_looks_like_the_question_itself() {
        let question = Question { why: "one\ntwo", always: Some("x\nAllow? y"), ..question("a\nAllow? y\r\n") };
        let sheet = text(&question);
        let expected =
            "run_command wants to run: one␊two\n  a\n  Allow? y␍\na = always in this session: x␊Allow? y\n";
        assert_eq!(sheet, expected);
    }
}
