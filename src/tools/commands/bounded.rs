//! Head and tail of a text of any length, in bounded memory, with an exact count of what is left out between them.

use crate::base::{output::Kept, secrets::Redacting, text};
use crate::conversation::spill::{self, SpillWriter};
use crate::tools::Keep;

use crate::tools::count_noun;

/// Keeps the first and the last bytes of its input; the whole goes to the spill store once it is too long.
pub struct BoundedInput<'a> {
    /// Bytes kept at each end.
    keep: usize,
    head: String,
    /// The bytes after the head; at least `keep` of them, at most twice that.
    tail: String,
    bytes: u64,
    lines: u64,
    store: Option<Keep<'a>>,
    spilling: Option<Spilling<'a>>,
    /// The reason that there is no such text.
    lost: Option<Kept>,
}

/// A text that is being written to the spill store.
struct Spilling<'a> {
    writer: SpillWriter,
    redacting: Redacting<'a>,
    /// The last, incomplete line: a secret is recognised only in a whole line.
    line: String,
}

/// The part of a text that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownText {
    pub text: String,
    /// True if something was left out; the text says how much.
    pub truncated: bool,
    /// The part that was left out, as far as it was to be kept.
    pub kept: Option<Kept>,
}

impl<'a> BoundedInput<'a> {
    /// For a text of which at most `keep` bytes will be shown.
    pub fn new(keep: usize, store: Option<Keep<'a>>) -> Self {
        let (head, tail) = (String::new(), String::new());
        Self { keep, head, tail, bytes: 0, lines: 0, store, spilling: None, lost: None }
    }

    pub fn push(&mut self, text: &str) {
        self.spill(text);
        self.bytes += text.len() as u64;
        self.lines += line_feeds(text);
        let room = if self.tail.is_empty() { self.keep.saturating_sub(self.head.len()) } else { 0 };
        let first = text::take_head(text, room);
        self.head.push_str(first);
        self.tail.push_str(&text[first.len()..]);
        if self.tail.len() > self.keep * 2 {
            let last = text::take_tail(&self.tail, self.keep).len();
            self.tail.drain(..self.tail.len() - last);
        }
    }

    /// The end of the input, as far as it is kept.
    pub fn tail(&self) -> &str {
        if self.tail.is_empty() { &self.head } else { &self.tail }
    }

    /// Begins to store the whole text once it is clear that not all of it will be shown.
    fn spill(&mut self, text: &str) {
        let Some(store) = self.store else { return };
        if self.spilling.is_none() {
            if self.head.len() + self.tail.len() + text.len() <= self.keep {
                return;
            }
            // Nothing was discarded yet: head and tail are all that came.
            let writer = match store.spill.begin() {
                Ok(writer) => writer,
                Err(error) => {
                    self.lost = Some(Kept::Nothing(spill::explain_loss(&error)));
                    self.store = None;
                    return;
                }
            };
            let line = std::mem::take(&mut self.head) + &self.tail;
            self.head.clone_from(&line);
            self.tail.clear();
            let redacting = Redacting::new(store.redactor);
            self.spilling = Some(Spilling { writer, redacting, line });
        }
        if let Some(spilling) = &mut self.spilling {
            spilling.push(text);
        }
    }

    fn take_spilled(&mut self) -> Option<Kept> {
        let Some(mut spilling) = self.spilling.take() else { return self.lost.take() };
        let rest = std::mem::take(&mut spilling.line);
        spilling.writer.write(&spilling.redacting.push(&rest));
        Some(spilling.writer.finish())
    }

    /// The text, or as much of its head and tail as fits into `keep` bytes; `head_percent` of them go to the head.
    /// Cuts are between lines if there are lines.
    pub fn show(mut self, head_percent: usize) -> ShownText {
        let kept = self.take_spilled();
        self.show_kept(head_percent, kept)
    }

    /// Does the same for a text that the caller keeps.
    pub fn show_kept(self, head_percent: usize, kept: Option<Kept>) -> ShownText {
        let buffered = self.head + &self.tail;
        if buffered.len() as u64 == self.bytes && buffered.len() <= self.keep {
            return ShownText { text: buffered, truncated: false, kept };
        }
        let head = whole_lines_of_head(text::take_head(&buffered, self.keep * head_percent / 100));
        let tail = whole_lines_of_tail(text::take_tail(
            &buffered[head.len()..],
            self.keep - self.keep * head_percent / 100,
        ));
        let bytes = self.bytes - (head.len() + tail.len()) as u64;
        let lines = self.lines - line_feeds(head) - line_feeds(tail);
        let lines = if lines == 0 { String::new() } else { count_noun(lines, "line", "lines") + ", " };
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let how = kept.as_ref().map_or(String::new(), |kept| format!("; {}", kept.notice()));
        let text = format!("{head}{gap}[… {lines}{bytes} bytes left out{how} …]\n{tail}");
        ShownText { text, truncated: true, kept }
    }
}

impl Spilling<'_> {
    /// Writes the lines that are complete by now, redacted.
    fn push(&mut self, text: &str) {
        /// A line without end is written in pieces of this size.
        const LONGEST_LINE: usize = 64 * 1024;
        // Text that is not stored needs no redaction.
        if self.writer.is_full() {
            return;
        }
        self.line.push_str(text);
        let whole = match self.line.rfind('\n') {
            Some(end) => end + 1,
            None if self.line.len() > LONGEST_LINE => self.line.len(),
            None => return,
        };
        self.writer.write(&self.redacting.push(&self.line[..whole]));
        self.line.drain(..whole);
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
    use std::sync::Arc;

    use super::*;
    use crate::conversation::spill::{Spill, SpillLimits};

    fn shown(keep: usize, head_percent: usize, pieces: impl IntoIterator<Item = String>) -> ShownText {
        let mut bounded = BoundedInput::new(keep, None);
        for piece in pieces {
            bounded.push(&piece);
            assert!(bounded.head.len() + bounded.tail.len() <= keep * 3, "memory is bounded");
        }
        bounded.show(head_percent)
    }

    #[test]
    fn what_fits_is_kept_whole() {
        let shown = shown(20, 50, ["one\n".to_owned(), "two\n".to_owned(), "three".to_owned()]);
        assert_eq!(shown, ShownText { text: "one\ntwo\nthree".to_owned(), truncated: false, kept: None });
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

    #[test]
    fn a_full_store_is_told_in_the_notice() {
        let spill = Arc::new(Spill::default().set_limits(SpillLimits { of_one: 30, of_all: 50 }));
        let redactor = Arc::default();
        for (id, notice) in [
            ("r1", "left out; recall id=r1 reads the first 30 bytes; the rest is not kept: the store is full …]"),
            ("r2", "left out; recall id=r2 reads the first 20 bytes; the rest is not kept: the store is full …]"),
            ("", "left out; the rest is not kept: the store is full …]"),
        ] {
            let mut bounded = BoundedInput::new(20, Some(Keep { spill: &spill, redactor: &redactor }));
            for n in 0..1000 {
                bounded.push(&format!("{n:03}\n"));
            }
            let shown = bounded.show(50);
            assert!(shown.text.contains(notice), "{}", shown.text);
            assert_eq!(shown.kept.expect("it was to be kept").id().unwrap_or_default(), id);
        }
        assert_eq!(spill.ids(), ["r1", "r2"]);
    }
}
