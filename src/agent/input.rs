//! The input of a turn.

use crate::conversation::message::{Item, UserText};

/// The input of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnInput {
    /// The items before it in a conversation that has not begun: see [`Agent::opening`](super::Agent::opening).
    pub opening: Vec<Item>,
    /// The person's message.
    pub said: UserText,
}

impl From<UserText> for TurnInput {
    fn from(said: UserText) -> Self {
        Self { opening: Vec::new(), said }
    }
}
