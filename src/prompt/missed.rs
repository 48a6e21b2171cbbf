//! The names that were missing when a prompt was rendered, of all its parts.

use super::error::PromptError;

/// The names that were missing when one part was rendered.
#[derive(Default)]
pub(super) struct Missed {
    pub names: Vec<String>,
    /// The error of the first place where one of them was read.
    pub place: Option<Box<PromptError>>,
}

impl Missed {
    pub fn add(&mut self, names: Vec<String>, place: Option<PromptError>) {
        if names.is_empty() {
            return;
        }
        self.place = self.place.take().or_else(|| place.map(Box::new));
        let new: Vec<String> = names.into_iter().filter(|name| !self.names.contains(name)).collect();
        self.names.extend(new);
    }
}

/// The reason that messages cannot be filled.
pub(super) struct Unfilled {
    /// The names that nothing defines, if any.
    pub missing: Vec<String>,
    /// The first problem, at its place.
    pub error: Box<PromptError>,
}
