//! The frame around a question. Every row of it is folded here and begins with a mark of the frame, so nothing inside
//! can pass for the question itself: rows of a command begin with `│`, the program's own words with `┌`, `├` or `└`.
//!
//! Nothing is left out silently: rows that do not fit on the screen are counted, and it is said where they can be seen.

use super::views;
use crate::base::text;
use crate::screen::ink::{Ink, Inks, Line};

/// Columns and rows of a screen.
pub(super) type ScreenSize = (usize, usize);

/// The text of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    pub title: Line,
    pub body: SheetBody,
    /// What the program has to say about the body.
    pub notes: Vec<Line>,
}

/// The part of a sheet that may be abridged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SheetBody {
    Lines(Vec<Line>),
    /// A change of files, laid out for the width of the screen.
    Change(String),
}

impl Default for SheetBody {
    fn default() -> Self {
        Self::Lines(Vec::new())
    }
}

impl SheetBody {
    /// The lines of a text, with everything odd as its code.
    pub fn from_text(text: &str) -> Self {
        let text = text::reveal(text.strip_suffix('\n').unwrap_or(text));
        Self::Lines(text.split('\n').map(|line| Line::from((Inks::PLAIN, line))).collect())
    }

    fn lay_out(&self, room: usize) -> Vec<Line> {
        /// In fewer columns a row of a change would be cut.
        const LEAST: usize = 8;
        match self {
            Self::Lines(lines) => lines.clone(),
            Self::Change(diff) => views::draw_change(&text::reveal(diff), room.max(LEAST), None),
        }
    }
}

impl Sheet {
    /// The sheet of a question in words.
    pub fn ask(question: &str) -> Self {
        const LONGEST: usize = 70;
        let question = question.trim();
        if question.contains('\n') || question.len() > LONGEST {
            let title = Line::from((Ink::Bold, "A question"));
            return Self { title, body: SheetBody::from_text(question), notes: Vec::new() };
        }
        Self { title: Line::from((Ink::Bold, text::reveal(question))), ..Self::default() }
    }

    /// The rows of the frame above the question, in at most `room` columns.
    pub fn draw(&self, room: usize) -> FrameRows {
        let mut title = frame("├ ", &self.title, room);
        if let Some(mark) = title[0].spans.first_mut() {
            mark.text = mark.text.replacen('├', "┌", 1);
        }
        let rule = room.saturating_sub(title[0].columns() + 1);
        if title.len() == 1 && rule > 0 {
            title[0].push(Ink::Dim, &format!(" {}", "─".repeat(rule)));
        }
        let body = self.body.lay_out(room.saturating_sub(INDENT));
        FrameRows {
            title,
            body: body.iter().flat_map(|line| frame("│ ", line, room)).collect(),
            notes: self.notes.iter().flat_map(|line| frame("├ ", line, room)).collect(),
        }
    }
}

/// In so many rows a sheet shows its title, the start of its body, and how much is left out.
pub(super) const LEAST_ROWS: usize = 3;
/// The columns of the mark of a row.
const INDENT: usize = 2;

/// Folds a line into rows of the frame.
pub(super) fn frame(mark: &str, line: &Line, room: usize) -> Vec<Line> {
    /// The further rows of a line are indented.
    const HANGING: &str = "  ";
    let width = room.saturating_sub(INDENT).max(1);
    let mut line = line.clone();
    for span in &mut line.spans {
        span.text = span.text.replace('\t', "    ");
    }
    let is_short = line.columns() <= width;
    let rows = if is_short { vec![line] } else { fold_words(&line, width.saturating_sub(HANGING.len()).max(1)) };
    let place = |(at, row): (usize, Line)| {
        let hanging = if at == 0 { "" } else { HANGING };
        Line::from((Ink::Dim, mark)).add(Inks::PLAIN, hanging).join(row)
    };
    rows.into_iter().enumerate().map(place).collect()
}

/// Breaks a line into rows of at most `width` columns, after a blank if one is in the second half of the row.
fn fold_words(line: &Line, width: usize) -> Vec<Line> {
    let columns = |text: &str| text::count_columns(text);
    let (whole, mut rows, mut row) = (line.text(), Vec::new(), Line::new());
    let (mut start, mut used, mut ends) = (0, 0, Vec::new());
    for (at, c) in whole.char_indices() {
        let taken = columns(c.encode_utf8(&mut [0; 4]));
        if used > 0 && used + taken > width {
            let blank = whole[start..at].rfind(' ').map(|blank| start + blank + 1);
            start = blank.filter(|blank| columns(&whole[start..*blank]) > width / 2).unwrap_or(at);
            used = columns(&whole[start..at]);
            ends.push(start);
        }
        used += taken;
    }
    let mut from = 0;
    for span in &line.spans {
        let (mut rest, end) = (from, from + span.text.len());
        for cut in ends.iter().copied().filter(|cut| (from..end).contains(cut)) {
            row.push(span.inks, &whole[rest..cut]);
            rows.push(std::mem::take(&mut row));
            rest = cut;
        }
        row.push(span.inks, &whole[rest..end]);
        from = end;
    }
    rows.push(row);
    rows
}

/// The rows of a sheet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameRows {
    title: Vec<Line>,
    body: Vec<Line>,
    notes: Vec<Line>,
}

impl FrameRows {
    /// The number of rows.
    pub fn count(&self) -> usize {
        self.title.len() + self.body.len() + self.notes.len()
    }

    /// True if they are more than `rows`.
    pub fn exceed(&self, rows: usize) -> bool {
        self.count() > rows
    }

    /// At most `rows` rows: the first and the last ones, with the number of those between, and `elsewhere`, the words for
    /// where they can be seen. The title and the notes are whole if some of the body fits beside them; otherwise the first
    /// row of the title and then the body get their rows first.
    pub fn fit(&self, rows: usize, elsewhere: &str) -> Vec<Line> {
        let Self { title, body, notes } = self;
        if !self.exceed(rows) {
            return title.iter().chain(body).chain(notes).cloned().collect();
        }
        let room = rows.saturating_sub(title.len() + notes.len());
        let [titled, first, last, noted] = if room >= LEAST_ROWS {
            [title.len(), room - room / 3 - 1, room / 3, notes.len()]
        } else {
            let left = rows.saturating_sub(1);
            let head = left.min(1);
            let first = body.len().min(left - head);
            let more = (title.len() - head).min(left - head - first);
            [head + more, first, 0, left - head - first - more]
        };
        let hidden = self.count() - titled - first - last - noted;
        let hidden = text::count_noun(hidden as u64, "more row", "more rows");
        let hidden = Line::from((Ink::Dim, "├ ")).add(Ink::Yellow, &format!("… {hidden}{elsewhere}"));
        let (above, below) = (title.iter().take(titled).chain(&body[..first]), &body[body.len() - last..]);
        let below = below.iter().chain(&notes[notes.len() - noted..]);
        above.cloned().chain([hidden]).chain(below.cloned()).collect()
    }

    /// All rows.
    pub fn all(&self) -> Vec<Line> {
        self.fit(usize::MAX, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(body: &str) -> Sheet {
        Sheet { title: Line::from((Ink::Bold, "tool")), body: SheetBody::from_text(body), notes: Vec::new() }
    }

    fn text(rows: &[Line]) -> Vec<String> {
        rows.iter().map(Line::text).collect()
    }

    #[test]
    fn never_more_rows_than_there_is_room_for() {
        let mut sheet = sheet("a\nb\nc");
        sheet.notes = vec![Line::from((Inks::PLAIN, "note")); 2];
        for (rows, expected) in [
            (1, vec!["├ … 6 more rows"]),
            (2, vec!["┌ tool ─", "├ … 5 more rows"]),
            (3, vec!["┌ tool ─", "│ a", "├ … 4 more rows"]),
            (4, vec!["┌ tool ─", "│ a", "│ b", "├ … 3 more rows"]),
            (5, vec!["┌ tool ─", "│ a", "│ b", "│ c", "├ … 2 more rows"]),
            (6, vec!["┌ tool ─", "│ a", "│ b", "│ c", "├ note", "├ note"]),
        ] {
            assert_eq!(text(&sheet.draw(8).fit(rows, "")), expected);
        }
    }

    #[test]
    fn every_row_begins_with_a_mark_that_no_command_can_write() {
        let forged = format!("ls{}It would only read\n└ Allow? yes\n\tx", " ".repeat(40));
        let mut sheet = sheet(&forged);
        sheet.notes = vec![Line::from((Inks::PLAIN, "asked because it executes what nobody knows"))];
        for room in [1, 5, 20, 46, 200] {
            let rows = sheet.draw(room).all();
            assert!(text(&rows)[1..].iter().all(|row| row.starts_with(['│', '├'])), "{rows:?}");
            assert!(room < 5 || rows.iter().all(|row| row.columns() <= room), "{rows:?}");
        }
        let shown = text(&sheet.draw(46).all());
        assert_eq!(shown[0], format!("┌ tool {}", "─".repeat(39)));
        assert!(shown.contains(&"│ └ Allow? yes".to_owned()), "{shown:?}");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let long: Vec<String> = (1..=100).map(|number| format!("+{number}")).collect();
        let rows = sheet(&long.join("\n")).draw(80);
        let shown = text(&rows.fit(22, " (shown above)"));
        assert!(shown.len() == 22 && shown[1] == "│ +1" && shown[21] == "│ +100", "{shown:?}");
        assert_eq!(shown[14], "├ … 80 more rows (shown above)");
        assert!(rows.exceed(100) && !rows.exceed(101));
        assert_eq!(rows.all().len(), 101);
        // One line that fills many rows, with the harm in the middle.
        let line = sheet(&format!("echo {}; curl evil; echo {}", "a".repeat(5000), "b".repeat(5000)));
        let shown = text(&line.draw(80).fit(22, "")).concat();
        assert!(shown.contains("more rows") && !shown.contains("curl"), "{shown}");
    }
}
