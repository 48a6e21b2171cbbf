//! Text as it stands in a line, and how the line ends.

use super::Pastes;

/// How the line that a message was awaited in has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEnd {
    /// Enter sent a message.
    Message(TypedText),
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-D on an empty line.
    Closed,
    /// The message continues in the person's editor.
    Elsewhere(TypedText),
    /// The person wants to see the last output, and then continue with this line.
    Looking(TypedText),
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
