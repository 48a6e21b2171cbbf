//! More tools than are sent with every request: one line each in the prompt, `find_tools` and `call_tool`.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server, assert_answered_once, assert_append_only};

const TOPICS: [&str; 14] = [
    "weather", "invoice", "calendar", "deploy", "ticket", "backup", "translate", "stock", "flight", "recipe",
    "music", "traffic", "contact", "report",
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
            && results[1].contains("weather of Oslo; rm -rf /"),
        "{}",
        results[1]
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
        (
            Reply::call("find_tools", &json!({"query": "quantum"})),
            "None of 14 tools fits: try other words. There are: backup_info",
        ),
    ] {
        let (result, _) = told(reply, 0);
        assert!(result.contains(expected), "{expected} in {result}");
    }
}
