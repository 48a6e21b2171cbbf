//! A conversation as Claude Code keeps it, for hooks that were written to read that: one JSON object a line, each part of a
//! reply a line of its own.

use serde_json::{Value, json};

use crate::config::peer_tools;
use crate::conversation::message::{CallStatus, Item, ReplyPart};

/// Writes a conversation. `session` and `dir` stand in every line.
pub fn write_for_peer(session: &str, dir: &str, items: &[Item]) -> String {
    let mut lines = String::new();
    let mut add = |role: &str, content: Value| {
        let line = json!({
            "type": role, "sessionId": session, "cwd": dir, "message": { "role": role, "content": content },
        });
        lines += &line.to_string();
        lines.push('\n');
    };
    for item in items {
        match item {
            Item::Said(said) => add("user", json!(said.text)),
            Item::Summary(summary) => add("user", json!(summary.text)),
            Item::Step(step) => {
                for part in &step.parts {
                    match part {
                        ReplyPart::Text { text, .. } => {
                            add("assistant", json!([{ "type": "text", "text": text }]));
                        }
                        ReplyPart::Reasoning { text, .. } => {
                            add("assistant", json!([{ "type": "thinking", "thinking": text }]));
                        }
                        ReplyPart::Call(call) => {
                            let name = &call.request.name;
                            let input = serde_json::from_str(&call.request.arguments).unwrap_or_default();
                            add(
                                "assistant",
                                json!([{
                                    "type": "tool_use",
                                    "id": call.request.id,
                                    "name": peer_tools::name_for_peer(name),
                                    "input": peer_tools::arguments_for_peer(name, input),
                                }]),
                            );
                        }
                    }
                }
                for call in step.calls() {
                    let Some(answer) = &call.answer else { continue };
                    let mut result = json!({
                        "type": "tool_result", "tool_use_id": call.request.id, "content": answer.content,
                    });
                    if answer.status != CallStatus::Ok {
                        result["is_error"] = true.into();
                    }
                    add("user", json!([result]));
                }
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Call, CallAnswer, Step, ToolCall, UserText};

    #[test]
    fn each_part_is_a_line_with_the_names_of_the_other_program() {
        let request = ToolCall {
            id: "c1".to_owned(),
            name: "read_file".to_owned(),
            arguments: r#"{"path":"a.txt"}"#.to_owned(),
        };
        let answer = CallAnswer::of_text("one".to_owned(), CallStatus::Ok);
        let failed = ToolCall { id: "c2".to_owned(), ..request.clone() };
        let failure = CallAnswer::of_text("none", CallStatus::Denied);
        let parts = vec![
            ReplyPart::Text { text: "I look.".to_owned(), opaque: None },
            ReplyPart::Call(Call { request, opaque: None, answer: Some(answer) }),
            ReplyPart::Call(Call { request: failed, opaque: None, answer: Some(failure) }),
        ];
        let items = [Item::Said(UserText::by_person("look")), Item::Step(Step { parts, ..Step::default() })];
        let written = write_for_peer("s1", "/w", &items);
        let lines: Vec<Value> =
            written.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
        let contents: Vec<&Value> = lines.iter().map(|line| &line["message"]["content"]).collect();
        assert_eq!(*contents[0], "look");
        assert_eq!(contents[1][0]["text"], "I look.");
        assert_eq!(
            (&contents[2][0]["name"], &contents[2][0]["input"]["file_path"]),
            (&json!("Read"), &json!("a.txt"))
        );
        assert_eq!(*contents[4], json!([{ "type": "tool_result", "tool_use_id": "c1", "content": "one" }]));
        assert_eq!((&contents[5][0]["tool_use_id"], &contents[5][0]["is_error"]), (&json!("c2"), &json!(true)));
        assert!(written.contains(r#""role":"assistant""#), "hooks search for it like this");
    }
}
