//! Ollama's and Gemini's own interfaces from outside: the window is known before the first request, nothing is cut away
//! silently, and what a provider wants back goes back where it came from.

use serde_json::{Value, json};

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

fn ask_ollama(server: &Server) -> Run {
    let host = server.url().trim_end_matches("/v1").to_owned();
    Run::new().args(["run", "-m", "ollama/qwen3"]).env("OLLAMA_HOST", host)
}

fn trained_for(tokens: u64) -> Value {
    json!({"model_info": {"qwen3.context_length": tokens}, "capabilities": ["completion", "tools"]})
}

#[test]
fn ollama_is_asked_for_a_window_before_the_first_request() {
    for (trained, asked, told) in [(131_072, 32_768, true), (8192, 8192, false)] {
        let server = Server::always(Reply::ollama("hello")).about("/api/show", &trained_for(trained));
        let output = ask_ollama(&server).arg("task").run().success();
        let request = server.only_request();
        assert_eq!(request.body["options"]["num_ctx"], asked);
        assert_eq!((&request.body["truncate"], &request.body["shift"]), (&json!(false), &json!(false)));
        assert_eq!(output.stderr.contains("context_window"), told, "{}", output.shown());
    }
}

#[test]
fn a_window_that_the_model_file_declares_is_what_ollama_is_asked_for() {
    let server = Server::always(Reply::ollama("hello"));
    let file = format!(
        "provider: openai\nbase_url: {}\nwire: ollama\nmodel: qwen3\ncontext_window: 20000\n",
        server.url()
    );
    Run::new().config("models/mine.yaml", &file).args(["run", "task", "-m", "mine"]).run().success();
    assert_eq!(server.only_request().body["options"]["num_ctx"], 20_000);
    assert_eq!(server.questions(), 0);
}

#[test]
fn ollama_gets_the_results_of_its_calls_with_its_thoughts() {
    let call = json!({"message": {"role": "assistant", "content": "", "thinking": "Look first.",
        "tool_calls": [{"function": {"name": "list_dir", "arguments": {"path": "."}}}]}, "done": false});
    let done = json!({"message": {"content": ""}, "done": true, "done_reason": "stop",
        "prompt_eval_count": 900, "eval_count": 9});
    let server = Server::start([Reply::lines(&[call, done]), Reply::ollama("Nothing there.")])
        .about("/api/show", &trained_for(32_768));
    ask_ollama(&server).arg("task").run().stdout_is("Nothing there.\n");
    let requests = server.requests();
    let [.., assistant, result] = requests[1].messages() else { panic!("{}", requests[1].raw) };
    assert_eq!(assistant["thinking"], "Look first.");
    assert_eq!(assistant["tool_calls"][0]["function"]["arguments"], json!({"path": "."}));
    assert_eq!((&result["role"], &result["tool_name"]), (&json!("tool"), &json!("list_dir")));
    assert_eq!(result["tool_call_id"], assistant["tool_calls"][0]["id"]);
}

#[test]
fn the_models_of_a_local_server_are_listed() {
    let server = Server::always(Reply::ollama("unused"))
        .about("/v1/models", &json!({"object": "list", "data": [{"id": "qwen3:8b"}, {"id": "gemma3"}]}));
    let host = server.url().trim_end_matches("/v1").to_owned();
    Run::new()
        .args(["model", "list", "ollama"])
        .env("OLLAMA_HOST", host)
        .run()
        .success()
        .stdout_has("ollama/qwen3:8b")
        .stdout_has("ollama/gemma3");
    let nobody = "127.0.0.1:9";
    Run::new()
        .args(["model", "list", "ollama"])
        .env("OLLAMA_HOST", nobody)
        .run()
        .stderr_has("Ollama does not answer at http://127.0.0.1:9/v1");
}

#[test]
fn gemini_gets_its_signatures_and_ids_back() {
    let call = json!({"candidates": [{"content": {"role": "model", "parts": [
        {"text": "I look.", "thought": true},
        {"functionCall": {"id": "fc_7", "name": "list_dir", "args": {"path": "."}}, "thoughtSignature": "c2lnMQ=="},
    ]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 9}});
    let answer = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Nothing there."}]},
        "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 950, "cachedContentTokenCount": 800,
        "candidatesTokenCount": 4}});
    let sse = |event: &Value| Reply::sse(format!("data: {event}\r\n\r\n"));
    let server = Server::start([sse(&call), sse(&answer)]);
    let file = format!(
        "provider: openai\nbase_url: {}\ndialect: gemini\nmodel: gemini-3.8-flash\napi_key: the-key\ncontext_window: 100000\n",
        server.url().replace("/v1", "/v1beta")
    );
    let run = Run::new().config("models/mine.yaml", &file);
    run.args(["run", "task", "-m", "mine"]).run().stdout_is("Nothing there.\n");
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse");
    assert_eq!(requests[0].header("x-goog-api-key"), Some("the-key"));
    assert_eq!(requests[0].header("authorization"), None);
    let contents = requests[1].body["contents"].as_array().expect("a list");
    let [.., model, results] = &contents[..] else { panic!("{}", requests[1].raw) };
    let part = &model["parts"][0];
    assert_eq!((&part["thoughtSignature"], &part["functionCall"]["id"]), (&json!("c2lnMQ=="), &json!("fc_7")));
    let result = &results["parts"][0]["functionResponse"];
    assert_eq!((&result["id"], &result["name"]), (&json!("fc_7"), &json!("list_dir")));
    assert!(result["response"]["output"].is_string(), "{results}");
}
