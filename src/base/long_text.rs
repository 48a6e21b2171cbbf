//! A text that is too long to be shown at once: read by pages, and searched by words. Memory is bounded by the part
//! that is shown, however long the text and its lines are.

use std::io::{self, BufRead, Read};

/// The part of a text that a page may contain.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// 1-based number of the first line.
    pub first: usize,
    /// The most lines.
    pub lines: usize,
    /// The most bytes, counted as JSON writes them. A page has at least one character.
    pub bytes: usize,
}

/// A part of a text, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextPage {
    pub bytes: Vec<u8>,
    /// The number of its lines, including one that continues after it.
    pub lines: usize,
    /// The place where the text continues; `None` at its end.
    pub next: Option<NextPage>,
}

/// The place where a text continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextPage {
    pub line: usize,
    pub byte: u64,
    /// True if the byte is not the first of its line.
    pub within_line: bool,
}

/// Reads a page. Lines are whole, except for one that is longer than the page, which is cut between characters.
///
/// # Errors
/// The text cannot be read.
pub fn read_page(mut text: impl BufRead, extent: Extent) -> io::Result<TextPage> {
    let mut byte = 0;
    for _ in 1..extent.first {
        match text.skip_until(b'\n')? {
            0 => return Ok(TextPage::default()),
            skipped => byte += skipped as u64,
        }
    }
    let mut page = TextPage::default();
    let mut room = extent.bytes;
    let mut line = Vec::new();
    while page.lines < extent.lines.max(1) {
        line.clear();
        // Bytes that do not fit need not be read, except for the character that begins within the room.
        text.by_ref().take(room as u64 + 4).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(page);
        }
        let (taken, cost) = fit_bytes(&line, room);
        let is_whole = taken == line.len() && (line.ends_with(b"\n") || text.fill_buf()?.is_empty());
        if !(is_whole && cost <= room) && page.lines > 0 {
            page.next = Some(NextPage { line: extent.first + page.lines, byte, within_line: false });
            return Ok(page);
        }
        page.bytes.extend_from_slice(&line[..taken]);
        byte += taken as u64;
        room = room.saturating_sub(cost);
        if !is_whole {
            page.next = Some(NextPage { line: extent.first + page.lines, byte, within_line: true });
            page.lines += 1;
            return Ok(page);
        }
        page.lines += 1;
    }
    if !text.fill_buf()?.is_empty() {
        page.next = Some(NextPage { line: extent.first + page.lines, byte, within_line: false });
    }
    Ok(page)
}

/// The bytes of the longest beginning that costs at most `room`, at least one character, and its cost.
fn fit_bytes(bytes: &[u8], room: usize) -> (usize, usize) {
    /// U+FFFD, which replaces invalid characters.
    const BROKEN: usize = 3;
    let (mut taken, mut cost) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let characters = chunk.valid().chars().map(|c| (c.len_utf8(), cost_of(c)));
        let broken = chunk.invalid().len();
        for (length, price) in characters.chain((broken > 0).then_some((broken, BROKEN))) {
            if taken > 0 && cost + price > room {
                return (taken, cost);
            }
            taken += length;
            cost += price;
        }
    }
    (taken, cost)
}

/// The bytes of a character in a JSON string.
fn cost_of(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' => 6,
        _ => c.len_utf8(),
    }
}

/// A text that contains the words, with the matching lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundText {
    /// The handle of the text.
    pub id: String,
    pub rows: Vec<FoundLine>,
}

impl FoundText {
    /// The number of rows that are hits.
    pub fn hits(&self) -> usize {
        self.rows.iter().filter(|row| row.is_hit).count()
    }
}

/// A line that contains the words, or a neighbour of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLine {
    /// 1-based.
    pub line: usize,
    /// The beginning of `text`, if it is a part of a long line.
    pub byte: Option<u64>,
    pub text: String,
    pub is_hit: bool,
}

/// The longest part of a line that is shown for a hit and its neighbours.
const SHOWN: usize = 400;
const NEIGHBOUR: usize = 160;

/// The first `limit` lines that contain `query`, ignoring case, each with the line before and after it.
///
/// # Errors
/// The text cannot be read.
pub fn search_lines(mut text: impl BufRead, query: &str, limit: usize) -> io::Result<Vec<FoundLine>> {
    let needle = query.to_lowercase();
    let (mut rows, mut hits) = (Vec::new(), 0);
    let (mut line, mut before) = (SearchedLine::default(), SearchedLine::default());
    let mut follows_hit = false;
    while hits < limit || follows_hit {
        std::mem::swap(&mut line, &mut before);
        // The neighbour of the last hit is not searched.
        line.read(&mut text, &before, (hits < limit).then_some(&needle))?;
        if line.start == line.end {
            break;
        }
        let hit = line.hit.take();
        if hit.is_some() && before.number > 0 && !before.is_shown {
            rows.push(before.as_neighbour());
        }
        line.is_shown = hit.is_some() || follows_hit;
        if line.is_shown && hit.is_none() {
            rows.push(line.as_neighbour());
        }
        follows_hit = hit.is_some();
        if let Some((byte, text)) = hit {
            rows.push(FoundLine { line: line.number, byte, text, is_hit: true });
            hits += 1;
        }
    }
    Ok(rows)
}

/// A line of a text that is searched, as far as it is kept.
#[derive(Default)]
struct SearchedLine {
    /// 0 before the first.
    number: usize,
    /// The bytes of the text before it, and up to its end.
    start: u64,
    end: u64,
    head: Vec<u8>,
    /// The part around the words, and its beginning in a long line.
    hit: Option<(Option<u64>, String)>,
    is_shown: bool,
}

impl SearchedLine {
    /// Reads the line after `before`, in pieces, and searches it for `needle`.
    fn read(&mut self, text: &mut impl BufRead, before: &Self, needle: Option<&String>) -> io::Result<()> {
        const PIECE: u64 = 64 * 1024;
        (self.number, self.start, self.end) = (before.number + 1, before.end, before.end);
        self.head.clear();
        self.hit = None;
        let mut window = Vec::new();
        loop {
            let read = text.take(PIECE).read_until(b'\n', &mut window)?;
            self.end += read as u64;
            let is_whole = read == 0 || window.ends_with(b"\n");
            if self.head.is_empty() {
                self.head.extend_from_slice(&window[..window.len().min(NEIGHBOUR + 1)]);
            }
            if let (Some(needle), None) = (needle, &self.hit)
                && let Some(at) = find_words(&window, needle)
                // Near the end of a piece, its surroundings are still to come.
                && (is_whole || at + SHOWN < window.len())
            {
                self.hit = Some(self.part(&window, at));
            }
            if is_whole {
                return Ok(());
            }
            // Words may span the end of a piece.
            let overlap = SHOWN * 2 + needle.map_or(0, |needle| needle.len() * 4);
            window.drain(..window.len().saturating_sub(overlap));
        }
    }

    /// The part of the line around a byte of the window, which ends where the line was read up to.
    fn part(&self, window: &[u8], at: usize) -> (Option<u64>, String) {
        let window_start = self.end - window.len() as u64;
        if window_start == self.start && window.len() <= SHOWN {
            return (None, show_part(window));
        }
        let mut from = at.saturating_sub(SHOWN / 4);
        // Not within a character.
        while from > 0 && window[from] & 0xc0 == 0x80 {
            from -= 1;
        }
        let part = &window[from..window.len().min(from + SHOWN)];
        (Some(window_start + from as u64), show_part(part))
    }

    fn as_neighbour(&self) -> FoundLine {
        let is_long = self.head.len() > NEIGHBOUR;
        let head = &self.head[..self.head.len().min(NEIGHBOUR)];
        FoundLine { line: self.number, byte: is_long.then_some(self.start), text: show_part(head), is_hit: false }
    }
}

/// The approximate position of the words, whose case may differ from the text's: exact if both have the same number of
/// bytes.
fn find_words(window: &[u8], needle: &str) -> Option<usize> {
    let at = String::from_utf8_lossy(window).to_lowercase().find(needle)?;
    Some(at.min(window.len() - 1))
}

/// A part of a line, without its line end and cut characters.
fn show_part(part: &[u8]) -> String {
    let whole = match part.utf8_chunks().last() {
        Some(last) if std::str::from_utf8(last.invalid()).is_err_and(|error| error.error_len().is_none()) => {
            &part[..part.len() - last.invalid().len()]
        }
        _ => part,
    };
    String::from_utf8_lossy(whole).trim_end_matches(['\n', '\r']).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    /// All pages of a text, each read from where the one before said, by line if there is one.
    fn pages(text: &[u8], lines: usize, bytes: usize) -> Vec<TextPage> {
        let mut pages = Vec::new();
        let (mut from, mut first) = (0, 1);
        loop {
            let page = read_page(&text[from..], Extent { first, lines, bytes }).expect("memory can be read");
            let next = page.next;
            pages.push(page);
            match next {
                Some(next) if next.within_line => {
                    (from, first) = (from + usize::try_from(next.byte).expect("small"), 1);
                }
                Some(next) => first = next.line,
                None => return pages,
            }
        }
    }

    #[test]
    fn pages_end_where_a_line_does_unless_it_is_longer_than_they_are() {
        let table: [(&str, usize, usize, &[&str]); 9] = [
            ("", 9, 9, &[""]),
            ("one\ntwo\nthree\n", 2, 99, &["one\ntwo\n", "three\n"]),
            ("one\ntwo", 9, 99, &["one\ntwo"]),
            ("one\r\ntwo\r\n", 1, 99, &["one\r\n", "two\r\n"]),
            ("\n\n\n", 2, 99, &["\n\n", "\n"]),
            ("one\ntwo\n", 9, 5, &["one\n", "two\n"]),
            ("long line\nx\n", 9, 4, &["long", " lin", "e\n", "x\n"]),
            ("a中文", 9, 4, &["a中", "文"]),
            ("\"\\\u{1}", 9, 4, &["\"\\", "\u{1}"]),
        ];
        for (text, lines, bytes, expected) in table {
            let read = pages(text.as_bytes(), lines, bytes);
            let shown: Vec<&str> = read
                .iter()
                .map(|page| std::str::from_utf8(&page.bytes).expect("cut between characters"))
                .collect();
            assert_eq!(shown, expected, "{text:?} by {lines} lines and {bytes} bytes");
        }
    }

    #[test]
    fn a_page_behind_the_end_is_empty() {
        let extent = Extent { first: 3, lines: 9, bytes: 99 };
        assert_eq!(read_page(&b"one\ntwo\n"[..], extent).expect("read"), TextPage::default());
    }

    fn found(text: &str, query: &str, limit: usize) -> String {
        let mut out = String::new();
        for row in search_lines(text.as_bytes(), query, limit).expect("memory can be read") {
            let sign = if row.is_hit { ':' } else { '-' };
            let byte = row.byte.map_or(String::new(), |byte| format!("+{byte}"));
            let _ = write!(out, "{}{byte}{sign}{} ", row.line, row.text);
        }
        out
    }

    #[test]
    fn a_hit_shows_its_surroundings_and_no_line_comes_twice() {
        for (text, query, limit, expected) in [
            ("a\nb\nX\nc\nd", "x", 9, "2-b 3:X 4-c "),
            ("x\nb\nx\nc", "x", 9, "1:x 2-b 3:x 4-c "),
            ("x\nx\r\nc", "X", 9, "1:x 2:x 3-c "),
            ("x\nx\nx", "x", 1, "1:x 2-x "),
            ("x\na\nb\nc\nx", "x", 9, "1:x 2-a 4-c 5:x "),
            ("ÄÖ\nn", "äö", 9, "1:ÄÖ 2-n "),
            ("nothing", "x", 9, ""),
            ("", "x", 9, ""),
        ] {
            assert_eq!(found(text, query, limit), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_found_anywhere_in_a_line_without_end() {
        let piece = 64 * 1024;
        for at in [0, 10, piece - 300, piece - 2, piece, piece + 100, 3 * piece + 7] {
            let text = format!("first\n{}NEEDLE{}", "x".repeat(at), "y".repeat(2 * piece));
            let rows = search_lines(text.as_bytes(), "needle", 9).expect("memory can be read");
            let FoundLine { line, byte, text: part, .. } = &rows[1];
            let from = usize::try_from(byte.expect("a part")).expect("small");
            assert_eq!((*line, &text[from..from + part.len()]), (2, part.as_str()), "{at}");
            assert!(part.contains("NEEDLE") && part.len() == SHOWN, "{at}: {part}");
        }
    }

    proptest! {
        /// Whatever the bytes and the size of the pages, nothing is lost, doubled or changed.
        #[test]
        fn pages_put_together_are_the_text(
            text in prop::collection::vec(prop_oneof![
                Just(b"\n".to_vec()), Just(b"\r\n".to_vec()), "[a-z中🦀\"]{0,9}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 0..6),
            ], 0..30).prop_map(|pieces| pieces.concat()),
            lines in 1_usize..6,
            bytes in 0_usize..40,
        ) {
            let read = pages(&text, lines, bytes);
            prop_assert_eq!(read.iter().flat_map(|page| page.bytes.clone()).collect::<Vec<u8>>(), text);
            for page in &read {
                let shown = String::from_utf8_lossy(&page.bytes).into_owned();
                let json = serde_json::to_string(&shown).expect("a string").len() - 2;
                prop_assert!(json <= bytes.max(6), "{} of {}: {:?}", json, bytes, shown);
                prop_assert!(page.lines <= lines);
            }
        }
    }
}
