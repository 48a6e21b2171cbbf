//! The items of a response while they arrive, and their identification.

use serde_json::Value;

use super::super::assembly::PartKey;
use super::super::history::is_word;

/// The kinds of items that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Text,
    Reasoning,
    Call,
}

impl ItemKind {
    /// `None` for all others: searches, compactions, unknown kinds.
    pub fn from_item(item: &Value) -> Option<Self> {
        match read_string(item, "type") {
            "message" => Some(Self::Text),
            "reasoning" => Some(Self::Reasoning),
            "function_call" | "custom_tool_call" => Some(Self::Call),
            "" => item.get("role").map(|_| Self::Text),
            _ => None,
        }
    }
}

/// An item of the response.
#[derive(Debug)]
pub(super) struct OutputItem {
    pub kind: ItemKind,
    /// Its place in the output.
    pub index: Option<u64>,
    id: String,
    /// Of a call.
    call_id: String,
    /// Its part of the reply.
    pub key: PartKey,
    /// True if its last form has come and is not marked as cut.
    pub done: bool,
    /// The paragraph break, in bytes, that sets its text off from that of an earlier item.
    pub lead: usize,
    /// Of reasoning: the section that came last.
    pub section: Option<u64>,
    /// Of reasoning: another section has begun.
    pub new_section: bool,
    /// Of reasoning: it came in encrypted form.
    pub encrypted: bool,
}

/// The ids of an item; empty if there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemIds<'a> {
    pub id: &'a str,
    /// Of a call.
    pub call_id: &'a str,
}

impl<'a> ItemIds<'a> {
    pub fn from_item(item: &'a Value) -> Self {
        Self { id: read_string(item, "id"), call_id: read_string(item, "call_id") }
    }
}

impl OutputItem {
    pub fn new(kind: ItemKind, index: Option<u64>, ids: ItemIds<'_>, key: PartKey) -> Self {
        Self {
            kind,
            index,
            id: ids.id.to_owned(),
            call_id: ids.call_id.to_owned(),
            key,
            done: false,
            lead: 0,
            section: None,
            new_section: false,
            encrypted: false,
        }
    }

    /// True if the ids say that this is the item.
    pub fn is(&self, ids: ItemIds<'_>) -> bool {
        let same = |own: &str, other: &str| !own.is_empty() && own == other;
        same(&self.call_id, ids.call_id) || (self.may_become(ids) && same(&self.id, ids.id))
    }

    /// True if the ids do not contradict it.
    pub fn may_be(&self, ids: ItemIds<'_>) -> bool {
        let is_call = !self.call_id.is_empty() && !ids.call_id.is_empty();
        self.may_become(ids) && (is_call || self.id.is_empty() || ids.id.is_empty() || self.id == ids.id)
    }

    /// True if the ids do not contradict it; that of an item may have changed, but not that of a call.
    pub fn may_become(&self, ids: ItemIds<'_>) -> bool {
        self.call_id.is_empty() || ids.call_id.is_empty() || self.call_id == ids.call_id
    }
}

/// True if an id is within the limits of an item's.
pub(super) fn is_id(id: &str) -> bool {
    is_word(id, 64)
}

/// True if servers accept an id as that of a call's item.
pub(super) fn is_call_id(id: &str) -> bool {
    is_id(id) && id.starts_with("fc_")
}

/// A field that is a text; empty if it is missing or something else.
pub(super) fn read_string<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}
