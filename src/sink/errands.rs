//! What happens in helpers: one line for each of their calls, and what is wrong with them. Their words are for the agent
//! that called them.

use std::collections::HashMap;

use super::line;
use super::look::Verbosity;
use crate::event::{Event, EventKind};
use crate::ink::{Ink, Style};
use crate::text;

/// The running calls of helpers: what each is about, by helper and call.
#[derive(Debug, Default)]
pub(super) struct Errands(HashMap<(String, String), String>);

impl Errands {
    /// The line for an event of a helper, if it has one.
    pub fn line(&mut self, event: &Event, verbosity: Verbosity, room: usize) -> Option<(Ink, String)> {
        let whose = event.path.join(" › ");
        match &event.kind {
            EventKind::ToolStarted { call_id, subject, .. } => {
                self.0.insert((whose, call_id.clone()), subject.clone());
                None
            }
            EventKind::ToolFinished { call_id, name, status, summary, telemetry, .. } => {
                let subject = self.0.remove(&(whose.clone(), call_id.clone())).unwrap_or_default();
                let room = room.saturating_sub(text::columns(&whose) + 3);
                let outcome = summary.lines().next().unwrap_or_default();
                let line = line::finished(name, &subject, *status, outcome, telemetry, room, Style::default());
                (verbosity > Verbosity::Quiet).then(|| (Ink::Dim, format!("  {whose} {line}")))
            }
            EventKind::Warning { message } => {
                let message = text::one_line(message, usize::MAX / 8);
                Some((Ink::Yellow, format!("warning: {whose}: {message}")))
            }
            _ => None,
        }
    }
}
