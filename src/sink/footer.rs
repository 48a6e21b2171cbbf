//! The line under a turn: what answered, what it cost, how full the context is.

use super::rendering::Rendering;
use super::views::{self, Context, Status};
use crate::config::{StatusPart, UiSettings};
use crate::event::{Reply, RunCompleted, RunStarted};
use crate::ink::Line;

/// The person's choices, as far as the screen follows them.
#[derive(Debug, Clone)]
pub struct Manner {
    pub ui: UiSettings,
    pub rendering: Rendering,
    /// The part of the budget from which on the conversation is compressed, 0 to 1.
    pub compress_at: f64,
}

/// The facts of the line, gathered while a turn runs.
#[derive(Debug)]
pub(super) struct Footer {
    parts: Vec<StatusPart>,
    compress_at: f64,
    model: String,
    /// A script writes the replies, which cost nothing.
    is_scripted: bool,
    /// The tokens that a request may hold, and those of the last one with its reply.
    budget: u64,
    used: Option<u64>,
}

impl Footer {
    pub fn new(parts: Vec<StatusPart>, compress_at: f64) -> Self {
        Self { parts, compress_at, model: String::new(), is_scripted: false, budget: 0, used: None }
    }

    /// Begins a run. True if a script begins to write the replies.
    pub fn begin(&mut self, run: &RunStarted) -> bool {
        self.model.clone_from(&run.model);
        self.budget = run.context.budget;
        !std::mem::replace(&mut self.is_scripted, run.scripted) && run.scripted
    }

    /// Counts a reply.
    pub fn hear(&mut self, reply: &Reply) {
        self.used = Some(reply.usage.total()).filter(|used| *used > 0);
    }

    /// The line; `None` where none of its parts says anything.
    pub fn line(&self, run: &RunCompleted, room: usize) -> Option<Line> {
        let (budget, compress_at) = (self.budget, self.compress_at);
        let context = self.used.map(|used| Context { used, budget, compress_at });
        let status = Status { model: &self.model, context, ..Status::of(run, self.is_scripted) };
        Some(views::status(&status, &self.parts, room)).filter(|line| *line != Line::new())
    }
}
