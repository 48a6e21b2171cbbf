//! A bar on stderr for work whose size is known. Where stderr is no terminal, nothing is drawn, and neither is a bar of
//! work that ends at once.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long work takes before its bar is drawn.
const PATIENCE: Duration = Duration::from_millis(150);

/// A bar, drawn until it is dropped.
pub struct Bar {
    bar: ProgressBar,
    since: Instant,
}

impl Bar {
    /// A bar on stderr, hidden where `shown` is false.
    #[must_use]
    pub fn on_stderr(shown: bool) -> Self {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}").expect("the template is constant");
        Self { bar: ProgressBar::with_draw_target(Some(0), target).with_style(style), since: Instant::now() }
    }

    /// Shows how much is done of what. `what` is one line.
    pub fn set(&self, done: usize, all: usize, what: &str) {
        if self.since.elapsed() < PATIENCE {
            return;
        }
        self.bar.set_message(what.to_owned());
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
