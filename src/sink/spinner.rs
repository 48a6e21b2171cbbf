//! The moving line at the bottom of the screen: what is running now.
//!
//! It is shared with whoever asks the person something: while a question is held open nothing is drawn, however
//! many calls run beside it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A handle; clones draw on the same line.
#[derive(Clone, Default)]
pub struct Spinner {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    enabled: bool,
    /// Questions that are open.
    holds: usize,
    /// What is to be shown, while it is not held back.
    message: Option<String>,
    bar: Option<ProgressBar>,
}

/// Keeps the line free while it lives.
pub struct Hold {
    spinner: Spinner,
}

impl Spinner {
    /// Draws on stderr if `enabled`, else never.
    #[must_use]
    pub fn new(enabled: bool) -> Self {
        Self { state: Arc::new(Mutex::new(State { enabled, ..State::default() })) }
    }

    /// Shows `message` (one line, already made visible), or changes what is shown.
    pub fn show(&self, message: String) {
        let mut state = self.lock();
        state.message = Some(message);
        state.draw();
    }

    /// Takes the line away.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.message = None;
        state.erase();
    }

    /// Takes the line away until the returned value is dropped.
    #[must_use]
    pub fn hold(&self) -> Hold {
        let mut state = self.lock();
        state.holds += 1;
        state.erase();
        Hold { spinner: self.clone() }
    }

    /// Runs `write` while nothing is drawn, so that lines appear above the moving one.
    pub fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        let bar = self.lock().bar.clone();
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the spinner")
    }
}

impl State {
    fn draw(&mut self) {
        let Some(message) = self.message.as_ref().filter(|_| self.enabled && self.holds == 0) else {
            return;
        };
        if let Some(bar) = &self.bar {
            bar.set_message(message.clone());
            return;
        }
        let style = ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is constant");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        bar.set_message(message.clone());
        bar.enable_steady_tick(Duration::from_millis(100));
        self.bar = Some(bar);
    }

    fn erase(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.spinner.lock();
        state.holds -= 1;
        state.draw();
    }
}
