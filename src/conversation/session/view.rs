//! The view: the items of a conversation that are sent. It shows every item verbatim, except those that an edit
//! changed or removed. The log keeps the originals.
//!
//! Items are numbered in the order of recording. A summary has its own number and takes the place of the first item
//! that it replaces.

use serde::{Deserialize, Serialize};

use crate::conversation::message::{
    Call, CallAnswer, CallStatus, Item, ReplyPart, SkillText, Step, Summary, UserText,
};

/// Identifies the exact bytes of an item of the view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ItemId {
    /// The number of the item, from 1; the system prompt is 0.
    pub number: u64,
    /// The pass over the view that wrote it; 0 for an original.
    pub pass: u32,
}

/// A change of one item of the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewEdit {
    #[serde(rename = "n")]
    pub number: u64,
    #[serde(flatten)]
    pub change: ItemChange,
}

/// The change of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ItemChange {
    /// The item is no longer sent.
    Remove,
    /// Replaces a user's text, or the text of a reply.
    Text { text: String },
    /// Replaces the arguments of a call. They are JSON.
    Arguments { call: usize, arguments: String },
    /// Replaces the text of an answer; its pictures are no longer sent.
    Answer { call: usize, content: String },
    /// Replaces the instructions of a skill that came with a user's text by a stub.
    Unload { skill: String },
    /// Replaces a picture by a note at the end of the text that it belongs to: a user's, or the answer to a call.
    /// Pictures of one text are replaced from the last to the first.
    Picture { call: Option<usize>, picture: usize, note: String },
}

/// The items that are sent, with their ids.
#[derive(Debug, Clone, Default)]
pub struct SessionView {
    pub items: Vec<Item>,
    /// One id per item.
    pub ids: Vec<ItemId>,
    passes: u32,
}

impl SessionView {
    pub fn push(&mut self, number: u64, item: Item) {
        self.items.push(item);
        self.ids.push(ItemId { number, pass: 0 });
    }

    /// Removes the items from this number on.
    pub fn truncate(&mut self, from: u64) {
        let stays: Vec<bool> = self.ids.iter().map(|id| id.number < from).collect();
        let mut kept = stays.iter();
        self.items.retain(|_| kept.next() == Some(&true));
        self.ids.retain(|id| id.number < from);
    }

    /// The step with this number.
    pub fn step_mut(&mut self, number: u64) -> Option<&mut Step> {
        let at = self.ids.iter().rposition(|id| id.number == number)?;
        if let Item::Step(step) = &mut self.items[at] { Some(step) } else { None }
    }

    /// Applies edits to the view, and puts a summary in place of the first removed item. `kept` receives the
    /// original of each item before its first change. Edits of items that the view does not show do nothing.
    pub fn edit(&mut self, edits: &[ViewEdit], summary: Option<(u64, Summary)>, mut kept: impl FnMut(u64, &Item)) {
        self.passes += 1;
        let pass = self.passes;
        let mut summary = summary.map(|(number, summary)| (ItemId { number, pass }, Item::Summary(summary)));
        let old = std::mem::take(&mut self.ids).into_iter().zip(std::mem::take(&mut self.items));
        for (mut id, mut item) in old {
            let mut changes =
                edits.iter().filter(|edit| edit.number == id.number).map(|edit| &edit.change).peekable();
            if changes.peek().is_some() && id.pass == 0 {
                kept(id.number, &item);
            }
            let mut removed = false;
            for change in changes {
                id.pass = pass;
                removed |= !item.apply(change);
            }
            let next = if removed { summary.take() } else { Some((id, item)) };
            if let Some((id, item)) = next {
                self.ids.push(id);
                self.items.push(item);
            }
        }
        if let Some((id, item)) = summary {
            self.ids.insert(0, id);
            self.items.insert(0, item);
        }
        // The items before them have changed.
        self.items.iter_mut().for_each(Item::void_bound);
    }
}

impl Item {
    /// Drops what providers want back only while everything before it is as it was.
    fn void_bound(&mut self) {
        let Self::Step(step) = self else { return };
        for part in &mut step.parts {
            let (ReplyPart::Text { opaque, .. }
            | ReplyPart::Reasoning { opaque, .. }
            | ReplyPart::Call(Call { opaque, .. })) = part;
            *opaque = opaque.take().filter(|opaque| !opaque.bound);
        }
    }

    /// Applies a change; returns false if the item is no longer sent.
    pub fn apply(&mut self, change: &ItemChange) -> bool {
        match (self, change) {
            (_, ItemChange::Remove) => return false,
            (
                Self::Said(UserText { text: old, .. }) | Self::Summary(Summary { text: old, .. }),
                ItemChange::Text { text },
            ) => old.clone_from(text),
            (Self::Step(step), ItemChange::Text { text }) => step.set_text(text),
            (Self::Said(said), ItemChange::Unload { skill }) => {
                let held = said.skills.iter_mut().filter(|held| held.name == *skill);
                held.for_each(|held| held.text = SkillText::stub(skill));
            }
            (Self::Step(step), ItemChange::Arguments { call, arguments }) => {
                if let Some(call) = step.calls_mut().nth(*call) {
                    call.request.arguments.clone_from(arguments);
                }
            }
            (Self::Step(step), ItemChange::Answer { call, content }) => {
                if let Some(Call { answer, .. }) = step.calls_mut().nth(*call) {
                    let status = answer.as_ref().map_or(CallStatus::Cancelled, |answer| answer.status);
                    *answer = Some(CallAnswer { digested: true, ..CallAnswer::of_text(content.clone(), status) });
                }
            }
            (item, ItemChange::Picture { call, picture, note }) => item.replace_picture(*call, *picture, note),
            _ => {}
        }
        true
    }

    fn replace_picture(&mut self, call: Option<usize>, picture: usize, note: &str) {
        let place = match (self, call) {
            (Self::Said(UserText { text, images, .. }), None) => Some((text, images)),
            (Self::Step(step), Some(call)) => {
                let answer = step.calls_mut().nth(call).and_then(|call| call.answer.as_mut());
                answer.map(|answer| (&mut answer.content, &mut answer.images))
            }
            _ => None,
        };
        let Some((text, images)) = place.filter(|(_, images)| picture < images.len()) else { return };
        images.remove(picture);
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(note);
    }
}

impl Step {
    /// Replaces all text pieces by one. A piece's opaque provider data is removed with it.
    fn set_text(&mut self, text: &str) {
        let is_text = |part: &ReplyPart| matches!(part, ReplyPart::Text { .. });
        let Some(first) = self.parts.iter().position(is_text) else { return };
        self.parts[first] = ReplyPart::Text { text: text.to_owned(), opaque: None };
        let mut at = 0..;
        self.parts.retain(|part| at.next() == Some(first) || !is_text(part));
    }
}
