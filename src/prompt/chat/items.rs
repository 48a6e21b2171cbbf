//! Converts messages to the items of a conversation, which has a system prompt instead of system messages, and in which
//! a call and its answer cannot be separated.

use crate::base::image::Image;
use crate::conversation::message::{Call, CallAnswer, CallStatus, FinishReason, Item, ReplyPart, Step, UserText};

use super::error::{ChatError, MessageProblem};
use super::message::{ChatMessage, ChatPart, ChatRole};

/// Messages as a conversation keeps them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Converted {
    /// The texts of the leading system messages, separated by blank lines.
    pub system: Option<String>,
    /// Everything after them.
    pub items: Vec<Item>,
}

/// Converts messages. `picture` reads the picture at a path or `data:` URL; its error is a sentence.
///
/// The pictures of a message follow its text.
///
/// # Errors
/// There are messages that a conversation cannot contain: a system message after others, an answer without its call, a
/// call without its answer, a picture that cannot be read. The error lists all of them, counting from 1.
pub fn convert_messages(
    messages: impl IntoIterator<Item = ChatMessage>,
    mut picture: impl FnMut(&str) -> Result<Image, String>,
) -> Result<Converted, ChatError> {
    let (mut converted, mut problems) = (Converted::default(), Vec::new());
    let mut last = 0;
    for (number, message) in (1..).zip(messages) {
        last = number;
        let role = message.role();
        let open = find_unanswered(&converted.items).filter(|_| role != ChatRole::Tool);
        problems.extend(open.map(|why| MessageProblem::new(number, role, why)));
        let taken = match message {
            ChatMessage::System { text } if converted.items.is_empty() => {
                let before = converted.system.take().map(|before| format!("{}\n\n", before.trim_end()));
                converted.system = Some(before.unwrap_or_default() + &text);
                Ok(())
            }
            ChatMessage::System { .. } => {
                Err("a system message must come before all others, as it is the system prompt".to_owned())
            }
            ChatMessage::User { parts } => {
                write_user_item(parts, &mut picture).map(|said| converted.items.push(said))
            }
            ChatMessage::Assistant { text, calls } => {
                let mut step = Step { given: true, ..Step::of_text(text, FinishReason::Stop) };
                let calls = calls.into_iter().map(|request| Call { request, opaque: None, answer: None });
                step.parts.extend(calls.map(ReplyPart::Call));
                converted.items.push(Item::Step(step));
                Ok(())
            }
            ChatMessage::Tool { call_id, text } => put_answer(converted.items.last_mut(), &call_id, text),
        };
        problems.extend(taken.err().map(|why| MessageProblem::new(number, role, why)));
    }
    problems.extend(find_unanswered(&converted.items).map(|why| MessageProblem::new(last, "the last", why)));
    if problems.is_empty() { Ok(converted) } else { Err(ChatError { problems }) }
}

/// The texts of the leading system messages, and the messages after them.
pub fn split_system(messages: Vec<ChatMessage>) -> (Vec<String>, Vec<ChatMessage>) {
    let first = messages.iter().take_while(|message| message.role() == ChatRole::System).count();
    let mut messages = messages.into_iter();
    let system = messages.by_ref().take(first).map(|message| message.text().trim().to_owned()).collect();
    (system, messages.collect())
}

fn write_user_item(
    parts: Vec<ChatPart>,
    picture: &mut impl FnMut(&str) -> Result<Image, String>,
) -> Result<Item, String> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            ChatPart::Text(text) => texts.push(text),
            ChatPart::Image(source) => images.push(picture(&source)?),
        }
    }
    Ok(Item::Said(UserText { images, ..UserText::by_person(texts.join("\n\n")) }))
}

/// Puts an answer into the slot of its call.
fn put_answer(last: Option<&mut Item>, call_id: &str, text: String) -> Result<(), String> {
    let Some(Item::Step(step)) = last else {
        return Err(format!("no message before it makes the call `{call_id}`"));
    };
    let Some(call) = step.calls().position(|call| call.request.id == call_id) else {
        return Err(format!("the message before it makes no call `{call_id}`"));
    };
    let filled = step.fill(call, CallAnswer::of_text(text, CallStatus::Ok));
    if filled { Ok(()) } else { Err(format!("the call `{call_id}` has an answer already")) }
}

/// The sentence about a call of the last item that has no answer.
fn find_unanswered(items: &[Item]) -> Option<String> {
    let open = items.last()?.as_step()?.calls().find(|call| call.answer.is_none())?;
    Some(format!(
        "the call `{}` before it has no answer: a tool message with this `call_id` follows a call",
        open.request.id
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn converted(messages: Json) -> Result<Converted, String> {
        let messages: Vec<ChatMessage> = serde_json::from_value(messages).expect("messages");
        let picture = |source: &str| match source {
            "a.gif" => Image::recognise(b"GIF89a").ok_or_else(String::new),
            _ => Err(format!("{source} does not exist")),
        };
        convert_messages(messages, picture).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_system_messages_are_the_system_prompt_and_answers_fill_their_slots() {
        let converted = converted(json!([
            {"role": "system", "content": "One.\n"},
            {"role": "system", "content": "Two."},
            {"role": "user", "content": [{"image": "a.gif"}, {"text": "Look"}]},
            {"role": "assistant", "content": "", "calls": [
                {"id": "a", "name": "f", "arguments": "{}"}, {"id": "b", "name": "g", "arguments": "{}"}]},
            {"role": "tool", "call_id": "b", "content": "second"},
            {"role": "tool", "call_id": "a", "content": "first"},
            {"role": "assistant", "content": "Done."},
        ]))
        .expect("sound");
        assert_eq!(converted.system.as_deref(), Some("One.\n\nTwo."));
        let [Item::Said(said), Item::Step(step), Item::Step(last)] = converted.items.as_slice() else {
            panic!("{converted:?}")
        };
        assert_eq!((said.text.as_str(), said.images.len()), ("Look", 1));
        let answers: Vec<&str> =
            step.calls().filter_map(|call| call.answer.as_ref()).map(|answer| answer.content.as_str()).collect();
        assert_eq!(answers, ["first", "second"]);
        assert!(step.given && last.text() == "Done.");
    }

    #[test]
    fn what_a_conversation_cannot_hold_is_told_with_its_number() {
        let calling =
            json!({"role": "assistant", "content": "", "calls": [{"id": "a", "name": "f", "arguments": "{}"}]});
        let (user, answer) =
            (json!({"role": "user", "content": "x"}), json!({"role": "tool", "call_id": "a", "content": "x"}));
        for (messages, why) in [
            (
                json!([user, {"role": "system", "content": "x"}]),
                "message 2 (system): a system message must come before",
            ),
            (json!([answer]), "message 1 (tool): no message before it makes the call `a`"),
            (json!([calling, user, answer]), "message 2 (user): the call `a` before it has no answer"),
            (
                json!([calling, {"role": "tool", "call_id": "b", "content": "x"}]),
                "message 2 (tool): the message before it makes no call `b`",
            ),
            (json!([calling, answer, answer]), "message 3 (tool): the call `a` has an answer already"),
            (json!([user, calling]), "message 2 (the last): the call `a` before it has no answer"),
            (json!([{"role": "user", "content": [{"image": "b.gif"}]}]), "message 1 (user): b.gif does not exist"),
        ] {
            let error = converted(messages).expect_err("wrong");
            assert!(error.contains(why), "{error}");
        }
    }
}
