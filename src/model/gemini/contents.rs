//! The turns of a conversation as Gemini's contents. Signatures stand on the parts that they came with: on a call, a
//! text or a thought, or on an empty text behind one.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::result_text::ResultText;
use super::super::turns::{ModelPart, ToolResult, UserPart, WireCall, WireTurn};
use super::flags::GeminiFlags;
use crate::base::image::Image;

/// The placeholder for the signature of a call that another model made in the running turn.
const STAND_IN: &str = "skip_thought_signature_validator";

/// One side's uninterrupted contribution, or the system prompt, which has no role.
#[derive(Serialize)]
pub(super) struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<GeminiPart<'a>>,
}

/// A part of a content.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiPart<'a> {
    #[serde(flatten)]
    data: PartData<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum PartData<'a> {
    Text(Cow<'a, str>),
    InlineData(Blob<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
    /// A part that only the server understands, as it came.
    #[serde(untagged)]
    Kept(&'a Value),
}

impl Default for PartData<'_> {
    fn default() -> Self {
        Self::Text("".into())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a RawValue,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: ResponseBody<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ResponseBody<'a> {
    Output(&'a ResultText<'a>),
    Error(&'a ResultText<'a>),
}

impl<'a> Content<'a> {
    /// The system prompt.
    pub fn system(text: &'a str) -> Self {
        Self { role: None, parts: vec![GeminiPart::text(text)] }
    }
}

impl<'a> GeminiPart<'a> {
    /// A text.
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        PartData::Text(text.into()).into()
    }

    fn picture(picture: &'a Image) -> Self {
        PartData::InlineData(Blob { mime_type: &picture.mime, data: &picture.data }).into()
    }
}

impl<'a> From<PartData<'a>> for GeminiPart<'a> {
    fn from(data: PartData<'a>) -> Self {
        Self { data, ..Self::default() }
    }
}

/// The contents of a request, in order.
pub(super) fn write_contents<'a>(turns: &'a [WireTurn<'a>], flags: &GeminiFlags) -> Vec<Content<'a>> {
    let running = turns.iter().rposition(|turn| matches!(turn, WireTurn::User(_))).unwrap_or(0);
    // The ids of calls that the server gave itself; it knows no others.
    let mut own_ids = HashMap::new();
    let mut all = Vec::with_capacity(turns.len());
    for (at, turn) in turns.iter().enumerate() {
        let (role, parts) = match turn {
            WireTurn::User(parts) => ("user", parts.iter().map(write_user).collect()),
            WireTurn::Model(parts) => {
                for part in parts {
                    if let ModelPart::Call(call) = part
                        && let Some(id) = find_text(call.opaque, "id")
                    {
                        own_ids.insert(&*call.id, id);
                    }
                }
                ("model", write_model(parts, at > running && flags.stand_in_signature))
            }
            WireTurn::Results(results) => (
                "user",
                results.iter().map(|result| write_result(result, own_ids.get(&*result.id).copied())).collect(),
            ),
        };
        all.push(Content { role: Some(role), parts });
    }
    all
}

fn write_user<'a>(part: &'a UserPart<'a>) -> GeminiPart<'a> {
    match part {
        UserPart::Text(text) => GeminiPart::text(&**text),
        UserPart::Picture(picture) => GeminiPart::picture(picture),
    }
}

fn write_model<'a>(parts: &'a [ModelPart<'a>], needs_stand_in: bool) -> Vec<GeminiPart<'a>> {
    let mut all = Vec::with_capacity(parts.len());
    let mut has_call = false;
    for part in parts {
        let (written, opaque) = match part {
            ModelPart::Text { text, opaque } => (GeminiPart::text(&**text), *opaque),
            ModelPart::Reasoning { text, opaque } => {
                let written = match opaque.get("part") {
                    Some(part) => PartData::Kept(part).into(),
                    None => GeminiPart { thought: true, ..GeminiPart::text(*text) },
                };
                (written, Some(*opaque))
            }
            ModelPart::Call(call) => {
                let mut written = write_call(call);
                if !std::mem::replace(&mut has_call, true) && needs_stand_in {
                    written.thought_signature = Some(STAND_IN);
                }
                (written, call.opaque)
            }
        };
        let signature = find_text(opaque, "thoughtSignature").or(written.thought_signature);
        all.push(GeminiPart { thought_signature: signature, ..written });
        if let Some(behind) = find_text(opaque, "signatureBehind") {
            all.push(GeminiPart { thought_signature: Some(behind), ..GeminiPart::default() });
        }
    }
    all
}

fn write_call<'a>(call: &'a WireCall<'a>) -> GeminiPart<'a> {
    let args = serde_json::from_str(&call.arguments).expect("history carries objects");
    PartData::FunctionCall(FunctionCall { id: find_text(call.opaque, "id"), name: &call.name, args }).into()
}

fn write_result<'a>(result: &'a ToolResult<'a>, id: Option<&'a str>) -> GeminiPart<'a> {
    let response =
        if result.is_error { ResponseBody::Error(&result.text) } else { ResponseBody::Output(&result.text) };
    let parts = result.pictures.iter().map(GeminiPart::picture).collect();
    PartData::FunctionResponse(FunctionResponse { id, name: &result.name, response, parts }).into()
}

fn find_text<'a>(opaque: Option<&'a Value>, key: &str) -> Option<&'a str> {
    opaque?.get(key)?.as_str()
}
