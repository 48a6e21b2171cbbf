//! Assigns pieces to calls. Indexes repeat, ids change or are missing, names come in pieces; still nothing is lost.

use serde_json::Value;

use super::super::arguments::is_complete;
use super::super::assembly::{Assembly, PartKey};
use super::chunk::CallPiece;

/// The calls of a reply so far.
#[derive(Debug, Default)]
pub(super) struct StreamedCalls(Vec<StreamedCall>);

#[derive(Debug)]
struct StreamedCall {
    index: Option<u64>,
    key: PartKey,
    has_extra: bool,
}

impl StreamedCalls {
    /// Takes a piece of a call.
    pub fn take(&mut self, piece: CallPiece<'_>, reply: &mut Assembly) {
        let function = piece.function.unwrap_or_default();
        let arguments = function.arguments.write_data();
        let (id, name) = (piece.id.as_str(), function.name.as_str());
        let is_bare = id.is_empty() && name.is_empty() && arguments.trim().is_empty();
        let at = match self.find(piece.index.0, id, name, &arguments, reply) {
            Some(at) => Some(at),
            None if is_bare => self.0.len().checked_sub(1),
            None => {
                let key = reply.open_call(id, name);
                self.0.push(StreamedCall { index: piece.index.0, key, has_extra: false });
                reply.push(key, begin_arguments(&arguments));
                self.keep(self.0.len() - 1, piece.extra_content, reply);
                return;
            }
        };
        let Some(at) = at else { return };
        self.go_on(at, id, name, &arguments, reply);
        self.keep(at, piece.extra_content, reply);
    }

    fn go_on(&mut self, at: usize, id: &str, name: &str, arguments: &str, reply: &mut Assembly) {
        let key = self.0[at].key;
        if reply.id_of(key).is_empty() {
            reply.set_id(key, id);
        }
        let (known, held) = (reply.name_of(key), reply.text_of(key));
        if known.is_empty() || name.starts_with(known) {
            reply.set_name(key, name);
        } else if !name.is_empty() && held.is_empty() && known != name {
            let whole = format!("{known}{name}");
            reply.set_name(key, &whole);
        }
        let held = reply.text_of(key);
        let arguments = if held.is_empty() { begin_arguments(arguments) } else { arguments };
        if is_complete(held) && is_complete(arguments) {
            // Complete arguments are sent again, or `{}` was a placeholder for them until now.
            if held.trim() == "{}" {
                reply.set_arguments(key, arguments);
            }
        } else {
            reply.push(key, arguments);
        }
    }

    /// The index of the call that a piece continues; `None` if it begins one.
    fn find(&self, index: Option<u64>, id: &str, name: &str, arguments: &str, reply: &Assembly) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let last = |matches: &dyn Fn(&StreamedCall) -> bool| self.0.iter().rposition(matches);
        if let Some(index) = index {
            let at = last(&|call| call.index == Some(index))?;
            let key = self.0[at].key;
            let (known_id, known_name, held) = (reply.id_of(key), reply.name_of(key), reply.text_of(key));
            // Some servers number every call 0: a name after whole arguments begins another call, unless it is the
            // same call sent again.
            let other_id = !id.is_empty() && !known_id.is_empty() && id != known_id;
            let other_words = name != known_name || !(arguments.is_empty() || same_json(arguments, held));
            let no_id = id.is_empty() || known_id.is_empty();
            let another = !name.is_empty() && is_complete(held) && (other_id || (no_id && other_words));
            // A call that has no arguments yet ends when another id and another name come.
            let another = another || (other_id && !name.is_empty() && held.is_empty() && name != known_name);
            return (!another).then_some(at);
        }
        if !id.is_empty()
            && let Some(at) = last(&|call| reply.id_of(call.key) == id)
        {
            return Some(at);
        }
        let at = self.0.len() - 1;
        let key = self.0[at].key;
        let (known_name, held) = (reply.name_of(key), reply.text_of(key));
        let continues = (name.is_empty() && id.is_empty())
            || (name.is_empty() && reply.id_of(key).is_empty())
            // The name again with each fragment.
            || (id.is_empty() && name == known_name && !held.is_empty() && !is_complete(held));
        continues.then_some(at)
    }

    fn keep(&mut self, at: usize, extra: Option<Value>, reply: &mut Assembly) {
        let call = &mut self.0[at];
        if let Some(extra) = extra.filter(|extra| !extra.is_null() && !call.has_extra) {
            call.has_extra = true;
            reply.keep(call.key, serde_json::json!({ "extra_content": extra }), false);
        }
    }
}

/// The beginning of a call's arguments: Groq writes `null` for none.
fn begin_arguments(arguments: &str) -> &str {
    if arguments.trim() == "null" { "{}" } else { arguments }
}

fn same_json(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    one == other || read(one).is_some_and(|value| Some(value) == read(other))
}
