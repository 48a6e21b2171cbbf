//! Counts the tokens of a text: a cheap estimate, and the exact count by a public vocabulary, whose table is unfolded
//! for the first exact count.

mod merge;
mod mix;
mod split;
mod table;

use std::sync::LazyLock;

use merge::Merger;
pub use mix::{MIX_KINDS, TokenMix};
use table::TokenTable;

/// The estimated bytes of a token, to convert a limit in tokens into one in bytes.
pub const BYTES_PER_TOKEN: usize = 4;

/// Tokens of `text`, estimated without a tokenizer: a token per four bytes, except that a character of Chinese,
/// Japanese or Korean counts as one token and one outside the basic plane (an emoji) as two. Within a fifth of the
/// truth for prose and code; always marked as an estimate when it is shown.
pub fn estimate_tokens(text: &str) -> u64 {
    estimate_bytes(text.as_bytes())
}

/// [`estimate_tokens`] for bytes that are UTF-8, whole or cut.
pub fn estimate_bytes(bytes: &[u8]) -> u64 {
    count_quarters(bytes).div_ceil(4)
}

/// The estimate in quarters of a token, so that the pieces of a stream add up without rounding each.
pub fn count_quarters(bytes: &[u8]) -> u64 {
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

/// Models by the provider's name for them; `*` stands for any end. Others have a vocabulary that is not public.
#[rustfmt::skip]
const MODELS: [(Vocabulary, &[&str]); 2] = [
    (Vocabulary::O200k, &[
        "gpt-5*", "gpt-oss-*", "gpt-4o", "gpt-4o-*", "gpt-4.1", "gpt-4.1-*", "gpt-4.5-*", "chatgpt-4o-*", "codex-mini*",
        "o1", "o1-*", "o3", "o3-*", "o4-mini", "o4-mini-*",
    ]),
    (Vocabulary::Cl100k, &[
        "gpt-4", "gpt-4-*", "gpt-3.5", "gpt-3.5-turbo", "gpt-3.5-turbo-*", "gpt-35-turbo", "gpt-35-turbo-*",
    ]),
];

impl Vocabulary {
    /// The vocabulary of a model, by the provider's name for it, including tuned ones (`ft:gpt-4o:…`); `None` if it is
    /// not public.
    pub fn of_model(id: &str) -> Option<Self> {
        let id = id.rsplit('/').next().unwrap_or(id);
        let id = id.strip_prefix("ft:").map_or(id, |tuned| tuned.split(':').next().unwrap_or(tuned));
        let is_named = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => id.starts_with(start),
            None => id == *pattern,
        };
        MODELS.iter().find(|(_, patterns)| patterns.iter().any(is_named)).map(|(vocabulary, _)| *vocabulary)
    }

    fn table(self) -> &'static TokenTable {
        static O200K: LazyLock<TokenTable> =
            LazyLock::new(|| TokenTable::unfold(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin"))));
        static CL100K: LazyLock<TokenTable> =
            LazyLock::new(|| TokenTable::unfold(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.bin"))));
        match self {
            Self::O200k => &O200K,
            Self::Cl100k => &CL100K,
        }
    }
}

/// The exact number of tokens of `text`. Special marks count as plain text.
///
/// The first call for a vocabulary unfolds its table, which takes some milliseconds and megabytes.
pub fn count_tokens(text: &str, vocabulary: Vocabulary) -> u64 {
    let table = vocabulary.table();
    let mut merger = Merger::default();
    split::split_pieces(text, vocabulary)
        .map(|piece| match table.find(piece.as_bytes()) {
            Some(_) => 1,
            None => merger.count(table, piece.as_bytes()),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_knows_scripts() {
        for (text, tokens) in
            [("", 0), ("a", 1), ("four", 1), ("hello", 2), ("日本語", 3), ("한국어", 3), ("🙂", 2), ("привет", 3)]
        {
            assert_eq!(estimate_tokens(text), tokens, "{text}");
        }
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
