//! Counts the tokens of a text: a cheap estimate, and the exact count by the public vocabulary o200k, whose table is
//! unfolded for the first exact count.

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

/// The models whose vocabulary is counted here, by the provider's name for them; `*` stands for any end.
#[rustfmt::skip]
const MODELS: &[&str] = &[
    "gpt-5*", "gpt-oss-*", "gpt-4o", "gpt-4o-*", "gpt-4.1", "gpt-4.1-*", "gpt-4.5-*", "chatgpt-4o-*", "codex-mini*",
    "o1", "o1-*", "o3", "o3-*", "o4-mini", "o4-mini-*",
];

/// True if [`count_tokens`] counts with the vocabulary of this model, by the provider's name for it, also of a tuned one
/// (`ft:gpt-4o:…`).
pub fn counts_exactly(model: &str) -> bool {
    let id = model.rsplit('/').next().unwrap_or(model);
    let id = id.strip_prefix("ft:").map_or(id, |tuned| tuned.split(':').next().unwrap_or(tuned));
    MODELS.iter().any(|pattern| pattern.strip_suffix('*').map_or(id == *pattern, |start| id.starts_with(start)))
}

static O200K: LazyLock<TokenTable> =
    LazyLock::new(|| TokenTable::unfold(include_bytes!(concat!(env!("OUT_DIR"), "/o200k.bin"))));

/// The exact number of tokens of `text` in the vocabulary o200k. Special marks count as plain text.
///
/// The first call unfolds its table, which takes some milliseconds and megabytes.
pub fn count_tokens(text: &str) -> u64 {
    let mut merger = Merger::default();
    split::split_pieces(text)
        .map(|piece| match O200K.find(piece.as_bytes()) {
            Some(_) => 1,
            None => merger.count(&O200K, piece.as_bytes()),
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
    fn letters_without_an_end_are_not_free() {
        for piece in ["a", "the", "Z", "ing"] {
            let text = piece.repeat(6000 / piece.len());
            let (reckoned, counted) = (TokenMix::of_text(&text).tokens(), count_tokens(&text) as f64);
            assert!((0.7 * counted..4.0 * counted).contains(&reckoned), "{piece}: {reckoned} of {counted}");
        }
    }

    #[test]
    fn models_that_are_counted_exactly() {
        for (id, is_exact) in [
            ("gpt-5-mini", true),
            ("openai/gpt-4o", true),
            ("ft:gpt-4o:me", true),
            ("gpt-oss-20b", true),
            ("gpt-4", false),
            ("deepseek-chat", false),
        ] {
            assert_eq!(counts_exactly(id), is_exact, "{id}");
        }
    }
}
