//! Checks a provider's count of a request against the bytes that were sent. Some servers silently cut requests
//! that are too long (Ollama beyond its `num_ctx`); some report only a part, or the tokens of another request. An
//! implausible count is ignored.

/// A judgement of a reported prompt size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeReport {
    Plausible,
    /// Nothing was reported.
    Absent,
    /// Fewer tokens than any tokenizer makes of this much text.
    TooSmall {
        tokens: u64,
        bytes: u64,
    },
    /// No more tokens than before, although this many bytes were added.
    Stuck {
        tokens: u64,
        added: u64,
    },
    /// More tokens than bytes.
    TooLarge {
        tokens: u64,
        bytes: u64,
    },
}

/// The size of a request, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentSize {
    /// The bytes of the texts of its messages.
    pub texts: u64,
    /// The bytes around them: tool definitions and message frames.
    pub frames: u64,
    pub images: u64,
}

/// An earlier, plausible report, whose messages this request extends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    pub tokens: u64,
    /// The bytes of text added since.
    pub added: u64,
}

/// Tokenizers average 4 to 5 bytes per token of English or code, and 7 to 9 bytes in scripts with three bytes per
/// letter.
const MOST_BYTES_A_TOKEN: u64 = 12;
/// In tiny requests the frames are larger than the text.
const SLACK: u64 = 64;
/// Smaller growth could be noise: a template that leaves out earlier reasoning.
const TELLING: u64 = 8192;
/// Some models use tens of thousands of tokens for one picture.
const MOST_TOKENS_AN_IMAGE: u64 = 65_536;

/// Judges a reported prompt size.
pub fn judge_size(tokens: u64, sent: SentSize, earlier: Option<Earlier>) -> SizeReport {
    let bytes = sent.texts + sent.frames;
    // Growth of less than one token per 32 bytes counts as none.
    let is_stuck = |earlier: &Earlier| earlier.added >= TELLING && tokens < earlier.tokens + earlier.added / 32;
    match earlier.filter(is_stuck) {
        _ if tokens == 0 => SizeReport::Absent,
        _ if tokens > bytes + sent.images * MOST_TOKENS_AN_IMAGE => SizeReport::TooLarge { tokens, bytes },
        _ if tokens * MOST_BYTES_A_TOKEN + SLACK < sent.texts => {
            SizeReport::TooSmall { tokens, bytes: sent.texts }
        }
        Some(Earlier { added, .. }) => SizeReport::Stuck { tokens, added },
        None => SizeReport::Plausible,
    }
}

/// The way to raise the window of each server.
const REMEDIES: [(&str, &str); 5] = [
    ("Ollama", "num_ctx or OLLAMA_CONTEXT_LENGTH"),
    ("llama.cpp", "--ctx-size"),
    ("vLLM", "--max-model-len"),
    ("SGLang", "--context-length"),
    ("LM Studio", "context length"),
];

impl SizeReport {
    /// The warning about a silent cut, with the server's remedy if it said which program it is.
    pub fn warning(&self, server: Option<&str>) -> Option<String> {
        let seen = match self {
            Self::TooSmall { tokens, bytes } => {
                format!("the server counted {tokens} tokens in a conversation of {bytes} bytes")
            }
            Self::Stuck { tokens, added } => {
                format!("the server counted {tokens} tokens, no more than before, after {added} bytes were added")
            }
            Self::Plausible | Self::Absent | Self::TooLarge { .. } => return None,
        };
        let known = server.filter(|server| REMEDIES.iter().any(|(name, _)| name == server));
        let remedies: Vec<String> = (REMEDIES.iter())
            .filter(|(name, _)| known.is_none_or(|known| known == *name))
            .map(|(name, how)| format!("{name}: {how}"))
            .collect();
        Some(format!(
            "{seen}: it seems to cut the conversation to its own window without saying so. Raise that window ({}), or \
             set context_window of the model to what the server holds.",
            remedies.join("; ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: SentSize = SentSize { texts: 40_000, frames: 10_000, images: 0 };

    #[test]
    fn a_count_is_held_against_the_bytes() {
        let pictures = SentSize { images: 2, ..TEXT };
        let tiny = SentSize { texts: 60, frames: 8, images: 0 };
        for (tokens, sent, expected) in [
            (0, TEXT, SizeReport::Absent),
            (12_500, TEXT, SizeReport::Plausible),
            (4000, TEXT, SizeReport::Plausible),
            (3328, TEXT, SizeReport::Plausible),
            (3327, TEXT, SizeReport::TooSmall { tokens: 3327, bytes: 40_000 }),
            (2048, TEXT, SizeReport::TooSmall { tokens: 2048, bytes: 40_000 }),
            (50_000, TEXT, SizeReport::Plausible),
            (50_001, TEXT, SizeReport::TooLarge { tokens: 50_001, bytes: 50_000 }),
            (80_000, pictures, SizeReport::Plausible),
            (1, tiny, SizeReport::Plausible),
            (20, tiny, SizeReport::Plausible),
            (69, tiny, SizeReport::TooLarge { tokens: 69, bytes: 68 }),
        ] {
            assert_eq!(judge_size(tokens, sent, None), expected, "{tokens} {sent:?}");
        }
    }

    #[test]
    fn a_count_that_stands_still_while_the_conversation_grows_is_a_cut() {
        let stuck = |tokens, added| SizeReport::Stuck { tokens, added };
        for (tokens, before, added, expected) in [
            (4096, 4096, 9000, stuck(4096, 9000)),
            (4000, 4096, 9000, stuck(4000, 9000)),
            (4200, 4096, 9000, stuck(4200, 9000)),
            (4096 + 281, 4096, 9000, SizeReport::Plausible),
            (6000, 4096, 9000, SizeReport::Plausible),
            // Too little to judge.
            (4096, 4096, 8000, SizeReport::Plausible),
            (4000, 4096, 500, SizeReport::Plausible),
            (0, 4096, 9000, SizeReport::Absent),
        ] {
            let earlier = Some(Earlier { tokens: before, added });
            assert_eq!(judge_size(tokens, TEXT, earlier), expected, "{tokens} {before} {added}");
        }
    }

    #[test]
    fn only_a_cut_is_warned_of() {
        for report in [SizeReport::Plausible, SizeReport::Absent, SizeReport::TooLarge { tokens: 2, bytes: 1 }] {
            assert_eq!(report.warning(None), None, "{report:?}");
        }
        let small = SizeReport::TooSmall { tokens: 100, bytes: 9000 }.warning(None).unwrap_or_default();
        assert!(
            small.contains("100 tokens in a conversation of 9000 bytes") && small.contains("num_ctx"),
            "{small}"
        );
        let of_ollama =
            SizeReport::TooSmall { tokens: 100, bytes: 9000 }.warning(Some("Ollama")).unwrap_or_default();
        assert!(of_ollama.contains("(Ollama: num_ctx or OLLAMA_CONTEXT_LENGTH)"), "{of_ollama}");
        let stuck = SizeReport::Stuck { tokens: 4096, added: 9000 }.warning(None).unwrap_or_default();
        assert!(stuck.contains("4096 tokens, no more than before") && stuck.contains("--ctx-size"), "{stuck}");
    }
}
