//! A request as one of chat completions, without a provider's settings: what a script is measured by, and what recordings
//! compare.

use serde_json::{Map, Value};

use super::asked::{OutgoingRequest, RequestSettings};
use super::chat;
use super::history::{self, CallIds, HistoryRules, Pictures};
use crate::conversation::message::Origin;
use crate::model::{ModelRequest, ToolChoice};

/// The bytes of a request, with `extra` merged into it.
pub(super) fn encode_neutral(
    model: &str,
    extra: &Map<String, Value>,
    pictures: Pictures,
    request: &ModelRequest<'_>,
) -> Vec<u8> {
    let origin = Origin { wire: "script".to_owned(), host: String::new(), model: model.to_owned() };
    let rules =
        HistoryRules { origin: &origin, ids: CallIds::Any, pictures, documents: true, user_after_results: true };
    let settings = RequestSettings { model: model.to_owned(), extra: extra.clone(), ..RequestSettings::default() };
    let asked = OutgoingRequest {
        settings: &settings,
        system: request.system,
        turns: &history::write_turns(request, &rules),
        tools: request.tools,
        tool_choice: ToolChoice::Auto,
        schema: None,
        session_id: request.session_id,
    };
    chat::encode_request(&asked, &chat::ChatFlags { stream_options: false, ..chat::ChatFlags::default() })
}

/// A request as data; pictures are notes.
pub(super) fn write_neutral(model: &str, request: &ModelRequest<'_>) -> Value {
    let bytes = encode_neutral(model, &Map::new(), Pictures::Notes, request);
    serde_json::from_slice(&bytes).unwrap_or_default()
}
