//! The conversation as `input`: a flat list of items. A turn of the model becomes its messages, its reasoning and its
//! calls in the order in which they came; a turn of results becomes one output for each call.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::super::result_text::ResultText;
use super::super::turns::{ModelPart, ToolResult, UserPart, WireTurn};
use super::event::PARAGRAPH;
use crate::base::image::Image;

/// An item of a request.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum InputItem<'a> {
    /// The fields after the role are those of the model's own messages.
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: ItemContent<'a>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'a str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: ItemContent<'a>,
    },
    /// Reasoning, as it came.
    #[serde(untagged)]
    Kept(&'a Value),
}

/// The content of a message or the output of a call.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ItemContent<'a> {
    Text(&'a str),
    Result(&'a ResultText<'a>),
    Parts(Vec<ItemPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ItemPart<'a> {
    InputText {
        text: &'a str,
    },
    /// Of the model.
    OutputText {
        text: &'a str,
        annotations: [(); 0],
    },
    InputImage {
        detail: &'static str,
        image_url: String,
    },
    InputFile {
        filename: &'static str,
        file_data: String,
    },
}

/// All items of a request. `system` is the role and the text of the first, if the system prompt is one.
pub(super) fn write_items<'a>(
    system: Option<(&'static str, &'a str)>,
    turns: &'a [WireTurn<'a>],
) -> Vec<InputItem<'a>> {
    let mut items = Vec::with_capacity(turns.len() + 1);
    items.extend(system.map(|(role, text)| say(role, ItemContent::Text(text))));
    for turn in turns {
        match turn {
            WireTurn::User(parts) => {
                let content = parts.iter().map(|part| match part {
                    UserPart::Text(text) => ItemPart::InputText { text },
                    UserPart::Picture(picture) => ItemPart::picture(picture),
                });
                items.push(say("user", ItemContent::Parts(content.collect())));
            }
            WireTurn::Model(parts) => add_reply(&mut items, parts),
            WireTurn::Results(results) => items.extend(results.iter().map(write_output)),
        }
    }
    items
}

fn say<'a>(role: &'static str, content: ItemContent<'a>) -> InputItem<'a> {
    InputItem::Message { role, id: None, status: None, phase: None, content }
}

fn add_reply<'a>(items: &mut Vec<InputItem<'a>>, parts: &'a [ModelPart<'a>]) {
    // Servers may refuse the item of a call under its id without the reasoning that it came with.
    let thought = parts.iter().any(|part| matches!(part, ModelPart::Reasoning { .. }));
    let mut spoke = false;
    for part in parts {
        items.push(match part {
            ModelPart::Reasoning { opaque, .. } => InputItem::Kept(opaque),
            ModelPart::Text { text, opaque } => {
                // The decoder added the break.
                let own = if spoke { text.strip_prefix(PARAGRAPH).unwrap_or(text) } else { text };
                spoke = true;
                let id = read_field(*opaque, "id").map(Cow::Borrowed);
                InputItem::Message {
                    role: "assistant",
                    id: Some(id.unwrap_or_else(|| format!("msg_{}", items.len()).into())),
                    status: Some("completed"),
                    phase: read_field(*opaque, "phase"),
                    content: ItemContent::Parts(vec![ItemPart::OutputText { text: own, annotations: [] }]),
                }
            }
            ModelPart::Call(call) => InputItem::FunctionCall {
                id: read_field(call.opaque, "id").filter(|_| thought),
                call_id: &call.id,
                name: &call.name,
                namespace: read_field(call.opaque, "namespace"),
                arguments: &call.arguments,
            },
        });
    }
}

fn write_output<'a>(result: &'a ToolResult<'a>) -> InputItem<'a> {
    let ToolResult { id, text, pictures, .. } = result;
    let output = if pictures.is_empty() {
        ItemContent::Result(text)
    } else {
        let pictures = pictures.iter().map(ItemPart::picture);
        ItemContent::Parts([ItemPart::InputText { text }].into_iter().chain(pictures).collect())
    };
    InputItem::FunctionCallOutput { call_id: id, output }
}

/// A field of the data that the server wants back with a part.
fn read_field<'a>(opaque: Option<&'a Value>, name: &str) -> Option<&'a str> {
    opaque?.get(name)?.as_str()
}

impl ItemPart<'_> {
    fn picture(picture: &Image) -> Self {
        if picture.is_document() {
            return Self::InputFile { filename: "document.pdf", file_data: picture.url() };
        }
        Self::InputImage { detail: "auto", image_url: picture.url() }
    }
}
