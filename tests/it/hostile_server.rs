//! A server that sends too much: what came is kept, the run ends, and nothing grows without bound.

use serde_json::{Value, json};

use crate::reply::{Reply, chunk, data, finish};
use crate::run::Run;
use crate::server::{Server, assert_answered_once};

const MIB: usize = 1024 * 1024;

/// One reply, sent whatever is asked; the run must not ask again.
fn ends_with_5(reply: Reply, said: &str) -> crate::output::Output {
    let server = Server::always(reply);
    let output = Run::task(&server, "task").quick_retries().args(["-o", "json"]).run().exits(5);
    assert!(
        output.stderr.contains(said),
        "{said} is missing in {}",
        &output.stderr[..output.stderr.len().min(2000)]
    );
    assert_eq!(server.requests().len(), 1, "asking again brings no less");
    output
}

#[test]
fn a_reply_without_end_is_kept_as_far_as_it_is_read() {
    let piece = "word ".repeat(64 * 1024 / 5);
    let events: Vec<Value> = (0..17 * MIB / piece.len()).map(|_| chunk(&json!({"content": piece}))).collect();
    let output = ends_with_5(Reply::events(&events), "the reply is larger than 16 MiB");
    let result = output.json()["result"].as_str().map_or(0, str::len);
    assert!((15 * MIB..=16 * MIB).contains(&result), "{result} bytes are kept");
    let logs = output.place.session_logs();
    let size: u64 = logs.iter().map(|log| std::fs::metadata(log).expect("a log").len()).sum();
    assert!(size > 15 * MIB as u64, "the log holds {size} bytes");
}

#[test]
fn reasoning_and_arguments_count_as_well() {
    let piece = "word ".repeat(64 * 1024 / 5);
    let count = 17 * MIB / piece.len();
    let reasoning: Vec<Value> = (0..count).map(|_| chunk(&json!({"reasoning_content": piece}))).collect();
    ends_with_5(Reply::events(&reasoning), "the reply is larger than 16 MiB");
    let call = |arguments: &str| {
        chunk(
            &json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "list_dir", "arguments": arguments}}]}),
        )
    };
    let arguments: Vec<Value> = (0..count).map(|_| call(&piece)).collect();
    ends_with_5(Reply::events(&arguments), "the reply is larger than 16 MiB");
}

#[test]
fn an_event_of_many_values_and_a_line_without_end_are_not_read() {
    let calls = format!("{{\"choices\":[{{\"delta\":{{\"tool_calls\":[{}{{}}]}}}}]}}", "{},".repeat(MIB));
    ends_with_5(Reply::sse(format!("data: {calls}\n\n")), "contains more than 65536 values");
    let whole = Reply::body(200, "application/json", calls);
    ends_with_5(whole, "contains more than 65536 values");
    ends_with_5(Reply::sse(format!("data: {}", "x".repeat(18 * MIB))), "a line without end");
}

#[test]
fn many_empty_calls_are_not_opened() {
    let events: Vec<Value> = (0..5000)
        .map(|at| {
            chunk(&json!({"tool_calls": [{"index": at, "id": format!("c{at}"), "function": {"name": "x"}}]}))
        })
        .collect();
    ends_with_5(Reply::events(&events), "opens more than 1024 calls");
}

#[test]
fn of_many_calls_the_first_64_run_and_the_rest_are_told() {
    let calls: Vec<(&str, String)> = (0..70)
        .map(|at| ("write_file", json!({"path": format!("f{at}.txt"), "content": "x"}).to_string()))
        .collect();
    let server = Server::start([Reply::calls(&calls), Reply::text("done")]);
    let output = Run::task(&server, "task").args(["--approve", "all"]).run().success();
    assert!(output.place.exists("f63.txt") && !output.place.exists("f64.txt"));
    let requests = server.requests();
    assert_answered_once(&requests[1]);
    let results = requests[1].tool_results();
    assert_eq!(results.len(), 70);
    let told = |result: &str| result.contains("too many calls in one reply: only the first 64 run");
    assert!(results[64..].iter().all(|(_, result)| told(result)), "{:?}", results[64]);
    assert!(!results[..64].iter().any(|(_, result)| told(result)));
}

#[test]
fn long_names_and_ids_of_calls_are_not_kept() {
    let long = "n".repeat(MIB);
    let call = |id: &str, name: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": name, "arguments": "{}"}}]});
    for (id, name, ran) in [(long.as_str(), "list_dir", true), ("c1", long.as_str(), false)] {
        let mut body = data(&chunk(&call(id, name)));
        body.extend(data(&finish("tool_calls")));
        let server = Server::start([Reply::sse(body), Reply::text("done")]);
        let output = Run::task(&server, "task").run().success();
        let request = &server.requests()[1];
        assert_answered_once(request);
        assert!(!request.raw.contains(&"n".repeat(257)), "a long name is sent back");
        assert_eq!(request.last_result().contains("no tool"), !ran, "{}", request.last_result());
        assert!(output.place.kept().iter().all(|(_, text)| !text.contains(&"n".repeat(257))), "the log holds it");
    }
}
