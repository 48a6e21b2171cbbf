//! A program without grammars: no language is known.

use std::convert::Infallible;

use crate::ink::Inks;

/// Colours for no language.
#[derive(Debug, Clone)]
pub struct Highlighter(Infallible);

impl Highlighter {
    /// Always none.
    #[must_use]
    pub fn new(_: &str) -> Option<Self> {
        None
    }

    /// Never called, as there is no highlighter.
    pub fn line<'l>(&mut self, _: &'l str) -> Vec<(Inks, &'l str)> {
        match self.0 {}
    }
}
