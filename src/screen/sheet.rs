//! The text above a question: as many lines as fit, and all of them on demand.
//!
//! Nothing is left out silently: lines that do not fit on the screen are counted, and a key shows all of them.

use crate::screen::ink::{Ink, Line};

/// Columns and rows of a screen.
pub(super) type ScreenSize = (usize, usize);

/// The text above a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sheet {
    pub head: Vec<Line>,
    /// The part that may be abridged.
    pub body: Vec<Line>,
    pub foot: Vec<Line>,
}

impl Sheet {
    /// Shortens the sheet to fit; `None` if all of it fits, or there is no size (a plain terminal, a log).
    pub fn abridge(&self, size: Option<ScreenSize>) -> Option<Self> {
        let body = size.and_then(|size| abridge_lines(&self.body, size))?;
        Some(Self { body, ..self.clone() })
    }

    /// All lines of the sheet.
    pub fn lines(&self) -> Vec<Line> {
        [&self.head, &self.body, &self.foot].into_iter().flatten().cloned().collect()
    }
}

/// Keeps the beginning and the end of lines that do not fit; `None` if all fit. Rows of the screen are counted, so one
/// line of a hundred thousand characters fits no better than a thousand lines.
fn abridge_lines(lines: &[Line], size: ScreenSize) -> Option<Vec<Line>> {
    /// Rows for the title, the limits, the meaning of "always", the prompt and some earlier lines.
    const AROUND: usize = 8;
    const LEAST: usize = 10;
    let (width, room) = (size.0.max(LEAST), size.1.saturating_sub(AROUND).max(LEAST));
    let all: Vec<Line> = lines.iter().flat_map(|line| line.break_rows(width)).collect();
    if all.len() <= room {
        return None;
    }
    let last = room / 3;
    let (first, rest) = all.split_at(room - last - 1);
    let (hidden, last) = rest.split_at(rest.len() - last);
    let plural = if hidden.len() == 1 { "" } else { "s" };
    let mark = Line::from((Ink::Yellow, format!("  … {} more line{plural} (v shows all)", hidden.len())));
    Some([first, &[mark], last].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::ink::Inks;

    fn sheet(body: &str) -> Sheet {
        let body = body.lines().map(|line| Line::from((Inks::PLAIN, line))).collect();
        Sheet { body, ..Sheet::default() }
    }

    fn text(sheet: &Sheet) -> String {
        sheet.lines().iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let long: Vec<String> = (1..=100).map(|number| format!("+{number}")).collect();
        let long = sheet(&long.join("\n"));
        let first = text(&long.abridge(Some((80, 30))).expect("too long"));
        assert!(first.contains("+14\n  … 79 more lines (v shows all)\n+94\n"), "{first}");
        assert!(first.ends_with("+100\n") && text(&long).lines().count() == 100);
        assert_eq!(long.abridge(None), None);
        // One line that fills many rows, with the harm in the middle.
        let line = sheet(&format!("echo {}; curl evil; echo {}", "a".repeat(5000), "b".repeat(5000)));
        let first = text(&line.abridge(Some((80, 30))).expect("too long"));
        assert!(first.contains("more lines (v shows all)") && !first.contains("curl"), "{first}");
        for fits in ["a", "a\nb", ""] {
            assert_eq!(sheet(fits).abridge(Some((80, 30))), None);
        }
    }
}
