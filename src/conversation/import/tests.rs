//! Each form holds the same conversation, and gives the same items.

use std::fmt::Write;

use super::{Imported, read_conversation};
use crate::conversation::message::{CallStatus, Item, ReplyPart};

/// A line for each part: who, and what.
fn describe(imported: &Imported) -> String {
    let mut out = String::new();
    for item in &imported.items {
        match item {
            Item::Said(said) => drop(writeln!(out, "said {}", said.text)),
            Item::Summary(_) => out.push_str("summary\n"),
            Item::Step(step) => {
                for part in &step.parts {
                    let line = match part {
                        ReplyPart::Text { text, .. } => format!("text {text}"),
                        ReplyPart::Reasoning { text, .. } => format!("thought {text}"),
                        ReplyPart::Call(call) => {
                            let answer = call.answer.as_ref();
                            let failed = answer.is_some_and(|answer| answer.status != CallStatus::Ok);
                            let answer = answer.map_or("nothing", |answer| &answer.content);
                            let mark = if failed { " failed" } else { "" };
                            format!("call {}{} → {answer}{mark}", call.request.name, call.request.arguments)
                        }
                    };
                    let _ = writeln!(out, "{line}");
                }
            }
        }
    }
    out
}

const WHOLE: &str = "said What is here?\nthought I look.\ncall ls{\"path\":\".\"} → a.txt\ntext One file.\n";

#[test]
fn one_conversation_in_every_form() {
    let own = r#"{"v":1,"model":"m","messages":[{"role":"user","text":"What is here?"},
        {"role":"assistant","text":"","calls":[{"id":"1","name":"ls","arguments":{"path":"."},"ok":true,"result":"a.txt"}]},
        {"role":"assistant","text":"One file."}]}"#;
    let openai = r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is here?"},
        {"role":"assistant","content":null,"reasoning_content":"I look.","tool_calls":[{"id":"1","type":"function",
            "function":{"name":"ls","arguments":"{\"path\":\".\"}"}}]},
        {"role":"tool","tool_call_id":"1","content":"a.txt"},{"role":"assistant","content":"One file."}]}"#;
    let atif = r#"{"schema_version":"ATIF-v1.8","agent":{"name":"x","version":"1","model_name":"m"},"steps":[
        {"step_id":1,"source":"user","message":"What is here?"},
        {"step_id":2,"source":"agent","message":"","reasoning_content":"I look.",
            "tool_calls":[{"tool_call_id":"1","function_name":"ls","arguments":{"path":"."}}],
            "observation":{"results":[{"source_call_id":"1","content":"a.txt"}]}},
        {"step_id":3,"source":"agent","message":"One file."}]}"#;
    let claude = concat!(
        r#"{"type":"summary","summary":"x"}"#,
        "\n",
        r#"{"type":"user","isMeta":true,"message":{"role":"user","content":"Caveat: …"}}"#,
        "\n",
        r#"{"type":"user","message":{"role":"user","content":"<command-name>/clear</command-name>"}}"#,
        "\n",
        r#"{"type":"user","message":{"role":"user","content":"What is here?"}}"#,
        "\n",
        r#"{"type":"user","isSidechain":true,"message":{"role":"user","content":"of a helper"}}"#,
        "\n",
        r#"{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"I look."}]}}"#,
        "\n",
        r#"{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"tool_use","id":"1","name":"ls","input":{"path":"."}}]}}"#,
        "\n",
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a.txt"}]}]}}"#,
        "\n",
        r#"{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"One file."}]}}"#,
        "\n",
    );
    let codex = concat!(
        r#"{"type":"session_meta","payload":{"id":"x","cwd":"/w"}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"What is here?"}]}}"#,
        "\n",
        r#"{"type":"event_msg","payload":{"type":"user_message","message":"What is here?"}}"#,
        "\n",
        r#"{"type":"turn_context","payload":{"model":"m"}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"I look."}]}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"function_call","name":"ls","arguments":"{\"path\":\".\"}","call_id":"1"}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"1","output":"a.txt"}}"#,
        "\n",
        r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One file."}]}}"#,
        "\n",
    );
    let pi = concat!(
        r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"What is here?"}}"#,
        "\n",
        r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"another branch"}]}}"#,
        "\n",
        r#"{"type":"message","id":"c","parentId":"a","message":{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"I look."},{"type":"toolCall","id":"1","name":"ls","arguments":{"path":"."}}]}}"#,
        "\n",
        r#"{"type":"message","id":"d","parentId":"c","message":{"role":"toolResult","toolCallId":"1","toolName":"ls","content":[{"type":"text","text":"a.txt"}],"isError":false}}"#,
        "\n",
        r#"{"type":"message","id":"e","parentId":"d","message":{"role":"assistant","content":[{"type":"text","text":"One file."}]}}"#,
        "\n",
    );
    let forms = [
        (own, "agent"),
        (openai, "chat completions"),
        (atif, "ATIF"),
        (claude, "Claude Code"),
        (codex, "codex"),
        (pi, "pi"),
    ];
    for (text, source) in forms {
        let imported = read_conversation(text).expect(source);
        let expected = if source == "agent" { WHOLE.replace("thought I look.\n", "") } else { WHOLE.to_owned() };
        assert_eq!(describe(&imported), expected, "{source}");
        assert_eq!((imported.source, imported.loose, imported.damaged), (source, 0, 0));
        assert_eq!(imported.model.is_some(), source != "chat completions", "{source}");
    }
}

#[test]
fn what_a_log_says_of_its_calls_is_not_believed() {
    let lying = concat!(
        r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}},{"type":"tool_use","id":"1","name":"b","input":"{"}]}}"#,
        "\n",
        "{broken\n",
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"9","content":"of none"},{"type":"tool_result","tool_use_id":"1","content":"of b","is_error":true}]}}"#,
        "\n",
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"once more"}]}}"#,
        "\n",
    );
    let imported = read_conversation(lying).expect("readable");
    assert_eq!(describe(&imported), "call a{} → nothing\ncall b{ → of b failed\n");
    assert_eq!((imported.loose, imported.damaged), (2, 1));
    let Item::Step(step) = &imported.items[0] else { panic!("a step") };
    let ids: Vec<&str> = step.calls().map(|call| call.request.id.as_str()).collect();
    assert_eq!(ids, ["1", "1-2"], "ids are unique");
}

#[test]
fn a_call_that_failed_is_still_one() {
    let ours = |status: &str| format!("<result tool=\\\"x\\\" untrusted>\\nstatus: {status}\\nno\\n</result>");
    let openai = |text: &str| {
        format!(
            r#"{{"messages":[{{"role":"assistant","tool_calls":[{{"id":"1","function":{{"name":"x","arguments":"{{}}"}}}}]}},
                {{"role":"tool","tool_call_id":"1","content":"{text}"}}]}}"#
        )
    };
    let atif = |extra: &str| {
        format!(
            r#"{{"schema_version":"ATIF-v1.8","steps":[{{"source":"agent","message":"",
                "tool_calls":[{{"tool_call_id":"1","function_name":"x","arguments":{{}}}}],
                "observation":{{"results":[{{"source_call_id":"1","content":"no"{extra}}}]}}}}]}}"#
        )
    };
    for (text, expected) in [
        (openai(&ours("denied")), CallStatus::Denied),
        (openai(&ours("error")), CallStatus::Error),
        (openai(&ours("ok")), CallStatus::Ok),
        (openai("status: error"), CallStatus::Ok),
        (atif(""), CallStatus::Ok),
        (atif(r#","extra":{"status":"error"}"#), CallStatus::Error),
    ] {
        let imported = read_conversation(&text).expect("readable");
        let Item::Step(step) = &imported.items[0] else { panic!("a step") };
        let answer = step.calls().next().and_then(|call| call.answer.as_ref());
        assert_eq!(answer.map(|answer| answer.status), Some(expected), "{text}");
    }
}

#[test]
fn what_is_no_conversation_is_refused() {
    for text in ["", "{}", "[]", "plain words", "{\"messages\":[]}", "{\"a\":1}\n{\"b\":2}\n"] {
        let why = read_conversation(text).expect_err(text);
        assert!(why.contains("it is no conversation") || why.contains("holds no message"), "{text}: {why}");
    }
}
