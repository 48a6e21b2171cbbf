//! The status line under a turn: the model, the cost, and how full the context is.

use super::rendering::Rendering;
use super::views::{self, ContextLevel, TurnStatus};
use crate::config::{StatusPart, UiSettings};
use crate::conversation::event::{Reply, RunCompleted, RunStarted};
use crate::screen::ink::Line;

/// The person's settings for the screen.
#[derive(Debug, Clone)]
pub struct Manner {
    pub ui: UiSettings,
    pub rendering: Rendering,
    /// The part of the budget, 0 to 1, above which the conversation is compressed.
    pub compress_at: f64,
}

/// The facts for the status line, collected while a turn runs.
#[derive(Debug)]
pub(super) struct Footer {
    parts: Vec<StatusPart>,
    compress_at: f64,
    model: String,
    /// The replies are scripted and cost nothing.
    is_scripted: bool,
    /// The tokens that a request may hold.
    budget: u64,
    /// The tokens of the last request and its reply.
    used: Option<u64>,
}

impl Footer {
    pub fn new(parts: Vec<StatusPart>, compress_at: f64) -> Self {
        Self { parts, compress_at, model: String::new(), is_scripted: false, budget: 0, used: None }
    }

    /// Begins a run. Returns true if replies are scripted from this run on.
    pub fn begin(&mut self, run: &RunStarted) -> bool {
        self.model.clone_from(&run.model);
        self.budget = run.context.budget;
        !std::mem::replace(&mut self.is_scripted, run.scripted) && run.scripted
    }

    /// Takes the size of the context from a reply.
    pub fn hear(&mut self, reply: &Reply) {
        self.used = Some(reply.usage.total()).filter(|used| *used > 0);
    }

    /// Formats the line; `None` if all of its parts are empty.
    pub fn line(&self, run: &RunCompleted, room: usize) -> Option<Line> {
        let (budget, compress_at) = (self.budget, self.compress_at);
        let context = self.used.map(|used| ContextLevel { used, budget, compress_at });
        let status = TurnStatus { run, model: &self.model, is_scripted: self.is_scripted, context };
        Some(views::draw_status(&status, &self.parts, room)).filter(|line| *line != Line::new())
    }
}
