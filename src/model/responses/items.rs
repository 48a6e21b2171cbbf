//! The conversation as `input`: a flat list of items. A turn of the model becomes its messages, its reasoning and its
//! calls in the order in which they came; a turn of results becomes one output for each call.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use super::super::turns::{ModelPart, ToolResult, UserPart, WireCall, WireTurn};
use super::event::PARAGRAPH;
use crate::base::image::Image;

/// All items of a request.
pub(super) struct Input<'a> {
    /// The role and the text of the first item, if the system prompt is one.
    pub system: Option<(&'static str, &'a str)>,
    pub turns: &'a [WireTurn<'a>],
}

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = SizedList { items: serializer.serialize_seq(None)?, count: 0 };
        if let Some((role, text)) = self.system {
            list.push(&System { role, text })?;
        }
        for turn in self.turns {
            match turn {
                WireTurn::User(parts) => list.push(&User(parts))?,
                WireTurn::Model(parts) => list.model(parts)?,
                WireTurn::Results(results) => {
                    for result in results {
                        list.push(&Output(result))?;
                    }
                }
            }
        }
        list.items.end()
    }
}

/// A list of known length.
struct SizedList<S> {
    items: S,
    count: usize,
}

impl<S: SerializeSeq> SizedList<S> {
    fn push(&mut self, item: &impl Serialize) -> Result<(), S::Error> {
        self.count += 1;
        self.items.serialize_element(item)
    }

    fn model(&mut self, parts: &[ModelPart<'_>]) -> Result<(), S::Error> {
        // Servers may refuse the item of a call under its id without the reasoning that it came with.
        let thought = parts.iter().any(|part| matches!(part, ModelPart::Reasoning { .. }));
        let mut spoke = false;
        for part in parts {
            match part {
                ModelPart::Reasoning { opaque, .. } => self.push(opaque)?,
                ModelPart::Text { text, opaque } => {
                    // The decoder added the break.
                    let own = if spoke { text.strip_prefix(PARAGRAPH).unwrap_or(text) } else { text };
                    spoke = true;
                    let id = match read_field(*opaque, "id") {
                        Some(id) => Cow::Borrowed(id),
                        None => format!("msg_{}", self.count).into(),
                    };
                    self.push(&Message { id: &id, phase: read_field(*opaque, "phase"), text: own })?;
                }
                ModelPart::Call(call) => {
                    let id = read_field(call.opaque, "id").filter(|_| thought);
                    self.push(&Call { call, id })?;
                }
            }
        }
        Ok(())
    }
}

/// A field of the data that the server wants back with a part.
fn read_field<'a>(opaque: Option<&'a Value>, name: &str) -> Option<&'a str> {
    opaque?.get(name)?.as_str()
}

struct System<'a> {
    role: &'a str,
    text: &'a str,
}

struct User<'a>(&'a [UserPart<'a>]);

/// A message of the model.
struct Message<'a> {
    id: &'a str,
    phase: Option<&'a str>,
    text: &'a str,
}

struct Call<'a> {
    call: &'a WireCall<'a>,
    id: Option<&'a str>,
}

/// The output of a call.
struct Output<'a>(&'a ToolResult<'a>);

impl Serialize for System<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut item = serializer.serialize_map(None)?;
        item.serialize_entry("type", "message")?;
        item.serialize_entry("role", self.role)?;
        item.serialize_entry("content", self.text)?;
        item.end()
    }
}

impl Serialize for User<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut item = serializer.serialize_map(None)?;
        item.serialize_entry("type", "message")?;
        item.serialize_entry("role", "user")?;
        item.serialize_entry("content", &Contents(self.0))?;
        item.end()
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut item = serializer.serialize_map(None)?;
        item.serialize_entry("type", "message")?;
        item.serialize_entry("role", "assistant")?;
        item.serialize_entry("id", self.id)?;
        item.serialize_entry("status", "completed")?;
        if let Some(phase) = self.phase {
            item.serialize_entry("phase", phase)?;
        }
        item.serialize_entry("content", &[Content::Said(self.text)])?;
        item.end()
    }
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { call, id } = *self;
        let mut item = serializer.serialize_map(None)?;
        item.serialize_entry("type", "function_call")?;
        if let Some(id) = id {
            item.serialize_entry("id", id)?;
        }
        item.serialize_entry("call_id", &call.id)?;
        item.serialize_entry("name", &call.name)?;
        if let Some(namespace) = read_field(call.opaque, "namespace") {
            item.serialize_entry("namespace", namespace)?;
        }
        item.serialize_entry("arguments", &call.arguments)?;
        item.end()
    }
}

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolResult { id, text, pictures, .. } = self.0;
        let mut item = serializer.serialize_map(None)?;
        item.serialize_entry("type", "function_call_output")?;
        item.serialize_entry("call_id", id)?;
        if pictures.is_empty() {
            item.serialize_entry("output", text)?;
        } else {
            let pictures = pictures.iter().map(Content::Picture);
            let output: Vec<Content<'_>> = std::iter::once(Content::Text(text)).chain(pictures).collect();
            item.serialize_entry("output", &output)?;
        }
        item.end()
    }
}

/// The parts of a turn in the person's place.
struct Contents<'a>(&'a [UserPart<'a>]);

/// A part of a message or of an output.
enum Content<'a> {
    Text(&'a str),
    /// Of the model.
    Said(&'a str),
    Picture(&'a Image),
}

impl Serialize for Contents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|part| match part {
            UserPart::Text(text) => Content::Text(text),
            UserPart::Picture(image) => Content::Picture(image),
        }))
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(None)?;
        match self {
            Self::Text(text) => {
                part.serialize_entry("type", "input_text")?;
                part.serialize_entry("text", text)?;
            }
            Self::Said(text) => {
                part.serialize_entry("type", "output_text")?;
                part.serialize_entry("text", text)?;
                part.serialize_entry("annotations", &[(); 0])?;
            }
            Self::Picture(image) => {
                part.serialize_entry("type", "input_image")?;
                part.serialize_entry("detail", "auto")?;
                part.serialize_entry("image_url", &format_args!("data:{};base64,{}", image.mime, image.data))?;
            }
        }
        part.end()
    }
}
