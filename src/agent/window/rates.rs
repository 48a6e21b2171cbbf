//! What a server counts for each token that we expect or count, by kind of content. A report teaches each kind as much as the
//! kind's rate was in doubt in what was reported: noise in a result does not make prose seem larger, nor the tools.

use crate::base::tokens::{BYTES_PER_TOKEN, MIX_KINDS, TokenMix};

/// The kinds of [`TokenMix`], and these.
const RATED_KINDS: usize = MIX_KINDS + 3;
const FRAMES: usize = MIX_KINDS;
const PICTURES: usize = MIX_KINDS + 1;
const TOOLS: usize = MIX_KINDS + 2;

/// The expected tokens of a part of a request, by kind: of its texts, the frames around its messages, its pictures, and
/// the definitions of tools, which every server writes in its own way.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SizeParts([f64; RATED_KINDS]);

impl SizeParts {
    pub fn of_tools(tokens: f64) -> Self {
        let mut parts = Self::default();
        parts.0[TOOLS] = tokens;
        parts
    }

    pub fn of_messages(texts: impl Iterator<Item = TokenMix>, frames: u64, pictures: u64) -> Self {
        let mut parts = Self::default();
        for text in texts {
            parts.0.iter_mut().zip(text.0).for_each(|(part, more)| *part += more);
        }
        parts.0[FRAMES] = to_float(frames);
        parts.0[PICTURES] = to_float(pictures);
        parts
    }

    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(part, more)| *part += more);
    }

    pub fn tokens(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Scales its texts and tools to a count of them.
    pub fn recount(&mut self, counted: f64) {
        let is_text = |kind: &usize| *kind != FRAMES && *kind != PICTURES;
        let expected: f64 = (0..RATED_KINDS).filter(is_text).map(|kind| self.0[kind]).sum();
        (0..RATED_KINDS).filter(is_text).for_each(|kind| self.0[kind] *= counted / expected.max(1.0));
    }
}

/// The server's tokens for one of ours, and the standard deviation of that.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    mean: f64,
    doubt: f64,
}

/// A rate for each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates([Rate; RATED_KINDS]);

impl Rates {
    /// The rates before any report. Other vocabularies than the reference are assumed to need more: most of them count
    /// every digit.
    pub fn untaught(is_reference: bool) -> Self {
        let (means, doubts) = if is_reference {
            ([1.0; RATED_KINDS], [0.08, 0.08, 0.08, 0.15, 0.3, 0.5, 0.5, 0.2])
        } else {
            ([1.1, 2.0, 1.15, 1.2, 1.3, 1.0, 1.0, 1.1], [0.2, 1.0, 0.3, 0.4, 0.6, 1.0, 0.5, 0.15])
        };
        let mut rates = [Rate { mean: 1.0, doubt: 0.0 }; RATED_KINDS];
        for (rate, (mean, doubt)) in rates.iter_mut().zip(means.into_iter().zip(doubts)) {
            *rate = Rate { mean, doubt };
        }
        Self(rates)
    }

    pub(super) fn weigh(&self, parts: &SizeParts) -> f64 {
        self.0.iter().zip(parts.0).map(|(rate, part)| rate.mean * part).sum()
    }

    /// A size that is hardly ever exceeded.
    pub(super) fn weigh_most(&self, parts: &SizeParts) -> f64 {
        self.0.iter().zip(parts.0).map(|(rate, part)| (rate.mean + 2.0 * rate.doubt) * part).sum()
    }

    /// The tokens of a text.
    pub(super) fn weigh_text(&self, text: &str) -> f64 {
        self.weigh(&SizeParts::of_messages(std::iter::once(TokenMix::of_text(text)), 0, 0))
    }

    /// The tokens of a text that was not measured.
    pub fn count(&self, text: &str) -> u64 {
        round_tokens(self.weigh_text(text).ceil())
    }

    /// True if a text has more than so many tokens, each of which has at least a byte.
    pub fn exceeds(&self, text: &str, tokens: usize) -> bool {
        text.len() > tokens && self.weigh_text(text) > to_float(tokens as u64)
    }

    /// The most of a text that `take` can take within so many tokens, and within the bytes that these have in plain text.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lengths are far below 2^52, and no count is negative"
    )]
    pub fn take_tokens<'t>(&self, text: &'t str, most: usize, take: fn(&'t str, usize) -> &'t str) -> &'t str {
        /// So that a few rounds are enough.
        const MARGIN: f64 = 0.99;
        let mut part = take(text, most.saturating_mul(BYTES_PER_TOKEN));
        loop {
            let tokens = self.weigh_text(part);
            if part.is_empty() || tokens <= most as f64 {
                return part;
            }
            part = take(part, (part.len() as f64 * MARGIN * most as f64 / tokens) as usize);
        }
    }

    /// The server's tokens for one of ours in plain text.
    pub(super) fn of_prose(&self) -> f64 {
        self.0[0].mean
    }

    /// Takes in that the server counted so many tokens in parts that these rates concern.
    pub(super) fn learn(rated: [(&mut Self, &SizeParts); 2], counted: f64) {
        /// A report says how many tokens there are up to this share, and a few.
        const NOISE: (f64, f64) = (0.02, 8.0);
        /// Texts of a kind differ, so a new report always counts for more than those before it.
        const LEAST_DOUBT: f64 = 0.05;
        const LIKELY: (f64, f64) = (0.3, 5.0);
        let error = counted - rated.iter().map(|(rates, parts)| rates.weigh(parts)).sum::<f64>();
        let mut all = (counted * NOISE.0 + NOISE.1).powi(2);
        for (rates, parts) in &rated {
            all += rates.0.iter().zip(parts.0).map(|(rate, part)| (rate.doubt * part).powi(2)).sum::<f64>();
        }
        for (rates, parts) in rated {
            for (rate, part) in rates.0.iter_mut().zip(parts.0) {
                let gain = rate.doubt.powi(2) * part / all;
                rate.mean = (rate.mean + gain * error).clamp(LIKELY.0, LIKELY.1);
                rate.doubt = (rate.doubt * (1.0 - gain * part).max(0.0).sqrt()).max(LEAST_DOUBT);
            }
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self::untaught(false)
    }
}

pub(super) fn to_float(tokens: u64) -> f64 {
    tokens as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no count is negative")]
pub(super) fn round_tokens(tokens: f64) -> u64 {
    tokens.round() as u64
}
