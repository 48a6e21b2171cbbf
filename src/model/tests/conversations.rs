//! Conversations and models written as YAML, for the tests of requests.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::server::ModelServer;
use super::super::{ConnectError, Surroundings, gather_facts};
use crate::base::image::Image;
use crate::config::ModelConfig;
use crate::config::Permission;
use crate::conversation::message::{
    Call, CallAnswer, CallStatus, FinishReason, Item, Opaque, Origin, ReplyPart, Step, Summary, ToolCall, UserText,
};
use crate::model::{ModelRequest, ToolChoice, ToolDefinition};

/// A request, with the model that it is sent to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    #[serde(default)]
    pub model: Map<String, Value>,
    #[serde(default)]
    system: String,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    closing: bool,
    #[serde(default)]
    schema: Option<Value>,
    pub items: Vec<ScriptLine>,
}

/// An item: `user`, `summary`, `reply` or `foreign` with its content.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) enum ScriptLine {
    User(String),
    Summary(String),
    Reply(Vec<ScriptPiece>),
    /// A reply of another server or model: `wire host model`.
    Foreign(String, Vec<ScriptPiece>),
}

impl TryFrom<Map<String, Value>> for ScriptLine {
    type Error = serde_json::Error;

    fn try_from(map: Map<String, Value>) -> Result<Self, Self::Error> {
        let (key, value) = map.into_iter().next().unwrap_or_default();
        Ok(match key.as_str() {
            "user" => Self::User(serde_json::from_value(value)?),
            "summary" => Self::Summary(serde_json::from_value(value)?),
            "reply" => Self::Reply(serde_json::from_value(value)?),
            _ => {
                let (from, pieces) = serde_json::from_value(value)?;
                Self::Foreign(from, pieces)
            }
        })
    }
}

/// A part of a reply.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ScriptPiece {
    text: Option<String>,
    reasoning: Option<String>,
    /// The name of the tool.
    call: Option<String>,
    id: String,
    arguments: String,
    answer: Option<String>,
    fails: bool,
    pictures: usize,
    /// The data that the provider wants back.
    keeps: Option<Value>,
}

impl Script {
    pub fn model(&self) -> Result<ModelServer, ConnectError> {
        let mut config = json!({"name": "m", "provider": "openai"});
        config.as_object_mut().expect("an object").extend(self.model.clone());
        let config: ModelConfig = serde_json::from_value(config).expect("a model");
        let id = config.model.clone().expect("the model is named");
        let around = Surroundings::default();
        let (info, known) = gather_facts(&config, &id, &around);
        ModelServer::new(&config, info, known, &around)
    }

    pub fn items(&self, origin: &Origin) -> Vec<Item> {
        self.items.iter().map(|line| line.item(origin)).collect()
    }

    pub fn tools(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|name| tool(name)).collect()
    }

    pub fn request<'a>(&'a self, items: &'a [Item], tools: &'a [ToolDefinition]) -> ModelRequest<'a> {
        let tool_choice = if self.closing { ToolChoice::None } else { ToolChoice::Auto };
        ModelRequest {
            system: &self.system,
            tools,
            tool_choice,
            schema: self.schema.as_ref(),
            ..ModelRequest::from_items(items, "session-1")
        }
    }
}

/// A tool that reads a file.
pub(super) fn tool(name: &str) -> ToolDefinition {
    let parameters = json!({
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
        "additionalProperties": false
    });
    ToolDefinition {
        name: name.to_owned(),
        description: "Reads.".to_owned(),
        parameters: parameters.into(),
        permission: Permission::Read,
        default: true,
        ..ToolDefinition::default()
    }
}

impl ScriptLine {
    pub fn item(&self, origin: &Origin) -> Item {
        match self {
            Self::User(text) => Item::Said(UserText::by_person(text.clone())),
            Self::Summary(text) => Item::Summary(Summary { text: text.clone(), ..Summary::default() }),
            Self::Reply(pieces) => step(pieces, origin),
            Self::Foreign(from, pieces) => {
                let words: Vec<&str> = from.split(' ').collect();
                let [wire, host, model] = words[..] else { panic!("{from}: wire, host, model") };
                let origin = Origin { wire: wire.into(), host: host.into(), model: model.into() };
                step(pieces, &origin)
            }
        }
    }
}

fn step(pieces: &[ScriptPiece], origin: &Origin) -> Item {
    let parts: Vec<ReplyPart> = pieces.iter().map(|piece| piece.part(origin)).collect();
    let has_calls = parts.iter().any(|part| matches!(part, ReplyPart::Call(_)));
    let finish_reason = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
    Item::Step(Step { parts, finish_reason, ..Step::default() })
}

impl ScriptPiece {
    fn part(&self, origin: &Origin) -> ReplyPart {
        let opaque = self.keeps.clone().map(|data| Opaque {
            origin: origin.clone(),
            data,
            bound: origin.wire == "anthropic",
        });
        let Self { text, reasoning, call, id, arguments, answer, fails, pictures, .. } = self.clone();
        if let Some(name) = call {
            let arguments = if arguments.is_empty() { r#"{"path":"a"}"#.to_owned() } else { arguments };
            let request = ToolCall { id, name, arguments };
            let status = if fails { CallStatus::Error } else { CallStatus::Ok };
            let images = vec![picture(); pictures];
            let answer = answer.map(|text| CallAnswer { images, ..CallAnswer::of_text(text, status) });
            return ReplyPart::Call(Call { request, opaque, answer });
        }
        match reasoning {
            Some(text) => ReplyPart::Reasoning { text, opaque },
            None => ReplyPart::Text { text: text.unwrap_or_default(), opaque },
        }
    }
}

fn picture() -> Image {
    Image::recognise(b"\x89PNG\r\n\x1a\n").expect("a picture")
}
