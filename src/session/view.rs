//! What of a conversation is sent: the view. It shows every message as it was said, save for those that an edit took
//! out or put another text in place of. The log keeps all of them, and so does memory, once each: what the view does
//! not show waits in `hidden` until the view is restored.
//!
//! Messages are numbered in the order in which they were recorded; the view is always in that order. A text that
//! stands for several messages takes the number of one of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Compressed;
use crate::message::Message;

/// Names the exact bytes of a message of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The number of the message, from 1 on; that of the system prompt is 0.
    pub number: u64,
    /// Which pass over the view wrote it; 0 for what was said.
    pub pass: u32,
}

/// Another text in the place of a message, or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    #[serde(rename = "n")]
    pub number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
}

/// Why a view was edited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditReason {
    Compressed(Compressed),
    /// Skills whose instructions were taken out.
    Unloaded(Vec<String>),
}

/// The messages that are sent, with their ids.
#[derive(Debug, Default)]
pub(super) struct View {
    pub messages: Vec<Message>,
    pub ids: Vec<MessageId>,
    /// What was said, by number, where the view shows something else or nothing.
    pub hidden: BTreeMap<u64, Message>,
    passes: u32,
}

impl View {
    pub fn push(&mut self, number: u64, message: Message) {
        self.messages.push(message);
        self.ids.push(MessageId { number, pass: 0 });
    }

    /// Gives the view its system prompt, in the place of the one before.
    pub fn set_system(&mut self, prompt: Message) {
        if let (Some(first @ Message::System { .. }), Some(id)) = (self.messages.first_mut(), self.ids.first_mut())
        {
            *first = prompt;
            self.passes += 1;
            id.pass = self.passes;
            return;
        }
        self.messages.insert(0, prompt);
        self.ids.insert(0, MessageId { number: 0, pass: 0 });
    }

    /// Lays edits over the view; those of messages that it does not show do nothing.
    pub fn edit(&mut self, edits: Vec<Edit>) {
        self.passes += 1;
        let mut edits: BTreeMap<u64, Option<Message>> =
            edits.into_iter().map(|edit| (edit.number, edit.message)).collect();
        let messages = std::mem::take(&mut self.messages);
        let ids = std::mem::take(&mut self.ids);
        for (id, message) in ids.into_iter().zip(messages) {
            let (id, shown) = match edits.remove(&id.number) {
                None => (id, Some(message)),
                Some(edited) => {
                    self.hidden.entry(id.number).or_insert(message);
                    (MessageId { pass: self.passes, ..id }, edited)
                }
            };
            if let Some(message) = shown {
                self.messages.push(message);
                self.ids.push(id);
            }
        }
    }

    /// Shows everything as it was said. Returns how many messages come back.
    pub fn restore(&mut self) -> usize {
        let restored = self.hidden.len();
        let mut all = std::mem::take(&mut self.hidden);
        let mut system = None;
        let messages = std::mem::take(&mut self.messages);
        for (id, message) in std::mem::take(&mut self.ids).into_iter().zip(messages) {
            match id.number {
                0 => system = Some((id, message)),
                number => _ = all.entry(number).or_insert(message),
            }
        }
        if let Some((id, message)) = system {
            self.messages.push(message);
            self.ids.push(id);
        }
        for (number, message) in all {
            self.push(number, message);
        }
        restored
    }

    /// Everything that was said, in order, the system prompt left out.
    pub fn said(&self) -> impl Iterator<Item = &Message> {
        let shown = self.ids.iter().zip(&self.messages).filter(|(id, _)| id.number > 0);
        let mut all: BTreeMap<u64, Vec<&Message>> = BTreeMap::new();
        for (id, message) in shown.filter(|(id, _)| !self.hidden.contains_key(&id.number)) {
            all.entry(id.number).or_default().push(message);
        }
        for (number, message) in &self.hidden {
            all.insert(*number, vec![message]);
        }
        all.into_values().flatten()
    }
}
