//! Wraps lines to a width: between words, between wide characters, and within a word only if it is wider than a line.
//! Characters that a terminal draws as one stay together.

use std::borrow::Cow;
use std::ops::Range;

use crate::base::text;
use crate::screen::ink::{Line, Span};

/// Passes the parts of a line, each of at most `width` columns, to `out`.
pub fn wrap_line(line: Line, width: usize, mut out: impl FnMut(Line)) {
    let text = match line.spans.as_slice() {
        [span] => Cow::Borrowed(span.text.as_str()),
        _ => Cow::Owned(line.text()),
    };
    if text::count_columns(&text) <= width {
        drop(text);
        return out(line);
    }
    let mut cutter = Cutter { spans: &line.spans, at: 0 };
    for range in find_breaks(&text, width) {
        out(cutter.part(range));
    }
}

/// The columns of the widest word of a text.
pub fn widest_word(text: &str) -> usize {
    split_parts(text, word_end).map(|word| text::count_columns(word.trim_end_matches(' '))).max().unwrap_or(0)
}

/// Removes the spaces at the end of a line.
pub fn trim_line(mut line: Line) -> Line {
    while let Some(span) = line.spans.last_mut() {
        span.text.truncate(span.text.trim_end_matches(' ').len());
        if !span.text.is_empty() {
            break;
        }
        line.spans.pop();
    }
    line
}

/// Cuts a line into parts, in order.
struct Cutter<'l> {
    /// The spans from the one in which the last part ended.
    spans: &'l [Span],
    /// The start of the first of them, in bytes of the line.
    at: usize,
}

impl Cutter<'_> {
    fn part(&mut self, range: Range<usize>) -> Line {
        let mut line = Line::new();
        while let [span, after @ ..] = self.spans {
            let end = self.at + span.text.len();
            let text =
                &span.text[range.start.clamp(self.at, end) - self.at..range.end.clamp(self.at, end) - self.at];
            line.push_span(Span { text: text.to_owned(), inks: span.inks, link: span.link.clone() });
            if range.end <= end {
                break;
            }
            (self.spans, self.at) = (after, end);
        }
        line
    }
}

/// Splits a text into parts that fit `width`, without the spaces between them.
fn find_breaks(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::with_capacity(text.len() / width.max(1) + 1);
    let mut part = 0..0;
    let mut used = 0;
    let mut at = 0;
    for word in split_parts(text, word_end) {
        let bare = word.trim_end_matches(' ');
        let columns = text::count_columns(bare);
        if used + columns > width && used > 0 && !bare.is_empty() {
            parts.push(part);
            part = at..at;
            used = 0;
        }
        if columns > width {
            for cluster in split_parts(bare, cluster_end) {
                let columns = text::count_columns(cluster);
                if used + columns > width && used > 0 {
                    parts.push(part.clone());
                    part = part.end..part.end;
                    used = 0;
                }
                part.end += cluster.len();
                used += columns;
            }
        } else {
            part.end = at + bare.len();
            used += columns;
        }
        used += word.len() - bare.len();
        at += word.len();
    }
    parts.push(part);
    parts
}

/// Splits a text into parts; `end_first` finds the end of the first one.
fn split_parts(text: &str, end_first: impl Fn(&str) -> usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(end_first(rest));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// The end of the first word of a text: the smallest part that a line break may separate, with the spaces after it.
fn word_end(text: &str) -> usize {
    let blanks_end = |at: usize| text.len() - text[at..].trim_start_matches(' ').len();
    // Fast path for a word of ASCII.
    let plain = text.bytes().take_while(u8::is_ascii_graphic).count();
    if text[plain..].bytes().next().is_none_or(|byte| byte == b' ') {
        return blanks_end(plain);
    }
    let mut at = 0;
    let mut before = None;
    for cluster in split_parts(text, cluster_end) {
        let here = BreakBehaviour::classify(cluster);
        if here == BreakBehaviour::Blank || before.is_some_and(|before| BreakBehaviour::may_part(before, here)) {
            break;
        }
        at += cluster.len();
        before = Some(here);
    }
    blanks_end(at)
}

/// The behaviour of a character at a possible line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakBehaviour {
    Blank,
    /// A letter of a script that separates words by spaces.
    Narrow,
    /// A character of two columns: a line may break before and after it.
    Wide,
    /// Punctuation that never begins a line.
    Closing,
    /// Punctuation that never ends a line.
    Opening,
}

impl BreakBehaviour {
    fn classify(cluster: &str) -> Self {
        let Some(first) = cluster.chars().next() else { return Self::Narrow };
        match first {
            ' ' => Self::Blank,
            '、' | '。' | '，' | '．' | '！' | '？' | '：' | '；' | '）' | '］' | '｝' | '」' | '』' | '】'
            | '》' | '〉' | '〕' | '〗' | '…' | '”' | '’' | 'ー' | '々' => Self::Closing,
            '（' | '［' | '｛' | '「' | '『' | '【' | '《' | '〈' | '〔' | '〖' | '“' | '‘' => {
                Self::Opening
            }
            '!'..='~' => Self::Narrow,
            _ if text::count_columns(cluster) == 2 => Self::Wide,
            _ => Self::Narrow,
        }
    }

    /// True if a line may break between two characters.
    fn may_part(before: Self, here: Self) -> bool {
        let sticks = before == Self::Opening || here == Self::Closing;
        let in_word = before == Self::Narrow && matches!(here, Self::Narrow | Self::Opening);
        !sticks && !in_word
    }
}

/// The end of the first character as a terminal draws it: with its marks, selectors and joiners.
fn cluster_end(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, mut before)) = chars.next() else { return 0 };
    let mut flags = usize::from(is_flag(before));
    for (at, c) in chars {
        let pairs = is_flag(c) && flags == 1;
        // A joiner only counts if the terminal draws the sequence as one character.
        let joins = before == '\u{200d}' && text::count_columns(&text[..at + c.len_utf8()]) <= 2;
        let is_part = joins || pairs || matches!(c, '\u{1f3fb}'..='\u{1f3ff}') || is_zero(c);
        if !is_part {
            return at;
        }
        flags += usize::from(pairs);
        before = c;
    }
    text.len()
}

/// True for half of a flag: two of these make the flag of a country.
fn is_flag(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

/// True for a mark, a selector or a joiner.
fn is_zero(c: char) -> bool {
    !c.is_ascii() && text::count_columns(c.encode_utf8(&mut [0; 4])) == 0
}
