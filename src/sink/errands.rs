//! What happens in helpers: one line for each of their calls, and what is wrong with them. Their words are for the agent
//! that called them.

use std::collections::HashMap;

use super::line;
use super::style::{Ink, Style};
use crate::event::EventKind;
use crate::text;

/// The running calls of helpers: what each is about, by helper and call.
#[derive(Debug, Default)]
pub(super) struct Errands(HashMap<(String, String), String>);

impl Errands {
    /// The line for an event of the helper at `path`, if it has one.
    pub fn line(&mut self, path: &[String], kind: &EventKind, quiet: bool, room: usize) -> Option<(Ink, String)> {
        let whose = path.join(" › ");
        match kind {
            EventKind::ToolStarted { call_id, subject, .. } => {
                self.0.insert((whose, call_id.clone()), subject.clone());
                None
            }
            EventKind::ToolFinished { call_id, name, status, summary, telemetry, .. } => {
                let subject = self.0.remove(&(whose.clone(), call_id.clone())).unwrap_or_default();
                let room = room.saturating_sub(text::columns(&whose) + 3);
                let outcome = summary.lines().next().unwrap_or_default();
                let line = line::finished(name, &subject, *status, outcome, telemetry, room, Style::default());
                (!quiet).then(|| (Ink::Dim, format!("  {whose} {line}")))
            }
            EventKind::Warning { message } => {
                let message = text::one_line(message, usize::MAX / 8);
                Some((Ink::Yellow, format!("warning: {whose}: {message}")))
            }
            _ => None,
        }
    }
}
