//! Shows helpers: one line for each of their calls, and their warnings. Their answers go only to the agent that called
//! them.

use std::collections::HashMap;

use super::look::Verbosity;
use super::views::{Ended, draw_errand, draw_warning};
use crate::conversation::event::{Event, EventKind};
use crate::screen::ink::Line;

/// The running calls of helpers: the subject of each, by helper and call.
#[derive(Debug, Default)]
pub(super) struct Errands(HashMap<(String, String), String>);

impl Errands {
    /// Returns the line for an event of a helper, if it has one.
    pub fn line(&mut self, event: &Event, verbosity: Verbosity, room: usize) -> Option<Line> {
        let whose = event.path.join(" › ");
        match &event.kind {
            EventKind::ToolStarted { call_id, subject, .. } => {
                self.0.insert((whose, call_id.clone()), subject.clone());
                None
            }
            EventKind::ToolFinished { call_id, name, status, summary, telemetry, .. } => {
                let subject = &self.0.remove(&(whose.clone(), call_id.clone())).unwrap_or_default();
                let call = Ended { name, subject, status: *status, summary, telemetry };
                (verbosity > Verbosity::Quiet).then(|| draw_errand(&whose, &call, room))
            }
            EventKind::Warning { message } => Some(draw_warning(&whose, message)),
            _ => None,
        }
    }
}
