//! The conversation itself: its messages, and what they add up to.
//!
//! The system prompt is always the first message; a newer one takes its place. Every call is answered by exactly
//! one tool message that follows it.

use serde_json::{Map, Value};

use crate::event::CallTelemetry;
use crate::message::{AssistantMessage, Message, ToolCall, ToolMessage, Usage};

/// Messages and sums.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Who answers now.
    pub agent: String,
    pub model: String,
    pub messages: Vec<Message>,
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

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        match &message {
            Message::System { .. } => {
                match self.messages.first_mut() {
                    Some(first @ Message::System { .. }) => *first = message,
                    _ => self.messages.insert(0, message),
                }
                return;
            }
            Message::User { .. } => {}
            Message::Assistant(reply) => {
                self.steps += 1;
                self.usage += reply.usage;
                if let Some(cost) = reply.cost_usd {
                    *self.cost_usd.get_or_insert(0.0) += cost;
                }
            }
            Message::Tool(answer) => {
                self.calls += 1;
                let noted = self.noted.take().filter(|(id, _)| *id == answer.call_id);
                let unmeasured = || CallTelemetry::unmeasured(&answer.name, answer.status);
                self.costs.push(noted.map_or_else(unmeasured, |(_, cost)| cost));
            }
        }
        self.messages.push(message);
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
        let answered = self.messages.iter().rev().map_while(|message| match message {
            Message::Tool(answer) => Some(answer.call_id.as_str()),
            _ => None,
        });
        let answered: Vec<&str> = answered.collect();
        match self.messages.iter().nth_back(answered.len()) {
            Some(Message::Assistant(reply)) => unanswered(reply, &answered),
            _ => Vec::new(),
        }
    }

    /// Restores what a damaged log broke: answers to nothing are dropped, and calls that were never answered,
    /// though the conversation went on, are answered with `why`. Returns how many of each there were.
    pub fn repair(&mut self, why: &str) -> (usize, usize) {
        let (mut dropped, mut added) = (0, 0);
        let mut whole: Vec<Message> = Vec::with_capacity(self.messages.len());
        // The calls of the reply that is being answered, and their answers so far.
        let mut open: Vec<ToolCall> = Vec::new();
        for message in std::mem::take(&mut self.messages) {
            if let Message::Tool(answer) = &message {
                let Some(index) = open.iter().position(|call| call.id == answer.call_id) else {
                    dropped += 1;
                    continue;
                };
                open.remove(index);
            } else {
                added += open.len();
                whole.extend(open.drain(..).map(|call| cancelled(call, why)));
            }
            if let Message::Assistant(reply) = &message {
                open = unanswered(reply, &[]);
            }
            whole.push(message);
        }
        self.messages = whole;
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
