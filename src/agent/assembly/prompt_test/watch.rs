//! An event sink that collects what assertions need: calls and loaded skills.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::conversation::EventSink;
use crate::conversation::event::{Event, EventKind};
use crate::conversation::message::CallStatus;
use crate::prompt::test::RunCall;

/// Calls and skills so far. Clones share them.
#[derive(Clone, Default)]
pub(super) struct CallWatch(Arc<Mutex<Noted>>);

#[derive(Default)]
pub(super) struct Noted {
    /// The calls in the order in which they began.
    calls: Vec<(String, RunCall)>,
    pub skills: Vec<String>,
}

impl CallWatch {
    /// Takes everything seen so far.
    pub fn take(&self) -> Noted {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Noted {
    pub fn calls(self) -> Vec<RunCall> {
        self.calls.into_iter().map(|(_, call)| call).collect()
    }
}

impl EventSink for CallWatch {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.kind {
            EventKind::ToolStarted { call_id, name, arguments, .. } => {
                let call = RunCall { name: name.clone(), arguments: arguments.clone(), ok: false };
                noted.calls.push((call_id.clone(), call));
            }
            EventKind::ToolFinished { call_id, status, .. } => {
                if let Some((_, call)) = noted.calls.iter_mut().rfind(|(id, _)| id == call_id) {
                    call.ok = *status == CallStatus::Ok;
                }
            }
            EventKind::SkillLoaded { name, .. } if !noted.skills.contains(name) => noted.skills.push(name.clone()),
            _ => {}
        }
        Ok(())
    }
}
