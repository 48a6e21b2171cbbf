//! Reasoning that servers without a parser leave in the content, between tags at its very start.

/// Opening tags and their closing tags.
const TAGS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<mm:think>", "</mm:think>"),
    ("<reasoning>", "</reasoning>"),
    ("◁think▷", "◁/think▷"),
];

/// A classified piece of content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ThoughtPiece {
    Text(String),
    /// Without its tags.
    Reasoning(String),
}

/// Separates reasoning from text while content arrives.
#[derive(Debug)]
pub(super) struct Think {
    state: ThoughtState,
    /// The content that is not classified yet: it may be the beginning of a tag.
    held: String,
    /// All of the reasoning with its tags, as it came.
    raw: String,
}

#[derive(Debug, PartialEq)]
enum ThoughtState {
    Start,
    Inside(&'static str),
    /// Inside reasoning whose opening tag is in the prompt.
    Prefilled,
    /// After reasoning, before text.
    Between,
    Past,
}

impl Think {
    pub fn new(prefilled: bool) -> Self {
        let state = if prefilled { ThoughtState::Prefilled } else { ThoughtState::Start };
        Self { state, held: String::new(), raw: String::new() }
    }

    /// The reasoning with its tags, as it came; empty if there was none.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// True if the rest of the content is text.
    pub fn is_past(&self) -> bool {
        self.state == ThoughtState::Past
    }

    /// Takes content.
    pub fn feed(&mut self, content: &str) -> Vec<ThoughtPiece> {
        if self.is_past() {
            return if content.is_empty() { Vec::new() } else { vec![ThoughtPiece::Text(content.to_owned())] };
        }
        self.held.push_str(content);
        let mut pieces = Vec::new();
        while self.step(&mut pieces) {}
        pieces
    }

    /// Classifies what is held back, as nothing more comes.
    pub fn finish(&mut self) -> Vec<ThoughtPiece> {
        let held = std::mem::take(&mut self.held);
        let piece = match self.state {
            ThoughtState::Inside(_) => ThoughtPiece::Reasoning(held),
            // The tag never came: it was the answer.
            ThoughtState::Prefilled | ThoughtState::Start | ThoughtState::Between | ThoughtState::Past => {
                ThoughtPiece::Text(held)
            }
        };
        self.state = ThoughtState::Past;
        match &piece {
            ThoughtPiece::Text(text) | ThoughtPiece::Reasoning(text) if text.is_empty() => Vec::new(),
            _ => vec![piece],
        }
    }

    /// Applies one rule; returns false if more has to arrive.
    fn step(&mut self, pieces: &mut Vec<ThoughtPiece>) -> bool {
        match self.state {
            ThoughtState::Start => self.start(pieces),
            ThoughtState::Inside(close) => self.read_inside(close, pieces),
            ThoughtState::Prefilled => self.hold_prefill(pieces),
            ThoughtState::Between => {
                let text = self.held.trim_start().to_owned();
                if text.is_empty() {
                    return false;
                }
                self.pass(text, pieces)
            }
            ThoughtState::Past => false,
        }
    }

    fn start(&mut self, pieces: &mut Vec<ThoughtPiece>) -> bool {
        let begun = self.held.trim_start();
        if begun.is_empty() {
            return false;
        }
        for (open, close) in TAGS {
            let name = &open[..open.len() - open.chars().next_back().map_or(0, char::len_utf8)];
            if let Some(rest) = begun.strip_prefix(name) {
                // The name may continue (`<thinking-mode>`), or have attributes.
                let Some(next) = rest.chars().next() else { return false };
                let ends = rest.find(['>', '▷']);
                if next.is_alphanumeric() || matches!(next, '-' | '_' | ':') {
                    continue;
                }
                let Some(end) = ends else { return self.hold_or_pass(pieces) };
                let after = end + rest[end..].chars().next().map_or(0, char::len_utf8);
                let is_whole = rest[..end].ends_with('/');
                let consumed = self.held.len() - rest.len() + after;
                let tag: String = self.held.drain(..consumed).collect();
                if is_whole {
                    self.state = ThoughtState::Between;
                } else {
                    self.raw.push_str(&tag);
                    self.state = ThoughtState::Inside(close);
                }
                return true;
            }
        }
        if TAGS.iter().any(|(open, _)| open.starts_with(begun)) {
            return false;
        }
        let text = std::mem::take(&mut self.held);
        self.pass(text, pieces)
    }

    /// Waits for the end of a tag, but not forever.
    fn hold_or_pass(&mut self, pieces: &mut Vec<ThoughtPiece>) -> bool {
        const LONGEST_TAG: usize = 128;
        if self.held.len() <= LONGEST_TAG {
            return false;
        }
        let text = std::mem::take(&mut self.held);
        self.pass(text, pieces)
    }

    fn read_inside(&mut self, close: &'static str, pieces: &mut Vec<ThoughtPiece>) -> bool {
        if let Some(at) = self.held.find(close) {
            let rest = self.held.split_off(at + close.len());
            let whole = std::mem::replace(&mut self.held, rest);
            self.raw.push_str(&whole);
            add_reasoning(pieces, &whole[..at]);
            self.state = ThoughtState::Between;
            return true;
        }
        let keep = measure_overlap(&self.held, close);
        let rest = self.held.split_off(self.held.len() - keep);
        let sure = std::mem::replace(&mut self.held, rest);
        self.raw.push_str(&sure);
        add_reasoning(pieces, &sure);
        false
    }

    /// Holds everything back until the closing tag shows that it was reasoning.
    fn hold_prefill(&mut self, pieces: &mut Vec<ThoughtPiece>) -> bool {
        let closed = TAGS.iter().filter_map(|(_, close)| Some((self.held.find(close)?, *close))).min();
        let Some((at, close)) = closed else { return false };
        let rest = self.held.split_off(at + close.len());
        let whole = std::mem::replace(&mut self.held, rest);
        self.raw.push_str(&whole);
        let opened = TAGS.iter().find_map(|(open, _)| whole.trim_start().strip_prefix(open));
        let thoughts = opened.map_or(&whole[..at], |inner| inner.strip_suffix(close).unwrap_or(inner));
        add_reasoning(pieces, thoughts);
        self.state = ThoughtState::Between;
        true
    }

    fn pass(&mut self, text: String, pieces: &mut Vec<ThoughtPiece>) -> bool {
        self.held.clear();
        self.state = ThoughtState::Past;
        pieces.push(ThoughtPiece::Text(text));
        false
    }
}

fn add_reasoning(pieces: &mut Vec<ThoughtPiece>, text: &str) {
    if !text.is_empty() {
        pieces.push(ThoughtPiece::Reasoning(text.to_owned()));
    }
}

/// The length of the longest suffix of `text` that is a prefix of `mark`.
fn measure_overlap(text: &str, mark: &str) -> usize {
    let ends = mark.char_indices().map(|(at, _)| at).skip(1).collect::<Vec<_>>();
    ends.into_iter().rev().find(|length| text.ends_with(&mark[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str, size: usize, prefilled: bool) -> (String, String) {
        let mut think = Think::new(prefilled);
        let (mut text, mut reasoning) = (String::new(), String::new());
        let chars: Vec<char> = content.chars().collect();
        let mut pieces: Vec<ThoughtPiece> =
            chars.chunks(size).flat_map(|piece| think.feed(&piece.iter().collect::<String>())).collect();
        pieces.extend(think.finish());
        for piece in pieces {
            match piece {
                ThoughtPiece::Text(words) => text += &words,
                ThoughtPiece::Reasoning(words) => reasoning += &words,
            }
        }
        (text, reasoning)
    }

    #[test]
    fn reasoning_is_told_from_text_wherever_it_is_cut() {
        for (content, prefilled, text, reasoning) in [
            ("<think>hm</think>\n\nYes.", false, "Yes.", "hm"),
            ("\n <think>\nhm\n</think>Yes.", false, "Yes.", "\nhm\n"),
            ("<think a=\"b\">hm</think>Yes.", false, "Yes.", "hm"),
            ("<think/>Yes.", false, "Yes.", ""),
            ("<think></think>Yes.", false, "Yes.", ""),
            ("<thinking>hm</thinking>Yes.", false, "Yes.", "hm"),
            ("<mm:think>hm</mm:think>Yes.", false, "Yes.", "hm"),
            ("◁think▷hm◁/think▷Yes.", false, "Yes.", "hm"),
            ("<thinking-mode>Yes.", false, "<thinking-mode>Yes.", ""),
            ("<think", false, "<think", ""),
            ("<p>Yes.</p>", false, "<p>Yes.</p>", ""),
            ("Yes: <think>no</think>", false, "Yes: <think>no</think>", ""),
            ("<think>never closed", false, "", "never closed"),
            ("<think>a < b </thin k></think>x", false, "x", "a < b </thin k>"),
            ("hm</think>\n\nA literal <think> in text", true, "A literal <think> in text", "hm"),
            ("<think>hm</think>Yes.", true, "Yes.", "hm"),
            ("No tag at all.", true, "No tag at all.", ""),
            ("more plan</think>\n\nAnswer", false, "more plan</think>\n\nAnswer", ""),
            ("", false, "", ""),
        ] {
            for size in [1, 2, 3, usize::MAX] {
                let read = read(content, size.min(content.len().max(1)), prefilled);
                assert_eq!((read.0.as_str(), read.1.as_str()), (text, reasoning), "{content} by {size}");
            }
        }
    }
}
