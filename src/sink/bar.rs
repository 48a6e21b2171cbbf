//! A bar on stderr for work whose size is known. Where stderr is no terminal, nothing is drawn.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar, drawn until it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar on stderr, hidden where `shown` is false.
    #[must_use]
    pub fn on_stderr(shown: bool) -> Self {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}").expect("the template is constant");
        Self(ProgressBar::with_draw_target(Some(0), target).with_style(style))
    }

    /// Shows how much is done of what. `what` is one line.
    pub fn set(&self, done: usize, all: usize, what: &str) {
        self.0.set_length(all as u64);
        self.0.set_position(done as u64);
        self.0.set_message(what.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
