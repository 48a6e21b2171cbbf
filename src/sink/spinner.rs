//! The moving line at the bottom of the screen, which names the running work.
//!
//! The thread that writes the screen also draws and erases the line, in order with the text, so neither overwrites
//! the other. While a question to the person is open nothing is drawn, however many calls run beside it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::file::Target;
use super::outlet::Outlet;

/// A handle to the line. Clones share it. The default never draws.
#[derive(Clone, Default)]
pub struct Spinner {
    drawn: Option<Drawn>,
}

#[derive(Clone)]
struct Drawn {
    outlet: Outlet,
    state: Shared,
}

type Shared = Arc<Mutex<State>>;

#[derive(Default)]
struct State {
    /// The number of open questions.
    holds: usize,
    /// The text to draw unless a question is open.
    message: Option<String>,
    bar: Option<ProgressBar>,
}

/// Hides the line while it lives.
pub struct Hold {
    spinner: Spinner,
}

impl Spinner {
    /// Draws on stderr, in order with what `outlet` writes there.
    pub(super) fn on(outlet: &Outlet) -> Self {
        let state = Shared::default();
        outlet.wrap(|target| Box::new(Above { state: Arc::clone(&state), target }));
        Self { drawn: Some(Drawn { outlet: outlet.clone(), state }) }
    }

    /// Shows `message`, one line with control characters made visible.
    pub fn show(&self, message: &str) {
        let message = message.to_owned();
        self.change(|state| {
            state.message = Some(message);
            state.draw();
        });
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.change(|state| {
            state.message = None;
            state.erase();
        });
    }

    /// Hides the line until the returned value is dropped.
    #[must_use]
    pub fn hold(&self) -> Hold {
        self.change(|state| {
            state.holds += 1;
            state.erase();
        });
        Hold { spinner: self.clone() }
    }

    fn change(&self, change: impl FnOnce(&mut State) + Send + 'static) {
        if let Some(Drawn { outlet, state }) = &self.drawn {
            let state = Arc::clone(state);
            outlet.then(move || change(&mut lock(&state)));
        }
    }
}

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().expect("nobody panics while holding the spinner")
}

impl State {
    fn draw(&mut self) {
        let Some(message) = self.message.as_ref().filter(|_| self.holds == 0) else {
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
        self.spinner.change(|state| {
            state.holds -= 1;
            state.draw();
        });
    }
}

/// A target that suspends the line while it writes, so that text appears above it.
struct Above {
    state: Shared,
    target: Target,
}

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bar = lock(&self.state).bar.clone();
        match bar {
            Some(bar) => bar.suspend(|| self.target.write(bytes)),
            None => self.target.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
