//! The turns of a conversation as messages of chat completions.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use super::super::asked::OutgoingRequest;
use super::super::turns::{ModelPart, ToolResult, UserPart, WireCall, WireTurn};
use super::flags::{ChatFlags, Echo};

/// The placeholder for the signature of a call that another model made in the running turn.
const STAND_IN: &str = "skip_thought_signature_validator";

pub(super) struct Messages<'a> {
    pub asked: &'a OutgoingRequest<'a>,
    pub flags: &'a ChatFlags,
}

/// One message.
enum Message<'a> {
    System(&'a str),
    User(&'a [UserPart<'a>]),
    Assistant { parts: &'a [ModelPart<'a>], is_running: bool },
    Tool(&'a ToolResult<'a>),
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { asked, flags } = *self;
        let all = write_messages(asked);
        let marks = if flags.cache_marks { choose_breakpoints(&all) } else { Vec::new() };
        let mut list = serializer.serialize_seq(Some(all.len()))?;
        for (index, message) in all.iter().enumerate() {
            let form = match (flags.cache_marks, marks.contains(&index)) {
                (true, true) => ContentForm::Breakpoint,
                (true, false) => ContentForm::Part,
                (false, _) => ContentForm::Text,
            };
            list.serialize_element(&WrittenMessage { message, form, flags })?;
        }
        list.end()
    }
}

fn write_messages<'a>(asked: &'a OutgoingRequest<'a>) -> Vec<Message<'a>> {
    let running = asked.turns.iter().rposition(|turn| matches!(turn, WireTurn::User(_))).unwrap_or(0);
    let mut all = Vec::with_capacity(asked.turns.len() * 2 + 1);
    if !asked.system.is_empty() {
        all.push(Message::System(asked.system));
    }
    for (at, turn) in asked.turns.iter().enumerate() {
        match turn {
            WireTurn::User(parts) => all.push(Message::User(parts)),
            WireTurn::Model(parts) => all.push(Message::Assistant { parts, is_running: at > running }),
            WireTurn::Results(results) => all.extend(results.iter().map(Message::Tool)),
        }
    }
    all
}

/// The messages that get cache marks at their ends: the prompt, the user's last message, and the last message that
/// can carry a mark.
fn choose_breakpoints(messages: &[Message<'_>]) -> Vec<usize> {
    let system = messages.iter().position(|message| matches!(message, Message::System(_)));
    let said = messages.iter().rposition(|message| matches!(message, Message::User(_)));
    let last = messages.iter().rposition(Message::has_text);
    let mut marks: Vec<usize> = system.into_iter().chain(said).chain(last).collect();
    marks.dedup();
    marks
}

impl Message<'_> {
    /// True if there is content that can carry a mark; a reply of only calls has none.
    fn has_text(&self) -> bool {
        match self {
            Self::Assistant { parts, .. } => parts.iter().any(|part| matches!(part, ModelPart::Text { .. })),
            Self::System(_) | Self::User(_) | Self::Tool(_) => true,
        }
    }
}

/// The form in which contents are written. With marks every content is a list of parts, so that a mark that moves on
/// changes nothing but itself.
#[derive(Clone, Copy, PartialEq)]
enum ContentForm {
    Text,
    Part,
    Breakpoint,
}

struct WrittenMessage<'a> {
    message: &'a Message<'a>,
    form: ContentForm,
    flags: &'a ChatFlags,
}

impl Serialize for WrittenMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { message: whole, form, flags } = *self;
        let mut message = serializer.serialize_map(None)?;
        match whole {
            Message::System(text) => {
                message.serialize_entry("role", "system")?;
                message.serialize_entry("content", &Content(text, form))?;
            }
            Message::User(parts) => {
                message.serialize_entry("role", "user")?;
                message.serialize_entry("content", &UserContent(parts, form))?;
            }
            Message::Assistant { parts, is_running } => {
                message.serialize_entry("role", "assistant")?;
                write_assistant::<S>(&mut message, parts, *is_running, form, flags)?;
            }
            Message::Tool(result) => {
                message.serialize_entry("role", "tool")?;
                message.serialize_entry("tool_call_id", &result.id)?;
                message.serialize_entry("content", &Content(&result.text, form))?;
            }
        }
        message.end()
    }
}

fn write_assistant<S: Serializer>(
    message: &mut S::SerializeMap,
    parts: &[ModelPart<'_>],
    is_running: bool,
    form: ContentForm,
    flags: &ChatFlags,
) -> Result<(), S::Error> {
    let calls: Vec<&WireCall<'_>> = parts
        .iter()
        .filter_map(|part| match part {
            ModelPart::Call(call) => Some(call),
            ModelPart::Text { .. } | ModelPart::Reasoning { .. } => None,
        })
        .collect();
    let text = join_texts(parts);
    let thoughts = Thoughts::choose(parts, flags.echo);
    match (&*text, &thoughts.in_content) {
        (_, Some(chunk)) => {
            let words = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            message.serialize_entry(
                "content",
                &[Some(chunk.clone()), words].into_iter().flatten().collect::<Vec<_>>(),
            )?;
        }
        ("", None) if thoughts.in_text.is_empty() && flags.empty_content => {
            message.serialize_entry("content", "")?;
        }
        ("", None) if thoughts.in_text.is_empty() => message.serialize_entry("content", &Value::Null)?,
        (_, None) if thoughts.in_text.is_empty() => message.serialize_entry("content", &Content(&text, form))?,
        (_, None) => message.serialize_entry("content", &Content(&format!("{}{text}", thoughts.in_text), form))?,
    }
    for (field, value) in &thoughts.fields {
        message.serialize_entry(field, value)?;
    }
    if flags.echo == Echo::Always && !calls.is_empty() && thoughts.fields.is_empty() {
        message.serialize_entry("reasoning_content", "")?;
    }
    if !calls.is_empty() {
        let stand_in = is_running && flags.stand_in_signature;
        message.serialize_entry("tool_calls", &MessageCalls { calls: &calls, stand_in })?;
    }
    Ok(())
}

/// The visible text of a reply.
fn join_texts<'a>(parts: &'a [ModelPart<'a>]) -> Cow<'a, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        ModelPart::Text { text, .. } => Some(text),
        ModelPart::Reasoning { .. } | ModelPart::Call(_) => None,
    });
    let first = texts.next().map_or(Cow::Borrowed(""), |text| Cow::Borrowed(&**text));
    texts.fold(first, |whole, text| whole + &**text)
}

/// The reasoning of a reply in the form in which its server wants it back.
#[derive(Default)]
struct Thoughts {
    /// Fields beside the content.
    fields: Vec<(String, Value)>,
    in_text: String,
    in_content: Option<Value>,
}

impl Thoughts {
    fn choose(parts: &[ModelPart<'_>], echo: Echo) -> Self {
        let mut thoughts = Self::default();
        for part in parts {
            let ModelPart::Reasoning { text, opaque } = part else { continue };
            for field in ["reasoning_details", "thinking_blocks"] {
                if let Some(data) = opaque.get(field) {
                    thoughts.fields.push((field.to_owned(), data.clone()));
                }
            }
            let field = opaque.get("field").and_then(Value::as_str);
            match (echo, field) {
                (Echo::Always, _) => thoughts.add("reasoning_content", text),
                (Echo::Field, Some(field)) => thoughts.add(field, text),
                (Echo::Text, _) => {
                    let raw = opaque.get("raw").and_then(Value::as_str);
                    thoughts.in_text.push_str(raw.unwrap_or_default());
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
        match self.fields.iter_mut().find(|(known, _)| known == field) {
            Some((_, Value::String(before))) => before.push_str(text),
            _ => self.fields.push((field.to_owned(), text.into())),
        }
    }
}

struct Content<'a, T: ?Sized>(&'a T, ContentForm);

impl<T: Serialize + ?Sized> Serialize for Content<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.1 == ContentForm::Text {
            return self.0.serialize(serializer);
        }
        serializer.collect_seq([TextPart(self.0, self.1 == ContentForm::Breakpoint)])
    }
}

struct TextPart<'a, T: ?Sized>(&'a T, bool);

impl<T: Serialize + ?Sized> Serialize for TextPart<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(None)?;
        part.serialize_entry("type", "text")?;
        part.serialize_entry("text", self.0)?;
        if self.1 {
            part.serialize_entry("cache_control", &json!({"type": "ephemeral"}))?;
        }
        part.end()
    }
}

/// The user's message: one text, or, with pictures, a list.
struct UserContent<'a>(&'a [UserPart<'a>], ContentForm);

impl Serialize for UserContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(parts, form) = *self;
        if let [UserPart::Text(text)] = parts {
            return Content(text, form).serialize(serializer);
        }
        let has_pictures = parts.iter().any(|part| matches!(part, UserPart::Picture(_)));
        if !has_pictures {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    UserPart::Text(text) => Some(&**text),
                    UserPart::Picture(_) => None,
                })
                .collect();
            return Content(&texts.join("\n\n"), form).serialize(serializer);
        }
        let last = parts.len() - 1;
        let mut content = serializer.serialize_seq(Some(parts.len()))?;
        for (at, part) in parts.iter().enumerate() {
            match part {
                UserPart::Text(text) => {
                    content.serialize_element(&TextPart(text, form == ContentForm::Breakpoint && at == last))?;
                }
                UserPart::Picture(picture) => {
                    content
                        .serialize_element(&json!({"type": "image_url", "image_url": {"url": picture.url()}}))?;
                }
            }
        }
        content.end()
    }
}

struct MessageCalls<'a> {
    calls: &'a [&'a WireCall<'a>],
    stand_in: bool,
}

impl Serialize for MessageCalls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.calls.len()))?;
        for (at, call) in self.calls.iter().enumerate() {
            list.serialize_element(&OneCall { call, stand_in: self.stand_in && at == 0 })?;
        }
        list.end()
    }
}

struct OneCall<'a> {
    call: &'a WireCall<'a>,
    stand_in: bool,
}

impl Serialize for OneCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut call = serializer.serialize_map(None)?;
        call.serialize_entry("id", &self.call.id)?;
        call.serialize_entry("type", "function")?;
        call.serialize_entry("function", &Function(self.call))?;
        match self.call.opaque.and_then(|opaque| opaque.get("extra_content")) {
            Some(extra) => call.serialize_entry("extra_content", extra)?,
            None if self.stand_in => {
                call.serialize_entry("extra_content", &json!({"google": {"thought_signature": STAND_IN}}))?;
            }
            None => {}
        }
        call.end()
    }
}

struct Function<'a>(&'a WireCall<'a>);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut function = serializer.serialize_map(None)?;
        function.serialize_entry("name", &self.0.name)?;
        function.serialize_entry("arguments", &self.0.arguments)?;
        function.end()
    }
}
