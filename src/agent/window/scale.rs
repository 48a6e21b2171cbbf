//! The ratio of the provider's tokens to ours, for the fixed part of a request and for the conversation.

/// The provider's tokens per token of ours: a conversation may differ in kind from the prompt and the tools (noise,
/// another script), which must not make those seem to grow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// For the prompt and the tools: from the report with the smallest share of conversation.
    pub head: f64,
    /// The share of conversation in that report.
    share: f64,
    /// For the conversation.
    pub items: f64,
}

impl Scale {
    /// Takes in a report of `tokens`, of which ours are `head` and `items`.
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
    pub fn learn(known: Option<Self>, tokens: u64, head: u64, items: u64) -> Self {
        /// Vocabularies differ on prose and definitions by no more than this.
        const LIKELY: std::ops::RangeInclusive<f64> = 0.8..=1.2;
        /// A report with less conversation than this share is one of the head.
        const MOSTLY_HEAD: f64 = 0.25;
        let (tokens, head, items) = (tokens as f64, head as f64, items as f64);
        let (whole, share) = (tokens / (head + items).max(1.0), items / (head + items).max(1.0));
        let of_head = match known {
            Some(known) if known.share < share => known.head,
            _ if share < MOSTLY_HEAD => whole,
            _ => whole.clamp(*LIKELY.start(), *LIKELY.end()),
        };
        let share = known.map_or(share, |known| known.share.min(share));
        // A small conversation says little about itself.
        let of_items = if items > head / 10.0 { (tokens - of_head * head) / items } else { whole };
        Self { head: of_head, share, items: of_items.max(whole / 4.0) }
    }
}

/// A count of tokens, scaled.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of tokens are far below 2^52, and the scale is positive"
)]
pub(super) fn scale_tokens(tokens: u64, scale: f64) -> u64 {
    (tokens as f64 * scale).ceil() as u64
}
