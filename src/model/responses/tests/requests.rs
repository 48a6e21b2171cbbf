//! Each field of a request, and the order of its items.

use serde_json::{Map, Value, json};

use super::super::super::asked::{OutgoingRequest, RequestSettings};
use super::super::super::effort::Effort;
use super::super::super::turns::{ModelPart, ToolResult, UserPart, WireCall, WireTurn};
use super::super::encode::{cache_key, encode_request};
use super::super::flags::{ResponsesFlags, SystemIn};
use super::valid;
use crate::base::image::Image;
use crate::config::Permission;
use crate::model::{ToolChoice, ToolDefinition};

fn settings() -> RequestSettings {
    RequestSettings {
        model: "gpt-6-sol".to_owned(),
        streaming: true,
        parallel_calls: true,
        strict_tools: true,
        ..RequestSettings::default()
    }
}

fn asked<'a>(
    settings: &'a RequestSettings,
    turns: &'a [WireTurn<'a>],
    tools: &'a [ToolDefinition],
) -> OutgoingRequest<'a> {
    let tool_choice = ToolChoice::Auto;
    OutgoingRequest { settings, system: "Be brief.", turns, tools, tool_choice, schema: None, session_id: "s-1" }
}

/// The body, which every server would take.
fn body(asked: &OutgoingRequest<'_>, flags: &ResponsesFlags) -> String {
    let bytes = encode_request(asked, flags);
    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(valid::check(&value), Ok(()));
    String::from_utf8(bytes).expect("UTF-8")
}

fn definition(name: &str) -> ToolDefinition {
    let parameters = json!({
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
        "additionalProperties": false,
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

fn user(text: &str) -> WireTurn<'_> {
    WireTurn::User(vec![UserPart::Text(text.into())])
}

fn text<'a>(text: &'a str, opaque: Option<&'a Value>) -> ModelPart<'a> {
    ModelPart::Text { text: text.into(), opaque }
}

fn call(opaque: Option<&Value>) -> ModelPart<'_> {
    ModelPart::Call(WireCall {
        id: "call_1".into(),
        name: "read".into(),
        arguments: r#"{"path":"a.png"}"#.into(),
        opaque,
    })
}

fn result(pictures: &[Image]) -> WireTurn<'_> {
    let (id, name, text) = ("call_1".into(), "read".into(), "A picture.".into());
    WireTurn::Results(vec![ToolResult { id, name, text, is_error: false, pictures }])
}

#[test]
fn reasoning_goes_back_before_its_call_and_pictures_in_the_output() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let (said, called) = (json!({"id": "msg_a", "phase": "commentary"}), json!({"id": "fc_1"}));
    let pictures = [Image { mime: "image/png".to_owned(), data: "iVBO".to_owned(), ..Image::default() }];
    let reply = WireTurn::Model(vec![
        ModelPart::Reasoning { text: "Hm.", opaque: &reasoning },
        text("I look.", Some(&said)),
        call(Some(&called)),
    ]);
    let turns = [user("What is it?"), reply, result(&pictures)];
    let (settings, tools) = (settings(), [definition("read")]);
    assert_eq!(
        body(&asked(&settings, &turns, &tools), &ResponsesFlags::default()),
        concat!(
            r#"{"model":"gpt-6-sol","stream":true,"store":false,"include":["reasoning.encrypted_content"],"#,
            r#""instructions":"Be brief.","tools":[{"type":"function","name":"read","description":"Reads.","#,
            r#""parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"#,
            r#""additionalProperties":false},"strict":true}],"#,
            r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is it?"}]},"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},"#,
            r#"{"type":"message","role":"assistant","id":"msg_a","status":"completed","phase":"commentary","#,
            r#""content":[{"type":"output_text","text":"I look.","annotations":[]}]},"#,
            r#"{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","#,
            r#""arguments":"{\"path\":\"a.png\"}"},"#,
            r#"{"type":"function_call_output","call_id":"call_1","output":["#,
            r#"{"type":"input_text","text":"A picture."},"#,
            r#"{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBO"}]}]}"#
        )
    );
}

#[test]
fn another_model_gets_neither_reasoning_nor_the_id_of_a_call() {
    let turns = [
        user("What is it?"),
        WireTurn::Model(vec![text("I look.", None), call(None)]),
        result(&[]),
        WireTurn::Model(vec![text("A cat.", None)]),
        user("Thanks."),
    ];
    let settings = settings();
    let sent = body(&asked(&settings, &turns, &[]), &ResponsesFlags::default());
    let input = concat!(
        r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is it?"}]},"#,
        r#"{"type":"message","role":"assistant","id":"msg_1","status":"completed","#,
        r#""content":[{"type":"output_text","text":"I look.","annotations":[]}]},"#,
        r#"{"type":"function_call","call_id":"call_1","name":"read","arguments":"{\"path\":\"a.png\"}"},"#,
        r#"{"type":"function_call_output","call_id":"call_1","output":"A picture."},"#,
        r#"{"type":"message","role":"assistant","id":"msg_4","status":"completed","#,
        r#""content":[{"type":"output_text","text":"A cat.","annotations":[]}]},"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Thanks."}]}]}"#
    );
    assert!(sent.ends_with(input), "{sent}");
}

#[test]
fn a_call_keeps_its_id_only_beside_its_reasoning_and_its_namespace_always() {
    let own = json!({"id": "fc_1", "namespace": "mcp"});
    let turns = [user("Go."), WireTurn::Model(vec![call(Some(&own))]), result(&[])];
    let settings = settings();
    let sent = body(&asked(&settings, &turns, &[]), &ResponsesFlags::default());
    assert!(
        sent.contains(r#"{"type":"function_call","call_id":"call_1","name":"read","namespace":"mcp","#),
        "{sent}"
    );
}

#[test]
fn the_break_between_two_messages_of_a_reply_is_not_sent() {
    let turns =
        [user("Go."), WireTurn::Model(vec![text("\n\nOne.", None), text("\n\n\nTwo.", None)]), user("On.")];
    let settings = settings();
    let sent = body(&asked(&settings, &turns, &[]), &ResponsesFlags::default());
    assert!(sent.contains(r#""text":"\n\nOne.""#) && sent.contains(r#""text":"\nTwo.""#), "{sent}");
}

#[test]
fn pictures_of_the_user_stand_among_the_words() {
    let picture = Image { mime: "image/jpeg".to_owned(), data: "/9j/".to_owned(), ..Image::default() };
    let turns = [WireTurn::User(vec![UserPart::Text("This:".into()), UserPart::Picture(&picture)])];
    let settings = settings();
    let sent = body(&asked(&settings, &turns, &[]), &ResponsesFlags::default());
    let content = concat!(
        r#""content":[{"type":"input_text","text":"This:"},"#,
        r#"{"type":"input_image","detail":"auto","image_url":"data:image/jpeg;base64,/9j/"}]"#
    );
    assert!(sent.contains(content), "{sent}");
}

/// The fields before `input`, except the model and those that are always there.
fn fields(settings: &RequestSettings, flags: &ResponsesFlags) -> Value {
    let (turns, tools) = ([user("Hello.")], [definition("read")]);
    let sent = body(&asked(settings, &turns, &tools), flags);
    let mut body: Map<String, Value> = serde_json::from_str(&sent).expect("an object");
    for key in ["model", "stream", "store"] {
        body.shift_remove(key);
    }
    body.into()
}

#[test]
fn each_setting_and_each_flag() {
    let mut all = settings();
    all.max_output_tokens = Some(4);
    all.temperature = Some(0.5);
    all.effort = Some(Effort::Xhigh);
    let flags = |change: fn(&mut ResponsesFlags)| {
        let mut flags = ResponsesFlags::default();
        change(&mut flags);
        flags
    };
    for (flags, key, value) in [
        (ResponsesFlags::default(), "include", json!(["reasoning.encrypted_content"])),
        (flags(|f| f.encrypted_include = false), "include", json!(null)),
        (ResponsesFlags::default(), "max_output_tokens", json!(16)),
        (flags(|f| f.min_output = 32), "max_output_tokens", json!(32)),
        (ResponsesFlags::default(), "temperature", json!(0.5)),
        (flags(|f| f.temperature = false), "temperature", json!(null)),
        (ResponsesFlags::default(), "reasoning", json!({"effort": "xhigh"})),
        (flags(|f| f.summary = true), "reasoning", json!({"effort": "xhigh", "summary": "auto"})),
        (ResponsesFlags::default(), "prompt_cache_key", json!(null)),
        (flags(|f| f.cache_key = true), "prompt_cache_key", json!("s-1")),
        (ResponsesFlags::default(), "parallel_tool_calls", json!(null)),
        (flags(|f| f.parallel_field = true), "parallel_tool_calls", json!(true)),
        (ResponsesFlags::default(), "stream_options", json!(null)),
        (flags(|f| f.padding_off = true), "stream_options", json!({"include_obfuscation": false})),
        (ResponsesFlags::default(), "instructions", json!("Be brief.")),
        (flags(|f| f.system_in = SystemIn::Developer), "instructions", json!(null)),
    ] {
        assert_eq!(fields(&all, &flags)[key], value, "{key} {flags:?}");
    }
    for (system_in, role) in [(SystemIn::Developer, "developer"), (SystemIn::System, "system")] {
        let flags = ResponsesFlags { system_in, ..ResponsesFlags::default() };
        let first = json!({"type": "message", "role": role, "content": "Be brief."});
        assert_eq!(fields(&settings(), &flags)["input"][0], first);
    }
    all.effort = Some(Effort::None);
    let flags = flags(|f| f.summary = true);
    assert_eq!(fields(&all, &flags)["reasoning"], json!({"effort": "none"}), "nothing to sum up");
    all.strict_tools = false;
    assert_eq!(fields(&all, &flags)["tools"][0]["strict"], json!(false));
}

#[test]
fn a_closing_request_and_a_schema_change_nothing_before_the_end_of_the_input() {
    let (settings, turns, tools) = (settings(), [user("Hello.")], [definition("read")]);
    let plain = asked(&settings, &turns, &tools);
    let schema = json!({"type": "object"});
    let closing = OutgoingRequest { tool_choice: ToolChoice::None, schema: Some(&schema), ..plain };
    let format =
        r#""text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"},"strict":false}}"#;
    let (none, apart) =
        (r#","tool_choice":"none""#, ResponsesFlags { format_with_tools: false, ..ResponsesFlags::default() });
    let without = OutgoingRequest { tools: &[], ..closing };
    for (asked, flags, tail) in [
        (closing, ResponsesFlags::default(), format!("{none},{format}")),
        (closing, ResponsesFlags { choice_none: false, ..ResponsesFlags::default() }, format!(",{format}")),
        (closing, ResponsesFlags { answer_format: false, ..ResponsesFlags::default() }, none.to_owned()),
        (closing, apart.clone(), none.to_owned()),
        (without, apart, format!(",{format}")),
    ] {
        let before = body(&OutgoingRequest { tool_choice: ToolChoice::Auto, schema: None, ..asked }, &flags);
        let before = before.strip_suffix('}').expect("an object");
        assert_eq!(body(&asked, &flags), format!("{before}{tail}}}"));
    }
}

#[test]
fn each_request_extends_the_one_before() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let thought = ModelPart::Reasoning { text: "", opaque: &reasoning };
    let turns = [
        user("One."),
        WireTurn::Model(vec![thought, call(None)]),
        result(&[]),
        WireTurn::Model(vec![text("Done.", None)]),
        user("Two."),
    ];
    let (settings, tools) = (settings(), [definition("read")]);
    let sent = |end: usize| body(&asked(&settings, &turns[..end], &tools), &ResponsesFlags::default());
    for (before, after) in [(1, 3), (3, 4), (4, 5)] {
        let before = sent(before);
        assert!(sent(after).starts_with(before.strip_suffix("]}").expect("the input is last")));
    }
}

#[test]
fn what_the_configuration_adds_is_merged_last() {
    let mut settings = settings();
    let Value::Object(extra) = json!({
        "text": {"verbosity": "low"},
        "include": null,
        "model": "other",
        "service_tier": "flex",
        "tools": [{"type": "function", "name": "x", "parameters": {}, "strict": false}],
    }) else {
        unreachable!("an object")
    };
    settings.extra = extra;
    let (turns, tools, schema) = ([user("Hello.")], [definition("read")], json!({"type": "object"}));
    let asked = OutgoingRequest { schema: Some(&schema), ..asked(&settings, &turns, &tools) };
    assert_eq!(
        body(&asked, &ResponsesFlags::default()),
        concat!(
            r#"{"model":"other","stream":true,"store":false,"service_tier":"flex","#,
            r#""tools":[{"type":"function","name":"x","parameters":{},"strict":false}],"#,
            r#""instructions":"Be brief.","#,
            r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello."}]}],"#,
            r#""text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"},"strict":false},"#,
            r#""verbosity":"low"}}"#
        )
    );
}

#[test]
fn a_long_id_of_a_session_is_cut() {
    assert_eq!(cache_key(&"é".repeat(70)).chars().count(), 64);
    assert_eq!(cache_key("s-1"), "s-1");
}
