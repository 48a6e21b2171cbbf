//! Functions that make untrusted text safe to show, cut it, or compare it.

use std::borrow::Cow;
use std::fmt::Write;

use globset::{GlobBuilder, GlobMatcher};
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{DefaultIgnorableCodePoint, ExtendedPictographic, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData, CodePointSetDataBorrowed};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The longest start of `text` that has at most `bytes` bytes and ends between characters.
pub fn take_head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The longest end of `text` that has at most `bytes` bytes and begins between characters.
pub fn take_tail(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

/// Makes every character visible that could move a cursor, colour a screen or reorder a line: control characters as
/// their pictures (`␛`), bidirectional controls, line separators and tag characters as `<U+202E>`. Line feeds and tabs
/// stay.
pub fn make_visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_safe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            // The Unicode control pictures mirror C0 from U+2400 on.
            '\0'..='\x1f' if !is_safe(c) => out.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\x7f' => out.push('\u{2421}'),
            c if !is_safe(c) => {
                let _ = write!(out, "<U+{:04X}>", c as u32);
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// True if [`make_visible`] leaves a character as it is.
pub fn is_safe(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{2028}'
        | '\u{2029}'
        // They are invisible and can spell out sentences.
        | '\u{e0000}'..='\u{e007f}' => false,
        c => !c.is_control(),
    }
}

/// `text` for a person who decides on it: like [`make_visible`], with every character that has no width or looks empty as
/// its code (`\u{200b}`), and so with marks that pile up on one character. Joiners and selectors within emoji stay.
pub fn reveal(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| matches!(c, ' '..='~' | '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let pictures = CodePointSetData::new::<ExtendedPictographic>();
    let mut out = String::with_capacity(text.len() + 16);
    let (mut before, mut marks) = (None, 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let in_picture = before.is_some_and(|before| is_of_picture(pictures, before));
        let joins = in_picture && c == '\u{200d}' && chars.peek().is_some_and(|next| pictures.contains(*next));
        let selects = in_picture && matches!(c, '\u{fe0e}' | '\u{fe0f}');
        match c {
            c if !is_safe(c) && c <= '\x7f' => out += &make_visible(c.encode_utf8(&mut [0; 4])),
            c if (looks_empty(c) && !joins && !selects) || (is_mark(c) && marks >= MOST_MARKS) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
        before = Some(c);
        marks = if is_mark(c) { marks + 1 } else { 0 };
    }
    Cow::Owned(out)
}

/// `text` as [`reveal`] shows it, on one line.
pub fn reveal_in_line(text: &str) -> String {
    reveal(text).replace('\n', "␊")
}

/// A block of code in Markdown, with a fence that is longer than any run of backticks in it.
pub fn fence_code(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest.max(2) + 1);
    format!("{ticks}{language}\n{}\n{ticks}\n", text.trim_end())
}

/// The most marks on one character. No script needs more.
const MOST_MARKS: usize = 4;

/// True for a mark that is written on the character before it.
fn is_mark(c: char) -> bool {
    let category = || CodePointMapData::<GeneralCategory>::new().get(c);
    !c.is_ascii() && matches!(category(), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark)
}

/// True if a picture may continue after this: a picture, its colour, its selector.
fn is_of_picture(pictures: CodePointSetDataBorrowed<'_>, c: char) -> bool {
    !c.is_ascii() && (pictures.contains(c) || matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}'))
}

/// True if a character is invisible, or looks like a space.
fn looks_empty(c: char) -> bool {
    let category = || CodePointMapData::<GeneralCategory>::new().get(c);
    let is_empty = |c: char| {
        !is_safe(c)
            || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
            // A pattern without dots, and anchors of annotations.
            || matches!(c, '\u{2800}' | '\u{fff9}'..='\u{fffb}')
            || matches!(
                category(),
                GeneralCategory::SpaceSeparator | GeneralCategory::PrivateUse | GeneralCategory::Unassigned
            )
    };
    !c.is_ascii() && is_empty(c)
}

/// `text` on one line, made visible, and at most `width` terminal columns wide (a CJK character takes two): for
/// lists and progress. Longer text is cut, with `…` as the last column.
pub fn one_line(text: &str, width: usize) -> String {
    // No script needs this many bytes for a column: the rest of a long text is never examined.
    const BYTES_PER_COLUMN: usize = 64;
    let start = take_head(text, width.saturating_add(1).saturating_mul(BYTES_PER_COLUMN));
    let mut line = String::new();
    for word in start.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if start.len() < text.len() {
        line.push('…');
    }
    cut_to_width(&make_visible(&line), width).into_owned()
}

/// `text`, which has no line feeds, cut to `width` terminal columns, with `…` as the last one if it was cut.
pub fn cut_to_width(text: &str, width: usize) -> Cow<'_, str> {
    if count_columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += if matches!(c, ' '..='~') { 1 } else { UnicodeWidthChar::width(c).unwrap_or(0) };
        // One column is reserved for the mark.
        if used + 1 > width {
            break;
        }
        end = at + c.len_utf8();
    }
    let kept = text[..end].trim_end_matches(['\u{200d}', ' ']);
    Cow::Owned(if width == 0 { String::new() } else { format!("{kept}…") })
}

/// `text` with lines wider than `width` columns broken between words. Continued lines are indented to the second
/// column of a table row (the text after two spaces), if there is one near. A wider word stays whole.
pub fn fold_to_width(text: &str, width: usize) -> Cow<'_, str> {
    if text.lines().all(|line| count_columns(line) <= width) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let start = line.len() - line.trim_start().len();
        let cell = line[start..].find("  ").map_or(0, |at| line.len() - line[start + at..].trim_start().len());
        let hanging = " ".repeat(Some(count_columns(&line[..cell])).filter(|at| *at <= width / 2).unwrap_or(0));
        let mut used = 0;
        for (index, word) in line.split(' ').enumerate() {
            let space = usize::from(index > 0);
            let taken = count_columns(word.trim_end_matches('\n'));
            if used + space + taken > width && used > hanging.len() && taken > 0 {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out += &hanging;
                used = hanging.len();
            } else if space > 0 {
                out.push(' ');
                used += 1;
            }
            out += word;
            used += taken;
        }
    }
    Cow::Owned(out)
}

/// The number of terminal columns that `text` takes.
pub fn count_columns(text: &str) -> usize {
    // Most text is, and no table has to be asked for it.
    if is_printable_ascii(text) { text.len() } else { UnicodeWidthStr::width(text) }
}

/// True for text of which every byte is one printable character. Looks at many bytes at once, since every piece of an
/// answer comes by here more than once.
pub fn is_printable_ascii(text: &str) -> bool {
    const AT_ONCE: usize = 32;
    let all_printable = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    text.as_bytes().chunks(AT_ONCE).all(all_printable)
}

/// A pattern with `*`, `?`, `[…]` and `{…,…}`.
#[derive(Debug, Clone)]
pub struct GlobPattern(GlobMatcher);

impl GlobPattern {
    /// For names and words: `*` is any text.
    ///
    /// # Errors
    /// A message about the invalid pattern.
    pub fn word(pattern: &str) -> Result<Self, String> {
        Self::new(pattern, false)
    }

    /// For paths: `*` stays within one directory, `**` does not.
    ///
    /// # Errors
    /// A message about the invalid pattern.
    pub fn path(pattern: &str) -> Result<Self, String> {
        Self::new(pattern, true)
    }

    fn new(pattern: &str, separates: bool) -> Result<Self, String> {
        let glob = GlobBuilder::new(pattern).literal_separator(separates).backslash_escape(true).build();
        glob.map(|glob| Self(glob.compile_matcher())).map_err(|error| error.kind().to_string())
    }

    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.0.glob().glob()
    }
}

/// `text` normalised so that compatible characters are equal (NFKC).
pub fn normalise_nfkc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    ComposingNormalizerBorrowed::new_nfkc().normalize(text)
}

/// True if this is a letter or a number of any script. Combining marks are neither.
pub fn is_letter_or_number(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || (!c.is_ascii()
            && matches!(
                CodePointMapData::<GeneralCategory>::new().get(c),
                GeneralCategory::UppercaseLetter
                    | GeneralCategory::LowercaseLetter
                    | GeneralCategory::TitlecaseLetter
                    | GeneralCategory::ModifierLetter
                    | GeneralCategory::OtherLetter
                    | GeneralCategory::DecimalNumber
                    | GeneralCategory::LetterNumber
                    | GeneralCategory::OtherNumber
            ))
}

/// The similarity of two lines, from 0 (nothing in common) to 1 (equal), by the letter pairs that both contain.
pub fn measure_likeness(a: &str, b: &str) -> f64 {
    strsim::sorensen_dice(a, b)
}

/// The candidates most similar to `name`, best first, at most three; empty if none is similar.
pub fn find_nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const NEAR: f64 = 0.7;
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// The candidate that was probably meant by a typed `name`: one that a typo or two explain, where two swapped letters
/// are likelier than a missing one; else the most similar, if one is similar.
pub fn guess_meant<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const SHORT: usize = 5;
    let length = |text: &str| text.chars().count();
    let most = if length(name) < SHORT { 1 } else { 2 };
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let slips = candidates.iter().map(|candidate| (strsim::osa_distance(name, candidate), *candidate));
    let slips = slips.filter(|(slips, _)| *slips <= most);
    // Of two equally distant candidates, a missing or additional ending is likelier than another letter.
    let is_part = |candidate: &str| candidate.starts_with(name) || name.starts_with(candidate);
    let nearest_slip = slips
        .min_by_key(|(slips, candidate)| (*slips, !is_part(candidate), length(candidate).abs_diff(length(name))));
    nearest_slip.map(|(_, candidate)| candidate).or_else(|| find_nearest(name, candidates).first().copied())
}

/// `3 lines`, `1 line`.
pub fn count_noun(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Quotes a word for a POSIX shell: nothing in it is syntax or makes it a keyword.
pub fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes a word as a person would: only if that makes a difference.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    let is_plain = !word.is_empty() && word.chars().all(is_plain);
    if is_plain { word.to_owned() } else { shell_quoted(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_tells_what_was_meant() {
        for (name, expected) in [
            ("modle", Some("model")),
            ("mdel", Some("model")),
            ("mod", Some("mode")),
            ("modes", Some("mode")),
            ("rwa", Some("raw")),
            ("reviw", Some("review-all")),
            ("ab", None),
            ("", None),
            ("日本", None),
        ] {
            assert_eq!(guess_meant(name, ["mode", "model", "raw", "review-all"]), expected, "{name}");
        }
    }

    #[test]
    fn a_line_is_cut_by_columns_not_by_characters() {
        for (text, width, expected) in [
            ("abcde", 5, "abcde"),
            ("abcdef", 5, "abcd…"),
            ("two\n  words", 20, "two words"),
            ("日本語", 6, "日本語"),
            ("日本語です", 6, "日本…"),
            ("日本語です", 5, "日本…"),
            ("a\u{1b}[31mb", 20, "a␛[31mb"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
            ("👨\u{200d}👩\u{200d}👧 family", 4, "👨…"),
        ] {
            let line = one_line(text, width);
            assert_eq!(line, expected, "{text:?} in {width}");
            assert!(count_columns(&line) <= width);
        }
    }

    #[test]
    fn nothing_that_moves_a_cursor_or_reorders_a_line_survives() {
        assert_eq!(make_visible("a\u{1b}[2J\u{202e}b\r\n\tc\u{9b}"), "a␛[2J<U+202E>b␍\n\tc<U+009B>");
        assert!(matches!(make_visible("plain, 日本語, 👨\u{200d}👩"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_cannot_be_seen_is_revealed() {
        for (text, expected) in [
            ("rm\u{200b} -rf\u{a0}x", "rm\\u{200b} -rf\\u{a0}x"),
            ("a\u{3164}b\u{2800}c\u{115f}", "a\\u{3164}b\\u{2800}c\\u{115f}"),
            ("\u{feff}a\u{2060}\u{ad}\u{34f}", "\\u{feff}a\\u{2060}\\u{ad}\\u{34f}"),
            ("a\u{e0041}\u{e0100}b", "a\\u{e0041}\\u{e0100}b"),
            ("x\u{202e}y\u{2066}z\u{200f}", "x\\u{202e}y\\u{2066}z\\u{200f}"),
            ("l\u{2028}p\u{2029}s\u{2003}w\u{3000}", "l\\u{2028}p\\u{2029}s\\u{2003}w\\u{3000}"),
            ("a\u{fe0f} 1\u{fe0f} \u{845b}\u{fe00}", "a\\u{fe0f} 1\\u{fe0f} \u{845b}\\u{fe00}"),
            ("a\u{200d}b \u{1f468}\u{200d}b", "a\\u{200d}b \u{1f468}\\u{200d}b"),
            ("\u{1b}[8m\r\u{9b}\u{7f}", "␛[8m␍\\u{9b}␡"),
            ("\u{e000}\u{fff9}", "\\u{e000}\\u{fff9}"),
        ] {
            assert_eq!(reveal(text), expected, "{text:?}");
        }
        for text in [
            "plain\n\ttext ~",
            "日本語 é ß ©",
            "❤\u{fe0f} 👩\u{1f3fd}\u{200d}🚀 👨\u{200d}👩\u{200d}👧",
            "e\u{301}",
        ] {
            assert_eq!(reveal(text), text);
        }
    }

    #[test]
    fn wide_lines_are_broken_between_words() {
        for (text, expected) in [
            ("short\n", "short\n"),
            ("one two three four", "one two\nthree four"),
            (
                "/model [NAME]  show the models, or use another\nx\n",
                "/model\n[NAME]\nshow the\nmodels, or\nuse another\nx\n",
            ),
            ("/a  show the big one", "/a  show\n    the big\n    one"),
            ("error: 日本語の名 is", "error:\n日本語の名\nis"),
            ("https://example.com/long x", "https://example.com/long\nx"),
        ] {
            assert_eq!(fold_to_width(text, 11), expected, "{text:?}");
        }
    }
}
