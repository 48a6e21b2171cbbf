//! What a turn begins with.

use crate::message::{Item, Said};

/// What a turn begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The items before it in a conversation that has not begun: see [`Agent::opening`](super::Agent::opening).
    pub opening: Vec<Item>,
    /// What the person says.
    pub said: Said,
}

impl From<Said> for Input {
    fn from(said: Said) -> Self {
        Self { opening: Vec::new(), said }
    }
}
