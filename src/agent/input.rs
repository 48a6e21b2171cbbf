//! The input of a turn.

use crate::conversation::message::{Item, Said};

/// The input of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The items before it in a conversation that has not begun: see [`Agent::opening`](super::Agent::opening).
    pub opening: Vec<Item>,
    /// The person's message.
    pub said: Said,
}

impl From<Said> for Input {
    fn from(said: Said) -> Self {
        Self { opening: Vec::new(), said }
    }
}
