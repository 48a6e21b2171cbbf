//! Conversations that other programs recorded, as items of ours: what was said, what was called, and what came of it.
//! Pure. What such a file says of calls is only text: nothing runs, and no call is taken for one of ours.

mod forms;

use std::collections::HashMap;

use super::message::{Call, CallAnswer, CallStatus, FinishReason, Item, ReplyPart, Step, ToolCall, UserText};

use forms::ForeignPart;

/// A conversation from elsewhere.
#[derive(Debug, Default)]
pub struct Imported {
    /// The program, or the form: `Claude Code`.
    pub source: &'static str,
    /// The model that answered, if that is said.
    pub model: Option<String>,
    pub items: Vec<Item>,
    /// Calls without a result, and results without a call.
    pub loose: usize,
    /// Lines that cannot be read.
    pub damaged: usize,
}

/// Reads the conversation in a file: our own JSON, ATIF, the messages of chat completions, mini-swe-agent, Claude Code,
/// codex or pi.
///
/// # Errors
/// A sentence: it is none of these, or holds no message.
pub fn read_conversation(text: &str) -> Result<Imported, String> {
    let foreign = forms::read_parts(text)?;
    let mut reading = ItemReading::default();
    for part in foreign.parts {
        reading.take(part);
    }
    let mut imported = reading.end();
    if imported.items.is_empty() {
        return Err("it holds no message".to_owned());
    }
    (imported.source, imported.model, imported.damaged) = (foreign.source, foreign.model, foreign.damaged);
    Ok(imported)
}

/// Makes items of parts.
#[derive(Default)]
struct ItemReading {
    items: Vec<Item>,
    /// The reply that is not over.
    open: Vec<ReplyPart>,
    /// Where calls wait for their results: the item and the part of the last call with an id.
    places: HashMap<String, (usize, usize)>,
    /// Ids that are taken.
    ids: HashMap<String, usize>,
    loose: usize,
}

impl ItemReading {
    fn take(&mut self, part: ForeignPart) {
        match part {
            ForeignPart::Said(text) => {
                self.close_step();
                if !text.trim().is_empty() {
                    self.items.push(Item::Said(UserText::by_person(text)));
                }
            }
            ForeignPart::Text(text) if !text.is_empty() => {
                self.open.push(ReplyPart::Text { text, opaque: None });
            }
            ForeignPart::Thought(text) if !text.is_empty() => {
                // Thoughts after a call belong to the next reply.
                if self.open.iter().any(|part| matches!(part, ReplyPart::Call(_))) {
                    self.close_step();
                }
                self.open.push(ReplyPart::Reasoning { text, opaque: None });
            }
            ForeignPart::Text(_) | ForeignPart::Thought(_) => {}
            ForeignPart::Call { id, name, arguments } => {
                let count = self.ids.entry(id.clone()).and_modify(|count| *count += 1).or_insert(1);
                let own = if *count == 1 && !id.is_empty() { id.clone() } else { format!("{id}-{count}") };
                self.places.insert(id, (self.items.len(), self.open.len()));
                let request = ToolCall { id: own, name, arguments };
                self.open.push(ReplyPart::Call(Call { request, opaque: None, answer: None }));
            }
            ForeignPart::Result { id, text, status } => self.answer(&id, text, status),
        }
    }

    fn answer(&mut self, id: &str, text: String, status: CallStatus) {
        self.close_step();
        let place = self.places.remove(id);
        let step = place.and_then(|(item, part)| match self.items.get_mut(item)? {
            Item::Step(step) => step.parts.get_mut(part),
            _ => None,
        });
        match step {
            Some(ReplyPart::Call(call)) => call.answer = Some(CallAnswer::of_text(text, status)),
            _ => self.loose += 1,
        }
    }

    fn close_step(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let parts = std::mem::take(&mut self.open);
        let has_calls = parts.iter().any(|part| matches!(part, ReplyPart::Call(_)));
        let finish_reason = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        self.items.push(Item::Step(Step { parts, finish_reason, ..Step::default() }));
    }

    fn end(mut self) -> Imported {
        self.close_step();
        let loose = self.loose + self.places.len();
        Imported { items: self.items, loose, ..Imported::default() }
    }
}

#[cfg(test)]
mod tests;
