//! A handle to the screen of a capable terminal. It sends changes to the drawing thread, in order with the text.

use crate::screen::ink::{Line, Theme};

use super::outlet::Outlet;
use super::surface::{FramePart, Picture, Surface, SurfaceSetup};

/// A handle to the screen. Clones share it. The default draws nothing.
#[derive(Clone, Default)]
pub struct Display {
    outlet: Option<Outlet>,
}

/// Hides the live area until it is dropped, so that another program can draw.
pub struct Suspended {
    display: Display,
}

impl Display {
    /// Draws on the terminal that `outlet` writes.
    pub(super) fn draw_on(outlet: &Outlet, setup: SurfaceSetup) -> Self {
        outlet.draw_on(Surface::new(setup));
        Self { outlet: Some(outlet.clone()) }
    }

    /// True if there is a screen to draw on.
    pub fn is_live(&self) -> bool {
        self.outlet.is_some()
    }

    /// Adds text to the answer. `markdown` counts only for the first text of an answer.
    pub fn answer(&self, text: &str, markdown: bool) -> std::io::Result<()> {
        self.outlet.as_ref().map_or(Ok(()), |outlet| outlet.say(text, markdown))
    }

    /// Ends the answer; the next text begins a new one.
    pub fn end_answer(&self) {
        self.change(false, Surface::end_answer);
    }

    /// Writes lines that stay.
    pub fn lines(&self, lines: Vec<Line>) {
        self.change(false, move |surface| surface.commit(&lines));
    }

    /// Shows a part of the live area, or removes it.
    pub fn set(&self, part: FramePart, picture: Option<Picture>) {
        self.change(false, move |surface| surface.set(part, picture));
    }

    /// Does the same as [`Display::set`], but draws at once: for keys that are echoed.
    pub fn set_now(&self, part: FramePart, picture: Option<Picture>) {
        self.change(true, move |surface| surface.set(part, picture));
    }

    /// Shows a question and the line below it.
    pub fn ask(&self, question: Picture, line: Picture) {
        self.change(true, move |surface| {
            surface.set(FramePart::Question, Some(question));
            surface.set(FramePart::Typed, Some(line));
        });
    }

    /// Removes the live area at the end of a turn, except the typed line and the question.
    pub fn settle(&self) {
        self.change(false, Surface::settle);
    }

    /// Sends the terminal a control sequence that draws nothing, such as a bell or a query.
    pub fn control(&self, sequence: &str) {
        let sequence = sequence.to_owned();
        self.change(false, move |surface| surface.control(&sequence));
    }

    /// Clears the screen; the live area is drawn at its top.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only keys and answers of the terminal call it"))]
    pub fn clear(&self) {
        self.change(true, Surface::clear);
    }

    /// Draws the live area anew after the screen changed its size.
    pub fn resize(&self) {
        self.change(true, |_| ());
    }

    /// Uses the colours for this background.
    #[cfg_attr(not(unix), allow(dead_code, reason = "only keys and answers of the terminal call it"))]
    pub fn set_theme(&self, theme: Theme) {
        self.change(false, move |surface| surface.set_theme(theme));
    }

    /// Hides the live area until the returned value is dropped. What is written meanwhile waits.
    pub fn suspend(&self) -> Suspended {
        self.change(false, Surface::suspend);
        Suspended { display: self.clone() }
    }

    /// Changes the screen, and draws it at once if the change is urgent.
    fn change(&self, urgent: bool, change: impl FnOnce(&mut Surface) + Send + 'static) {
        if let Some(outlet) = &self.outlet {
            outlet.change(urgent, change);
        }
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        self.display.change(false, Surface::resume);
    }
}
