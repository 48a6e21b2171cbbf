//! The names that rendering a prompt has missed, of all of its parts.

use super::error::PromptError;

/// What rendering one part has missed.
#[derive(Default)]
pub(super) struct Missed {
    pub names: Vec<String>,
    /// The first place where one of them was read.
    pub place: Option<(String, Option<usize>, Option<usize>)>,
}

impl Missed {
    pub fn add(&mut self, names: Vec<String>, origin: &str, place: Option<(Option<usize>, Option<usize>)>) {
        if names.is_empty() {
            return;
        }
        if let Some((line, column)) = place
            && self.place.is_none()
        {
            self.place = Some((origin.to_owned(), line, column));
        }
        let new: Vec<String> = names.into_iter().filter(|name| !self.names.contains(name)).collect();
        self.names.extend(new);
    }
}

/// Why messages cannot be filled.
pub(super) struct Unfilled {
    /// The names that nothing defines, if any.
    pub missing: Vec<String>,
    /// The first problem, at its place.
    pub error: Box<PromptError>,
}
