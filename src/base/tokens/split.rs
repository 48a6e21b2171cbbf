//! Splits a text into the pieces that are encoded separately. The vocabulary o200k defines them by a regular expression;
//! the functions here split off a piece at the start of a text like that expression, in time linear in the text. Of its
//! alternatives the first that matches counts:
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3}
//!  ?[^\s\p{L}\p{N}]+[\r\n/]*
//! \s*[\r\n]+
//! \s+(?!\S)
//! \s+
//! ```

/// A class of characters, or several: each is a bit. The order is that of `build/vocabulary.rs`.
type CharClass = u8;

/// Capitals and title case.
const UPPER: CharClass = 1;
const LOWER: CharClass = 1 << 1;
/// Letters without case, and modifiers.
const CASELESS: CharClass = 1 << 2;
const MARK: CharClass = 1 << 3;
const NUMBER: CharClass = 1 << 4;
/// White space within a line.
const BLANK: CharClass = 1 << 5;
/// `\r` and `\n`.
const LINE: CharClass = 1 << 6;
const OTHER: CharClass = 1 << 7;

const LETTER: CharClass = UPPER | LOWER | CASELESS;
const SPACE: CharClass = BLANK | LINE;
/// The classes of the capitals of a word, and of its end.
const BIG: CharClass = UPPER | CASELESS | MARK;
const SMALL: CharClass = LOWER | CASELESS | MARK;

include!(concat!(env!("OUT_DIR"), "/classes.rs"));

/// The pieces of `text`. Together they are the text.
pub fn split_pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let class = classify_char(text.chars().next()?);
        let (piece, rest) = text.split_at(find_end(text, class));
        text = rest;
        Some(piece)
    })
}

/// The end of the first piece of a text that begins with a character of `first`.
fn find_end(text: &str, first: CharClass) -> usize {
    let is_other = first & (LINE | LETTER | NUMBER) == 0;
    let prefix = if is_other { text.chars().next().map_or(0, char::len_utf8) } else { 0 };
    let word = small_word(text, prefix)
        // A mark without a following word is a word itself.
        .or_else(|| if first == MARK { small_word(text, 0) } else { None })
        .or_else(|| some_run(text, prefix, BIG));
    match word {
        Some(end) => end + measure_contraction(&text[end..]),
        None if first == NUMBER => {
            text.chars().take(3).take_while(|c| classify_char(*c) == NUMBER).map(char::len_utf8).sum()
        }
        None => measure_symbols(text, &['\r', '\n', '/']).unwrap_or_else(|| {
            let space = measure_run(text, 0, SPACE);
            let ends_text = (space == text.len()).then_some(space);
            text[..space]
                .rfind(['\r', '\n'])
                .map(|last| last + 1)
                .or(ends_text)
                .unwrap_or_else(|| all_but_last(&text[..space]))
        }),
    }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` from `start` on. If no lower-case letter follows the
/// first part, the word ends with the last character that is in both classes.
fn small_word(text: &str, start: usize) -> Option<usize> {
    let (mut end, mut last) = (start, None);
    for c in text[start..].chars() {
        let class = classify_char(c);
        if class & BIG == 0 {
            return if class & SMALL == 0 { last } else { Some(measure_run(text, end, SMALL)) };
        }
        end += c.len_utf8();
        if class & SMALL != 0 {
            last = Some(end);
        }
    }
    last
}

/// The length of `(?i:'s|'t|'re|'ve|'m|'ll|'d)?` at the start. The long s folds to `s`, too.
fn measure_contraction(text: &str) -> usize {
    let mut chars = text.chars();
    if chars.next() != Some('\'') {
        return 0;
    }
    match (chars.next(), chars.next()) {
        (Some('s' | 'S' | 't' | 'T' | 'm' | 'M' | 'd' | 'D'), _) => 2,
        (Some('ſ'), _) => 1 + 'ſ'.len_utf8(),
        (Some('r' | 'R' | 'v' | 'V'), Some('e' | 'E')) | (Some('l' | 'L'), Some('l' | 'L')) => 3,
        _ => 0,
    }
}

/// ` ?[^\s\p{L}\p{N}]+`, and then any number of `after`.
fn measure_symbols(text: &str, after: &[char]) -> Option<usize> {
    let end = some_run(text, usize::from(text.starts_with(' ')), MARK | OTHER)?;
    Some(text.len() - text[end..].trim_start_matches(after).len())
}

/// `\s+(?!\S)|\s` in white space before other text, to which the last space belongs.
fn all_but_last(space: &str) -> usize {
    let last = space.chars().next_back().map_or(0, char::len_utf8);
    if last == space.len() { last } else { space.len() - last }
}

/// The end of the characters of `classes` from `start` on, if there is one.
fn some_run(text: &str, start: usize, classes: CharClass) -> Option<usize> {
    let end = measure_run(text, start, classes);
    (end > start).then_some(end)
}

fn measure_run(text: &str, start: usize, classes: CharClass) -> usize {
    text[start..].find(|c| classify_char(c) & classes == 0).map_or(text.len(), |length| start + length)
}

fn classify_char(c: char) -> CharClass {
    match c {
        'a'..='z' => LOWER,
        'A'..='Z' => UPPER,
        '0'..='9' => NUMBER,
        '\r' | '\n' => LINE,
        ' ' | '\t' | '\x0b' | '\x0c' => BLANK,
        '\0'..='\x7f' => OTHER,
        c => {
            let after = RUNS.partition_point(|run| run >> 8 <= u32::from(c));
            1 << (RUNS[after - 1] & 7)
        }
    }
}
