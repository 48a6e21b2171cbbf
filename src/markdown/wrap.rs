//! Lines broken to a width: between words, between wide characters, and within a word only where it is wider than a
//! line. What a terminal draws as one character stays together.

use std::borrow::Cow;
use std::ops::Range;

use crate::ink::{Line, Span};
use crate::text;

/// Hands on the parts of a line, of `width` columns at most.
pub fn wrap(line: Line, width: usize, mut out: impl FnMut(Line)) {
    let text = match line.spans.as_slice() {
        [span] => Cow::Borrowed(span.text.as_str()),
        _ => Cow::Owned(line.text()),
    };
    if text::columns(&text) <= width {
        drop(text);
        return out(line);
    }
    let mut cutter = Cutter { spans: &line.spans, at: 0 };
    for range in breaks(&text, width) {
        out(cutter.part(range));
    }
}

/// The columns of the widest part of a text that is broken only where a line is narrower.
#[must_use]
pub fn widest_word(text: &str) -> usize {
    words(text).map(|word| text::columns(word.trim_end_matches(' '))).max().unwrap_or(0)
}

/// A line without blanks at its end.
#[must_use]
pub fn trimmed(mut line: Line) -> Line {
    while let Some(span) = line.spans.last_mut() {
        span.text.truncate(span.text.trim_end_matches(' ').len());
        if !span.text.is_empty() {
            break;
        }
        line.spans.pop();
    }
    line
}

/// Takes the parts of a line in their order.
struct Cutter<'l> {
    /// From the one on that the last part ended in.
    spans: &'l [Span],
    /// Where that begins, in bytes of the line.
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

/// The parts of a text that fit `width`, without the blanks between them.
fn breaks(text: &str, width: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::with_capacity(text.len() / width.max(1) + 1);
    let mut part = 0..0;
    let mut used = 0;
    let mut at = 0;
    for word in words(text) {
        let bare = word.trim_end_matches(' ');
        let columns = text::columns(bare);
        if used + columns > width && used > 0 && !bare.is_empty() {
            parts.push(part);
            part = at..at;
            used = 0;
        }
        if columns > width {
            for cluster in clusters(bare) {
                let columns = text::columns(cluster);
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

/// The smallest parts between which a text may be broken, each with the blanks behind it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (word, after) = rest.split_at(word_end(rest));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Where the first word of a text ends, its blanks included.
fn word_end(text: &str) -> usize {
    let blanks_end = |at: usize| text.len() - text[at..].trim_start_matches(' ').len();
    // A word of ASCII needs no tables.
    let plain = text.bytes().take_while(u8::is_ascii_graphic).count();
    if text[plain..].bytes().next().is_none_or(|byte| byte == b' ') {
        return blanks_end(plain);
    }
    let mut at = 0;
    let mut before = None;
    for cluster in clusters(text) {
        let here = Place::of(cluster);
        if here == Place::Blank || before.is_some_and(|before| Place::may_part(before, here)) {
            break;
        }
        at += cluster.len();
        before = Some(here);
    }
    blanks_end(at)
}

/// How a character behaves where a line could end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Blank,
    /// A letter of a script that parts its words by blanks.
    Narrow,
    /// A character that takes two columns: lines end before and behind it.
    Wide,
    /// A mark that no line begins with.
    Closing,
    /// A mark that no line ends with.
    Opening,
}

impl Place {
    fn of(cluster: &str) -> Self {
        let Some(first) = cluster.chars().next() else { return Self::Narrow };
        match first {
            ' ' => Self::Blank,
            '、' | '。' | '，' | '．' | '！' | '？' | '：' | '；' | '）' | '］' | '｝' | '」' | '』' | '】'
            | '》' | '〉' | '〕' | '〗' | '…' | '”' | '’' | 'ー' | '々' => Self::Closing,
            '（' | '［' | '｛' | '「' | '『' | '【' | '《' | '〈' | '〔' | '〖' | '“' | '‘' => {
                Self::Opening
            }
            '!'..='~' => Self::Narrow,
            _ if text::columns(cluster) == 2 => Self::Wide,
            _ => Self::Narrow,
        }
    }

    /// True if a line may end between two of them.
    fn may_part(before: Self, here: Self) -> bool {
        let sticks = before == Self::Opening || here == Self::Closing;
        let in_word = before == Self::Narrow && matches!(here, Self::Narrow | Self::Opening);
        !sticks && !in_word
    }
}

/// The characters of a text as a terminal draws them: each with its marks, selectors and joiners.
fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (cluster, after) = rest.split_at(cluster_end(rest));
        rest = after;
        (!cluster.is_empty()).then_some(cluster)
    })
}

fn cluster_end(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, mut before)) = chars.next() else { return 0 };
    let mut flags = usize::from(is_flag(before));
    for (at, c) in chars {
        let pairs = is_flag(c) && flags == 1;
        // A joiner between what a terminal does not draw as one joins nothing.
        let joins = before == '\u{200d}' && text::columns(&text[..at + c.len_utf8()]) <= 2;
        let is_part = joins || pairs || matches!(c, '\u{1f3fb}'..='\u{1f3ff}') || is_zero(c);
        if !is_part {
            return at;
        }
        flags += usize::from(pairs);
        before = c;
    }
    text.len()
}

/// Two of these are the flag of a country.
fn is_flag(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

/// A mark, a selector, a joiner.
fn is_zero(c: char) -> bool {
    !c.is_ascii() && text::columns(c.encode_utf8(&mut [0; 4])) == 0
}
