//! A request of Ollama's own interface.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::asked::{OutgoingRequest, write_body};
use super::super::effort::Effort;
use super::super::functions::FunctionTool;
use super::messages::{OllamaMessage, write_messages};

#[derive(Serialize)]
#[serde(untagged)]
enum OllamaField<'a> {
    Tools(Vec<OllamaTool<'a>>),
    Messages(Vec<OllamaMessage<'a>>),
}

#[derive(Serialize)]
struct OllamaTool<'a> {
    r#type: &'static str,
    function: FunctionTool<'a>,
}

/// The body of a request. The interface has no field that forbids calls: a closing request leaves the choice open.
pub fn encode_request(asked: &OutgoingRequest<'_>) -> Vec<u8> {
    let write_tools = || {
        let tool = |tool| OllamaTool { r#type: "function", function: FunctionTool::new(tool, None) };
        OllamaField::Tools(asked.tools.iter().map(tool).collect())
    };
    let large = [
        ("tools", (!asked.tools.is_empty()).then(write_tools)),
        ("messages", Some(OllamaField::Messages(write_messages(asked)))),
    ];
    write_body(asked, write_head(asked), large, Map::new(), |_, _| false)
}

/// The fields that stay the same for a whole session.
fn write_head(asked: &OutgoingRequest<'_>) -> Map<String, Value> {
    let settings = asked.settings;
    let numbers = [("num_ctx", settings.served_window), ("num_predict", settings.output_limit())];
    let numbers = numbers.into_iter().filter_map(|(key, number)| Some((key.to_owned(), number?.into())));
    let mut options: Map<String, Value> = numbers.collect();
    options.extend(settings.temperature.map(|temperature| ("temperature".to_owned(), temperature.into())));
    let fields = [
        ("model", Some(settings.model.as_str().into())),
        ("stream", Some(settings.streaming.into())),
        // What does not fit is refused, rather than cut away at its beginning or while the model writes.
        ("truncate", Some(false.into())),
        ("shift", Some(false.into())),
        ("think", settings.effort.map(write_effort)),
        ("format", asked.schema.cloned()),
        ("options", (!options.is_empty()).then(|| json!(options))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The level that Ollama knows; models without levels take any as "think".
fn write_effort(level: Effort) -> Value {
    match level {
        Effort::None => false.into(),
        Effort::Minimal | Effort::Low => "low".into(),
        Effort::Medium => "medium".into(),
        Effort::High | Effort::Xhigh => "high".into(),
        Effort::Max => "max".into(),
    }
}
