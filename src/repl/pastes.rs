//! Long pastes: the line shows `[pasted 84 lines]` in place of each, and the message contains the text.

/// The most lines of a paste that is shown in full.
const MOST_LINES: usize = 20;
/// The most bytes of a paste that is shown in full, since lines may be long.
const MOST_BYTES: usize = 8 * 1024;

/// The long pastes of a chat, each with the label that replaces it.
#[derive(Debug, Default)]
pub struct Pastes {
    /// The labels and their texts.
    known: Vec<(String, String)>,
}

impl Pastes {
    /// Returns the text for the line: a short paste as it is, the label of a long one.
    pub fn shown(&mut self, text: String) -> String {
        let lines = text.lines().count();
        if lines <= MOST_LINES && text.len() <= MOST_BYTES {
            return text;
        }
        if let Some((words, _)) = self.known.iter().find(|(_, known)| *known == text) {
            return words.clone();
        }
        let words = self.free_words(lines);
        self.known.push((words.clone(), text));
        words
    }

    /// Replaces labels with their texts. A label that the person changed is not replaced.
    #[must_use]
    pub fn expand(&self, line: &str) -> String {
        let mut out = String::new();
        let mut rest = line;
        // In one pass, because a text may contain the label of another paste.
        while let Some(at) = rest.find('[') {
            let (before, from) = rest.split_at(at);
            out += before;
            if let Some((words, text)) = self.known.iter().find(|(words, _)| from.starts_with(words.as_str())) {
                out += text;
                rest = &from[words.len()..];
            } else {
                out.push('[');
                rest = &from[1..];
            }
        }
        out + rest
    }

    /// True if `typed` ends with the label of a paste.
    #[must_use]
    pub fn ends(&self, typed: &str) -> bool {
        self.known.iter().any(|(words, _)| typed.ends_with(words.as_str()))
    }

    /// An unused label for a paste of this many lines.
    fn free_words(&self, lines: usize) -> String {
        let plural = if lines == 1 { "" } else { "s" };
        let first = format!("[pasted {lines} line{plural}]");
        let others = (2..).map(|number| format!("[pasted {lines} line{plural}, {number}]"));
        let is_free = |words: &String| !self.known.iter().any(|(known, _)| known == words);
        std::iter::once(first).chain(others).find(is_free).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Pastes;

    #[test]
    fn long_pastes_are_shown_by_their_size_and_sent_whole() {
        let mut pastes = Pastes::default();
        let lines = |count: usize, word: &str| vec![word; count].join("\n");
        assert_eq!(pastes.shown(lines(20, "a")), lines(20, "a"));
        assert_eq!(pastes.shown(lines(21, "a")), "[pasted 21 lines]");
        assert_eq!(pastes.shown(lines(21, "b")), "[pasted 21 lines, 2]");
        assert_eq!(pastes.shown(lines(21, "a")), "[pasted 21 lines]", "the same again");
        assert_eq!(pastes.shown("x".repeat(9000)), "[pasted 1 line]");
        let tricky = lines(30, "[pasted 21 lines]");
        assert_eq!(pastes.shown(tricky.clone()), "[pasted 30 lines]");
        for (line, expected) in [
            ("see [pasted 21 lines], and", format!("see {}, and", lines(21, "a"))),
            ("[pasted 21 lines, 2][pasted 21 lines]", lines(21, "b") + &lines(21, "a")),
            ("[pasted 30 lines]", tricky),
            ("[[pasted 21 lines", "[[pasted 21 lines".to_owned()),
            ("[pasted 22 lines] [é]", "[pasted 22 lines] [é]".to_owned()),
        ] {
            assert_eq!(pastes.expand(line), expected, "{line}");
        }
        assert!(pastes.ends("x [pasted 21 lines, 2]"));
        assert!(!pastes.ends("x [pasted 21 lines, 3]"));
    }
}
