//! What a server's refusal of a request as too long teaches: how much it will take.

/// The budget from now on, in tokens: the limit that the refusal states, where it is smaller than what was sent, else
/// three quarters of that.
#[must_use]
pub fn learned(refusal: &str, sent: u64) -> u64 {
    match stated_limit(refusal) {
        Some(limit) if limit < sent => limit,
        _ => (sent * 3 / 4).max(1),
    }
}

/// The limit that a refusal states, in tokens.
///
/// Servers agree on no form. They name it after a word for it (`maximum context length is 8192 tokens`,
/// `n_ctx: 4096`), or as the right side of a comparison (`210000 tokens > 200000 maximum`).
fn stated_limit(refusal: &str) -> Option<u64> {
    /// Fewer is a code, a status or an index.
    const LEAST: u64 = 256;
    const WORDS: &[&str] = &[
        "maximum context length",
        "max context length",
        "maximum prompt length",
        "maximum model length",
        "model's context length",
        "context length",
        "context window",
        "context size",
        "context limit",
        "n_ctx",
        "token limit",
        "maximum number of tokens allowed",
        "range of input length should be [1,",
        "limit",
        "maximum",
    ];
    let text = refusal.to_ascii_lowercase();
    let compared = text.rsplit_once('>').and_then(|(_, right)| numbers(right).next());
    let after = |word: &&str| text.find(*word).and_then(|at| numbers(&text[at + word.len()..]).next());
    compared.into_iter().chain(WORDS.iter().filter_map(after)).find(|limit| *limit >= LEAST)
}

/// The whole numbers of a text, `200,000` and `200_000` among them.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',' || c == '_';
    text.split(move |c| !is_part(c)).filter_map(|part| part.replace([',', '_'], "").parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_teaches_the_limit_that_it_states() {
        for (refusal, limit) in [
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
                Some(8192),
            ),
            (
                "This model's maximum context length is 128,000 tokens. However, you requested 130,001 tokens",
                Some(128_000),
            ),
            ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", Some(200_000)),
            ("the request exceeds the available context size (4096 tokens), try increasing it", Some(4096)),
            ("request (5000 tokens) exceeds the available context size (4096 tokens)", Some(4096)),
            ("Range of input length should be [1, 30720]", Some(30_720)),
            (
                "The input token count (1500000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("maximum prompt length is 131072 but the request contains 140000 tokens", Some(131_072)),
            ("Your request exceeded model token limit: 8192", Some(8192)),
            ("context_length_exceeded", None),
            ("HTTP 400: the input is too long", None),
        ] {
            assert_eq!(stated_limit(refusal), limit, "{refusal}");
        }
    }

    #[test]
    fn without_a_limit_or_with_one_that_cannot_be_three_quarters_of_what_was_sent() {
        assert_eq!(learned("too long", 1000), 750);
        assert_eq!(learned("maximum context length is 8192 tokens", 6000), 4500, "their count is not ours");
        assert_eq!(learned("maximum context length is 8192 tokens", 10_000), 8192);
    }
}
