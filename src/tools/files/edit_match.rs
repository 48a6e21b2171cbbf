//! Finds the place where an edit applies: pure functions over the text of a file and the text that the model expects.
//!
//! The text is searched verbatim first, then more and more leniently: line endings, spaces at the ends of lines,
//! typographic punctuation. Whatever was forgiven, lines that the edit does not change keep their bytes.

use std::fmt::Write;
use std::ops::Range;

use crate::base::text;

/// The result of searching the place of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditMatch {
    /// Each range of the text is replaced by its new bytes; in order, never overlapping.
    Found {
        edits: Vec<Replacement>,
        forgiven: Option<&'static str>,
    },
    /// The old text occurs more than once, and one place was asked for: the lines where it begins, from 1.
    Ambiguous {
        lines: Vec<usize>,
        forgiven: Option<&'static str>,
    },
    Missing,
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub range: Range<usize>,
    pub new: String,
}

/// The differences that are allowed between the old text and the file.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    /// The differences that it forgives; `None` if it forgives none.
    pub name: Option<&'static str>,
    trailing_spaces: bool,
    punctuation: bool,
}

const TOLERANCES: [Tolerance; 3] = [
    Tolerance { name: None, trailing_spaces: false, punctuation: false },
    Tolerance { name: Some("spaces at line ends"), trailing_spaces: true, punctuation: false },
    Tolerance {
        name: Some("spaces at line ends and typographic punctuation"),
        trailing_spaces: true,
        punctuation: true,
    },
];

/// Finds the non-empty `old` in `text` and returns the effect of replacing it by `new`.
pub fn find_match(text: &str, old: &str, new: &str, all: bool) -> EditMatch {
    let exact = find_places(text, old, all);
    if !exact.is_empty() {
        return decide_match(text, exact, old, new, all, &TOLERANCES[0]);
    }
    for tolerance in &TOLERANCES {
        let wanted = Normal::new(old, tolerance).text;
        // Text of only forgiven characters would match everywhere.
        if tolerance.name.is_some() && wanted.trim().is_empty() {
            continue;
        }
        let normal = Normal::new(text, tolerance);
        let found = find_places(&normal.text, &wanted, all);
        let found: Vec<Range<usize>> = found.into_iter().filter_map(|range| normal.original(range, old)).collect();
        if !found.is_empty() {
            return decide_match(text, found, old, new, all, tolerance);
        }
    }
    EditMatch::Missing
}

/// The places of the non-empty `wanted`. If only one is to be replaced, one that overlaps it counts as well.
fn find_places(text: &str, wanted: &str, all: bool) -> Vec<Range<usize>> {
    let mut places: Vec<Range<usize>> = text.match_indices(wanted).map(|(at, _)| at..at + wanted.len()).collect();
    if let ([only], false) = (&places[..], all) {
        let after = only.start + wanted.chars().next().map_or(1, char::len_utf8);
        let second = text[after..].find(wanted).map(|at| after + at..after + at + wanted.len());
        places.extend(second);
    }
    places
}

/// The ways to compare lines, the strictest first.
pub fn list_tolerances() -> [Tolerance; 3] {
    TOLERANCES
}

impl Tolerance {
    /// A line, without its line feed, with the forgiven differences removed.
    pub fn normalise(&self, line: &str) -> String {
        Normal::new(line, self).text
    }
}

/// `text` with the edits of a match applied.
pub fn apply_edits(text: &str, edits: &[Replacement]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for edit in edits {
        out.push_str(&text[done..edit.range.start]);
        out.push_str(&edit.new);
        done = edit.range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// The lines that contain these byte positions, which are in order; from 1.
pub fn lines_of(text: &str, positions: impl Iterator<Item = usize>) -> Vec<usize> {
    let (mut line, mut done) = (1, 0);
    let mut advance = |at: usize| {
        line += text[done..at].matches('\n').count();
        done = at;
        line
    };
    positions.map(&mut advance).collect()
}

fn decide_match(
    text: &str,
    found: Vec<Range<usize>>,
    old: &str,
    new: &str,
    all: bool,
    tolerance: &Tolerance,
) -> EditMatch {
    // Several places are replaced at once only if nothing was guessed.
    if found.len() > 1 && !(all && tolerance.name.is_none()) {
        let lines = lines_of(text, found.iter().map(|range| range.start));
        return EditMatch::Ambiguous { lines, forgiven: tolerance.name };
    }
    let change = EditChange { old: &unify_ends(old), new: &unify_ends(new), file_has_crlf: has_crlf(text) };
    let edits = found.into_iter().map(|range| change.place_edit(text, range)).collect();
    EditMatch::Found { edits, forgiven: tolerance.name }
}

struct EditChange<'a> {
    old: &'a str,
    new: &'a str,
    file_has_crlf: bool,
}

impl EditChange<'_> {
    /// Narrows a match to the lines that the edit changes, and gives the new ones the line endings of the place.
    fn place_edit(&self, text: &str, range: Range<usize>) -> Replacement {
        // A match that begins with a line feed includes the carriage return before it.
        let splits_crlf = text[range.start..].starts_with('\n') && text[..range.start].ends_with('\r');
        let range = range.start - usize::from(splits_crlf)..range.end;
        let matched: Vec<&str> = text[range.clone()].split_inclusive('\n').collect();
        let old: Vec<&str> = self.old.split_inclusive('\n').collect();
        let new: Vec<&str> = self.new.split_inclusive('\n').collect();

        // A line-by-line comparison needs lines that correspond.
        let most = if matched.len() == old.len() { old.len().min(new.len()) } else { 0 };
        let alike = |(a, b): &(&&str, &&str)| a == b;
        let same_start =
            old.iter().zip(&new).take(most).take_while(alike).take_while(|(line, _)| line.ends_with('\n')).count();
        let same_end = old.iter().rev().zip(new.iter().rev()).take(most - same_start).take_while(alike).count();

        let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
        let start = range.start + bytes(&matched[..same_start]);
        let end = range.end - bytes(&matched[matched.len() - same_end..]);
        let changed = new[same_start..new.len() - same_end].concat();
        let matched = &text[range];
        let crlf = if matched.contains('\n') { has_crlf(matched) } else { self.file_has_crlf };
        Replacement { range: start..end, new: if crlf { changed.replace('\n', "\r\n") } else { changed } }
    }
}

/// True if most lines end with CRLF.
fn has_crlf(text: &str) -> bool {
    text.matches("\r\n").count() * 2 > text.matches('\n').count()
}

fn unify_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// A text with all forgiven differences removed, and the map back to the original.
struct Normal<'a> {
    original: &'a str,
    text: String,
    /// For each byte of the text, the position of its source in the original; one more entry for the end.
    starts: Vec<u32>,
    trailing_spaces: bool,
}

impl<'a> Normal<'a> {
    fn new(original: &'a str, tolerance: &Tolerance) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut starts = Vec::with_capacity(original.len() + 1);
        let position = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut at = 0;
        for line in original.split_inclusive('\n') {
            let body = line.strip_suffix('\n').map_or(line, |body| body.strip_suffix('\r').unwrap_or(body));
            let kept = if tolerance.trailing_spaces { body.trim_end_matches(is_space) } else { body };
            let feed = line.ends_with('\n').then_some((body.len(), '\n'));
            for (offset, c) in kept.char_indices().chain(feed) {
                match if tolerance.punctuation { simplify_char(c) } else { None } {
                    Some(plain) => text.push_str(plain),
                    None => text.push(c),
                }
                starts.resize(text.len(), position(at + offset));
            }
            at += line.len();
        }
        starts.push(position(original.len()));
        Self { original, text, starts, trailing_spaces: tolerance.trailing_spaces }
    }

    /// The range of the original for a match of `old`; `None` if it would split a character, or if spaces at the end of
    /// `old` are not followed by the end of a line.
    fn original(&self, found: Range<usize>, old: &str) -> Option<Range<usize>> {
        let splits = |at: usize| at > 0 && self.starts[at] == self.starts[at - 1];
        if splits(found.start) || splits(found.end) {
            return None;
        }
        let start = self.starts[found.start] as usize;
        let last = self.starts[found.end - 1] as usize;
        let rest = &self.original[last..];
        let mut end =
            last + if rest.starts_with("\r\n") { 2 } else { rest.chars().next().map_or(0, char::len_utf8) };
        if self.trailing_spaces && old.ends_with(is_space) {
            let rest = &self.original[end..];
            let after = rest.trim_start_matches(is_space);
            if !(after.is_empty() || after.starts_with('\n') || after.starts_with("\r\n")) {
                return None;
            }
            end += rest.len() - after.len();
        }
        Some(start..end)
    }
}

fn is_space(c: char) -> bool {
    c != '\n' && c != '\r' && c.is_whitespace()
}

/// The ASCII form of typographic punctuation.
fn simplify_char(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{2026}' => "...",
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        _ => return None,
    })
}

/// The lines of `text` most similar to `old`: the number of the first, from 1, and the count; `None` if nothing is
/// similar.
pub fn find_nearest(text: &str, old: &str) -> Option<(usize, usize)> {
    const MOST_LINES: usize = 50_000;
    const CANDIDATES: usize = 5;
    const NEAR: f64 = 0.4;
    let lines: Vec<&str> = text.lines().take(MOST_LINES).map(str::trim).collect();
    let old: Vec<&str> = old.lines().map(str::trim).collect();
    // The longest line identifies the place best.
    let (anchor, wanted) = old.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    let mut places: Vec<(f64, usize)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.len() <= wanted.len() * 3 && wanted.len() <= line.len() * 3)
        .map(|(at, line)| (text::measure_likeness(wanted, line), at))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    places.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let likeness = |first: usize| {
        let pairs = old.iter().zip(lines.iter().skip(first));
        pairs.map(|(a, b)| text::measure_likeness(a, b)).sum::<f64>()
    };
    let firsts = places.iter().take(CANDIDATES).map(|(_, at)| at.saturating_sub(anchor));
    let first = firsts.max_by(|a, b| likeness(*a).total_cmp(&likeness(*b)).then(b.cmp(a)))?;
    Some((first + 1, old.len().min(lines.len() - first)))
}

/// The passage of `text` most similar to `old`, with line numbers and some context.
pub fn nearest_shown(content: &str, old: &str) -> Option<String> {
    const CONTEXT: usize = 2;
    const MOST_LINES: usize = 30;
    const LINE_BYTES: usize = 300;
    let (first, count) = find_nearest(content, old)?;
    let from = first.saturating_sub(CONTEXT).max(1);
    let shown = (first - from + count + CONTEXT).min(MOST_LINES);
    let mut out = String::new();
    for (index, line) in content.lines().enumerate().skip(from - 1).take(shown) {
        let head = text::take_head(line, LINE_BYTES);
        let _ = writeln!(out, "{}\t{head}{}", index + 1, if head.len() < line.len() { "…" } else { "" });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edited(text: &str, old: &str, new: &str, all: bool) -> Option<String> {
        match find_match(text, old, new, all) {
            EditMatch::Found { edits, .. } => Some(apply_edits(text, &edits)),
            _ => None,
        }
    }

    #[test]
    fn where_an_edit_applies() {
        let cases: [(&str, &str, &str, &str, &str); 18] = [
            ("exact", "a b c", "b", "X", "a X c"),
            ("several lines", "1\n2\n3\n", "1\n2\n", "x\n", "x\n3\n"),
            ("a line is deleted", "1\n2\n3\n", "2\n", "", "1\n3\n"),
            ("LF for CRLF", "1\r\n2\r\n3\r\n", "1\n2", "x\ny\nz", "x\r\ny\r\nz\r\n3\r\n"),
            ("CRLF for LF", "1\n2\n", "1\r\n2", "x\r\ny", "x\ny\n"),
            ("new lines in a CRLF file", "1\r\n2\r\n", "2", "2\n3", "1\r\n2\r\n3\r\n"),
            ("LF for the CRLF of empty lines", "a\r\n\r\n\r\nb\r\n", "\n\n\n", "\n", "a\r\nb\r\n"),
            ("a line feed takes its carriage return", "1\r\n2\r\n", "\n2", " 2", "1 2\r\n"),
            ("spaces at line ends of the file", "a  \nb\t\nc\n", "a\nb\nc", "a\nX\nc", "a  \nX\nc\n"),
            ("spaces at line ends of the old text", "a\nb\nc\n", "a \nb  ", "a \nX", "a\nX\nc\n"),
            ("curly quotes", "say “hi” – it’s…\n", "say \"hi\" - it's...", "bye", "bye\n"),
            ("no-break space", "10\u{a0}km", "10 km", "9 km", "9 km"),
            (
                "unchanged lines keep their bytes",
                "“a”  \nb\n“c”\n",
                "\"a\"\nb\n\"c\"",
                "\"a\"\nX\n\"c\"",
                "“a”  \nX\n“c”\n",
            ),
            ("wide characters", "中文，测试 🦀\n", "测试", "试验", "中文，试验 🦀\n"),
            ("after a byte order mark", "\u{feff}a\n", "a", "b", "\u{feff}b\n"),
            ("inserted before", "  foo\n", "foo", "bar\nfoo", "  bar\nfoo\n"),
            ("inserted after", "foo\nend\n", "foo\n", "foo\nbar\n", "foo\nbar\nend\n"),
            (
                "mixed endings: those of the place",
                "1\n2\n3\n4\r\n5\r\n",
                "4\n5",
                "4\n5\n6",
                "1\n2\n3\n4\r\n5\r\n6\r\n",
            ),
        ];
        for (name, text, old, new, expected) in cases {
            assert_eq!(edited(text, old, new, false).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn where_it_does_not() {
        let missing = [
            ("nothing like it", "a\nb\n", "c"),
            ("inner spaces count", "a  b", "a b"),
            ("indentation counts", "    a\n    b\n", "  a\n  b"),
            ("spaces at the end stand for the end of a line", "barn\n", "bar "),
            ("half an ellipsis", "wait…", "wait."),
            ("only forgiven characters", "a\nb", " \n "),
        ];
        for (name, text, old) in missing {
            assert_eq!(find_match(text, old, "X", false), EditMatch::Missing, "{name}");
        }
    }

    #[test]
    fn several_places() {
        let text = "a\nb\na\n“a”\n“a”\n";
        assert_eq!(
            find_match(text, "a\n", "x\n", false),
            EditMatch::Ambiguous { lines: vec![1, 3], forgiven: None }
        );
        assert_eq!(edited(text, "a\n", "x\n", true).as_deref(), Some("x\nb\nx\n“a”\n“a”\n"));
        // Places may overlap.
        assert_eq!(
            find_match("a {\n}\n}\n}\n", "}\n}\n", "}\n", false),
            EditMatch::Ambiguous { lines: vec![2, 3], forgiven: None }
        );
        assert_eq!(edited("中中中", "中中", "文", true).as_deref(), Some("文中"));
        // Guesses are never applied to several places.
        assert!(
            matches!(find_match(text, "\"a\"", "x", true), EditMatch::Ambiguous { lines, forgiven: Some(_) } if lines == [4, 5])
        );
        // But line endings are not a guess.
        assert_eq!(edited("a\r\nb\r\na\r\nb\r\n", "a\nb", "c", true).as_deref(), Some("c\r\nc\r\n"));
    }

    #[test]
    fn the_nearest_lines() {
        let text = "fn one() {\n    work(1);\n}\n\nfn two() {\n    work(2, deep);\n}\n";
        assert_eq!(find_nearest(text, "fn two() {\n  work(2, depth);\n}"), Some((5, 3)));
        assert_eq!(find_nearest(text, "something else entirely"), None);
        assert_eq!(find_nearest("", "x"), None);
    }

    proptest! {
        /// Whatever is forgiven, the bytes outside the edits are those of the file, and exact edits equal a plain
        /// replacement.
        #[test]
        fn untouched_bytes_stay(
            text in "[ab “”\"\t\r\n中]{0,24}",
            old in "[ab \"\n中]{1,5}",
            new in "[xy\n ]{0,5}",
            all: bool,
        ) {
            if let EditMatch::Found { edits, forgiven } = find_match(&text, &old, &new, all) {
                let mut kept = 0;
                for edit in &edits {
                    prop_assert!(edit.range.start >= kept && edit.range.end >= edit.range.start);
                    prop_assert!(text.is_char_boundary(edit.range.start) && text.is_char_boundary(edit.range.end));
                    kept = edit.range.end;
                }
                let after = apply_edits(&text, &edits);
                prop_assert!(after.starts_with(&text[..edits[0].range.start]));
                prop_assert!(after.ends_with(&text[kept..]));
                if forgiven.is_none() && !text.contains('\r') {
                    let expected = if all { text.replace(&old, &new) } else { text.replacen(&old, &new, 1) };
                    prop_assert_eq!(after, expected);
                }
            }
        }
    }
}
