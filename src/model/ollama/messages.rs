//! The turns of a conversation as Ollama's messages.

use serde::Serialize;
use serde_json::value::RawValue;

use super::super::asked::OutgoingRequest;
use super::super::result_text::ResultText;
use super::super::turns::{ModelPart, UserPart, WireTurn};

/// One message.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum OllamaMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: String,
        /// Base64.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<&'a str>,
    },
    Assistant {
        content: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        thinking: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<OllamaCall<'a>>,
    },
    Tool {
        content: &'a ResultText<'a>,
        tool_name: &'a str,
        tool_call_id: &'a str,
    },
}

#[derive(Serialize)]
pub(super) struct OllamaCall<'a> {
    id: &'a str,
    function: OllamaFunction<'a>,
}

#[derive(Serialize)]
struct OllamaFunction<'a> {
    name: &'a str,
    arguments: &'a RawValue,
}

/// The messages of a request, in order.
pub(super) fn write_messages<'a>(asked: &OutgoingRequest<'a>) -> Vec<OllamaMessage<'a>> {
    let mut all = Vec::with_capacity(asked.turns.len() * 2 + 1);
    if !asked.system.is_empty() {
        all.push(OllamaMessage::System { content: asked.system });
    }
    for turn in asked.turns {
        match turn {
            WireTurn::User(parts) => all.push(write_user(parts)),
            WireTurn::Model(parts) => all.push(write_assistant(parts)),
            WireTurn::Results(results) => all.extend(results.iter().map(|result| OllamaMessage::Tool {
                content: &result.text,
                tool_name: &result.name,
                tool_call_id: &result.id,
            })),
        }
    }
    all
}

fn write_user<'a>(parts: &'a [UserPart<'a>]) -> OllamaMessage<'a> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            UserPart::Text(text) => texts.push(&**text),
            UserPart::Picture(picture) => images.push(&*picture.data),
        }
    }
    OllamaMessage::User { content: texts.join("\n\n"), images }
}

fn write_assistant<'a>(parts: &'a [ModelPart<'a>]) -> OllamaMessage<'a> {
    let (mut content, mut thinking, mut tool_calls) = (String::new(), String::new(), Vec::new());
    for part in parts {
        match part {
            ModelPart::Text { text, .. } => content.push_str(text),
            ModelPart::Reasoning { text, .. } => thinking.push_str(text),
            ModelPart::Call(call) => {
                let arguments = serde_json::from_str(&call.arguments).expect("history carries objects");
                tool_calls
                    .push(OllamaCall { id: &call.id, function: OllamaFunction { name: &call.name, arguments } });
            }
        }
    }
    OllamaMessage::Assistant { content, thinking, tool_calls }
}
