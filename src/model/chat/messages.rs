//! The turns of a conversation as messages of chat completions.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::asked::OutgoingRequest;
use super::super::result_text::ResultText;
use super::super::turns::{ModelPart, UserPart, WireCall, WireTurn};
use super::flags::{ChatFlags, Echo};
use crate::config::CacheLifetime;

/// The placeholder for the signature of a call that another model made in the running turn.
const STAND_IN: &str = "skip_thought_signature_validator";

/// One message.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum CompletionMessage<'a> {
    System {
        content: ChatContent<'a>,
    },
    User {
        content: ChatContent<'a>,
    },
    Assistant {
        content: ChatContent<'a>,
        /// The fields with reasoning.
        #[serde(flatten)]
        thoughts: Map<String, Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ChatCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: ChatContent<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ChatContent<'a> {
    /// None: as null, or as an empty text.
    Nothing(Option<&'static str>),
    Text(ChatText<'a>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ChatText<'a> {
    Plain(Cow<'a, str>),
    Result(&'a ResultText<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text {
        text: ChatText<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Value>,
    },
    /// A picture, or a thought.
    #[serde(untagged)]
    Other(Value),
}

#[derive(Serialize)]
pub(super) struct ChatCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The messages of a request, in order.
pub(super) fn write_messages<'a>(asked: &OutgoingRequest<'a>, flags: &ChatFlags) -> Vec<CompletionMessage<'a>> {
    let running = asked.turns.iter().rposition(|turn| matches!(turn, WireTurn::User(_))).unwrap_or(0);
    let mut all = Vec::with_capacity(asked.turns.len() * 2 + 1);
    if !asked.system.is_empty() {
        all.push(CompletionMessage::System { content: ChatContent::plain(asked.system) });
    }
    for (at, turn) in asked.turns.iter().enumerate() {
        match turn {
            WireTurn::User(parts) => all.push(CompletionMessage::User { content: write_user(parts) }),
            WireTurn::Model(parts) => all.push(write_assistant(parts, at > running, flags)),
            WireTurn::Results(results) => all.extend(results.iter().map(|result| CompletionMessage::Tool {
                tool_call_id: &result.id,
                content: ChatContent::Text(ChatText::Result(&result.text)),
            })),
        }
    }
    if flags.cache_marks {
        set_marks(&mut all, flags.cache_lifetime);
    }
    all
}

/// Marks the ends of the prompt, of the user's last message, and of the last message that can carry a mark. With marks
/// every content is a list of parts, so that a mark that moves on changes nothing but itself.
fn set_marks(all: &mut [CompletionMessage<'_>], lifetime: CacheLifetime) {
    let mark = match lifetime {
        CacheLifetime::FiveMinutes => json!({"type": "ephemeral"}),
        CacheLifetime::Hour => json!({"type": "ephemeral", "ttl": "1h"}),
    };
    for message in all.iter_mut() {
        message.content().split();
    }
    let last = |is: fn(&CompletionMessage<'_>) -> bool| all.iter().rposition(is);
    let marked = [
        last(|message| matches!(message, CompletionMessage::System { .. })),
        last(|message| matches!(message, CompletionMessage::User { .. })),
        // A reply of only calls has no content.
        last(|message| !matches!(message, CompletionMessage::Assistant { content: ChatContent::Nothing(_), .. })),
    ];
    for at in marked.into_iter().flatten() {
        all[at].content().mark(&mark);
    }
}

impl<'a> CompletionMessage<'a> {
    fn content(&mut self) -> &mut ChatContent<'a> {
        match self {
            Self::System { content }
            | Self::User { content }
            | Self::Assistant { content, .. }
            | Self::Tool { content, .. } => content,
        }
    }
}

impl<'a> ChatContent<'a> {
    fn plain(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(ChatText::Plain(text.into()))
    }

    /// Makes a text a list of one part.
    fn split(&mut self) {
        if let Self::Text(text) = self {
            let text = std::mem::replace(text, ChatText::Plain("".into()));
            *self = Self::Parts(vec![ContentPart::Text { text, cache_control: None }]);
        }
    }

    fn mark(&mut self, mark: &Value) {
        if let Self::Parts(parts) = self
            && let Some(ContentPart::Text { cache_control, .. }) = parts.last_mut()
        {
            *cache_control = Some(mark.clone());
        }
    }
}

impl<'a> ContentPart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: ChatText::Plain(text.into()), cache_control: None }
    }
}

/// The user's message: one text, or, with pictures, a list.
fn write_user<'a>(parts: &'a [UserPart<'a>]) -> ChatContent<'a> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            UserPart::Text(text) => Some(&**text),
            UserPart::Picture(_) => None,
        })
        .collect();
    match texts.as_deref() {
        Some([text]) => ChatContent::plain(*text),
        Some(texts) => ChatContent::plain(texts.join("\n\n")),
        None => ChatContent::Parts(
            parts
                .iter()
                .map(|part| match part {
                    UserPart::Text(text) => ContentPart::text(&**text),
                    UserPart::Picture(picture) if picture.is_document() => {
                        let file = json!({"filename": "document.pdf", "file_data": picture.url()});
                        ContentPart::Other(json!({"type": "file", "file": file}))
                    }
                    UserPart::Picture(picture) => {
                        ContentPart::Other(json!({"type": "image_url", "image_url": {"url": picture.url()}}))
                    }
                })
                .collect(),
        ),
    }
}

fn write_assistant<'a>(parts: &'a [ModelPart<'a>], is_running: bool, flags: &ChatFlags) -> CompletionMessage<'a> {
    let mut text = Cow::Borrowed("");
    let mut tool_calls = Vec::new();
    for part in parts {
        match part {
            ModelPart::Text { text: more, .. } => text += &**more,
            ModelPart::Call(call) => {
                let needs_stand_in = is_running && flags.stand_in_signature && tool_calls.is_empty();
                tool_calls.push(write_call(call, needs_stand_in));
            }
            ModelPart::Reasoning { .. } => {}
        }
    }
    let EchoedThoughts { mut fields, in_text, in_content } = EchoedThoughts::choose(parts, flags.echo);
    let content = match in_content {
        Some(thought) => {
            let words = (!text.is_empty()).then(|| ContentPart::text(text));
            ChatContent::Parts([ContentPart::Other(thought)].into_iter().chain(words).collect())
        }
        None if text.is_empty() && in_text.is_empty() => ChatContent::Nothing(flags.empty_content.then_some("")),
        None if in_text.is_empty() => ChatContent::plain(text),
        None => ChatContent::plain(in_text + &*text),
    };
    if flags.echo == Echo::Always && !tool_calls.is_empty() && fields.is_empty() {
        fields.insert("reasoning_content".to_owned(), "".into());
    }
    CompletionMessage::Assistant { content, thoughts: fields, tool_calls }
}

fn write_call<'a>(call: &'a WireCall<'a>, needs_stand_in: bool) -> ChatCall<'a> {
    let extra = call.opaque.and_then(|opaque| opaque.get("extra_content")).map(Cow::Borrowed);
    let stand_in = || Cow::Owned(json!({"google": {"thought_signature": STAND_IN}}));
    ChatCall {
        id: &call.id,
        r#type: "function",
        function: CalledFunction { name: &call.name, arguments: &call.arguments },
        extra_content: extra.or_else(|| needs_stand_in.then(stand_in)),
    }
}

/// The reasoning of a reply in the form in which its server wants it back.
#[derive(Default)]
struct EchoedThoughts {
    /// Fields beside the content.
    fields: Map<String, Value>,
    in_text: String,
    in_content: Option<Value>,
}

impl EchoedThoughts {
    fn choose(parts: &[ModelPart<'_>], echo: Echo) -> Self {
        let mut thoughts = Self::default();
        for part in parts {
            let ModelPart::Reasoning { text, opaque } = part else { continue };
            for field in ["reasoning_details", "thinking_blocks"] {
                if let Some(data) = opaque.get(field) {
                    thoughts.fields.insert(field.to_owned(), data.clone());
                }
            }
            let field = opaque.get("field").and_then(Value::as_str);
            match (echo, field) {
                (Echo::Always, _) => thoughts.add("reasoning_content", text),
                (Echo::Field, Some(field)) => thoughts.add(field, text),
                (Echo::Text, _) => {
                    thoughts.in_text += opaque.get("raw").and_then(Value::as_str).unwrap_or_default();
                }
                (Echo::Content, _) => {
                    thoughts.in_content =
                        Some(json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]}));
                }
                (Echo::Never, _) | (Echo::Field, None) => {}
            }
        }
        thoughts
    }

    fn add(&mut self, field: &str, text: &str) {
        match self.fields.get_mut(field) {
            Some(Value::String(before)) => before.push_str(text),
            _ => {
                self.fields.insert(field.to_owned(), text.into());
            }
        }
    }
}
