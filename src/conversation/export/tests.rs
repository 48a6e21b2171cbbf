//! The forms of one conversation.

use super::*;
use crate::base::present::read_status;
use crate::conversation::message::{Call, CallAnswer, CallStatus, ReplyPart, Step, Usage, UserText};

fn exported() -> Exported {
    let request =
        ToolCall { id: "c1".to_owned(), name: "read_file".to_owned(), arguments: r#"{"path":"a"}"#.to_owned() };
    let answer = Some(CallAnswer::of_text("```\n<b>bold</b> & more", CallStatus::Ok));
    let parts = vec![
        ReplyPart::Reasoning { text: "I look.".to_owned(), opaque: None },
        ReplyPart::Text { text: "Let me see.".to_owned(), opaque: None },
        ReplyPart::Call(Call { request, opaque: None, answer }),
    ];
    Exported {
        id: "s-1".to_owned(),
        title: "Mend <it>".to_owned(),
        agent: "default".to_owned(),
        model: "m".to_owned(),
        created_at: "2026-11-27T00:00:00Z".to_owned(),
        system: "Be brief.".to_owned(),
        items: vec![
            Item::Said(UserText::by_person("Mend <it>")),
            Item::Step(Step {
                parts,
                usage: Usage { input_tokens: 9, output_tokens: 2, ..Usage::default() },
                ..Step::default()
            }),
        ],
        numbers: vec![1, 2],
        usage: Usage { input_tokens: 9, output_tokens: 2, ..Usage::default() },
        cost_usd: Some(0.5),
        helpers: Vec::new(),
    }
}

#[test]
fn markdown_fences_hold_whatever_they_contain() {
    let text = exported().write(ExportForm::Markdown);
    assert!(text.starts_with("# Mend <it>\n") && text.contains("\n## You (m1)\n"), "{text}");
    assert!(text.contains("\n````\n```\n<b>bold</b> & more\n````\n"), "{text}");
}

#[test]
fn html_escapes_everything_and_runs_nothing() {
    let text = exported().write(ExportForm::Html);
    assert!(
        text.contains("&lt;b&gt;bold&lt;/b&gt; &amp; more") && text.contains("<title>Mend &lt;it&gt;</title>"),
        "{text}"
    );
    assert!(!text.contains("<script") && !text.contains("http"), "{text}");
}

#[test]
fn openai_has_a_result_for_each_call() {
    let line: Value = serde_json::from_str(&exported().write(ExportForm::Openai)).expect("one line of JSON");
    let roles: Vec<&str> = line["messages"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(line["messages"][2]["tool_calls"][0]["id"], line["messages"][3]["tool_call_id"]);
}

#[test]
fn openai_shows_which_call_failed_so_that_an_import_knows() {
    let ours = |fields: &str| format!("<result tool=\"read_file\" untrusted>\n{fields}no\n</result>");
    for (content, status, expected) in [
        ("no".to_owned(), CallStatus::Ok, "no".to_owned()),
        ("no".to_owned(), CallStatus::Denied, ours("status: denied\n")),
        (ours(""), CallStatus::Error, ours("status: error\n")),
        (ours("status: timeout\n"), CallStatus::Timeout, ours("status: timeout\n")),
    ] {
        let mut failed = exported();
        let Item::Step(step) = &mut failed.items[1] else { panic!("a step") };
        let Some(ReplyPart::Call(call)) = step.parts.last_mut() else { panic!("a call") };
        call.answer = Some(CallAnswer::of_text(content, status));
        let written = failed.write(ExportForm::Openai);
        let line: Value = serde_json::from_str(&written).expect("one line of JSON");
        assert_eq!(line["messages"][3]["content"], expected);
        let told = line["messages"][3]["content"].as_str().and_then(read_status);
        assert_eq!(told.unwrap_or(CallStatus::Ok), status, "an import reads it: {written}");
    }
}

#[test]
fn a_trajectory_has_numbered_steps_with_thoughts_and_results() {
    let trajectory: Value = serde_json::from_str(&exported().write(ExportForm::Atif)).expect("JSON");
    let steps = trajectory["steps"].as_array().expect("steps");
    let told: Vec<_> = steps.iter().map(|step| (step["step_id"].as_u64(), step["source"].as_str())).collect();
    assert_eq!(told, [(Some(1), Some("system")), (Some(2), Some("user")), (Some(3), Some("agent"))]);
    assert_eq!(steps[2]["reasoning_content"], "I look.");
    assert_eq!(steps[2]["tool_calls"][0]["arguments"], json!({"path": "a"}));
    let result = &steps[2]["observation"]["results"][0];
    assert_eq!((&result["source_call_id"], &result["extra"]), (&json!("c1"), &Value::Null));
    let mut failed = exported();
    let Item::Step(step) = &mut failed.items[1] else { panic!("a step") };
    let Some(ReplyPart::Call(call)) = step.parts.last_mut() else { panic!("a call") };
    call.answer = Some(CallAnswer::of_text("no", CallStatus::Denied));
    let failed: Value = serde_json::from_str(&failed.write(ExportForm::Atif)).expect("JSON");
    assert_eq!(failed["steps"][2]["observation"]["results"][0]["extra"]["status"], "denied");
    assert_eq!(trajectory["final_metrics"]["total_prompt_tokens"], 9);
}

#[test]
fn json_has_messages_calls_and_costs() {
    let document: Value = serde_json::from_str(&exported().write(ExportForm::Json)).expect("JSON");
    assert_eq!((&document["v"], &document["cost_usd"]), (&json!(1), &json!(0.5)));
    assert_eq!(document["messages"][1]["calls"][0]["ok"], true);
}
