//! The two ways to show a run: as plain lines, or on a screen that is drawn on.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use super::activity::Activity;
use super::display::Display;
use super::look::{AnswerTo, Look};
use super::notice::{self, LONG};
use super::outlet::Outlet;
use super::outlets::Outlets;
use super::rendering::Rendering;
use super::surface::{DrawMoment, FramePart, Picture, Sketch};
use super::views::{Checklist, TodoList};
use crate::base::text;
use crate::config::Notify;
use crate::screen::ink::{Ink, Line};

/// The current work, the plan and the todo list, shared by the sink that changes them and the thread that draws them.
#[derive(Clone, Default)]
pub(super) struct SharedWork(Arc<Mutex<Now>>);

#[derive(Default)]
pub(super) struct Now {
    pub activity: Activity,
    pub plan: Checklist,
    pub todo: TodoList,
}

impl SharedWork {
    pub fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.lock().expect("nobody panics while holding what happens")
    }
}

/// A place where a run is shown.
pub trait Medium: Send {
    /// Shows a piece of the answer.
    ///
    /// # Errors
    /// Nobody reads the answer any more.
    fn answer(&mut self, text: &str) -> io::Result<()>;

    /// Ends the answer; later output begins on a new line.
    ///
    /// # Errors
    /// Nobody reads the answer any more.
    fn end_answer(&mut self) -> io::Result<()>;

    /// Shows a piece of the model's reasoning.
    ///
    /// # Errors
    /// Nobody reads the answer any more.
    fn reasoning(&mut self, text: &str) -> io::Result<()>;

    /// Shows a line about the run.
    ///
    /// # Errors
    /// Nobody reads the answer any more.
    fn line(&mut self, line: &Line) -> io::Result<()>;

    /// True if the current work is drawn while it happens.
    fn is_live(&self) -> bool {
        false
    }

    /// Redraws after the current work began or ended.
    fn redraw_work(&mut self) {}

    /// Redraws after the plan or the todo list changed.
    fn redraw_lists(&mut self) {}

    /// Ends the turn, which took `duration_ms`.
    fn end_turn(&mut self, _duration_ms: u64) {}
}

/// Shows a run as lines on `A` (stdout) and `P` (stderr).
pub(super) struct PlainMedium<A, P> {
    pub answer: A,
    pub progress: P,
    pub look: Look,
    /// The last byte written to stdout was not a line feed.
    pub answer_open: bool,
    /// The last byte written to stderr was not a line feed.
    pub progress_open: bool,
}

impl<A: Write + Send, P: Write + Send> PlainMedium<A, P> {
    pub fn new(answer: A, progress: P, look: Look) -> Self {
        Self { answer, progress, look, answer_open: false, progress_open: false }
    }

    /// Writes to stderr. Its errors are ignored.
    fn write_progress(&mut self, text: &str) {
        let _ = self.progress.write_all(text.as_bytes()).and_then(|()| self.progress.flush());
        self.progress_open = !text.ends_with('\n');
    }

    fn end_progress_line(&mut self) {
        if self.progress_open {
            self.write_progress("\n");
        }
    }
}

impl<A: Write + Send, P: Write + Send> Medium for PlainMedium<A, P> {
    fn answer(&mut self, text: &str) -> io::Result<()> {
        self.end_progress_line();
        let text = if self.look.answer_on_terminal { text::make_visible(text) } else { text.into() };
        self.answer_open = !text.ends_with('\n');
        self.answer.write_all(text.as_bytes())?;
        self.answer.flush()
    }

    fn end_answer(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.answer_open) {
            return Ok(());
        }
        self.answer.write_all(b"\n")?;
        self.answer.flush()
    }

    fn reasoning(&mut self, text: &str) -> io::Result<()> {
        if self.look.one_screen {
            self.end_answer()?;
        }
        let text = text::make_visible(text);
        self.write_progress(&self.look.style.paint(Ink::Dim, &text));
        self.progress_open = !text.ends_with('\n');
        Ok(())
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        if self.look.one_screen {
            self.end_answer()?;
        }
        self.end_progress_line();
        // One write per line, so that lines of two processes in one log do not mix.
        self.write_progress(&(line.painted(self.look.style) + "\n"));
        Ok(())
    }
}

/// The way an answer gets to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerRoute {
    /// Streamed on the screen that is drawn on.
    Drawn,
    /// Written to a terminal, with control characters made visible.
    Visible,
    /// Written as it is to a pipe or a file.
    Plain,
}

/// Shows a run on a screen that is drawn on.
pub(super) struct Live {
    pub display: Display,
    /// The outlet for an answer that is not drawn, because stdout is another file.
    pub answer: Outlet,
    goes: AnswerRoute,
    pub rendering: Rendering,
    pub notify: Notify,
    pub now: SharedWork,
    /// The unfinished line of reasoning.
    aside: String,
    answer_open: bool,
    is_working: bool,
}

impl Live {
    pub fn new(outlets: &Outlets, look: Look, rendering: Rendering, notify: Notify, now: SharedWork) -> Self {
        Self {
            display: outlets.display.clone(),
            answer: outlets.answer.clone(),
            goes: match look.answer {
                AnswerTo::Live if look.answer_on_terminal && outlets.are_one() => AnswerRoute::Drawn,
                _ if look.answer_on_terminal => AnswerRoute::Visible,
                _ => AnswerRoute::Plain,
            },
            rendering,
            notify,
            now,
            aside: String::new(),
            answer_open: false,
            is_working: false,
        }
    }

    fn end_aside(&mut self) {
        if !self.aside.is_empty() {
            let line = std::mem::take(&mut self.aside);
            self.display.lines(vec![Line::from((Ink::Dim, text::make_visible(&line)))]);
        }
    }
}

impl Medium for Live {
    fn answer(&mut self, text: &str) -> io::Result<()> {
        self.end_aside();
        self.answer_open = !text.ends_with('\n');
        match self.goes {
            AnswerRoute::Drawn => self.display.answer(text, self.rendering.is_markdown()),
            AnswerRoute::Visible => self.answer.write_all(text::make_visible(text).as_bytes()),
            AnswerRoute::Plain => self.answer.write_all(text.as_bytes()),
        }
    }

    fn end_answer(&mut self) -> io::Result<()> {
        if self.goes == AnswerRoute::Drawn {
            self.display.end_answer();
            return Ok(());
        }
        if std::mem::take(&mut self.answer_open) { self.answer.write_all(b"\n") } else { Ok(()) }
    }

    fn reasoning(&mut self, text: &str) -> io::Result<()> {
        self.aside += text;
        if let Some(end) = self.aside.rfind('\n') {
            let rest = self.aside.split_off(end + 1);
            let whole = std::mem::replace(&mut self.aside, rest);
            let lines = whole.lines().map(|line| Line::from((Ink::Dim, text::make_visible(line))));
            self.display.lines(lines.collect());
        }
        Ok(())
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.end_aside();
        self.end_answer()?;
        self.display.lines(vec![line.clone()]);
        Ok(())
    }

    fn is_live(&self) -> bool {
        true
    }

    fn redraw_work(&mut self) {
        let is_busy = self.now.lock().activity.is_busy();
        if std::mem::replace(&mut self.is_working, is_busy) == is_busy {
            return;
        }
        let now = self.now.clone();
        let picture: Picture = Box::new(move |moment: &DrawMoment| {
            Sketch::from(now.lock().activity.lines(moment.tick, moment.room, moment.rows))
        });
        self.display.set(FramePart::Work, is_busy.then_some(picture));
    }

    fn redraw_lists(&mut self) {
        /// The most rows of the lists, so that the answer has room too.
        const ROWS: usize = 12;
        let now = self.now.clone();
        let picture: Picture = Box::new(move |moment: &DrawMoment| {
            let now = now.lock();
            let rows = moment.rows.min(ROWS);
            let mut lines = now.plan.lines(moment.room, rows);
            if !now.todo.is_done() {
                lines.extend(now.todo.lines(moment.room, rows.saturating_sub(lines.len())));
            }
            Sketch::from(lines)
        });
        self.display.set(FramePart::Lists, Some(picture));
    }

    fn end_turn(&mut self, duration_ms: u64) {
        self.end_aside();
        self.is_working = false;
        self.display.settle();
        if duration_ms >= LONG * 1000 {
            notice::send_notice(&self.display, self.notify, "agent: the turn is over");
        }
    }
}
