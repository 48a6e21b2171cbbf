//! Reads the events of a stream, or one whole response, into a reply.
//!
//! An item of the response becomes a part of the reply. Items are told apart by their place in the output
//! (`output_index`) and never by `item_id`, which some hosts change from event to event. The last form of an item
//! decides: that of `response.output_item.done`, else that in the output of the whole response, which some hosts leave
//! empty and others fill only there. Only a whole response ends a reply.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::assembly::{Assembly, Broken, PartKey};
use super::super::decode::{Decode, Misread};
use super::super::errors::StatedError;
use super::super::lenient::read_json;
use super::super::{bounds, usage};
use super::event::{self, Event, PARAGRAPH};
use super::output::{ItemIds, ItemKind, OutputItem, is_call_id, is_id, read_string};
use crate::conversation::message::FinishReason;

/// The most items of a response. Far fewer contain anything.
const MOST_ITEMS: usize = 4096;

/// Reads a reply of the Responses wire.
#[derive(Debug, Default)]
pub struct ResponsesDecoder {
    items: Vec<OutputItem>,
    /// The bytes of all items that came in their last form.
    size: usize,
    /// The ids of the server's own searches.
    searches: Vec<String>,
}

impl Decode for ResponsesDecoder {
    /// Only a dedicated event ends a reply; some hosts send `[DONE]` as well.
    fn ends_with_done(&self) -> bool {
        false
    }

    fn event(&mut self, name: &[u8], data: &[u8], reply: &mut Assembly) -> Result<(), Misread> {
        if reply.is_done() {
            return Ok(());
        }
        if name == b"error" {
            return Err(Broken::Error(read_error(data)).into());
        }
        let event = read_json::<Event<'_>>(data)?;
        let name = std::str::from_utf8(name).unwrap_or_default();
        let kind = if event.kind.as_str().is_empty() { name } else { event.kind.as_str() };
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => self.say(ItemKind::Text, &event, reply)?,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.say(ItemKind::Reasoning, &event, reply)?;
            }
            "response.reasoning_summary_part.added" => {
                let ids = ItemIds { id: event.item_id.as_str(), call_id: "" };
                if let Some(at) = self.find(ItemKind::Reasoning, event.output_index.0, ids) {
                    self.items[at].new_section = true;
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.say(ItemKind::Call, &event, reply)?;
            }
            "response.function_call_arguments.done" => self.set_arguments(&event, event.arguments.as_str(), reply),
            "response.custom_tool_call_input.done" => self.set_arguments(&event, event.input.as_str(), reply),
            "response.output_item.added" => {
                self.begin_item(event.output_index.0, &read_part(event.item)?, reply)?;
            }
            "response.output_item.done" => {
                let item = read_part(event.item)?;
                self.size += event.item.map_or(0, |item| item.get().len());
                bounds::check_size(self.size, 0).map_err(Broken::TooLarge)?;
                self.finish_item(event.output_index.0, item, reply)?;
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let status = kind.trim_start_matches("response.");
                self.end(status, read_part(event.response)?, reply)?;
            }
            "error" | "response.error" => return Err(Broken::Error(read_error(data)).into()),
            known if known.starts_with("response.") => {}
            // Gateways send errors as bare objects.
            unknown if unknown.is_empty() || event.error.is_some() => Broken::check_error(data)?,
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &[u8], reply: &mut Assembly) -> Result<bool, Misread> {
        let response: Value = serde_json::from_slice(body)?;
        let status = response.get("status").and_then(Value::as_str).unwrap_or("completed");
        let is_response = response.get("object").and_then(Value::as_str) == Some("response")
            || response.get("output").is_some_and(Value::is_array);
        if is_response && ENDS.contains(&status) {
            let status = status.to_owned();
            self.end(&status, response, reply)?;
            return Ok(true);
        }
        Broken::check_error(body)?;
        Ok(false)
    }
}

/// The states in which a response ends.
const ENDS: [&str; 4] = ["completed", "incomplete", "failed", "cancelled"];

impl ResponsesDecoder {
    /// Adds the delta of an event to its item, which begins here if the server did not announce it.
    fn say(&mut self, kind: ItemKind, event: &Event<'_>, reply: &mut Assembly) -> Result<(), Broken> {
        if event.delta.as_str().is_empty() {
            return Ok(());
        }
        let (index, ids) = (event.output_index.0, ItemIds { id: event.item_id.as_str(), call_id: "" });
        let at = match self.find(kind, index, ids) {
            Some(at) => at,
            None => self.open(kind, index, ids, "", reply)?,
        };
        let item = &mut self.items[at];
        // The last form of the item was complete.
        if item.done {
            return Ok(());
        }
        if kind == ItemKind::Reasoning {
            let section = event.summary_index.0.or(event.content_index.0);
            let begins = std::mem::take(&mut item.new_section) || (section.is_some() && section != item.section);
            item.section = section.or(item.section);
            if begins && !reply.text_of(item.key).is_empty() {
                reply.push(item.key, PARAGRAPH);
            }
        }
        self.push(at, event.delta.as_str(), reply);
        Ok(())
    }

    /// Takes the whole arguments of a call before the item comes in its last form.
    fn set_arguments(&self, event: &Event<'_>, arguments: &str, reply: &mut Assembly) {
        let ids = ItemIds { id: event.item_id.as_str(), call_id: "" };
        if let Some(at) = self.find(ItemKind::Call, event.output_index.0, ids)
            && !self.items[at].done
            && !arguments.is_empty()
        {
            reply.set_arguments(self.items[at].key, arguments);
        }
    }

    /// Begins an item, unless it began already.
    fn begin_item(&mut self, index: Option<u64>, item: &Value, reply: &mut Assembly) -> Result<(), Broken> {
        let Some(kind) = ItemKind::from_item(item) else { return Ok(()) };
        let ids = ItemIds::from_item(item);
        match self.find(kind, index, ids) {
            Some(at) if self.items[at].may_be(ids) => {}
            _ => {
                self.open(kind, index, ids, read_string(item, "name"), reply)?;
            }
        }
        Ok(())
    }

    /// Takes the last form of an item.
    fn finish_item(&mut self, index: Option<u64>, item: Value, reply: &mut Assembly) -> Result<(), Broken> {
        let Some(item) = self.take_search(item, reply) else { return Ok(()) };
        let Some(kind) = ItemKind::from_item(&item) else { return Ok(()) };
        let ids = ItemIds::from_item(&item);
        let at = match self.find(kind, index, ids).map(|at| (at, &self.items[at])) {
            // The same again.
            Some((_, begun)) if begun.done && begun.may_be(ids) => return Ok(()),
            // The id of an item may have changed since it began, but never that of a call.
            Some((at, begun)) if !begun.done && begun.may_become(ids) => at,
            _ => self.open(kind, index, ids, read_string(&item, "name"), reply)?,
        };
        self.settle(at, item, reply);
        Ok(())
    }

    /// Keeps a search of the server, which wants it back with the reasoning before it. Returns any other item.
    fn take_search(&mut self, item: Value, reply: &mut Assembly) -> Option<Value> {
        let (id, action) = (read_string(&item, "id").to_owned(), &item["action"]);
        if read_string(&item, "type") != "web_search_call" {
            return Some(item);
        }
        if !self.searches.contains(&id) {
            let query = ["query", "url"].iter().find_map(|key| action[key].as_str()).unwrap_or("something");
            reply.searched(query, &[]);
            let key = reply.open_reasoning();
            reply.keep(key, item, false);
            self.searches.push(id);
        }
        None
    }

    /// Ends the reply with the whole response.
    fn end(&mut self, status: &str, mut response: Value, reply: &mut Assembly) -> Result<(), Broken> {
        let stated = Some(read_string(&response, "status")).filter(|stated| ENDS.contains(stated));
        let status = stated.unwrap_or(status).to_owned();
        if let Some(report) = response.get("usage") {
            usage::enter_report(report, false, reply);
        }
        if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
            return Err(Broken::Error(read_error(json!({"error": error}).to_string().as_bytes())));
        }
        if matches!(&*status, "failed" | "cancelled") {
            let message = format!("the server gave up without a word (status `{status}`)");
            return Err(Broken::Error(StatedError { message, ..StatedError::default() }));
        }
        let output = match response.get_mut("output").map(Value::take) {
            Some(Value::Array(output)) => output,
            _ => Vec::new(),
        };
        let cut = status == "incomplete";
        self.compare(output, cut, reply)?;
        if cut {
            // A call that was cut is left out: half of its arguments may mean something other than the whole.
            let open = self.items.iter().filter(|item| item.kind == ItemKind::Call && !item.done);
            open.for_each(|item| reply.leave_out(item.key));
        }
        let why = response.get("incomplete_details").map_or("", |details| read_string(details, "reason"));
        reply.finish(match why {
            _ if !cut => FinishReason::Stop,
            "content_filter" => FinishReason::ContentFilter,
            _ => FinishReason::Length,
        });
        if let Some(words) = event::removed_reasoning(&response) {
            reply.notice(words);
        }
        reply.mark_complete();
        Ok(())
    }

    /// Compares the output of the whole response with the items that came, and takes what is new in it.
    fn compare(&mut self, output: Vec<Value>, cut: bool, reply: &mut Assembly) -> Result<(), Broken> {
        let came = self.items.len();
        let mut pairs: Vec<Option<usize>> = vec![None; output.len()];
        // By their ids, and the rest by their order, as ids may have changed.
        for same in [OutputItem::is, OutputItem::may_become] {
            for (n, item) in output.iter().enumerate().filter(|(_, item)| ItemKind::from_item(item).is_some()) {
                let fits = |at: &usize| {
                    let other = &self.items[*at];
                    Some(other.kind) == ItemKind::from_item(item)
                        && same(other, ItemIds::from_item(item))
                        && !pairs.contains(&Some(*at))
                };
                if pairs[n].is_none() {
                    pairs[n] = (0..came).find(fits);
                }
            }
        }
        for (item, pair) in output.into_iter().zip(pairs) {
            let Some(item) = self.take_search(item, reply) else { continue };
            let Some(kind) = ItemKind::from_item(&item) else { continue };
            // Items that a cut response still calls in progress will not be finished.
            if cut && read_string(&item, "status") == "in_progress" {
                continue;
            }
            match pair {
                None => {
                    let at =
                        self.open(kind, None, ItemIds::from_item(&item), read_string(&item, "name"), reply)?;
                    self.settle(at, item, reply);
                }
                Some(at) if !self.items[at].done => self.settle(at, item, reply),
                // Azure encrypts reasoning only here.
                Some(at) if kind == ItemKind::Reasoning && !self.items[at].encrypted => {
                    self.keep_reasoning(at, item, reply);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Takes an item in its last form. If text has come piece by piece, only what is missing is added.
    fn settle(&mut self, at: usize, item: Value, reply: &mut Assembly) {
        let is_whole = read_string(&item, "status") != "incomplete";
        let OutputItem { kind, key, lead, .. } = self.items[at];
        match kind {
            ItemKind::Text | ItemKind::Reasoning => {
                let whole = if kind == ItemKind::Text {
                    event::read_item_text(&item)
                } else {
                    event::read_reasoning(&item)
                };
                let missing = whole.strip_prefix(&reply.text_of(key)[lead..]).unwrap_or_default();
                self.push(at, missing, reply);
                if kind == ItemKind::Reasoning && is_whole {
                    self.keep_reasoning(at, item, reply);
                } else if kind == ItemKind::Text && !reply.text_of(key).is_empty() {
                    let id = Some(read_string(&item, "id")).filter(|id| is_id(id)).unwrap_or_default();
                    keep_fields(key, &[("id", id), ("phase", read_string(&item, "phase"))], reply);
                }
            }
            ItemKind::Call => {
                let [call_id, id, name] = ["call_id", "id", "name"].map(|field| read_string(&item, field));
                reply.set_id(key, if call_id.is_empty() { id } else { call_id });
                reply.set_name(key, name);
                match item.get("arguments").or(item.get("input")) {
                    Some(Value::String(arguments)) if !arguments.is_empty() => reply.set_arguments(key, arguments),
                    Some(arguments @ Value::Object(_)) => reply.set_arguments(key, &arguments.to_string()),
                    _ => {}
                }
                let id = Some(id).filter(|id| is_call_id(id)).unwrap_or_default();
                keep_fields(key, &[("id", id), ("namespace", read_string(&item, "namespace"))], reply);
            }
        }
        self.items[at].done = is_whole;
    }

    /// Keeps reasoning as it came, if a server that stores nothing can use it.
    fn keep_reasoning(&mut self, at: usize, mut item: Value, reply: &mut Assembly) {
        let encrypted = !read_string(&item, "encrypted_content").is_empty();
        if !encrypted && event::read_item_text(&item).is_empty() {
            return;
        }
        // An id beyond the limits would be refused in every later request; the reasoning is valid without it.
        if !is_id(read_string(&item, "id"))
            && let Some(fields) = item.as_object_mut()
        {
            fields.shift_remove("id");
        }
        self.items[at].encrypted = encrypted;
        reply.keep(self.items[at].key, item, false);
    }

    fn open(
        &mut self,
        kind: ItemKind,
        index: Option<u64>,
        ids: ItemIds<'_>,
        name: &str,
        reply: &mut Assembly,
    ) -> Result<usize, Broken> {
        if self.items.len() >= MOST_ITEMS {
            let words = format!("the reply has more than {MOST_ITEMS} items and was stopped there");
            return Err(Broken::TooLarge(words));
        }
        let key = match kind {
            ItemKind::Text => reply.open_text(),
            ItemKind::Reasoning => reply.open_reasoning(),
            ItemKind::Call => reply.open_call(ids.call_id, name),
        };
        self.items.push(OutputItem::new(kind, index, ids, key));
        Ok(self.items.len() - 1)
    }

    /// Adds to the text of an item, set off by a break from text of its kind in an earlier one.
    fn push(&mut self, at: usize, text: &str, reply: &mut Assembly) {
        let OutputItem { kind, key, .. } = self.items[at];
        if text.is_empty() {
            return;
        }
        if kind != ItemKind::Call && reply.text_of(key).is_empty() {
            let said = |item: &OutputItem| item.kind == kind && !reply.text_of(item.key).is_empty();
            if self.items.iter().any(said) {
                reply.push(key, PARAGRAPH);
                self.items[at].lead = PARAGRAPH.len();
            }
        }
        reply.push(key, text);
    }

    /// The last item of a kind at a place of the output; if no place is given, the one with this id, else the last that
    /// is open.
    fn find(&self, kind: ItemKind, index: Option<u64>, ids: ItemIds<'_>) -> Option<usize> {
        let last =
            |is: &dyn Fn(&OutputItem) -> bool| self.items.iter().rposition(|item| item.kind == kind && is(item));
        match index {
            Some(_) => last(&|item| item.index == index),
            None => last(&|item| item.is(ids)).or_else(|| last(&|item| !item.done && item.may_become(ids))),
        }
    }
}

/// Keeps the fields that go back with a part, unless they are empty.
fn keep_fields(key: PartKey, fields: &[(&str, &str)], reply: &mut Assembly) {
    let full = fields.iter().filter(|(_, value)| !value.is_empty());
    let kept: Map<String, Value> = full.map(|(field, value)| ((*field).to_owned(), (*value).into())).collect();
    if !kept.is_empty() {
        reply.keep(key, kept.into(), false);
    }
}

/// An object within an event; null if it is missing.
fn read_part(raw: Option<&RawValue>) -> serde_json::Result<Value> {
    raw.map_or(Ok(Value::Null), |raw| serde_json::from_str(raw.get()))
}

/// An error event in whatever shape it comes.
fn read_error(event: &[u8]) -> StatedError {
    let words = String::from_utf8_lossy(event);
    StatedError::in_reply(&words).unwrap_or_else(|| StatedError::read(&words))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::super::decode::ReplyReading;
    use super::*;
    use crate::conversation::message::Origin;

    fn reading() -> ReplyReading {
        let origin = Origin { wire: "responses".to_owned(), host: "h".to_owned(), model: "m".to_owned() };
        ReplyReading::new(Box::new(ResponsesDecoder::default()), Assembly::new(origin, HashSet::new()))
    }

    #[test]
    fn what_a_hostile_server_sends_is_bounded() {
        let mut reading = reading();
        let mut item = |n: usize| {
            let event =
                json!({"type": "response.output_item.added", "output_index": n, "item": {"type": "message"}});
            reading.event(b"", event.to_string().as_bytes())
        };
        let first = (0..=MOST_ITEMS).find_map(|n| item(n).err());
        assert!(matches!(first, Some(Broken::TooLarge(_))), "{first:?}");
    }
}
