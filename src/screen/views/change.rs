//! Draws a unified diff: numbered lines in colour, with the changed words marked.

use super::fit::{draw_words, indent_line};
use crate::base::{diff, text};
use crate::screen::ink::{Ink, Inks, Line};

/// With fewer columns, line numbers are left out to keep room for the lines.
const ROOM_FOR_NUMBERS: usize = 40;
/// The columns of a tab.
const TAB: usize = 4;

/// A row of the diff.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DiffRow<'d> {
    kind: DiffRowKind,
    /// The number of the line on the side before, and on the side after, if it is there.
    old: Option<usize>,
    new: Option<usize>,
    text: &'d str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiffRowKind {
    /// The name of the file.
    File,
    /// A gap between two hunks.
    Gap,
    Kept,
    Removed,
    Added,
    /// A remark of the format, or text that is not a diff.
    Else,
}

impl<'d> DiffRow<'d> {
    fn unnumbered(kind: DiffRowKind, text: &'d str) -> Self {
        Self { kind, old: None, new: None, text }
    }
}

/// Draws a unified diff in rows of at most `room` columns; longer lines continue in the next row. With a bound, there
/// are at most `most` rows, the last of which counts the lines left out.
pub fn draw_change(diff: &str, room: usize, most: Option<usize>) -> Vec<Line> {
    let found = parse_diff(diff);
    let most = most.unwrap_or(usize::MAX);
    let digits = if room < ROOM_FOR_NUMBERS {
        0
    } else {
        found
            .iter()
            .filter_map(|row| row.old.max(row.new))
            .max()
            .map_or(0, |last| last.checked_ilog10().map_or(1, |log| log as usize + 1))
    };
    let mut lines: Vec<Line> = Vec::new();
    // The rows of the diff that fit within the bound, with a row left for the count.
    let (mut whole, mut kept) = (0, 0);
    let mut at = 0;
    while at < found.len() && lines.len() <= most {
        for (row, marked) in pair_block(&found[at..]) {
            lines.extend(draw_numbered(row, marked, digits, room));
            at += 1;
            if lines.len() < most {
                (whole, kept) = (at, lines.len());
            }
            if lines.len() > most {
                break;
            }
        }
    }
    if lines.len() <= most {
        return lines;
    }
    lines.truncate(kept);
    let left_out = found.len() - whole;
    let plural = if left_out == 1 { "line" } else { "lines" };
    lines.extend((most > 0).then(|| draw_words(Ink::Dim, &format!("… {left_out} {plural} not shown"), room)));
    lines
}

/// True if the lines that a tool shows below its call are a diff.
pub fn is_diff(lines: &str) -> bool {
    /// A remark about the file and its two headers may come before the first hunk.
    const BEFORE: usize = 3;
    lines.lines().take(BEFORE + 1).any(|line| parse_header(line).is_some())
}

/// Parses a diff into rows with line numbers.
fn parse_diff(diff: &str) -> Vec<DiffRow<'_>> {
    let mut rows = Vec::new();
    let (mut old, mut new) = (0, 0);
    // The lines left in the hunk, so a removed line `-- x` is not mistaken for the name of a file.
    let (mut old_left, mut new_left) = (0, 0);
    for line in diff.lines() {
        let text = line.get(1..).unwrap_or_default();
        match line.as_bytes().first() {
            Some(b' ') | None if old_left > 0 && new_left > 0 => {
                rows.push(DiffRow { kind: DiffRowKind::Kept, old: Some(old), new: Some(new), text });
                (old, new, old_left, new_left) = (old + 1, new + 1, old_left - 1, new_left - 1);
            }
            Some(b'-') if old_left > 0 => {
                rows.push(DiffRow { kind: DiffRowKind::Removed, old: Some(old), new: None, text });
                (old, old_left) = (old + 1, old_left - 1);
            }
            Some(b'+') if new_left > 0 => {
                rows.push(DiffRow { kind: DiffRowKind::Added, old: None, new: Some(new), text });
                (new, new_left) = (new + 1, new_left - 1);
            }
            Some(b'@') if let Some((before, after)) = parse_header(line) => {
                if rows.last().is_some_and(|row| row.old.or(row.new).is_some()) {
                    rows.push(DiffRow::unnumbered(DiffRowKind::Gap, "⋮"));
                }
                ((old, old_left), (new, new_left)) = (before, after);
            }
            Some(b'-') if line.starts_with("--- ") => rows.extend(parse_file(&line[4..], "a/")),
            Some(b'+') if line.starts_with("+++ ") => {
                let name = parse_file(&line[4..], "b/");
                // A file usually keeps its name.
                if name.is_some() && rows.last() != name.as_ref() {
                    rows.extend(name);
                }
            }
            _ => rows.push(DiffRow::unnumbered(DiffRowKind::Else, line)),
        }
    }
    rows
}

/// Parses the first line and the number of lines of both sides: `@@ -1,3 +1,4 @@`.
fn parse_header(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let mut sides = line.strip_prefix("@@ -")?.split(' ');
    let side = |side: &str| {
        let (start, count) = side.split_once(',').unwrap_or((side, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let old = side(sides.next()?)?;
    Some((old, side(sides.next()?.strip_prefix('+')?)?))
}

/// The name in a file header; `None` if there is no file on this side.
fn parse_file<'d>(name: &'d str, side: &str) -> Option<DiffRow<'d>> {
    let name = Some(name).filter(|name| *name != "/dev/null")?;
    Some(DiffRow::unnumbered(DiffRowKind::File, name.strip_prefix(side).unwrap_or(name)))
}

/// The rows of the change at the start of `rows`, or only the first row if it is not a change; each with its changed
/// words, if known.
fn pair_block<'r, 'd>(rows: &'r [DiffRow<'d>]) -> Vec<(&'r DiffRow<'d>, Option<Vec<diff::DiffPiece<'d>>>)> {
    let removed = rows.iter().take_while(|row| row.kind == DiffRowKind::Removed).count();
    let added = rows[removed..].iter().take_while(|row| row.kind == DiffRowKind::Added).count();
    let mut block: Vec<_> = rows[..(removed + added).max(1)].iter().map(|row| (row, None)).collect();
    // If a change has as many lines before as after, they are compared in pairs.
    for pair in 0..if removed == added { removed } else { 0 } {
        if let Some([before, after]) = diff::compare_words(rows[pair].text, rows[removed + pair].text) {
            block[pair].1 = Some(before);
            block[removed + pair].1 = Some(after);
        }
    }
    block
}

/// Draws a row as `  12    - old`: the numbers of both sides, the mark, the line. Its continuation is indented.
fn draw_numbered(
    row: &DiffRow<'_>,
    marked: Option<Vec<diff::DiffPiece<'_>>>,
    digits: usize,
    room: usize,
) -> Vec<Line> {
    let DiffRow { kind, old, new, text } = *row;
    let whole = |ink: Ink| Line::from((ink, show_text(text))).break_rows(room);
    let (mark, ink) = match kind {
        DiffRowKind::File => return whole(Ink::Bold).into_iter().map(|row| row.cut(room)).collect(),
        DiffRowKind::Gap => return vec![indent_line(draw_words(Ink::Dim, text, room), room)],
        DiffRowKind::Else => return whole(Ink::Dim),
        DiffRowKind::Kept => (" ", Inks::PLAIN),
        DiffRowKind::Removed => ("-", Ink::Red.into()),
        DiffRowKind::Added => ("+", Ink::Green.into()),
    };
    let number = |number: Option<usize>| number.map_or(String::new(), |number| number.to_string());
    let gutter = format!("{:>digits$} {:>digits$} ", number(old), number(new));
    let gutter = if digits > 0 && gutter.len() + 2 < room { gutter } else { String::new() };
    let mut line = Line::new();
    for (differs, piece) in marked.unwrap_or_else(|| vec![(false, text)]) {
        line.push(if differs { ink.add(Ink::Reverse) } else { ink }, &show_text(piece));
    }
    let width = room.saturating_sub(text::count_columns(&gutter) + 2).max(1);
    let rest = " ".repeat(gutter.len());
    let with_gutter = |(at, row): (usize, Line)| {
        let (numbers, mark) = if at == 0 { (&gutter, mark) } else { (&rest, " ") };
        Line::from((Ink::Dim, numbers)).add(ink, mark).add(ink, " ").join(row).cut(room)
    };
    line.break_rows(width).into_iter().enumerate().map(with_gutter).collect()
}

/// Makes text visible, with spaces for tabs, whose width depends on the column.
fn show_text(text: &str) -> String {
    text::make_visible(text).replace('\t', &" ".repeat(TAB))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(diff: &str, room: usize, most: Option<usize>) -> String {
        draw_change(diff, room, most).iter().map(Line::text).collect::<Vec<_>>().join("\n")
    }

    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -8,4 +8,4 @@\n a\n-let b = 1;\n-gone\n+let c = 1;\n+came\n d\n@@ \
                        -100 +100,2 @@\n e\n+f\n";

    #[test]
    fn a_diff_is_shown_with_the_numbers_of_both_sides() {
        assert_eq!(
            text(DIFF, 80, None),
            "x.rs\n  8   8   a\n  9     - let b = 1;\n 10     - gone\n      9 + let c = 1;\n     10 + came\n 11  11   d\n  \
             ⋮\n100 100   e\n    101 + f"
        );
        let narrow = "x.rs\n  a\n- let b = 1;\n- gone\n+ let c = 1;\n+ came\n  d\n  ⋮\n  e\n+ f";
        assert_eq!(text(DIFF, 30, None), narrow);
    }

    #[test]
    fn words_that_changed_are_reversed() {
        let lines = draw_change("@@ -1 +1 @@\n-let b = 1;\n+let c = 1;\n", 80, None);
        let marked = |line: &Line| -> Vec<String> {
            let spans = line.spans.iter().filter(|span| span.inks.has(Ink::Reverse));
            spans.map(|span| span.text.clone()).collect()
        };
        assert_eq!(lines.iter().map(marked).collect::<Vec<_>>(), [["b"], ["c"]]);
        assert!(lines[0].spans.iter().any(|span| span.inks == Ink::Red.into()), "{lines:?}");
    }

    #[test]
    fn a_line_that_looks_like_a_header_is_a_line_where_one_is_due() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n-@@ -1 +1 @@\n+z\n";
        assert_eq!(text(diff, 80, None), "x\n1   - -- a/y\n  1 + ++ b/y\n2   - @@ -1 +1 @@\n  2 + z");
    }

    #[test]
    fn other_forms_are_shown_too() {
        for (diff, expected) in [
            ("", ""),
            ("no diff\nat all", "no diff\nat all"),
            (
                "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
                "new\n  1 + a\n\\ No newline at end of file",
            ),
            ("--- a/old\n+++ b/new\n", "old\nnew"),
            ("@@ -1 +1 @@\n-\ta\u{1b}[2J\n+\tb\r\n", "1   -     a␛[2J\n  1 +     b"),
            ("@@ -x +1 @@\n-a\n", "@@ -x +1 @@\n-a"),
        ] {
            assert_eq!(text(diff, 80, None), expected, "{diff:?}");
        }
        assert!(is_diff(DIFF) && is_diff("added x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a"));
        assert!(!is_diff("") && !is_diff("✓ look\n▸ write it\n@@ here"));
    }

    #[test]
    fn a_long_diff_is_folded_and_what_is_left_out_counted() {
        let added = (1..=90).map(|line| format!("+line {line}\n")).collect::<Vec<_>>().concat();
        let diff = format!("--- a/x\n+++ b/x\n@@ -0,0 +1,90 @@\n{added}");
        assert_eq!(text(&diff, 80, Some(4)), "x\n    1 + line 1\n    2 + line 2\n… 88 lines not shown");
        assert_eq!(draw_change(&diff, 80, Some(91)).len(), 91);
        assert_eq!(text(&diff, 80, Some(1)), "… 91 lines not shown");
        assert_eq!(text(&diff, 80, Some(0)), "");
        let long = format!("@@ -0,0 +1,2 @@\n+{}\n+b\n", "x".repeat(200));
        assert_eq!(text(&long, 44, Some(4)), "… 2 lines not shown");
    }

    #[test]
    fn nothing_is_wider_or_higher_than_its_room_and_a_long_line_is_whole() {
        let long =
            format!("--- a/日本語\n+++ b/日本語\n@@ -7777 +7777 @@\n-{}\n+b日本\n", "日本 words ".repeat(20));
        for room in 1..100 {
            for most in [0, 1, 2, 7] {
                assert!(draw_change(&long, room, Some(most)).len() <= most);
            }
            let lines = draw_change(&long, room, None);
            assert!(lines.iter().all(|line| line.columns() <= room), "{lines:?} in {room}");
            if room > 4 {
                let all: String = lines.iter().map(Line::text).collect();
                assert_eq!(all.matches('本').count(), 22, "{all} in {room}");
            }
        }
    }
}
