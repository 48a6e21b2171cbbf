//! Text as it stands in a line, and the next input that it makes.

use super::{Joined, Pastes};

/// The next input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextInput {
    /// A queued message.
    Message(TypedText),
    /// Ctrl-D was pressed.
    End,
    /// Nothing is queued; the next line begins with this text.
    Begun(TypedText),
}

/// A text as it stands in the line, and its start if the start was pasted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedText {
    pub text: String,
    pub pasted: Option<String>,
}

impl TypedText {
    /// True if it begins with pasted text: then it is not a command, whatever it looks like.
    pub fn is_pasted(&self) -> bool {
        self.pasted.as_ref().is_some_and(|start| self.text.starts_with(start.as_str()))
    }

    /// The message that this is the last line of.
    pub fn join_after(self, mut joined: Joined) -> Self {
        let pasted = self.pasted.filter(|_| joined.is_empty());
        Self { text: joined.add(&self.text).or_else(|| joined.rest()).unwrap_or_default(), pasted }
    }

    /// With its long pastes in full.
    pub fn expand(self, pastes: &Pastes) -> Self {
        Self { text: pastes.expand(&self.text), pasted: self.pasted.map(|start| pastes.expand(&start)) }
    }
}

impl From<String> for TypedText {
    fn from(text: String) -> Self {
        Self { text, pasted: None }
    }
}
