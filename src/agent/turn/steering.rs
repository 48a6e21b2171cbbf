//! Steering: messages that a person sends during a turn enter the conversation before the next request that can use
//! them.
//!
//! In the loop that asks and runs calls, that is the next request. A plan takes them when its planner or its reflector
//! is asked next, a router before it chooses. A closing answer cannot follow new directions, and a flow is fixed:
//! messages sent then are left for the caller, who sends them as the next message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::conversation::message::UserText;

use super::{Turn, TurnStop};

/// The way into a running turn. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Steering(Arc<Mutex<VecDeque<String>>>);

impl Steering {
    /// Sends `text` to the running turn, unless it is blank. The `message` event reports that the turn took it.
    pub fn push(&self, text: impl Into<String>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.lock_waiting().push_back(text);
        }
    }

    /// Takes back the messages that no turn has taken, oldest first.
    pub fn take_rest(&self) -> Vec<String> {
        self.lock_waiting().drain(..).collect()
    }

    fn next(&self) -> Option<String> {
        self.lock_waiting().pop_front()
    }

    fn give_back(&self, text: String) {
        self.lock_waiting().push_front(text);
    }

    fn lock_waiting(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().expect("no holder panics")
    }
}

impl Turn<'_> {
    /// Takes the person's messages into the conversation, and returns them. A message that is too large for the window
    /// stays in the queue, with all later ones: sent as a separate message, it is refused with the reason.
    pub(in crate::agent) fn heed(&mut self) -> Result<Vec<String>, TurnStop> {
        let mut heard = Vec::new();
        while let Some(text) = self.run.steering.next() {
            let said = UserText::by_person(self.agent.redactor.redact_known(&text));
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

    /// Takes the person's messages into the conversation, and adds them to the request that roles read.
    pub(in crate::agent) fn heed_in(&mut self, request: &mut String) -> Result<(), TurnStop> {
        for words in self.heed()? {
            *request = format!("{request}\n\n{words}");
        }
        Ok(())
    }
}
