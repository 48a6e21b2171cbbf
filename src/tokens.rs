//! How many tokens a text has: an estimate that costs nothing, and the exact count behind the one door to the
//! tokenizer, whose tables are loaded when the first exact count is asked for.

use std::collections::HashSet;

use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

/// Bytes of a token, as an estimate: what turns a limit in tokens into one in bytes.
pub const BYTES_PER_TOKEN: usize = 4;

/// Tokens of `text`, estimated without a tokenizer: a token per four bytes, except that a character of Chinese,
/// Japanese or Korean counts as one token and one outside the basic plane (an emoji) as two. Within a fifth of the
/// truth for prose and code; always marked as an estimate where it is shown.
#[must_use]
pub fn estimate(text: &str) -> u64 {
    estimate_bytes(text.as_bytes())
}

/// [`estimate`] for bytes that are UTF-8, whole or cut.
#[must_use]
pub fn estimate_bytes(bytes: &[u8]) -> u64 {
    quarters(bytes).div_ceil(4)
}

/// The estimate in quarters of a token, so that the pieces of a stream add up without rounding each.
#[must_use]
pub fn quarters(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .map(|byte| match byte {
            // First byte of U+3000 to U+DFFF: kana, CJK, Hangul; three bytes make four quarters.
            0xe3..=0xed => 2,
            // First byte of four: eight quarters.
            0xf0.. => 5,
            _ => 1,
        })
        .sum()
}

/// A vocabulary that can be counted exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    O200k,
    Cl100k,
}

impl Vocabulary {
    /// The vocabulary of a model, by the provider's name for it; `None` where it is not public.
    #[must_use]
    pub fn of_model(id: &str) -> Option<Self> {
        let id = id.rsplit('/').next().unwrap_or(id);
        match get_tokenizer(id)? {
            Tokenizer::O200kBase | Tokenizer::O200kHarmony => Some(Self::O200k),
            Tokenizer::Cl100kBase => Some(Self::Cl100k),
            _ => None,
        }
    }

    fn tables(self) -> &'static CoreBPE {
        match self {
            Self::O200k => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100k => tiktoken_rs::cl100k_base_singleton(),
        }
    }
}

/// The exact number of tokens of `text`, special marks counted as the plain text that they are here.
///
/// The first call loads the tables (about 0.2 s and 45 MiB): for `/context`, never on the way to a request.
#[must_use]
pub fn count(text: &str, encoding: Vocabulary) -> u64 {
    // The splitter's regex engine runs out of stack on about a megabyte of white space, and merging the bytes of one
    // long word takes time by the square of its length; pieces keep it far from both. A cut costs a token at most.
    const PIECE: usize = 8 * 1024;
    let tables = encoding.tables();
    let none = HashSet::new();
    pieces(text, PIECE)
        .map(|piece| match tables.encode(piece, &none) {
            Ok((tokens, _)) => tokens.len() as u64,
            Err(_) => estimate(piece),
        })
        .sum()
}

/// `text` in pieces of at most `most` bytes, cut after a line where there is one.
fn pieces(mut text: &str, most: usize) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let end = text.floor_char_boundary(most);
        let cut = if end == text.len() { end } else { text[..end].rfind('\n').map_or(end, |line| line + 1) };
        let (piece, rest) = text.split_at(cut);
        text = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_knows_scripts() {
        for (text, tokens) in
            [("", 0), ("a", 1), ("four", 1), ("hello", 2), ("日本語", 3), ("한국어", 3), ("🙂", 2), ("привет", 3)]
        {
            assert_eq!(estimate(text), tokens, "{text}");
        }
    }

    #[test]
    fn pieces_lose_nothing() {
        for text in ["", "abc", "ab\ncd\nef", "日本語日本語", "\n\n\n\n\n\n\n\n"] {
            assert_eq!(pieces(text, 4).collect::<String>(), text);
        }
        assert_eq!(pieces("ab\ncdefg", 4).collect::<Vec<_>>(), ["ab\n", "cdef", "g"]);
    }

    #[test]
    fn exact_counts() {
        assert_eq!(count("hello world", Vocabulary::O200k), 2);
        // A special mark is text, not one token.
        assert!(count("<|endoftext|>", Vocabulary::O200k) > 1);
        // White space over several pieces.
        assert!(count(&" ".repeat(150_000), Vocabulary::O200k) > 0);
    }

    #[test]
    fn vocabularies_by_model() {
        for (id, encoding) in [
            ("gpt-5-mini", Some(Vocabulary::O200k)),
            ("openai/gpt-4o", Some(Vocabulary::O200k)),
            ("gpt-oss-20b", Some(Vocabulary::O200k)),
            ("gpt-4", Some(Vocabulary::Cl100k)),
            ("deepseek-chat", None),
        ] {
            assert_eq!(Vocabulary::of_model(id), encoding, "{id}");
        }
    }
}
