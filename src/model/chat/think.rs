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
pub(super) enum Piece {
    Text(String),
    /// Without its tags.
    Reasoning(String),
}

/// Separates reasoning from text while content arrives.
#[derive(Debug)]
pub(super) struct Think {
    state: State,
    /// The content that is not classified yet: it may be the beginning of a tag.
    held: String,
    /// All of the reasoning with its tags, as it came.
    raw: String,
}

#[derive(Debug, PartialEq)]
enum State {
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
        let state = if prefilled { State::Prefilled } else { State::Start };
        Self { state, held: String::new(), raw: String::new() }
    }

    /// The reasoning with its tags, as it came; empty if there was none.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// True if the rest of the content is text.
    pub fn is_past(&self) -> bool {
        self.state == State::Past
    }

    /// Takes content.
    pub fn feed(&mut self, content: &str) -> Vec<Piece> {
        if self.is_past() {
            return if content.is_empty() { Vec::new() } else { vec![Piece::Text(content.to_owned())] };
        }
        self.held.push_str(content);
        let mut pieces = Vec::new();
        while self.step(&mut pieces) {}
        pieces
    }

    /// Classifies what is held back, as nothing more comes.
    pub fn finish(&mut self) -> Vec<Piece> {
        let held = std::mem::take(&mut self.held);
        let piece = match self.state {
            State::Inside(_) => Piece::Reasoning(held),
            // The tag never came: it was the answer.
            State::Prefilled | State::Start | State::Between | State::Past => Piece::Text(held),
        };
        self.state = State::Past;
        match &piece {
            Piece::Text(text) | Piece::Reasoning(text) if text.is_empty() => Vec::new(),
            _ => vec![piece],
        }
    }

    /// Applies one rule; returns false if more has to arrive.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.state {
            State::Start => self.start(pieces),
            State::Inside(close) => self.inside(close, pieces),
            State::Prefilled => self.prefilled(pieces),
            State::Between => {
                let text = self.held.trim_start().to_owned();
                if text.is_empty() {
                    return false;
                }
                self.pass(text, pieces)
            }
            State::Past => false,
        }
    }

    fn start(&mut self, pieces: &mut Vec<Piece>) -> bool {
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
                    self.state = State::Between;
                } else {
                    self.raw.push_str(&tag);
                    self.state = State::Inside(close);
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
    fn hold_or_pass(&mut self, pieces: &mut Vec<Piece>) -> bool {
        const LONGEST_TAG: usize = 128;
        if self.held.len() <= LONGEST_TAG {
            return false;
        }
        let text = std::mem::take(&mut self.held);
        self.pass(text, pieces)
    }

    fn inside(&mut self, close: &'static str, pieces: &mut Vec<Piece>) -> bool {
        if let Some(at) = self.held.find(close) {
            let rest = self.held.split_off(at + close.len());
            let whole = std::mem::replace(&mut self.held, rest);
            self.raw.push_str(&whole);
            reason(pieces, &whole[..at]);
            self.state = State::Between;
            return true;
        }
        let keep = beginning(&self.held, close);
        let rest = self.held.split_off(self.held.len() - keep);
        let sure = std::mem::replace(&mut self.held, rest);
        self.raw.push_str(&sure);
        reason(pieces, &sure);
        false
    }

    /// Holds everything back until the closing tag shows that it was reasoning.
    fn prefilled(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let closed = TAGS.iter().filter_map(|(_, close)| Some((self.held.find(close)?, *close))).min();
        let Some((at, close)) = closed else { return false };
        let rest = self.held.split_off(at + close.len());
        let whole = std::mem::replace(&mut self.held, rest);
        self.raw.push_str(&whole);
        let opened = TAGS.iter().find_map(|(open, _)| whole.trim_start().strip_prefix(open));
        let thoughts = opened.map_or(&whole[..at], |inner| inner.strip_suffix(close).unwrap_or(inner));
        reason(pieces, thoughts);
        self.state = State::Between;
        true
    }

    fn pass(&mut self, text: String, pieces: &mut Vec<Piece>) -> bool {
        self.held.clear();
        self.state = State::Past;
        pieces.push(Piece::Text(text));
        false
    }
}

fn reason(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Reasoning(text.to_owned()));
    }
}

/// The length of the longest suffix of `text` that is a prefix of `mark`.
fn beginning(text: &str, mark: &str) -> usize {
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
        let mut pieces: Vec<Piece> =
            chars.chunks(size).flat_map(|piece| think.feed(&piece.iter().collect::<String>())).collect();
        pieces.extend(think.finish());
        for piece in pieces {
            match piece {
                Piece::Text(words) => text += &words,
                Piece::Reasoning(words) => reasoning += &words,
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
