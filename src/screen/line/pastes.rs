//! Long pastes: the line shows `[pasted 84 lines]` in place of each, and the message contains the text.

use std::sync::{Arc, Mutex, MutexGuard};

/// The most lines of a paste that is shown in full.
const MOST_LINES: usize = 20;
/// The most bytes of a paste that is shown in full, since lines may be long.
const MOST_BYTES: usize = 8 * 1024;

/// The long pastes of a chat, each with the words that stand for it. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Pastes {
    /// The words in the line, and the text.
    known: Arc<Mutex<Vec<(String, String)>>>,
}

impl Pastes {
    /// Returns the text for the line: a short one as it is, the words that stand for a long one.
    pub fn shorten(&self, text: String) -> String {
        let lines = text.lines().count();
        if lines <= MOST_LINES && text.len() <= MOST_BYTES {
            return text;
        }
        let mut known = self.lock_texts();
        if let Some((words, _)) = known.iter().find(|(_, known)| *known == text) {
            return words.clone();
        }
        let words = free_words(&known, lines);
        known.push((words.clone(), text));
        words
    }

    /// Puts the texts in place of the words that stand for them. Words that a person has changed stand for nothing.
    pub fn expand(&self, line: &str) -> String {
        let known = self.lock_texts();
        let mut out = String::new();
        let mut rest = line;
        // In one pass, as a text may hold the words of another paste.
        while let Some(at) = rest.find('[') {
            let (before, from) = rest.split_at(at);
            out += before;
            if let Some((words, text)) = known.iter().find(|(words, _)| from.starts_with(words.as_str())) {
                out += text;
                rest = &from[words.len()..];
            } else {
                out.push('[');
                rest = &from[1..];
            }
        }
        out + rest
    }

    /// Where the words of a paste begin that `typed` ends with.
    pub fn at_end_of(&self, typed: &str) -> Option<usize> {
        self.lock_texts().iter().find_map(|(words, _)| typed.strip_suffix(words.as_str())).map(str::len)
    }

    fn lock_texts(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.known.lock().expect("no holder of the pastes panics")
    }
}

/// The words for a paste of so many lines that no other paste has.
fn free_words(known: &[(String, String)], lines: usize) -> String {
    let plural = if lines == 1 { "" } else { "s" };
    let first = format!("[pasted {lines} line{plural}]");
    let others = (2..).map(|number| format!("[pasted {lines} line{plural}, {number}]"));
    let is_free = |words: &String| !known.iter().any(|(known, _)| known == words);
    std::iter::once(first).chain(others).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Pastes;

    #[test]
    fn long_pastes_are_shown_by_their_size_and_sent_whole() {
        let pastes = Pastes::default();
        let lines = |count: usize, word: &str| vec![word; count].join("\n");
        assert_eq!(pastes.shorten(lines(20, "a")), lines(20, "a"));
        assert_eq!(pastes.shorten(lines(21, "a")), "[pasted 21 lines]");
        assert_eq!(pastes.shorten(lines(21, "b")), "[pasted 21 lines, 2]");
        assert_eq!(pastes.shorten(lines(21, "a")), "[pasted 21 lines]", "the same again");
        assert_eq!(pastes.shorten("x".repeat(9000)), "[pasted 1 line]");
        let tricky = lines(30, "[pasted 21 lines]");
        assert_eq!(pastes.shorten(tricky.clone()), "[pasted 30 lines]");
        for (line, expected) in [
            ("see [pasted 21 lines], and", format!("see {}, and", lines(21, "a"))),
            ("[pasted 21 lines, 2][pasted 21 lines]", lines(21, "b") + &lines(21, "a")),
            ("[pasted 30 lines]", tricky),
            ("[[pasted 21 lines", "[[pasted 21 lines".to_owned()),
            ("[pasted 22 lines] [é]", "[pasted 22 lines] [é]".to_owned()),
        ] {
            assert_eq!(pastes.expand(line), expected, "{line}");
        }
        assert_eq!(pastes.at_end_of("x [pasted 21 lines, 2]"), Some(2));
        assert_eq!(pastes.at_end_of("x [pasted 21 lines, 3]"), None);
    }
}
