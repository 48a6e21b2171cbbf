//! Builds requests.

use serde_json::{Value, json};

use super::super::super::asked::{OutgoingRequest, RequestSettings};
use super::super::super::history::{self, CallIds, HistoryRules, Pictures};
use super::super::flags::{AnthropicFlags, Thinking};
use super::super::{encode_request, list_headers};
use super::valid;
use crate::base::image::Image;
use crate::config::Permission;
use crate::conversation::message::{
    Call, CallAnswer, CallStatus, Item, Opaque, Origin, ReplyPart, Step, ToolCall, UserText,
};
use crate::model::{ModelRequest, ToolChoice, ToolDefinition};

pub const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// A builder of a request.
pub struct Make {
    pub items: Vec<Item>,
    pub tools: Vec<ToolDefinition>,
    pub settings: RequestSettings,
    pub choice: ToolChoice,
    pub schema: Option<Value>,
    pub flags: AnthropicFlags,
}

pub fn make(items: Vec<Item>) -> Make {
    let settings = RequestSettings {
        model: "m".to_owned(),
        streaming: true,
        most_output_tokens: Some(64_000),
        parallel_calls: true,
        strict_tools: true,
        ..RequestSettings::default()
    };
    Make {
        items,
        tools: Vec::new(),
        settings,
        choice: ToolChoice::Auto,
        schema: None,
        flags: AnthropicFlags::default(),
    }
}

impl Make {
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn asked<T>(&self, take: impl FnOnce(&OutgoingRequest<'_>) -> T) -> T {
        let origin = origin();
        let rules = HistoryRules {
            documents: true,
            origin: &origin,
            ids: CallIds::Word64,
            pictures: Pictures::InResults,
            user_after_results: true,
        };
        let turns = history::write_turns(&ModelRequest::from_items(&self.items, "s"), &rules);
        take(&OutgoingRequest {
            settings: &self.settings,
            system: "Be brief.",
            turns: &turns,
            tools: &self.tools,
            tool_choice: self.choice,
            schema: self.schema.as_ref(),
            session_id: "s",
        })
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.asked(|asked| encode_request(asked, &self.flags))).expect("JSON is UTF-8")
    }

    /// The body, which follows the rules.
    pub fn body(&self) -> Value {
        let body = serde_json::from_str(&self.text()).expect("JSON");
        assert_eq!(valid::check(&body), Ok(()), "{body:#}");
        body
    }

    pub fn betas(&self) -> Option<String> {
        let headers = self.asked(|asked| list_headers(asked, &self.flags));
        assert_eq!(headers[0], ("anthropic-version", "2023-06-01".to_owned()));
        headers.into_iter().find(|(name, _)| *name == "anthropic-beta").map(|(_, value)| value)
    }
}

pub fn origin() -> Origin {
    Origin { wire: "anthropic".to_owned(), host: "h".to_owned(), model: "m".to_owned() }
}

pub fn said(text: &str) -> Item {
    Item::Said(UserText::by_person(text))
}

pub fn replied(parts: Vec<ReplyPart>) -> Item {
    Item::Step(Step { parts, ..Step::default() })
}

pub fn text(text: &str) -> ReplyPart {
    ReplyPart::Text { text: text.to_owned(), opaque: None }
}

pub fn kept(data: Value) -> ReplyPart {
    ReplyPart::Reasoning { text: "seen".to_owned(), opaque: Some(Opaque { origin: origin(), data, bound: true }) }
}

pub fn thought(signature: &str) -> ReplyPart {
    kept(json!({"type": "thinking", "thinking": "Hm.", "signature": signature}))
}

pub fn called(id: &str, answer: impl Into<Option<CallAnswer>>) -> ReplyPart {
    let request = ToolCall { id: id.to_owned(), name: "ls".to_owned(), arguments: r#"{"path": "a"}"#.to_owned() };
    ReplyPart::Call(Call { request, opaque: None, answer: answer.into() })
}

pub fn ok(content: &str) -> CallAnswer {
    CallAnswer::of_text(content, CallStatus::Ok)
}

pub fn failed(content: &str) -> CallAnswer {
    CallAnswer::of_text(content, CallStatus::Error)
}

pub fn with_picture(answer: CallAnswer) -> CallAnswer {
    let image = Image { mime: "image/png".to_owned(), data: "AAAA".to_owned(), ..Image::default() };
    CallAnswer { images: vec![image], ..answer }
}

pub fn tool(name: &str, parameters: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "Does it.".to_owned(),
        parameters: parameters.into(),
        permission: Permission::Read,
        default: true,
        ..ToolDefinition::default()
    }
}

pub fn closed() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
           "additionalProperties": false})
}

/// The flags of a model that thinks when it likes, on its maker's own host.
pub fn adaptive() -> AnthropicFlags {
    AnthropicFlags {
        thinking: Thinking::Always,
        thinking_display: true,
        effort_field: true,
        binding_controls: true,
        temperature: false,
        parallel_switch: true,
        strict: true,
        eager_stream: true,
        answer_format: true,
        cache_marks: true,
        cache_on_tools: true,
        ..AnthropicFlags::default()
    }
}

pub fn by_budget() -> AnthropicFlags {
    AnthropicFlags {
        thinking: Thinking::Budget,
        interleaved_beta: true,
        cache_marks: true,
        ..AnthropicFlags::default()
    }
}
