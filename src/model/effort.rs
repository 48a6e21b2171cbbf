//! Levels of reasoning: one scale for all models, mapped to the levels that a model has.

use serde::{Deserialize, Serialize};

use crate::base::spelling::spell;

/// A level of reasoning, from none to the most that any model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// All levels, lowest first.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The level as servers and the model file spell it.
    pub fn word(self) -> &'static str {
        spell(&self)
    }

    /// The level that a word spells.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// The nearest of these levels, and the higher one of two that are equally near. `None` stays `None` if that is
    /// among them; otherwise it becomes the lowest.
    pub fn nearest(self, levels: &[Self]) -> Option<Self> {
        let distance = |level: &Self| (*level as i8 - self as i8).unsigned_abs();
        let thinking = |level: &&Self| self == Self::None || **level != Self::None;
        levels.iter().copied().filter(|level| thinking(&level)).min_by_key(|level| {
            let lower = *level < self;
            (distance(level), lower)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Effort::{self, High, Low, Max, Medium, Minimal, None, Xhigh};

    #[test]
    fn a_level_that_a_model_lacks_becomes_its_nearest() {
        for (asked, levels, got) in [
            (High, &[Low, Medium, High][..], Some(High)),
            (Xhigh, &[Low, Medium, High], Some(High)),
            (Medium, &[Low, High, Max], Some(High)),
            (Minimal, &[None, Low, High], Some(Low)),
            (None, &[Low, High], Some(Low)),
            (None, &[None, Low, High], Some(None)),
            (Low, &[None], Option::None),
            (Low, &[], Option::None),
        ] {
            assert_eq!(asked.nearest(levels), got, "{asked:?} of {levels:?}");
        }
        for level in Effort::ALL {
            assert_eq!(Effort::read(level.word()), Some(level));
        }
    }
}
