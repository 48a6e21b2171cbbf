//! The switch between answers laid out as Markdown and answers as the model wrote them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The switch, which the screen and `/raw` share. Clones are the same switch.
#[derive(Debug, Clone)]
pub struct Rendering(Arc<AtomicBool>);

impl Rendering {
    /// Creates a switch; answers are laid out as Markdown if `markdown` is true.
    pub fn new(markdown: bool) -> Self {
        Self(Arc::new(AtomicBool::new(markdown)))
    }

    /// True if answers are laid out as Markdown.
    pub fn is_markdown(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Flips the switch, from the next answer on. Returns the new state.
    pub fn toggle(&self) -> bool {
        !self.0.fetch_xor(true, Ordering::Relaxed)
    }
}
