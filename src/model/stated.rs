//! The numbers in a server's refusal of a request as too long, in its own tokens.
//!
//! Every server words it differently. They put a number after a word for it (`maximum context length is 8192 tokens`,
//! `n_ctx: 4096`), before one (`1000 in the completion`), or as a side of a comparison
//! (`210000 tokens > 200000 maximum`).

/// The numbers of a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stated {
    /// The most tokens that the model takes, including those of its reply if the server counts them.
    pub limit: Option<u64>,
    /// The tokens of the request, without those that are kept for the reply.
    pub input: Option<u64>,
    /// The tokens that are kept for the reply.
    pub output: Option<u64>,
}

/// Words before the limit, the most specific first.
const LIMIT: &[&str] = &[
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
    "max length:",
    "maximum number of tokens allowed",
    "range of input length should be [1,",
    "inputs` tokens + `max_new_tokens` must be",
    "limit",
    "maximum",
];

/// Words before the tokens of the request alone.
const INPUT: &[&str] = &[
    "resulted in", "request contains", "request has", "prompt contains", "prompt has", "prompt token count of",
    "input token count", "prompt is too long:", "you passed", "keep the first", "n_keep", "prompt (length",
    "the input (", "request (", "given:",
];

/// Words before the tokens of the request and its reply together.
const TOTAL: &[&str] = &["a total of", "requested"];

/// Words after the tokens that are kept for the reply.
const OUTPUT: &[&str] =
    &["in the completion", "in the output", "tokens for the completion", "output tokens", "`max_new_tokens`"];

impl Stated {
    /// Finds the numbers in the text of a refusal.
    pub fn read(refusal: &str) -> Self {
        let text = refusal.to_ascii_lowercase();
        if let Some(compared) = Self::read_comparison(&text) {
            return compared;
        }
        let output = OUTPUT.iter().find_map(|word| number_before(&text, word));
        let input = INPUT.iter().find_map(|word| number_after(&text, word)).or_else(|| {
            let total = TOTAL.iter().find_map(|word| number_after(&text, word))?;
            Some(total.saturating_sub(output.unwrap_or(0)))
        });
        let limit = number_before(&text, "maximum context length");
        let limit = limit.or_else(|| LIMIT.iter().find_map(|word| number_after(&text, word)));
        // A limit on the reply alone, with what was asked for: `'max_tokens' is too large: 9000`.
        let output = output.or_else(|| number_after(&text, "is too large:"));
        Self { limit, input, output }
    }

    /// `210000 tokens > 200000 maximum`, `190000 + 20000 > 200000`.
    fn read_comparison(text: &str) -> Option<Self> {
        let (left, right) = text.rsplit_once('>')?;
        let limit = find_numbers(right).find(|number| *number >= LEAST)?;
        // `9000 > 8192 - 20` compares the reply with the room that is left for it.
        let rest = right.trim_start().trim_start_matches(is_part_of_number).trim_start();
        if rest.starts_with('-') {
            return None;
        }
        let before = left.rsplit([':', '(']).next().unwrap_or(left);
        let (input, output) = match before.split_once('+') {
            Some((input, output)) => (find_numbers(input).last(), find_numbers(output).next()),
            None => (find_numbers(before).find(|number| *number >= LEAST), None),
        };
        Some(Self { limit: Some(limit), input, output })
    }

    /// True if the part kept for the reply leaves so little of the limit that no shorter request would help.
    pub fn reply_is_too_long(&self) -> bool {
        matches!((self.limit, self.output), (Some(limit), Some(output)) if output >= limit - limit / 8)
    }
}

/// A smaller number is a code, a status or an index.
const LEAST: u64 = 256;

/// The first number that follows a word anywhere in the text.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let ends = text.match_indices(word).map(|(at, word)| at + word.len());
    ends.filter_map(|end| find_numbers(&text[end..]).next()).find(|number| *number >= LEAST)
}

/// The number right before a word.
fn number_before(text: &str, word: &str) -> Option<u64> {
    text.match_indices(word).find_map(|(at, _)| {
        let before = text[..at].trim_end();
        let number = &before[before.trim_end_matches(is_part_of_number).len()..];
        find_numbers(number).next()
    })
}

/// The integers in a text, including `200,000` and `200_000`.
fn find_numbers(text: &str) -> impl Iterator<Item = u64> {
    text.split(|c| !is_part_of_number(c)).filter_map(|part| part.replace([',', '_'], "").parse().ok())
}

fn is_part_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == ',' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refusals with their limit, their input and their output; 0 for a number that is not there.
    const DIALECTS: &[(&str, u64, u64, u64)] = &[
        // OpenAI
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
            8192,
            9001,
            0,
        ),
        (
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4000 in the \
             messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            4097,
            4000,
            1000,
        ),
        ("Your input exceeds the context window of this model.", 0, 0, 0),
        // DeepSeek
        (
            "This model's maximum context length is 131,072 tokens. However, you requested 140,001 tokens",
            131_072,
            140_001,
            0,
        ),
        // Anthropic
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000, 210_000, 0),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            200_000,
            190_000,
            20_000,
        ),
        // Gemini
        (
            "The input token count (1500000) exceeds the maximum number of tokens allowed (1048576).",
            1_048_576,
            1_500_000,
            0,
        ),
        // Mistral
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768, 40_000, 0),
        // vLLM
        (
            "This model's maximum context length is 8192 tokens. However, your request has 9001 input tokens.",
            8192,
            9001,
            0,
        ),
        (
            "You passed 9001 input tokens and requested 1000 output tokens. However, the model's context length \
             is only 8192 tokens, resulting in a maximum input length of 7192 tokens.",
            8192,
            9001,
            1000,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is \
             8192 tokens and your request has 7000 input tokens (2000 > 8192 - 7000).",
            8192,
            7000,
            2000,
        ),
        ("The decoder prompt (length 40960) is longer than the maximum model length of 32768.", 32_768, 40_960, 0),
        // SGLang, Together
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000, 0),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a \
             total of 5020 tokens: 4020 tokens from the input messages and 1000 tokens for the completion.",
            4096,
            4020,
            1000,
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 400 \
             `max_new_tokens`",
            8193,
            8000,
            400,
        ),
        // OpenRouter
        (
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40050 tokens \
             (30000 of text input, 50 of tool input, 10000 in the output).",
            32_768,
            30_050,
            10_000,
        ),
        // llama.cpp
        (
            "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            4096,
            5000,
            0,
        ),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4096, 0, 0),
        // LM Studio
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with \
             context length of only 4096 tokens",
            4096,
            5000,
            0,
        ),
        // Qwen, xAI, Kimi, GitHub Copilot, Fireworks
        ("Range of input length should be [1, 30720]", 30_720, 0, 0),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            131_072,
            537_812,
            0,
        ),
        ("Your request exceeded model token limit: 8192 (requested: 9001)", 8192, 9001, 0),
        ("prompt token count of 9001 exceeds the limit of 8192", 8192, 9001, 0),
        ("The prompt is too long: 9001, model maximum context length: 8192", 8192, 9001, 0),
        ("context_length_exceeded", 0, 0, 0),
        ("HTTP 400: the input is too long", 0, 0, 0),
    ];

    #[test]
    fn the_numbers_of_every_dialect() {
        let known = |number: u64| (number > 0).then_some(number);
        for (refusal, limit, input, output) in DIALECTS {
            let stated = Stated { limit: known(*limit), input: known(*input), output: known(*output) };
            assert_eq!(Stated::read(refusal), stated, "{refusal}");
        }
    }
}
