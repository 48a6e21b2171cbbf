//! `server_tools: [web_search]`: the provider searches, and what it finds is shown, sent back and not trusted.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

fn run(server: &Server, model: &str) -> Run {
    run_of(server, "m", model)
}

fn run_of(server: &Server, name: &str, model: &str) -> Run {
    let base = server.url();
    let model = format!(
        "provider: openai\nbase_url: {base}\nmodel: {name}\napi_key: k\nserver_tools: [web_search]\n{model}"
    );
    Run::new().config("models/m.yaml", &model).args(["run", "-m", "m", "what is new?"])
}

fn events(events: &[Value]) -> Reply {
    let lines: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::body(200, "text/event-stream", lines)
}

fn claude(blocks: &[Value], stop: &str) -> Reply {
    let mut all =
        vec![json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
        "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}})];
    for (index, block) in blocks.iter().enumerate() {
        all.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        all.push(json!({"type": "content_block_stop", "index": index}));
    }
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}));
    all.push(json!({"type": "message_stop"}));
    events(&all)
}

#[test]
fn a_search_of_claude_is_shown_and_sent_back_and_taints_the_conversation() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust 1.95"}});
    let page = json!({"type": "web_search_result", "url": "https://blog.example/rust", "title": "R", "encrypted_content": "x"});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]});
    let call =
        json!({"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {"path": "a", "content": "b"}});
    let server = Server::start([
        claude(&[search.clone(), found.clone(), call], "tool_use"),
        claude(&[json!({"type": "text", "text": "done"})], "end_turn"),
    ]);
    let run = run(&server, "dialect: anthropic\nwire: anthropic\n").args(["--approve", "edits"]).run();
    let requests = server.requests();
    let tools = requests[0].body["tools"].as_array().expect("tools");
    assert_eq!(tools.last(), Some(&json!({"type": "web_search_20250305", "name": "web_search"})));
    assert!(tools.len() > 5, "ours stand before it");
    assert!(run.stderr.contains("the model searched the web for: rust 1.95"), "{}", run.shown());
    assert!(run.stderr.contains("the web search found https://blog.example/rust"), "{}", run.shown());
    let sent = requests[1].messages()[1]["content"].as_array().expect("blocks");
    assert_eq!(sent[..2], [search, found]);
    let log = std::fs::read_to_string(&run.place.session_logs()[0]).expect("a log");
    assert!(log.contains(r#""type":"taint","source":"a web search of the provider""#), "{log}");
}

#[test]
fn a_server_that_pauses_in_a_search_goes_on_where_it_was_and_all_its_words_are_the_answer() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust 1.95"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let server = Server::start([
        claude(&[text("First. "), search.clone()], "pause_turn"),
        claude(&[found.clone(), text("Then. ")], "pause_turn"),
        claude(&[text("At last.")], "end_turn"),
    ]);
    let model = "dialect: anthropic\nwire: anthropic\n";
    let run = run(&server, model).args(["--ephemeral"]).run().success();
    assert_eq!(run.stdout, "First. Then. At last.\n");
    let requests = server.requests();
    let sent = |at: usize| requests[at].messages()[1..].to_vec();
    let reply = |blocks: &[Value]| json!({"role": "assistant", "content": blocks});
    assert_eq!(sent(1), [reply(&[text("First. "), search.clone()])], "as it came, with nothing after it");
    let go_on = &sent(2)[1];
    assert_eq!(sent(2)[0], reply(&[text("First. "), search, found, text("Then. ")]));
    assert_eq!(
        (&go_on["role"], &go_on["content"][0]["text"]),
        (&json!("user"), &json!("[Go on.]")),
        "no model continues words"
    );

    // What a person says next stands in the place of the tool that never answered.
    let cut =
        json!({"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {"query": "x"}});
    let server =
        Server::start([claude(&[text("First. "), cut], "pause_turn"), claude(&[text("Well.")], "end_turn")]);
    let run = self::run(&server, model).args(["--max-turns", "1"]).run();
    let last = server.requests()[1].messages().to_vec();
    assert_eq!(last[1], reply(&[text("First. ")]), "{}", run.shown());
    assert_eq!(last[2]["role"], "user");
}

#[test]
fn a_search_of_openai_goes_back_with_the_reasoning_before_it() {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rust 1.95"}});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "list_dir", "arguments": "{}", "status": "completed"});
    let output = [thought.clone(), search.clone(), call];
    let mut all: Vec<Value> = output
        .iter()
        .enumerate()
        .map(|(at, item)| json!({"type": "response.output_item.done", "output_index": at, "item": item}))
        .collect();
    all.push(
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": output,
        "usage": {"input_tokens": 3, "output_tokens": 2}}}),
    );
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "done"}]});
    let end = json!({"type": "response.completed", "response": {"id": "s", "status": "completed", "output": [message],
        "usage": {"input_tokens": 3, "output_tokens": 2}}});
    let server = Server::start([events(&all), events(&[end])]);
    let run = run(&server, "dialect: openai\nwire: responses\n").run().success().stdout_has("done");
    assert_eq!(run.stderr.matches("the model searched the web for: rust 1.95").count(), 1, "{}", run.shown());
    let requests = server.requests();
    assert_eq!(
        requests[0].body["tools"].as_array().and_then(|tools| tools.last()),
        Some(&json!({"type": "web_search"}))
    );
    let input = requests[1].body["input"].as_array().expect("items");
    let at = input.iter().position(|item| item["type"] == "reasoning").expect("it goes back");
    assert_eq!(input[at..at + 2], [thought, search]);
}

#[test]
fn a_router_says_what_it_cited_and_an_unknown_server_is_refused_before_anything_is_sent() {
    let cite = |url: &str| json!({"type": "url_citation", "url_citation": {"url": url, "title": "t"}});
    let chunk = |delta: Value, end: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let server = Server::start([events(&[
        chunk(json!({"role": "assistant", "content": "done"}), Value::Null),
        chunk(
            json!({"content": "", "annotations": [cite("https://a.example/"), cite("https://b.example/")]}),
            json!("stop"),
        ),
    ])]);
    let router = run(&server, "dialect: openrouter\n").run().success();
    assert!(
        router.stderr.contains("the web search found https://a.example/, https://b.example/"),
        "{}",
        router.shown()
    );
    let tools = server.requests()[0].body["tools"].as_array().cloned().unwrap_or_default();
    assert_eq!(tools.last(), Some(&json!({"type": "openrouter:web_search"})));
    run(&server, "dialect: none\n").run().exits(3).stderr_has("server_tools");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_search_of_gemini_goes_back_beside_our_call() {
    let queried = json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "args": {"queries": ["rust 1.95"]}}, "thoughtSignature": "a"});
    let found = json!({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1", "response": {}}, "thoughtSignature": "b"});
    let call = json!({"functionCall": {"id": "c1", "name": "list_dir", "args": {}}, "thoughtSignature": "c"});
    let chunk = |parts: &[Value]| {
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP",
            "groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://blog.example/rust"}}]}}],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}})
    };
    let server = Server::start([
        events(&[chunk(&[queried.clone(), found.clone(), call.clone()])]),
        events(&[chunk(&[json!({"text": "do"})]), chunk(&[json!({"text": "ne"})])]),
    ]);
    let run = run(&server, "dialect: gemini\nwire: gemini\n").run().success().stdout_has("done");
    assert!(run.stderr.contains("the model searched the web for: rust 1.95"), "{}", run.shown());
    let told = run.stderr.matches("the web search found https://blog.example/rust").count();
    assert_eq!(told, 2, "once in each reply: {}", run.shown());
    let requests = server.requests();
    let body = &requests[0].body;
    assert_eq!(body["tools"][1], json!({"googleSearch": {}}));
    assert_eq!(body["toolConfig"]["includeServerSideToolInvocations"], true);
    assert_eq!(requests[1].body["contents"][1]["parts"], json!([queried, found, call]));
    let old = run_of(&server, "gemini-2.5-pro", "dialect: gemini\nwire: gemini\n");
    old.run().exits(3).stderr_has("from Gemini 3 on");
}
