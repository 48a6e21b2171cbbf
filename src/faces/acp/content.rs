//! The person's message as an editor sends it, and an earlier conversation as an editor shows it.

use std::path::Path;

use serde_json::{Value, json};

use super::rpc::RpcError;
use super::updates::{chunk, describe_call, end_call, list_locations, name_kind};
use crate::base::image::{Image, decode_base64};
use crate::base::json;
use crate::base::output::CallStatus;
use crate::conversation::attachment::{Attachment, Attachments, strip_attachments};
use crate::conversation::message::{Item, ReplyPart};
use crate::safety::net;

/// The text of a message, and what goes with it.
///
/// # Errors
/// A part is of a kind that was not offered, or is not what it says.
pub fn read_prompt(parts: &Value) -> Result<(String, Attachments), RpcError> {
    let parts = parts.as_array().ok_or_else(|| RpcError::params("`prompt` is a list"))?;
    let (mut texts, mut attached) = (Vec::new(), Attachments::default());
    for part in parts {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match part["type"].as_str().unwrap_or_default() {
            "text" => texts.push(word(&part["text"])),
            "image" => {
                let bytes = decode_base64(part["data"].as_str().unwrap_or_default());
                let bytes = bytes.ok_or_else(|| RpcError::params("an image is not base64"))?;
                let image = Image::read(&bytes).map_err(|why| RpcError::params(format!("an image {why}")))?;
                attached.pictures.push(image);
            }
            "resource" => {
                let resource = &part["resource"];
                let Some(content) = resource["text"].as_str() else {
                    return Err(RpcError::params("a resource has no text"));
                };
                attached.texts.push(Attachment { name: word(&resource["uri"]), content: content.to_owned() });
            }
            // The model reads the file itself, if it wants to.
            "resource_link" => {
                let uri = word(&part["uri"]);
                texts.push(match net::read_file_address(&uri) {
                    Some((path, Some(place))) => format!("@{} ({place})", path.display()),
                    Some((path, None)) => format!("@{}", path.display()),
                    None => format!("@{uri}"),
                });
            }
            other => return Err(RpcError::params(format!("content of the kind `{other}` was not offered"))),
        }
    }
    let text = texts.join("\n").trim().to_owned();
    if text.is_empty() && attached.texts.is_empty() && attached.pictures.is_empty() {
        return Err(RpcError::params("`prompt` is empty"));
    }
    Ok((text, attached))
}

/// The updates that show a conversation from its beginning.
pub fn replay_items(items: &[Item], workspace: &Path) -> Vec<Value> {
    let mut updates = Vec::new();
    for (number, item) in items.iter().enumerate() {
        match item {
            Item::Said(said) if said.author.is_person() => {
                updates.push(chunk("user_message_chunk", strip_attachments(&said.text)));
            }
            Item::Said(_) | Item::Summary(_) => {}
            Item::Step(step) => {
                for part in &step.parts {
                    match part {
                        ReplyPart::Text { text, .. } => updates.push(chunk("agent_message_chunk", text)),
                        ReplyPart::Reasoning { text, .. } => updates.push(chunk("agent_thought_chunk", text)),
                        ReplyPart::Call(call) => {
                            let id = format!("{number}-{}", call.request.id);
                            let arguments = json::object_or_unparsed(&call.request.arguments);
                            let subject = arguments["path"].as_str().or(arguments["command"].as_str());
                            updates.push(json!({
                                "sessionUpdate": "tool_call",
                                "toolCallId": id,
                                "title": describe_call(&call.request.name, subject.unwrap_or_default()),
                                "kind": name_kind(&call.request.name),
                                "status": "in_progress",
                                "locations": list_locations(workspace, &arguments),
                                "rawInput": arguments,
                            }));
                            let answer = call.answer.as_ref();
                            let status = answer.map_or(CallStatus::Cancelled, |answer| answer.status);
                            updates.push(end_call(&id, answer.map_or("", |answer| &answer.content), status));
                        }
                    }
                }
            }
        }
    }
    updates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_text_with_what_goes_with_it() {
        let parts = json!([
            { "type": "text", "text": "look at" },
            { "type": "resource_link", "name": "a", "uri": "file:///x/a.rs" },
            { "type": "resource_link", "name": "b", "uri": "file:///x/%E4%B8%AD%20%E6%96%87.txt#L1:2" },
            { "type": "resource_link", "name": "c", "uri": "https://x.example/c" },
            { "type": "resource", "resource": { "uri": "file:///x/b.rs", "text": "fn b() {}" } },
        ]);
        let (text, attached) = read_prompt(&parts).expect("it is right");
        let links = "@/x/a.rs\n@/x/中 文.txt (L1:2)\n@https://x.example/c";
        assert_eq!(text, format!("look at\n{links}"));
        assert_eq!(
            attached.texts,
            [Attachment { name: "file:///x/b.rs".to_owned(), content: "fn b() {}".to_owned() }]
        );
        let blank = json!([{ "type": "text", "text": " " }]);
        for wrong in [
            json!("text"),
            json!([]),
            blank,
            json!([{ "type": "audio" }]),
            json!([{ "type": "image", "data": "!" }]),
        ] {
            assert_eq!(read_prompt(&wrong).expect_err("it is wrong").code, RpcError::PARAMS, "{wrong}");
        }
    }
}
