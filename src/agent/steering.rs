//! What a person says while a turn runs: it enters the conversation before the next request that can follow it.
//!
//! In the loop that asks and runs calls, that is the next request. A plan hears it when its planner or its reflector is
//! asked next, the router before it chooses. A closing answer cannot follow new directions any more, and a flow is fixed:
//! what is said then is left for the caller, who sends it as the next message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::message::Said;

use super::turn::{Stop, Turn};

/// The way into a running turn. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Steering(Arc<Mutex<VecDeque<String>>>);

impl Steering {
    /// Says `text` to the turn that runs, unless it is blank. The `message` event tells that the turn took it.
    pub fn push(&self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.waiting().push_back(text);
        }
    }

    /// Takes back what no turn has taken, oldest first.
    #[must_use]
    pub fn take_rest(&self) -> Vec<String> {
        self.waiting().drain(..).collect()
    }

    fn next(&self) -> Option<String> {
        self.waiting().pop_front()
    }

    fn give_back(&self, text: String) {
        self.waiting().push_front(text);
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().expect("no holder panics")
    }
}

impl Turn<'_> {
    /// Takes what the person has said meanwhile into the conversation, and returns it. What is too large for the window
    /// stays where it is, with all that was said after it: as a message of its own it is refused with the reason.
    pub(super) fn heed(&mut self) -> Result<Vec<String>, Stop> {
        let mut heard = Vec::new();
        while let Some(text) = self.run.steering.next() {
            let said = Said::by_person(self.agent.redactor.redact_known(&text));
            if self.too_large(&[], &said).is_some() {
                self.run.steering.give_back(text);
                break;
            }
            heard.push(said.text.clone());
            let note = self.agent.before_input().filter(|_| self.is_exploring);
            if let Err(stop) = note.into_iter().chain([said]).try_for_each(|said| self.say(said)) {
                self.run.steering.give_back(text);
                return Err(stop);
            }
        }
        Ok(heard)
    }

    /// Takes what the person has said meanwhile into the conversation, and adds it to the request that roles read.
    pub(super) fn heed_in(&mut self, request: &mut String) -> Result<(), Stop> {
        for words in self.heed()? {
            *request = format!("{request}\n\n{words}");
        }
        Ok(())
    }
}
