//! The conversation itself: its messages, and what they add up to.
//!
//! The system prompt is always the first message; a newer one takes its place. Every call is answered by exactly
//! one tool message that follows it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::event::CallTelemetry;
use crate::message::{AssistantMessage, Message, ToolCall, ToolMessage, Usage};

use super::view::{Edit, EditReason, View};

/// Messages and sums.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Who answers now.
    pub agent: String,
    pub model: String,
    pub view: View,
    /// The number of the last message.
    pub last: u64,
    /// The numbers of the messages that no compression touches.
    pub pinned: BTreeSet<u64>,
    /// What a request may hold at most since a server refused a longer one.
    pub learned_budget: Option<u64>,
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub turns: u64,
    pub steps: u64,
    pub calls: u64,
    /// One for each of them, in the order of their answers.
    pub costs: Vec<CallTelemetry>,
    /// What the call cost whose answer comes next, by its id.
    noted: Option<(String, CallTelemetry)>,
    /// What tools keep beside the messages.
    pub state: Map<String, Value>,
    /// What came in from outside first, if anything did.
    pub taint: Option<String>,
}

impl Conversation {
    pub fn new(agent: &str, model: &str) -> Self {
        Self { agent: agent.to_owned(), model: model.to_owned(), ..Self::default() }
    }

    /// Adds a message. One that has no number yet gets the next one.
    pub fn push(&mut self, message: Message, number: Option<u64>) {
        match &message {
            Message::System { .. } => {
                self.view.set_system(message);
                return;
            }
            Message::User { .. } => {}
            Message::Assistant(reply) => {
                self.steps += 1;
                self.spend(reply.usage, reply.cost_usd);
            }
            Message::Tool(answer) => {
                self.calls += 1;
                let noted = self.noted.take().filter(|(id, _)| *id == answer.call_id);
                let unmeasured = || CallTelemetry::unmeasured(&answer.name, answer.status);
                self.costs.push(noted.map_or_else(unmeasured, |(_, cost)| cost));
            }
        }
        self.last = number.map_or(self.last + 1, |number| number.max(self.last));
        self.view.push(self.last, message);
    }

    /// Changes what is sent.
    pub fn edit(&mut self, reason: &EditReason, edits: Vec<Edit>) {
        if let EditReason::Compressed(compressed) = reason {
            self.spend(compressed.usage, compressed.cost_usd);
        }
        self.view.edit(edits);
    }

    /// Another agent or model answers from here on.
    pub fn switch(&mut self, agent: &str, model: &str) {
        agent.clone_into(&mut self.agent);
        model.clone_into(&mut self.model);
        self.learned_budget = None;
    }

    fn spend(&mut self, usage: Usage, cost_usd: Option<f64>) {
        self.usage += usage;
        if let Some(cost) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }

    /// What a call cost; its answer comes next.
    pub fn note(&mut self, call_id: &str, cost: CallTelemetry) {
        self.noted = Some((call_id.to_owned(), cost));
    }

    /// Lays changes over the state; `null` takes a key out.
    pub fn update(&mut self, changes: Map<String, Value>) {
        for (key, value) in changes {
            if value.is_null() {
                self.state.shift_remove(&key);
            } else {
                self.state.insert(key, value);
            }
        }
    }

    /// The calls of the last reply that nothing has answered.
    pub fn open_calls(&self) -> Vec<ToolCall> {
        let answered = self.view.messages.iter().rev().map_while(|message| match message {
            Message::Tool(answer) => Some(answer.call_id.as_str()),
            _ => None,
        });
        let answered: Vec<&str> = answered.collect();
        match self.view.messages.iter().nth_back(answered.len()) {
            Some(Message::Assistant(reply)) => unanswered(reply, &answered),
            _ => Vec::new(),
        }
    }

    /// Restores what a damaged log broke: answers to nothing are dropped, and calls that were never answered,
    /// though the conversation went on, are answered with `why`. Returns how many of each there were.
    pub fn repair(&mut self, why: &str) -> (usize, usize) {
        let (mut dropped, mut added) = (0, 0);
        let messages = std::mem::take(&mut self.view.messages);
        let ids = std::mem::take(&mut self.view.ids);
        // The calls of the reply that is being answered, and their answers so far.
        let mut open: Vec<ToolCall> = Vec::new();
        for (id, message) in ids.into_iter().zip(messages) {
            if let Message::Tool(answer) = &message {
                let Some(index) = open.iter().position(|call| call.id == answer.call_id) else {
                    dropped += 1;
                    continue;
                };
                open.remove(index);
            } else {
                added += open.len();
                let before = self.view.ids.last().copied().unwrap_or(id);
                for call in open.drain(..) {
                    self.view.messages.push(cancelled(call, why));
                    self.view.ids.push(before);
                }
            }
            if let Message::Assistant(reply) = &message {
                open = unanswered(reply, &[]);
            }
            self.view.messages.push(message);
            self.view.ids.push(id);
        }
        (dropped, added)
    }
}

/// The answer to a call that did not run to its end.
pub(super) fn cancelled(call: ToolCall, why: &str) -> Message {
    let status = crate::message::CallStatus::Cancelled;
    let images = Vec::new();
    Message::Tool(ToolMessage { call_id: call.id, name: call.name, content: why.to_owned(), status, images })
}

fn unanswered(reply: &AssistantMessage, answered: &[&str]) -> Vec<ToolCall> {
    reply.tool_calls.iter().filter(|call| !answered.contains(&call.id.as_str())).cloned().collect()
}
