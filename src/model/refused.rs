//! The part of a conversation that a server refuses: where its refusal points, and what stands there in the request.
//! Pure, and the same for every wire: what stands there is known by the id of its call or by its text.

use serde_json::Value;

use super::errors::{self, RefusalSubject};
use super::stated::Stated;
use crate::model::{ModelError, ModelErrorKind};

/// The fields of a request that list the conversation.
const LISTS: [&str; 3] = ["messages", "contents", "input"];

/// A place in the list of a request's messages: `messages[7].content`, `messages.3.content.1`, `input[4]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPointer {
    list: &'static str,
    index: usize,
    /// The rest of the path. Servers put names of types into it, which are in no request.
    inside: Vec<String>,
}

/// What a refusal says about the pictures of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureRefusal {
    /// One of them is not accepted.
    One,
    /// There are more than this many; `None` if the limit is not stated.
    TooMany(Option<usize>),
    /// The request has too many bytes, whatever they are.
    TooLarge,
}

/// Words before the most pictures that a request may have.
const MOST_PICTURES: &[&str] =
    &["at most", "up to", "maximum of", "maximum is", "maximum", "limit of", "limit is", "limit", "than", ">"];

/// A part of a conversation, as a request has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointedPart {
    /// The result of the call with this id.
    Result(String),
    /// The call with this id.
    Arguments(String),
    Text(String),
    /// The address or the data of a picture.
    Picture(String),
}

impl ModelError {
    /// True if a server refused what the conversation says, as far as its words tell.
    pub fn names_content(&self) -> bool {
        self.kind == ModelErrorKind::BadRequest
            && matches!(self.status, Some(400 | 413 | 422))
            && self.is_about(RefusalSubject::Content)
    }

    /// What a server refuses about pictures; `None` if it speaks of something else. A request without pictures may be
    /// refused in the same words.
    pub fn find_picture_refusal(&self) -> Option<PictureRefusal> {
        let words = self.message.to_ascii_lowercase();
        match self.kind {
            ModelErrorKind::ContextTooLong => {
                let is_of_text = words.contains("token") || words.contains("context");
                let is_of_bytes = words.contains("bytes") || self.status == Some(413) && !is_of_text;
                (is_of_bytes && Stated::read(&words).input.is_none()).then_some(PictureRefusal::TooLarge)
            }
            ModelErrorKind::BadRequest if !self.is_about(RefusalSubject::Picture) => None,
            ModelErrorKind::BadRequest => {
                if !self.is_about(RefusalSubject::PictureCount) {
                    return Some(PictureRefusal::One);
                }
                let most = MOST_PICTURES.iter().find_map(|before| {
                    let after = words.split_once(before)?.1.trim_start();
                    after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())].parse().ok()
                });
                Some(PictureRefusal::TooMany(most))
            }
            _ => None,
        }
    }

    fn is_about(&self, subject: RefusalSubject) -> bool {
        let words = self.message.to_ascii_lowercase();
        errors::list_subjects(self.status, &words).any(|about| about == subject)
    }

    /// The place in the conversation that a server refused, if it names one.
    pub fn find_pointer(&self) -> Option<ContentPointer> {
        let is_refusal = matches!(self.kind, ModelErrorKind::BadRequest | ModelErrorKind::ContextTooLong)
            && matches!(self.status, None | Some(400 | 413 | 422));
        if is_refusal { ContentPointer::read(&self.message) } else { None }
    }
}

impl ContentPointer {
    /// Finds the first place that a refusal names.
    fn read(words: &str) -> Option<Self> {
        LISTS.into_iter().find_map(|list| {
            words.match_indices(list).find_map(|(at, _)| {
                let is_whole = !words[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
                let mut path = Segments(&words[at + list.len()..]).map(str::to_owned);
                let index = path.next().filter(|_| is_whole)?.parse().ok()?;
                Some(Self { list, index, inside: path.collect() })
            })
        })
    }

    /// What stands at this place in the body of a request.
    pub fn list_parts(&self, body: &Value) -> Vec<PointedPart> {
        let mut parts = Vec::new();
        let Some(mut here) = body.get(self.list).and_then(|list| list.get(self.index)) else { return parts };
        let mut around = None;
        for segment in &self.inside {
            if read_picture(here).is_some() {
                break;
            }
            around = around.or_else(|| read_call(here));
            let below = match here {
                Value::Array(list) => segment.parse().ok().and_then(|index: usize| list.get(index)),
                Value::Object(fields) => fields.get(segment),
                _ => None,
            };
            here = below.unwrap_or(here);
        }
        match around.filter(|_| read_picture(here).is_none()) {
            Some(call) => parts.push(call),
            None => collect_parts(here, &mut parts),
        }
        parts
    }
}

/// The names and the numbers of a path.
struct Segments<'w>(&'w str);

impl<'w> Iterator for Segments<'w> {
    type Item = &'w str;

    fn next(&mut self) -> Option<&'w str> {
        let rest = self.0.trim_start_matches([']', '\'', '"']);
        let rest = rest.strip_prefix(" -> ").or_else(|| rest.strip_prefix(", ")).unwrap_or(rest);
        let rest = rest.trim_start_matches(['.', '[', '/', '\'', '"']);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if rest.len() == self.0.len() || end == 0 {
            return None;
        }
        self.0 = &rest[end..];
        Some(&rest[..end])
    }
}

/// The call or the result that an object is.
fn read_call(value: &Value) -> Option<PointedPart> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "tool_result" => text("tool_use_id").map(PointedPart::Result),
        "function_call_output" => text("call_id").map(PointedPart::Result),
        "tool_use" | "function" => text("id").map(PointedPart::Arguments),
        "function_call" => text("call_id").map(PointedPart::Arguments),
        _ => text("tool_call_id").map(PointedPart::Result),
    }
}

/// The address or the data of the picture that an object is.
fn read_picture(value: &Value) -> Option<&str> {
    let picture = value.pointer("/image_url/url").or(value.pointer("/source/data")).or(value.get("image_url"));
    picture.and_then(Value::as_str)
}

fn collect_parts(value: &Value, parts: &mut Vec<PointedPart>) {
    if let Some(call) = read_call(value) {
        return parts.push(call);
    }
    match value {
        Value::String(text) => parts.push(PointedPart::Text(text.clone())),
        Value::Array(list) => list.iter().for_each(|below| collect_parts(below, parts)),
        Value::Object(fields) => {
            if let Some(data) = read_picture(value) {
                return parts.push(PointedPart::Picture(data.to_owned()));
            }
            let below = ["text", "content", "tool_calls"].into_iter().filter_map(|name| fields.get(name));
            below.for_each(|below| collect_parts(below, parts));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_in_every_notation() {
        for (words, found) in [
            ("Invalid 'messages[7].content': string too long", Some(("messages", 7, "content"))),
            ("messages.3.content.1: no", Some(("messages", 3, "content 1"))),
            (
                "messages.3.content.1.tool_result.content: no",
                Some(("messages", 3, "content 1 tool_result content")),
            ),
            ("Invalid input[4].output", Some(("input", 4, "output"))),
            ("$.input[12]", Some(("input", 12, ""))),
            ("no: messages.[2].content", Some(("messages", 2, "content"))),
            ("body -> messages -> 2 -> content: no", Some(("messages", 2, "content"))),
            ("('body', 'messages', 2, 'content')", Some(("messages", 2, "content"))),
            ("* GenerateContentRequest.contents[1].parts[0]: no", Some(("contents", 1, "parts 0"))),
            ("messages: 3 are too many", None),
            ("user_input[3] is unknown", None),
            ("messages.", None),
            ("messages[x]", None),
        ] {
            let found = found.map(|(list, index, inside)| ContentPointer {
                list,
                index,
                inside: inside.split_whitespace().map(str::to_owned).collect(),
            });
            assert_eq!(ContentPointer::read(words), found, "{words}");
        }
    }

    #[test]
    fn what_stands_there_in_every_wire() {
        let result = |id: &str| PointedPart::Result(id.to_owned());
        let arguments = |id: &str| PointedPart::Arguments(id.to_owned());
        let text = |text: &str| PointedPart::Text(text.to_owned());
        let chat = json!({"messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "words", "tool_calls": [{"type": "function", "id": "c1", "function": {}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
            {"role": "user", "content": [{"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:x"}}]},
        ]});
        let anthropic = json!({"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "y"},
                    {"type": "image", "source": {"type": "base64", "data": "iVB"}}]}]},
        ]});
        let responses = json!({"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
        ]});
        for (words, body, expected) in [
            ("messages[0].content", &chat, vec![text("hello")]),
            ("messages[1]", &chat, vec![text("words"), arguments("c1")]),
            ("messages[1].content", &chat, vec![text("words")]),
            ("messages[1].tool_calls[0].function.arguments", &chat, vec![arguments("c1")]),
            ("messages[2].content", &chat, vec![result("c1")]),
            ("messages[3].content[1].image_url.url", &chat, vec![PointedPart::Picture("data:x".to_owned())]),
            ("messages[3].content[1]", &chat, vec![PointedPart::Picture("data:x".to_owned())]),
            ("messages[9].content", &chat, vec![]),
            ("messages.0.content.0.tool_use.input", &anthropic, vec![arguments("c1")]),
            ("messages.1.content.1.tool_result.content.0.text", &anthropic, vec![result("c2")]),
            (
                "messages.1.content.1.tool_result.content.1.image.source.base64: no",
                &anthropic,
                vec![PointedPart::Picture("iVB".to_owned())],
            ),
            ("messages.1", &anthropic, vec![result("c1"), result("c2")]),
            ("input[0].content", &responses, vec![text("hello")]),
            ("input[1].arguments", &responses, vec![arguments("c1")]),
            ("input[2]", &responses, vec![result("c1")]),
        ] {
            let pointer = ContentPointer::read(words).expect("it is a place");
            assert_eq!(pointer.list_parts(body), expected, "{words}");
        }
    }

    #[test]
    fn what_is_said_about_pictures() {
        use PictureRefusal::{One, TooLarge, TooMany};
        let too_long = ModelErrorKind::ContextTooLong;
        for (kind, status, words, said) in [
            (ModelErrorKind::BadRequest, 400, "Could not process image", Some(One)),
            (ModelErrorKind::BadRequest, 400, "image exceeds 5 MB maximum: 6 bytes > 5 bytes", Some(One)),
            (ModelErrorKind::BadRequest, 400, "temperature: no", None),
            (
                ModelErrorKind::BadRequest,
                400,
                "At most 1 image(s) may be provided in one prompt.",
                Some(TooMany(Some(1))),
            ),
            (
                ModelErrorKind::BadRequest,
                400,
                "Too many images provided. This model supports up to 5 images",
                Some(TooMany(Some(5))),
            ),
            (
                ModelErrorKind::BadRequest,
                400,
                "too many images and documents: 102 + 0 > 100",
                Some(TooMany(Some(100))),
            ),
            (ModelErrorKind::BadRequest, 400, "Too many images.", Some(TooMany(None))),
            (too_long, 413, "Request exceeds the maximum size", Some(TooLarge)),
            (too_long, 400, "the request body size exceeds 33554432 bytes", Some(TooLarge)),
            (too_long, 400, "maximum context length is 8192 tokens", None),
        ] {
            let error = ModelError { status: Some(status), ..ModelError::new(kind, "m", words) };
            assert_eq!(error.find_picture_refusal(), said, "{words}");
        }
    }

    #[test]
    fn only_a_refusal_of_content_names_content() {
        for (status, words, names) in [
            (Some(400), "Invalid content", true),
            (Some(422), "the text was flagged", true),
            (Some(400), "not like this", false),
            (Some(500), "Invalid content", false),
            (None, "Invalid content", false),
        ] {
            let error = ModelError { status, ..ModelError::new(ModelErrorKind::BadRequest, "m", words) };
            assert_eq!(error.names_content(), names, "{words}");
        }
    }
}
