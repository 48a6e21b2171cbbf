//! A permission question as a person reads it: what would run or be written, in full and as it is, and within which
//! walls.
//!
//! Nothing is left out silently: what does not fit on the screen is counted, and a key shows all of it. Whatever
//! would not be seen (control characters, blanks that are none, marks that reorder a line) stands as its code.

use crate::contract::{Enclosure, Question};
use crate::ink::{Ink, Style};
use crate::text;

/// Columns and rows of a screen.
pub(super) type Size = (usize, usize);

/// The text of a question.
pub(super) struct Sheet<'q> {
    question: &'q Question<'q>,
    style: Style,
    preview: Vec<String>,
    /// What is shown first, where the whole does not fit.
    abridged: Option<Vec<String>>,
}

impl<'q> Sheet<'q> {
    /// Without a size (a plain terminal, a log) everything is shown.
    pub fn new(question: &'q Question<'q>, style: Style, size: Option<Size>) -> Self {
        let preview = lines(question.preview);
        let abridged = size.and_then(|size| abridged(&preview, size));
        Self { question, style, preview, abridged }
    }

    /// Whether a part is left out for want of room.
    pub fn is_abridged(&self) -> bool {
        self.abridged.is_some()
    }

    /// What is shown with the question: as much as fits.
    pub fn first(&self) -> String {
        self.with(self.abridged.as_deref().unwrap_or(&self.preview))
    }

    /// All of it.
    pub fn whole(&self) -> String {
        self.with(&self.preview)
    }

    fn with(&self, preview: &[String]) -> String {
        let Question { helper, tool, why, always, hidden, .. } = *self.question;
        let whose = helper.map_or(String::new(), |helper| format!("{helper}: "));
        let title = text::one_line(&format!("{whose}{tool} wants to run"), 80);
        let why = on_one_line(why);
        let title = if why.is_empty() { title } else { format!("{title}: {why}") };
        let mut shown = format!("{}\n", self.style.paint(Ink::Bold, &title));
        for line in preview {
            let ink = match line.as_bytes() {
                [b'+', ..] => Some(Ink::Green),
                [b'-', ..] => Some(Ink::Red),
                _ => None,
            };
            shown += "  ";
            shown += &ink.map_or(line.as_str().into(), |ink| self.style.paint(ink, line));
            shown.push('\n');
        }
        if let Some(place) = place(self.question) {
            let ink = if self.question.enclosure == Some(Enclosure::Outside) { Ink::Yellow } else { Ink::Dim };
            shown.extend([self.style.paint(ink, &place).as_ref(), "\n"]);
        }
        if hidden {
            shown += &self.style.paint(
                Ink::Yellow,
                "A secret of yours is hidden as ***: what would run is not exactly what is shown.",
            );
            shown.push('\n');
        }
        if let Some(always) = always {
            shown.extend(["a = always in this session: ", &on_one_line(always), "\n"]);
        }
        shown
    }
}

/// In words, what the command could do; `None` where no command would run.
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

fn lines(preview: &str) -> Vec<String> {
    let preview = preview.strip_suffix('\n').unwrap_or(preview);
    text::revealed(preview).split('\n').map(str::to_owned).collect()
}

fn on_one_line(words: &str) -> String {
    text::revealed(words).replace('\n', "␊")
}

/// The beginning and the end of what does not fit; `None` where all of it does. Rows of the screen are counted, so
/// that one line of a hundred thousand characters fits no better than a thousand lines.
pub(super) fn abridged(lines: &[String], (columns, rows): Size) -> Option<Vec<String>> {
    /// Rows for the title, the walls, what "always" means, the prompt, and what stood there before.
    const AROUND: usize = 8;
    const LEAST: usize = 10;
    const INDENT: usize = 2;
    let room = rows.saturating_sub(AROUND).max(LEAST);
    let width = columns.saturating_sub(INDENT).max(LEAST);
    // Enough to know that there is more, however long it is.
    let all: Vec<&str> = lines.iter().flat_map(|line| rows_of(line, width)).collect();
    if all.len() <= room {
        return None;
    }
    let last = room / 3;
    let (first, rest) = all.split_at(room - last - 1);
    let (hidden, last) = rest.split_at(rest.len() - last);
    let what = if hidden.len() == 1 { "more line" } else { "more lines" };
    let mark = format!("… {} {what} (v shows all)", hidden.len());
    let owned = |row: &&str| (*row).to_owned();
    Some(first.iter().map(owned).chain([mark]).chain(last.iter().map(owned)).collect())
}

/// A line as a screen breaks it.
fn rows_of(line: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, c) in line.char_indices() {
        let taken = if c == '\t' { 8 } else { text::columns(c.encode_utf8(&mut [0; 4])) };
        if used + taken > width && at > start {
            rows.push(&line[start..at]);
            (start, used) = (at, 0);
        }
        used += taken;
    }
    rows.push(&line[start..]);
    rows
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

    fn shown(preview: &str, size: Option<Size>) -> (String, String) {
        let question = question(preview);
        let sheet = Sheet::new(&question, Style::default(), size);
        (sheet.first(), sheet.whole())
    }

    #[test]
    fn what_does_not_fit_is_counted_and_can_be_seen() {
        let long: Vec<String> = (1..=100).map(|number| format!("+{number}")).collect();
        let long = long.join("\n");
        let (first, whole) = shown(&long, Some((80, 30)));
        assert!(first.contains("  +14\n  … 79 more lines (v shows all)\n  +94\n"), "{first}");
        assert!(first.ends_with("  +100\n") && whole.lines().count() == 101, "{whole}");
        let (first, whole) = shown(&long, None);
        assert_eq!(first, whole);
        // One line that fills many rows, with the harm in the middle.
        let line = format!("echo {}; curl evil; echo {}", "a".repeat(5000), "b".repeat(5000));
        let (first, whole) = shown(&line, Some((80, 30)));
        assert!(first.contains("more lines (v shows all)") && !first.contains("curl"), "{first}");
        assert!(whole.contains(&line), "{whole}");
        for fits in ["a", "a\nb", ""] {
            let (first, whole) = shown(fits, Some((80, 30)));
            assert_eq!(first, whole);
        }
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
            let sheet = Sheet::new(&question, Style::default(), None).first();
            assert!(sheet.ends_with(&format!("  ls\nIt would run {said}\n")), "{sheet}");
        }
        assert_eq!(shown("ls", None).0, "run_command wants to run\n  ls\n");
        let question = Question { hidden: true, ..question("echo ***") };
        let sheet = Sheet::new(&question, Style::default(), None).first();
        assert!(sheet.contains("is not exactly what is shown"), "{sheet}");
    }

    #[test]
    fn nothing_in_it_looks_like_the_question_itself() {
        let question = Question { why: "one\ntwo", always: Some("x\nAllow? y"), ..question("a\nAllow? y\r\n") };
        let sheet = Sheet::new(&question, Style::default(), None).first();
        let expected =
            "run_command wants to run: one␊two\n  a\n  Allow? y␍\na = always in this session: x␊Allow? y\n";
        assert_eq!(sheet, expected);
    }
}
