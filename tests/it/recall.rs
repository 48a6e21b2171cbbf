//! `recall`: what its handles promise is there byte for byte, whatever was cut or compressed, and nothing is kept twice.

use serde_json::{Value, json};

use crate::context::{self, TASK};
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

/// Results are JSON, in which a text is as it was down to its end.
const JSON: &str = "tool_output: { encoding: json }\n";

/// The content of a result in JSON.
fn content(result: &str) -> String {
    let result: Value = serde_json::from_str(result).expect("one line of JSON");
    result["content"].as_str().expect("a content").to_owned()
}

/// A page without its notice, and the call that reads on.
fn page(content: &str) -> (String, Option<Value>) {
    let (text, notice) = content.rsplit_once('\n').unwrap_or(("", content));
    if let Some(line) = notice.strip_prefix("[more follows: offset=") {
        let line: u64 = line.trim_end_matches(']').parse().expect("a number");
        return (format!("{text}\n"), Some(json!({"id": "r1", "offset": line})));
    }
    if let Some(id) = notice.strip_prefix("[more follows: id=") {
        return (format!("{text}\n"), Some(json!({"id": id.trim_end_matches(']')})));
    }
    if let Some(id) = notice.strip_prefix("[this line goes on: id=") {
        return (text.to_owned(), Some(json!({"id": id.trim_end_matches(']')})));
    }
    (content.to_owned(), None)
}

#[test]
fn a_result_that_was_cut_is_read_back_page_by_page() {
    let line = "a line with \"quotes\", a\ttab and 中文\n";
    let file = format!("{}{}\n{}no end", line.repeat(500), "🦀 endless ".repeat(4000), line.repeat(700));
    for ephemeral in [false, true] {
        let server = Server::answering(|request, index| match index {
            0 => Reply::call("run_command", &json!({"command": "cat long.txt"})),
            1 => Reply::call("recall", &json!({"id": "r1"})),
            _ => match page(&content(request.last_result())).1 {
                Some(ask) => Reply::call("recall", &ask),
                None => Reply::text("done"),
            },
        });
        let run = Run::task(&server, "task").args(["--approve", "all"]).file("long.txt", &file);
        let run = run.config("agent.yaml", JSON);
        let run = if ephemeral { run.arg("--ephemeral") } else { run };
        let output = run.run().success();
        let requests = server.requests();
        assert!(content(requests[1].last_result()).contains("; recall id=r1 reads the whole …]"));
        let pages: Vec<String> =
            requests[2..].iter().map(|request| page(&content(request.last_result())).0).collect();
        assert!(pages.len() > 3, "{} pages", pages.len());
        assert!(pages.concat() == file, "{} bytes of {}", pages.concat().len(), file.len());
        let spilled: Vec<_> = output
            .place
            .kept()
            .into_iter()
            .filter(|(path, _)| path.to_string_lossy().contains(".spill/"))
            .collect();
        match spilled.as_slice() {
            [] => assert!(ephemeral),
            [(_, text)] => assert!(!ephemeral && *text == file, "the whole, once"),
            more => panic!("pages are not kept again: {} texts", more.len()),
        }
    }
}

/// The handle of the first result that a compression shortened.
fn shortened(request: &Request) -> Option<String> {
    request.tool_results().iter().find_map(|(_, text)| {
        let (_, rest) = text.split_once("recall id=c")?;
        let (handle, _) = rest.split_once(" reads the whole")?;
        Some(format!("c{handle}"))
    })
}

#[test]
fn a_result_that_a_compression_shortened_is_read_as_it_was() {
    for ephemeral in [false, true] {
        let server = Server::answering(|request, index| {
            let asked = |key: &str| request.calls().iter().any(|call| call.to_string().contains(key));
            match shortened(request) {
                None => context::read(index),
                Some(id) if !asked("\\\"id\\\"") => Reply::call("recall", &json!({"id": id})),
                Some(_) if !asked("\\\"query\\\"") => Reply::call("recall", &json!({"query": "MARKER-0"})),
                Some(_) => Reply::text("Fini."),
            }
        });
        let run = context::run(&server, TASK);
        let run = run.config("agent.yaml", &format!("{JSON}context: {{ budget: {} }}\n", context::BUDGET));
        let run = if ephemeral { run.arg("--ephemeral") } else { run };
        let output = run.run().success();
        let requests = server.requests();
        let (was, [.., by_id, by_words]) = (requests[1].last_result(), requests.as_slice()) else {
            panic!("it was recalled")
        };
        assert_eq!(content(by_id.last_result()), was, "ephemeral: {ephemeral}");
        let found = content(by_words.last_result());
        assert!(found.contains("marker-0") && found.starts_with('c'), "{found}");
        let kept = output.place.kept();
        assert!(kept.iter().all(|(path, _)| !path.to_string_lossy().contains(".spill")), "the log has it");
    }
}

#[test]
fn an_unknown_handle_is_answered_with_those_that_there_are() {
    let server = Server::start([
        Reply::call("recall", &json!({"id": "c1.1"})),
        Reply::call("run_command", &json!({"command": "seq 1 20000"})),
        Reply::call("recall", &json!({"id": "r2"})),
        Reply::text("done"),
    ]);
    Run::task(&server, "task").args(["--approve", "all"]).run().success();
    let requests = server.requests();
    assert!(requests[1].last_result().contains("There is no `c1.1`: nothing was left out yet."));
    assert!(requests[3].last_result().contains("There is no `r2`: the ids are r1."));
}
