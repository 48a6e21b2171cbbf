//! Applies the hunks of a patch to the text of a file: pure functions.
//!
//! A hunk is searched by whole lines, verbatim first, then more and more leniently as for `edit_file`. It must have
//! exactly one place: among several, the order in the patch decides, or the line under which it belongs, or the exact
//! line number; nothing is guessed. Unchanged lines keep their bytes, new ones get the file's line endings.

use std::ops::Range;

use super::{HunkLine, PatchHunk};
use crate::tools::files::edit_match;

/// The reason that a hunk does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// Its old lines were not found.
    Missing,
    /// They begin at each of these lines, from 1.
    Ambiguous(Vec<usize>),
    /// The line under which it belongs was not found.
    NoHeading(String),
    /// It only adds lines, and does not say where.
    Placeless,
    /// It changes the same lines as another hunk.
    Overlaps,
}

/// A text with hunks applied.
#[derive(Debug, PartialEq, Eq)]
pub struct Patched {
    pub text: String,
    /// Differences that were forgiven, if any.
    pub forgiven: Option<&'static str>,
}

const BOM: char = '\u{feff}';

/// `text` with all hunks applied.
///
/// # Errors
/// Hunks do not apply; the error lists them with their indices.
pub fn apply_hunks(text: &str, hunks: &[PatchHunk<'_>]) -> Result<Patched, Vec<(usize, Misfit)>> {
    let (bom, body) = text.strip_prefix(BOM).map_or(("", text), |body| (&text[..BOM.len_utf8()], body));
    let file = FileLines::split(body);
    let (mut places, mut misfits, mut forgiven) = (Vec::<PlacedHunk<'_, '_>>::new(), Vec::new(), None);
    for (index, hunk) in hunks.iter().enumerate() {
        match file.place(hunk, &places) {
            Ok(place) => {
                forgiven = forgiven.max(place.forgiven);
                places.push((place.lines, hunk));
            }
            Err(misfit) => misfits.push((index, misfit)),
        }
    }
    if !misfits.is_empty() {
        return Err(misfits);
    }
    places.sort_by_key(|(lines, _)| (lines.start, lines.end));
    let forgiven = forgiven.and_then(|at: usize| edit_match::list_tolerances()[at].name);
    Ok(Patched { text: format!("{bom}{}", file.apply(&places)), forgiven })
}

/// A text by lines: their content and their endings.
struct FileLines<'a> {
    lines: Vec<&'a str>,
    ends: Vec<&'a str>,
    /// The line feed of new lines.
    feed: &'static str,
}

/// A hunk with the lines that it replaces.
type PlacedHunk<'h, 'p> = (Range<usize>, &'h PatchHunk<'p>);

struct MatchPlace {
    lines: Range<usize>,
    /// The differences that were forgiven, by the index of the tolerance; `None` if there were none.
    forgiven: Option<usize>,
}

impl<'a> FileLines<'a> {
    fn split(text: &'a str) -> Self {
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for line in text.split_inclusive('\n') {
            let body = line.strip_suffix('\n').map_or(line, |body| body.strip_suffix('\r').unwrap_or(body));
            lines.push(body);
            ends.push(&line[body.len()..]);
        }
        let crlf = ends.iter().filter(|end| **end == "\r\n").count();
        let ended = ends.iter().filter(|end| !end.is_empty()).count();
        let feed = if crlf * 2 > ended { "\r\n" } else { "\n" };
        Self { lines, ends, feed }
    }

    /// The place of a hunk, given the places of the hunks before it.
    fn place(&self, hunk: &PatchHunk<'_>, taken: &[PlacedHunk<'_, '_>]) -> Result<MatchPlace, Misfit> {
        let after = taken.last().map_or(0, |(lines, _)| lines.end);
        let below = self.heading(hunk, after)?;
        let old: Vec<&str> = hunk.old().collect();
        if old.is_empty() {
            return self.insertion(hunk, below, taken).map(|at| MatchPlace { lines: at..at, forgiven: None });
        }
        let (mut found, forgiven) = self.find(&old);
        if hunk.at_end {
            found.retain(|at| at + old.len() == self.lines.len());
        }
        let free = |at: &usize| taken.iter().all(|(lines, _)| *at >= lines.end || at + old.len() <= lines.start);
        let existed = !found.is_empty();
        found.retain(free);
        let chosen = match found.as_slice() {
            [] if existed => return Err(Misfit::Overlaps),
            [] => return Err(Misfit::Missing),
            [only] => *only,
            several => Self::decide(several, hunk, taken, below, after)?,
        };
        Ok(MatchPlace { lines: chosen..chosen + old.len(), forgiven })
    }

    /// Decides between several places.
    fn decide(
        found: &[usize],
        hunk: &PatchHunk<'_>,
        taken: &[PlacedHunk<'_, '_>],
        below: Option<usize>,
        after: usize,
    ) -> Result<usize, Misfit> {
        // The first one below a named line.
        if let Some(below) = below
            && let Some(first) = found.iter().find(|at| **at >= below)
        {
            return Ok(*first);
        }
        let expected = find_expected(hunk, taken);
        if let Some(exact) = found.iter().find(|at| Some(**at) == expected) {
            return Ok(*exact);
        }
        let mut later = found.iter().filter(|at| **at >= after);
        match (later.next(), later.next()) {
            (Some(only), None) if !taken.is_empty() => Ok(*only),
            _ => Err(Misfit::Ambiguous(found.iter().map(|at| at + 1).collect())),
        }
    }

    /// The line after the last heading of a hunk.
    fn heading(&self, hunk: &PatchHunk<'_>, after: usize) -> Result<Option<usize>, Misfit> {
        let mut below = None;
        for heading in &hunk.headings {
            let search = |from: usize, test: &dyn Fn(&str) -> bool| {
                self.lines.iter().skip(from).position(|line| test(line.trim())).map(|at| from + at + 1)
            };
            let (whole, part) = (|line: &str| line == heading.trim(), |line: &str| line.contains(heading.trim()));
            let from = below.unwrap_or(after);
            let found = [from, below.unwrap_or(0)]
                .into_iter()
                .find_map(|from| search(from, &whole).or_else(|| search(from, &part)));
            below = Some(found.ok_or_else(|| Misfit::NoHeading((*heading).to_owned()))?);
        }
        Ok(below)
    }

    /// The place of added lines that have no neighbours.
    fn insertion(
        &self,
        hunk: &PatchHunk<'_>,
        below: Option<usize>,
        taken: &[PlacedHunk<'_, '_>],
    ) -> Result<usize, Misfit> {
        match (below, find_expected(hunk, taken)) {
            _ if hunk.at_end || self.lines.is_empty() => Ok(self.lines.len()),
            (Some(below), _) => Ok(below),
            (None, Some(at)) if at <= self.lines.len() => Ok(at),
            _ => Err(Misfit::Placeless),
        }
    }

    /// All places of these lines, by the strictest form that has any.
    fn find(&self, old: &[&str]) -> (Vec<usize>, Option<usize>) {
        let exact = find_places(&self.lines, old);
        if !exact.is_empty() {
            return (exact, None);
        }
        for (index, form) in edit_match::list_tolerances().into_iter().enumerate().skip(1) {
            let normal = |lines: &[&str]| lines.iter().map(|line| form.normalise(line)).collect::<Vec<_>>();
            let (lines, old) = (normal(&self.lines), normal(old));
            // Text of only forgiven characters would match everywhere.
            if old.iter().all(|line| line.trim().is_empty()) {
                continue;
            }
            let found = find_places(&lines, &old);
            if !found.is_empty() {
                return (found, Some(index));
            }
        }
        (Vec::new(), None)
    }

    /// The text with the hunks applied at their places, which are in order.
    fn apply(&self, places: &[PlacedHunk<'_, '_>]) -> String {
        let mut out: Vec<(&str, &str)> = Vec::with_capacity(self.lines.len());
        let line = |at: usize| (self.lines[at], self.ends[at]);
        let mut done = 0;
        for (range, hunk) in places {
            out.extend((done..range.start).map(line));
            let mut at = range.start;
            for change in &hunk.lines {
                match change {
                    HunkLine::Same(_) => out.push(line(at)),
                    HunkLine::Old(_) => {}
                    HunkLine::New(text) => out.push((text, self.feed)),
                }
                at += usize::from(!matches!(change, HunkLine::New(_)));
            }
            done = range.end;
        }
        out.extend((done..self.lines.len()).map(line));
        let ends_new = places.last().is_some_and(|(range, _)| range.end == self.lines.len());
        let count = out.len();
        let mut text = String::new();
        for (index, (line, end)) in out.into_iter().enumerate() {
            text.push_str(line);
            text.push_str(if index + 1 == count {
                match places.last() {
                    Some((_, hunk)) if ends_new => self.last_end(hunk, end),
                    _ => end,
                }
            } else if end.is_empty() {
                self.feed
            } else {
                end
            });
        }
        text
    }

    /// The ending of the last line, if a hunk reaches it: as the patch says, else as in the file.
    fn last_end<'e>(&'e self, hunk: &PatchHunk<'_>, own: &'e str) -> &'e str {
        let file_is_unended = self.ends.last().is_some_and(|end| end.is_empty());
        match hunk {
            _ if hunk.new_unended => "",
            _ if hunk.old_unended => self.feed,
            _ if file_is_unended => "",
            _ if own.is_empty() => self.feed,
            _ => own,
        }
    }
}

/// The index of the exact line that the patch names. If one number is wrong, all are taken to be off by the same
/// amount.
fn find_expected(hunk: &PatchHunk<'_>, taken: &[PlacedHunk<'_, '_>]) -> Option<usize> {
    let before = taken.last().and_then(|(lines, before)| Some((before.start?, lines.start + 1)));
    let (counted, real) = before.unwrap_or((0, 0));
    (hunk.start? + real).checked_sub(counted + 1)
}

/// The positions of the non-empty `old` among `lines`.
fn find_places<T: PartialEq>(lines: &[T], old: &[T]) -> Vec<usize> {
    lines.windows(old.len()).enumerate().filter(|(_, window)| *window == old).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::TextDiff;

    use super::super::{self as patch, PatchAction};
    use super::*;

    fn patched(text: &str, hunks: &str) -> Result<String, Vec<Misfit>> {
        let whole = format!("*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch");
        let files = patch::parse_patch(&whole).unwrap_or_else(|error| panic!("{error}"));
        let PatchAction::Update { hunks, .. } = &files[0].action else { panic!("an update") };
        let apart = |wrong: Vec<(usize, Misfit)>| wrong.into_iter().map(|(_, misfit)| misfit).collect();
        apply_hunks(text, hunks).map(|patched| patched.text).map_err(apart)
    }

    #[test]
    fn where_a_hunk_applies() {
        let two = "fn a() {\n    x\n}\nfn b() {\n    x\n}\n";
        let cases: [(&str, &str, &str, &str); 16] = [
            ("one place", "a\nb\nc\n", " a\n-b\n+B", "a\nB\nc\n"),
            ("below a line", two, "@@ fn b() {\n-    x\n+    y", "fn a() {\n    x\n}\nfn b() {\n    y\n}\n"),
            ("below part of a line", two, "@@ b()\n-    x\n+    y", "fn a() {\n    x\n}\nfn b() {\n    y\n}\n"),
            ("at its number", two, "@@ -5 +5 @@\n-    x\n+    y", "fn a() {\n    x\n}\nfn b() {\n    y\n}\n"),
            (
                "after the hunk before",
                two,
                "@@\n-fn b() {\n+fn c() {\n@@\n-    x\n+    y",
                "fn a() {\n    x\n}\nfn c() {\n    y\n}\n",
            ),
            ("hunks out of order", "a\nb\nc\n", "-c\n+C\n@@\n-a\n+A", "A\nb\nC\n"),
            ("a wrong number does no harm", "a\nb\n", "@@ -70,9 +70,9 @@\n-b\n+B", "a\nB\n"),
            ("end of file", "x\nx\n", "-x\n+y\n*** End of File", "x\ny\n"),
            ("added below a line", "a\nb\n", "@@ a\n+new", "a\nnew\nb\n"),
            ("into an empty file", "", "+new", "new\n"),
            ("CRLF", "a\r\nb\r\n", " a\n-b\n+B\n+C", "a\r\nB\r\nC\r\n"),
            ("CRLF without a final one", "a\r\nb", " a\n+X\n b", "a\r\nX\r\nb"),
            ("spaces at line ends", "a  \nb\n", " a\n-b\n+B", "a  \nB\n"),
            ("typographic punctuation", "“a”\nb\n", " \"a\"\n-b\n+B", "“a”\nB\n"),
            ("no final line feed stays so", "a\nb", "-b\n+B", "a\nB"),
            ("lines after what had none", "a", " a\n+b", "a\nb"),
        ];
        for (name, text, hunks, expected) in cases {
            assert_eq!(patched(text, hunks).as_deref(), Ok(expected), "{name}");
        }
    }

    #[test]
    fn where_it_does_not() {
        let cases: [(&str, &str, Misfit); 6] = [
            ("a\n", "-b\n+c", Misfit::Missing),
            ("  a\n", "-a\n+c", Misfit::Missing),
            ("a\na\n", "-a\n+c", Misfit::Ambiguous(vec![1, 2])),
            ("a\n", "@@ fn x\n-a\n+c", Misfit::NoHeading("fn x".to_owned())),
            ("a\n", "+c", Misfit::Placeless),
            ("a\nb\n", "-a\n+c\n@@\n a\n-b", Misfit::Overlaps),
        ];
        for (text, hunks, expected) in cases {
            assert_eq!(patched(text, hunks), Err(vec![expected]), "{hunks}");
        }
    }

    proptest! {
        /// A diff of two texts turns the one into the other, with any context and any ending of the last line.
        #[test]
        fn a_diff_applies_to_what_it_was_made_from(
            old in "([ab -]{0,2}\n){0,9}[ab]?",
            new in "([ab -]{0,2}\n){0,9}[ab]?",
            context in 0usize..4,
        ) {
            prop_assume!(old != new && !old.is_empty() && !new.is_empty());
            let diff = TextDiff::from_lines(old.as_str(), new.as_str());
            let text = diff.unified_diff().context_radius(context).header("a/f", "b/f").to_string();
            let files = patch::parse_patch(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            let PatchAction::Update { hunks, .. } = &files[0].action else { panic!("an update") };
            let patched = apply_hunks(&old, hunks).map_err(|wrong| TestCaseError::fail(format!("{wrong:?}\n{text}")))?;
            prop_assert_eq!(patched.text, new, "{}", text);
        }
    }
}
