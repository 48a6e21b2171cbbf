//! What the log knows of a flow that was interrupted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::conversation::event::plan::{PlanEvent, StepFinished, StepStarted, StepStatus};

/// The steps of a flow that is interrupted, by their names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowMemory {
    /// The results of those that are done.
    pub done: BTreeMap<String, Value>,
    /// Those that were running: they may have had effects.
    pub in_doubt: BTreeSet<String>,
    /// True until the plan that was being carried out has gone on.
    pub has_plan: bool,
}

impl FlowMemory {
    /// The inputs and the steps of the flow that the events end with, if it is this one, the files of all flows are the
    /// same, and it is not over.
    pub fn replay(happened: &[PlanEvent], name: &str, now: &str) -> Option<(Value, Self)> {
        let Some(PlanEvent::Begun { flow, digest, inputs }) = happened.first() else { return None };
        if flow != name || digest != now || matches!(happened.last(), Some(PlanEvent::Closed { .. })) {
            return None;
        }
        let mut memory = Self { has_plan: true, ..Self::default() };
        for one in happened {
            match one {
                PlanEvent::Started(StepStarted { name: Some(name), .. }) => {
                    memory.in_doubt.insert(name.clone());
                }
                PlanEvent::Finished(StepFinished { name: Some(name), status, result, .. }) => {
                    memory.in_doubt.remove(name);
                    if *status == StepStatus::Ok {
                        memory.done.insert(name.clone(), result.clone());
                    }
                }
                _ => {}
            }
        }
        Some((inputs.clone(), memory))
    }
}
