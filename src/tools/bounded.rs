//! Head and tail of a text of any length, in bounded memory, with an exact count of what lies between.

use std::io;

use crate::config::Redacting;
use crate::contract::Keep;
use crate::spill::Writer;
use crate::text;

use super::counted;

/// Keeps the first and the last bytes of what is pushed; the whole goes to the spill store once it is too long.
pub struct Bounded<'a> {
    /// Bytes kept at each end.
    keep: usize,
    head: String,
    /// The bytes after the head; at least `keep` of them, at most twice that.
    tail: String,
    bytes: u64,
    lines: u64,
    store: Option<Keep<'a>>,
    spilling: Option<Spilling<'a>>,
}

/// A text on its way to the spill store.
struct Spilling<'a> {
    writer: Writer,
    redacting: Redacting<'a>,
    /// The end of what came, as far as its line is not whole: a secret is recognised only when it is.
    line: String,
}

/// What is shown of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// True when something was left out; the text says how much.
    pub truncated: bool,
    /// What `recall` reads the whole by.
    pub spill_id: Option<String>,
}

impl<'a> Bounded<'a> {
    /// For a text of which at most `keep` bytes will be shown.
    pub fn new(keep: usize, store: Option<Keep<'a>>) -> Self {
        let (head, tail) = (String::new(), String::new());
        Self { keep, head, tail, bytes: 0, lines: 0, store, spilling: None }
    }

    pub fn push(&mut self, text: &str) {
        self.spill(text);
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

    /// The end of what came, as far as it is kept.
    pub fn tail(&self) -> &str {
        if self.tail.is_empty() { &self.head } else { &self.tail }
    }

    /// Begins to keep the whole when it is clear that not all of it will be shown.
    fn spill(&mut self, text: &str) {
        let Some(store) = self.store else { return };
        if self.spilling.is_none() {
            if self.head.len() + self.tail.len() + text.len() <= self.keep {
                return;
            }
            // Nothing was let go yet: head and tail are all that came.
            let Ok(writer) = store.spill.begin() else {
                self.store = None;
                return;
            };
            let line = std::mem::take(&mut self.head) + &self.tail;
            self.head.clone_from(&line);
            self.tail.clear();
            let redacting = Redacting::new(store.redactor);
            self.spilling = Some(Spilling { writer, redacting, line });
        }
        let kept = self.spilling.as_mut().is_some_and(|spilling| spilling.push(text).is_ok());
        if !kept {
            // A disk that is full is no reason to lose what is shown.
            self.spilling = None;
            self.store = None;
        }
    }

    fn spilled(&mut self) -> Option<String> {
        let mut spilling = self.spilling.take()?;
        let rest = std::mem::take(&mut spilling.line);
        spilling.writer.write(spilling.redacting.push(&rest).as_bytes()).ok()?;
        Some(spilling.writer.finish())
    }

    /// The text, or as much of its head and tail as fits into `keep` bytes; `head_percent` of them go to the head.
    /// Cuts fall between lines where there are lines.
    pub fn show(mut self, head_percent: usize) -> Shown {
        let spill_id = self.spilled();
        self.show_kept(head_percent, spill_id)
    }

    /// The same for a text that somebody else keeps, under this id.
    pub fn show_kept(self, head_percent: usize, spill_id: Option<String>) -> Shown {
        let kept = self.head + &self.tail;
        if kept.len() as u64 == self.bytes && kept.len() <= self.keep {
            return Shown { text: kept, truncated: false, spill_id };
        }
        let head = whole_lines_of_head(text::head(&kept, self.keep * head_percent / 100));
        let tail =
            whole_lines_of_tail(text::tail(&kept[head.len()..], self.keep - self.keep * head_percent / 100));
        let bytes = self.bytes - (head.len() + tail.len()) as u64;
        let lines = self.lines - line_feeds(head) - line_feeds(tail);
        let lines = if lines == 0 { String::new() } else { counted(lines, "line", "lines") + ", " };
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let how = spill_id.as_ref().map_or(String::new(), |id| format!("; recall id={id} reads the whole"));
        let text = format!("{head}{gap}[… {lines}{bytes} bytes left out{how} …]\n{tail}");
        Shown { text, truncated: true, spill_id }
    }
}

impl Spilling<'_> {
    /// Writes what is whole lines by now, redacted.
    fn push(&mut self, text: &str) -> io::Result<()> {
        /// A line without end is written in pieces of this size.
        const LONGEST_LINE: usize = 64 * 1024;
        // What is not kept needs no redacting.
        if self.writer.is_full() {
            return Ok(());
        }
        self.line.push_str(text);
        let whole = match self.line.rfind('\n') {
            Some(end) => end + 1,
            None if self.line.len() > LONGEST_LINE => self.line.len(),
            None => return Ok(()),
        };
        self.writer.write(self.redacting.push(&self.line[..whole]).as_bytes())?;
        self.line.drain(..whole);
        Ok(())
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
        let mut bounded = Bounded::new(keep, None);
        for piece in pieces {
            bounded.push(&piece);
            assert!(bounded.head.len() + bounded.tail.len() <= keep * 3, "memory is bounded");
        }
        bounded.show(head_percent)
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let shown = shown(20, 50, ["one\n".to_owned(), "two\n".to_owned(), "three".to_owned()]);
        assert_eq!(shown, Shown { text: "one\ntwo\nthree".to_owned(), truncated: false, spill_id: None });
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
