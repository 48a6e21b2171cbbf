//! More tools than are sent with every request: one line each in the prompt, `find_tools` and `call_tool`.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once, assert_append_only};

const TOPICS: [&str; 14] = [
    "weather",
    "invoice",
    "calendar",
    "deploy",
    "ticket",
    "backup",
    "translate",
    "stock",
    "flight",
    "recipe",
    "music",
    "traffic",
    "contact",
    "report",
];

/// A run with a tool for each topic.
fn with_many(server: &Server) -> Run {
    let run = Run::task(server, "task").args(["-o", "jsonl"]);
    TOPICS.iter().fold(run, |run, topic| {
        let level = if *topic == "deploy" { "write" } else { "read" };
        let tool = format!(
            "description: Tells about the {topic}. Returns one line about it.\npermission: {level}\n\
             parameters: {{ required: [about], properties: {{ about: {{ type: string, description: Which {topic} }} }} }}\n\
             command: [echo, \"{topic} of\", \"{{{{ about }}}}\"]\n"
        );
        run.config(&format!("tools/{topic}_info.yaml"), &tool)
    })
}

fn call(name: &str, arguments: &serde_json::Value) -> Reply {
    Reply::call("call_tool", &json!({"name": name, "arguments": arguments}))
}

#[test]
fn up_to_twenty_are_all_sent() {
    let server = Server::start([Reply::text("done")]);
    Run::task(&server, "task").config("tools/one.yaml", "description: One.\ncommand: [echo]\n").run().success();
    let request = server.only_request();
    let names = request.tool_names();
    assert!(
        names.contains(&"one") && !names.contains(&"find_tools") && !names.contains(&"call_tool"),
        "{names:?}"
    );
}

#[test]
fn more_are_summarised_found_and_called_as_themselves() {
    let server = Server::start([
        Reply::call("find_tools", &json!({"query": "what is the weather like"})),
        call("weather_info", &json!({"about": "Oslo; rm -rf /"})),
        // Some models call by the name at once, others write the inner object as text.
        Reply::call("recipe_info", &json!({"about": "soup"})),
        Reply::call("call_tool", &json!({"name": "music_info", "arguments": "{\"about\": \"jazz\"}"})),
        Reply::text("done"),
    ]);
    let output = with_many(&server).run().success();
    let requests = server.requests();
    let first = &requests[0];
    let names = first.tool_names();
    assert!(names.is_sorted() && names.contains(&"find_tools") && names.contains(&"call_tool"), "{names:?}");
    assert!(names.contains(&"read_file") && !names.contains(&"weather_info"), "{names:?}");
    assert!(first.system().contains("- weather_info: Tells about the weather.\n"), "{}", first.system());
    assert!(!first.system().contains("Returns one line"), "one line each");
    assert_append_only(&requests);
    requests.iter().for_each(assert_answered_once);
    let results: Vec<&str> = requests[4].tool_results().iter().map(|(_, text)| *text).collect();
    assert!(
        results[0].contains("weather_info: Tells about") && results[0].contains("\"about\""),
        "{}",
        results[0]
    );
    assert!(!results[0].contains("invoice_info"), "{}", results[0]);
    assert!(
        results[1].starts_with("<result tool=\"weather_info\"")
            && results[1].contains("weather of Oslo; rm -rf /")
    );
    assert!(results[2].contains("recipe of soup"), "{}", results[2]);
    assert!(results[3].contains("music of jazz"), "{}", results[3]);
    let started = output.events();
    let started: Vec<_> = started.of("tool.started").iter().map(|event| event["name"].clone()).collect();
    assert_eq!(started, ["find_tools", "weather_info", "recipe_info", "music_info"]);
}

#[test]
fn what_goes_through_call_tool_is_checked_and_judged_as_the_tool_it_names() {
    let told = |reply: Reply, code: i32| {
        let server = Server::start([reply, Reply::text("done")]);
        let output = with_many(&server).run().exits(code);
        let requests: Vec<Request> = server.requests();
        assert_answered_once(&requests[1]);
        (requests[1].last_result().to_owned(), output)
    };
    let (denied, output) = told(call("deploy_info", &json!({"about": "x"})), 7);
    assert!(denied.contains("status: denied"), "{denied}");
    assert_eq!(output.events().one("permission.requested")["name"], "deploy_info");
    for (reply, expected) in [
        (call("weather_info", &json!({"city": "Oslo"})), "- `city`: unknown; expected one of about"),
        (call("wether_info", &json!({})), "Did you mean weather_info"),
        (call("call_tool", &json!({})), "find_tools finds it"),
        (Reply::call("call_tool", &json!({"arguments": {}})), "find_tools finds it"),
        (Reply::call("find_tools", &json!({"query": "quantum"})), "No tool fits. There are: backup_info"),
    ] {
        let (result, _) = told(reply, 0);
        assert!(result.contains(expected), "{expected} in {result}");
    }
}

/// Answers `/embeddings` with vectors that know two topics, and everything else in order.
fn embedding(replies: Vec<Reply>) -> Server {
    let chats = std::sync::atomic::AtomicUsize::new(0);
    Server::answering(move |request, _| {
        if request.path != "/v1/embeddings" {
            let index = chats.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            return replies[index].clone();
        }
        let vector = |text: &str| {
            let about = |words: [&str; 2]| f64::from(u8::from(words.iter().any(|word| text.contains(word))));
            json!([0.1, about(["umbrella", "weather"]), about(["dinner", "recipe"])])
        };
        let texts = request.body["input"].as_array().expect("a list of texts");
        let items = texts.iter().enumerate().rev();
        let data: Vec<_> = items
            .map(|(index, text)| json!({"index": index, "embedding": vector(text.as_str().expect("a text"))}))
            .collect();
        Reply::json(200, &json!({"object": "list", "data": data, "usage": {"prompt_tokens": 7}}))
    })
}

fn find(query: &str) -> Reply {
    Reply::call("find_tools", &json!({"query": query}))
}

#[test]
fn by_meaning_tools_are_found_that_share_no_word_with_the_query() {
    let server =
        embedding(vec![find("umbrella needed?"), find("plan dinner"), find("music_info"), Reply::text("done")]);
    let output = with_many(&server)
        .args(["--set", "tools.selection=embedding", "--set", "tools.embedding_model=tiny"])
        .run()
        .success();
    let requests = server.requests();
    let (asked, chats): (Vec<_>, Vec<_>) = requests.iter().partition(|request| request.path == "/v1/embeddings");
    let sizes: Vec<_> = asked.iter().map(|request| request.body["input"].as_array().map(Vec::len)).collect();
    assert_eq!(sizes, [Some(TOPICS.len()), Some(1), Some(1)], "the definitions once, then each query");
    assert!(asked[0].body["model"] == "tiny" && asked[0].header("authorization").is_some());
    let results: Vec<&str> = chats[3].tool_results().iter().map(|(_, text)| *text).collect();
    assert!(results[0].contains("find_tools\">\nweather_info: "), "{}", results[0]);
    assert!(results[1].contains("find_tools\">\nrecipe_info: "), "{}", results[1]);
    let finished = output.events();
    assert_eq!(finished.of("tool.finished")[0]["telemetry"]["metrics"]["embedded_tokens"], 14.0);
    assert!(finished.of("warning").is_empty());
}

#[test]
fn a_model_that_is_asked_for_tools_counts_in_the_sums_and_in_no_history() {
    let server = Server::start([
        find("what should I wear outside"),
        Reply::text("weather_info\nno_such_tool\ncalendar_info"),
        Reply::text("done"),
    ]);
    let output = with_many(&server).args(["--set", "tools.selection=model"]).run().success();
    let requests = server.requests();
    let side = &requests[1];
    assert!(side.body["tools"].is_null() && side.messages().len() == 2, "a request of its own: {}", side.raw);
    assert!(
        side.system().contains("\nrecipe_info: Tells about the recipe.")
            && side.user() == "what should I wear outside"
    );
    let result = requests[2].last_result();
    assert!(result.contains("weather_info: ") && result.contains("calendar_info: ") && !result.contains("recipe"));
    assert_append_only(&[requests[0].clone(), requests[2].clone()]);
    let events = output.events();
    let completed = events.one("run.completed");
    let (input, steps) = (&completed["usage"]["input_tokens"], &completed["steps"]);
    let own: u64 = events.of("message").iter().filter_map(|m| m["usage"]["input_tokens"].as_u64()).sum();
    assert!(input.as_u64() > Some(own) && *steps == 2, "{completed}");
}

#[test]
fn where_a_judge_fails_words_decide_and_that_is_told_once() {
    let failing = |request: &Request, index: usize| match index {
        _ if request.path == "/v1/embeddings" || request.body["tools"].is_null() => {
            Reply::error(404, "no such thing")
        }
        _ if request.tool_results().len() < 2 => find(&format!("what is the weather like {index}")),
        _ => Reply::text("done"),
    };
    for by in ["embedding", "model"] {
        let server = Server::answering(failing);
        let output = with_many(&server).args(["--set", &format!("tools.selection={by}")]).run().success();
        let requests = server.requests();
        let results = requests.last().expect("requests").tool_results();
        assert!(results.iter().all(|(_, text)| text.contains("weather_info: ")), "{by}: {results:?}");
        let events = output.events();
        let warning = events.one("warning")["message"].as_str().expect("a text");
        assert!(warning.contains("only by their words") && warning.contains("no such thing"), "{warning}");
    }
}
