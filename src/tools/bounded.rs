//! Head and tail of a text of any length, in bounded memory, with an exact count of what lies between.

use crate::text;

use super::counted;

/// Keeps the first and the last bytes of what is pushed.
#[derive(Debug)]
pub struct Bounded {
    /// Bytes kept at each end.
    keep: usize,
    head: String,
    /// The bytes after the head; at least `keep` of them, at most twice that.
    tail: String,
    bytes: u64,
    lines: u64,
}

/// What is shown of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// True when something was left out; the text says how much.
    pub truncated: bool,
}

impl Bounded {
    /// For a text of which at most `keep` bytes will be shown.
    pub fn new(keep: usize) -> Self {
        Self { keep, head: String::new(), tail: String::new(), bytes: 0, lines: 0 }
    }

    pub fn push(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.lines += line_feeds(text);
        let room = if self.tail.is_empty() { self.keep.saturating_sub(self.head.len()) } else { 0 };
        let first = text::head(text, room);
        self.head.push_str(first);
        self.tail.push_str(&text[first.len()..]);
        if self.tail.len() > self.keep * 2 {
            let last = text::tail(&self.tail, self.keep).len();
            self.tail.drain(..self.tail.len() - last);
        }
    }

    /// The text, or as much of its head and tail as fits into `keep` bytes; `head_percent` of them go to the head.
    /// Cuts fall between lines where there are lines.
    pub fn show(self, head_percent: usize) -> Shown {
        let kept = self.head + &self.tail;
        if kept.len() as u64 == self.bytes && kept.len() <= self.keep {
            return Shown { text: kept, truncated: false };
        }
        let head = whole_lines_of_head(text::head(&kept, self.keep * head_percent / 100));
        let tail =
            whole_lines_of_tail(text::tail(&kept[head.len()..], self.keep - self.keep * head_percent / 100));
        let bytes = self.bytes - (head.len() + tail.len()) as u64;
        let lines = self.lines - line_feeds(head) - line_feeds(tail);
        let lines = if lines == 0 { String::new() } else { counted(lines, "line", "lines") + ", " };
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        Shown { text: format!("{head}{gap}[… {lines}{bytes} bytes left out …]\n{tail}"), truncated: true }
    }
}

/// `head` up to its last line feed, unless that would cost half of it.
fn whole_lines_of_head(head: &str) -> &str {
    match head.rfind('\n') {
        Some(end) if end >= head.len() / 2 => &head[..=end],
        _ => head,
    }
}

/// `tail` after its first line feed, unless that would cost half of it.
fn whole_lines_of_tail(tail: &str) -> &str {
    match tail.find('\n') {
        Some(end) if end < tail.len() / 2 => &tail[end + 1..],
        _ => tail,
    }
}

fn line_feeds(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(keep: usize, head_percent: usize, pieces: impl IntoIterator<Item = String>) -> Shown {
        let mut bounded = Bounded::new(keep);
        for piece in pieces {
            bounded.push(&piece);
            assert!(bounded.head.len() + bounded.tail.len() <= keep * 3, "memory is bounded");
        }
        bounded.show(head_percent)
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let shown = shown(20, 50, ["one\n".to_owned(), "two\n".to_owned(), "three".to_owned()]);
        assert_eq!(shown, Shown { text: "one\ntwo\nthree".to_owned(), truncated: false });
    }

    #[test]
    fn the_middle_is_counted_exactly() {
        let shown = shown(20, 50, (0..1000).map(|n| format!("{n:03}\n")));
        assert_eq!(shown.text, "000\n001\n[… 996 lines, 3984 bytes left out …]\n998\n999\n");
        assert!(shown.truncated);
    }

    #[test]
    fn a_failure_is_mostly_tail() {
        let shown = shown(40, 10, (0..1000).map(|n| format!("{n:03}\n")));
        assert!(shown.text.starts_with("000\n[… 991 lines, 3964 bytes left out …]\n992\n"), "{}", shown.text);
    }

    #[test]
    fn a_line_without_end_is_cut_between_characters() {
        let shown = shown(11, 50, ["中".repeat(100)]);
        assert_eq!(shown.text, "中\n[… 291 bytes left out …]\n中中");
    }

    #[test]
    fn nothing_is_lost_between_the_kept_size_and_twice_that() {
        let shown = shown(10, 50, ["123456789\n".to_owned(), "abcdefghi\n".to_owned()]);
        assert_eq!(shown.text, "12345\n[… 1 line, 10 bytes left out …]\nfghi\n");
    }
}
