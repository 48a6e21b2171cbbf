//! The differences of two texts, line by line: counted, as hunks, and as a unified diff.

use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffableStr, group_diff_ops};

use crate::base::text;

/// After this time the diff algorithm returns a coarser result.
const DEADLINE: Duration = Duration::from_millis(300);

/// Lines added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineCounts {
    pub added: u64,
    pub removed: u64,
}

impl LineCounts {
    pub fn count_changes(old: &str, new: &str) -> Self {
        let ops = compare_lines(&split_lines(old), &split_lines(new));
        let changed = || ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
        Self {
            added: changed().map(|op| op.new_range().len() as u64).sum(),
            removed: changed().map(|op| op.old_range().len() as u64).sum(),
        }
    }
}

impl std::fmt::Display for LineCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "+{} −{} lines", self.added, self.removed)
    }
}

/// Lines that belong together: a difference and its context.
#[derive(Debug)]
pub struct DiffHunk<'t> {
    /// `@@ -1,3 +1,4 @@`.
    pub header: String,
    /// Each line with its mark: a space if it is in both texts, `-` if only in the old one, `+` if only in the new one.
    pub lines: Vec<(char, &'t str)>,
}

/// The changes from the lines of `old` to those of `new`, with `context` lines around each change.
pub fn find_hunks<'t>(old: &[&'t str], new: &[&'t str], context: usize) -> Vec<DiffHunk<'t>> {
    let marked = |mark: char, lines: &[&'t str]| lines.iter().map(move |line| (mark, *line)).collect::<Vec<_>>();
    let of_op = |op: &DiffOp| {
        let (before, after) = (&old[op.old_range()], &new[op.new_range()]);
        match op {
            DiffOp::Equal { .. } => marked(' ', before),
            _ => [marked('-', before), marked('+', after)].concat(),
        }
    };
    let groups = group_diff_ops(compare_lines(old, new), context).into_iter();
    groups
        .map(|ops| DiffHunk {
            header: UnifiedHunkHeader::new(&ops).to_string(),
            lines: ops.iter().flat_map(of_op).collect(),
        })
        .collect()
}

/// A unified diff with three lines of context. It is complete, since a person decides on it.
pub fn unify(name: &str, old: &str, new: &str) -> String {
    match unify_nameless(old, new) {
        diff if diff.is_empty() => diff,
        diff => format!("--- a/{name}\n+++ b/{name}\n{diff}"),
    }
}

/// A unified diff without the name of a file.
pub fn unify_nameless(old: &str, new: &str) -> String {
    const CONTEXT: usize = 3;
    let mut diff = String::new();
    for hunk in find_hunks(&split_lines(old), &split_lines(new), CONTEXT) {
        diff.extend([hunk.header.as_str(), "\n"]);
        for (mark, line) in hunk.lines {
            diff.push(mark);
            diff.push_str(line);
            if !line.ends_with(['\n', '\r']) {
                diff.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    diff
}

/// The summary of a change that was made: one line in words, and its diff below it. Only the beginning of a long diff
/// is shown, and the other lines are counted.
pub fn summarise_change(what: &str, diff: &str) -> String {
    const LONGEST: usize = 16 * 1024;
    let diff = diff.trim_end_matches('\n');
    if diff.is_empty() {
        return what.to_owned();
    }
    let start = &diff[..diff.floor_char_boundary(LONGEST)];
    if start.len() == diff.len() {
        return format!("{what}\n{diff}");
    }
    let whole = start.rfind('\n').map_or("", |end| &start[..=end]);
    let left_out = text::count_noun(diff[whole.len()..].lines().count() as u64, "line", "lines");
    format!("{what}\n{whole}… {left_out} not shown")
}

/// True if the other line lacks a piece of a line, with the piece.
pub type DiffPiece<'t> = (bool, &'t str);

/// The words in which two lines differ. `None` if the lines have too little in common for that to help a reader.
pub fn compare_words<'t>(old: &'t str, new: &'t str) -> Option<[Vec<DiffPiece<'t>>; 2]> {
    /// Longer lines are compared as a whole.
    const LONGEST: usize = 1000;
    if old.len().max(new.len()) > LONGEST {
        return None;
    }
    let (before, after) = (split_tokens(old), split_tokens(new));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut common = 0;
    for op in compare_lines(&before, &after) {
        let differs = !matches!(op, DiffOp::Equal { .. });
        let piece = |token: &&'t str| (differs, *token);
        left.extend(before[op.old_range()].iter().map(piece));
        right.extend(after[op.new_range()].iter().map(piece));
        if !differs {
            common += before[op.old_range()].iter().map(|token| token.trim().len()).sum::<usize>();
        }
    }
    // A third of the longer line must be common: otherwise marks would be everywhere.
    let is_alike = common * 3 >= old.trim().len().max(new.trim().len());
    is_alike.then_some([left, right])
}

/// Words, spaces, and every other character by itself.
fn split_tokens(line: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 0,
        c if c.is_whitespace() => 1,
        _ => 2,
    };
    let mut tokens: Vec<&str> = Vec::new();
    let (mut start, mut last) = (0, None);
    for (at, c) in line.char_indices() {
        let this = kind(c);
        if last.is_some_and(|last| last != this || this == 2) {
            tokens.push(&line[start..at]);
            start = at;
        }
        last = Some(this);
    }
    if start < line.len() {
        tokens.push(&line[start..]);
    }
    tokens
}

/// The lines with their ends.
fn split_lines(text: &str) -> Vec<&str> {
    DiffableStr::tokenize_lines(text)
}

/// The changes from `old` to `new`. The only call of the diff algorithm, which is generic and large.
fn compare_lines(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let deadline = Some(Instant::now() + DEADLINE);
    let Ok(()) = myers::diff_deadline(&mut ops, old, 0..old.len(), new, 0..new.len(), deadline);
    ops.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use similar::TextDiff;

    use super::*;

    #[test]
    fn a_change_is_counted_and_shown() {
        let (old, new) = ("a\nb\nc\n", "a\nB\nc\nd\n");
        assert_eq!(LineCounts::count_changes(old, new).to_string(), "+2 −1 lines");
        assert_eq!(unify("x", old, new), "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
    }

    #[test]
    fn a_diff_is_written_as_others_write_it() {
        let ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        for (old, new) in [
            ("", ""),
            ("a\n", "a\n"),
            ("", "a\n"),
            ("a\n", ""),
            ("a", "b"),
            ("a\nb", "a\nb\n"),
            ("a\r\nb\r\n", "a\r\nB\r\n"),
            ("a\rb", "a\rc"),
            (ten, &ten.replace("2\n", "two\n").replace("9\n", "")),
            (ten, &ten.replace("1\n", "one\n").replace("5\n", "5\nand a half\n")),
        ] {
            let expected = TextDiff::from_lines(old, new);
            assert_eq!(unify("x", old, new), expected.unified_diff().header("a/x", "b/x").to_string());
        }
    }

    #[test]
    fn the_words_that_changed_are_known() {
        let marked = |old, new| {
            compare_words(old, new).map(|sides| {
                sides.map(|side| {
                    let piece = |(differs, piece): DiffPiece<'_>| {
                        if differs { format!("[{piece}]") } else { piece.to_owned() }
                    };
                    side.into_iter().map(piece).collect::<String>()
                })
            })
        };
        for (old, new, before, after) in [
            ("let a = 1;", "let b = 1;", "let [a] = 1;", "let [b] = 1;"),
            ("f(x)", "f(x, y)", "f(x)", "f(x[,][ ][y])"),
            ("timeout: 30s", "timeout: 60s", "timeout: [30s]", "timeout: [60s]"),
            ("日本 語", "日本 誤", "日本 [語]", "日本 [誤]"),
            ("same", "same", "same", "same"),
        ] {
            assert_eq!(marked(old, new), Some([before.to_owned(), after.to_owned()]), "{old}");
        }
        assert_eq!(marked("all of it", "something different"), None);
        assert_eq!(marked(&"x ".repeat(600), "x"), None);
    }

    #[test]
    fn a_change_that_was_made_is_told_with_its_diff_as_far_as_that_is_short() {
        assert_eq!(
            summarise_change("+1 −1 lines", &unify_nameless("a\n", "b\n")),
            "+1 −1 lines\n@@ -1 +1 @@\n-a\n+b"
        );
        assert_eq!(summarise_change("+0 −0 lines", &unify_nameless("a\n", "a\n")), "+0 −0 lines");
        let long = summarise_change("x", &unify_nameless("", &"a line\n".repeat(5000)));
        assert!(long.starts_with("x\n@@ -0,0 +1,5000 @@\n+a line\n"), "{long:.60}");
        assert_eq!(long.lines().last(), Some("… 2955 lines not shown"));
        assert_eq!(summarise_change("x", &"中".repeat(9000)), "x\n… 1 line not shown");
    }

    #[test]
    fn a_large_diff_is_whole() {
        let new: String = "line\r\n".repeat(5000);
        assert_eq!(unify("x", "", &new).matches("+line\r\n").count(), 5000);
        let long = "中".repeat(100_000);
        assert!(unify("x", "", &long).contains(&long));
    }
}
