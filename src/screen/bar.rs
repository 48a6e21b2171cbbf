//! A progress bar on stderr for work of a known size. It is not drawn if stderr is not a terminal, or if the work ends
//! at once.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The delay before the bar is drawn.
const PATIENCE: Duration = Duration::from_millis(150);

/// A progress bar, drawn until it is dropped.
pub struct Bar {
    bar: ProgressBar,
    since: Instant,
}

impl Bar {
    /// Creates a bar on stderr, hidden unless `shown`.
    pub fn on_stderr(shown: bool) -> Self {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}").expect("the template is constant");
        Self { bar: ProgressBar::with_draw_target(Some(0), target).with_style(style), since: Instant::now() }
    }

    /// Shows that `done` of `all` items are done. `what` is one line about the current item.
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
