//! The arguments of a call as a tool gets them: defaults filled in, `null` as "not given", integers however they are
//! written; and what the model reads where they are wrong.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Server, between_tags};

const LINES: &str = "one\ntwo\nthree\nfour\n";

const GREET: &str = r#"
description: Greets. Returns one line.
parameters:
  type: object
  required: [name]
  properties:
    name: { type: string }
    greeting: { type: string, default: Hello }
    times: { type: integer, default: 2 }
    mark: { type: [string, "null"], default: "!" }
    options:
      type: object
      properties: { loud: { type: boolean, default: true } }
command: ["echo", "{{ greeting }}", "{{ name }}", "{{ times }}", "mark={{ mark }}", "loud={{ options.loud }}"]
"#;

/// One call in a workspace with a file of four lines and a configured tool.
fn called(tool: &str, arguments: &Value) -> (Output, String) {
    let server = Server::start([Reply::call(tool, arguments), Reply::text("done")]);
    let output = Run::task(&server, "task")
        .args(["-o", "jsonl", "--approve", "all"])
        .file("lines.txt", LINES)
        .config("tools/greet.yaml", GREET)
        .config("agents/default.yaml", "tools: ['*', fetch_url, apply_patch]\n")
        .run();
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "{}", output.shown());
    (output, between_tags(requests[1].last_result()).to_owned())
}

fn told(tool: &str, arguments: &Value) -> String {
    called(tool, arguments).1
}

#[test]
fn defaults_of_the_schema_are_applied() {
    let greeted = |arguments: Value| told("greet", &arguments);
    assert!(greeted(json!({"name": "Ann"})).contains("Hello Ann 2 mark=!"));
    assert!(greeted(json!({"name": "Ann", "greeting": "Bye", "times": 3})).contains("Bye Ann 3"));
    assert!(greeted(json!({"name": "Ann", "options": {}})).contains("loud=true"));
    assert!(greeted(json!({"name": "Ann", "options": {"loud": false}})).contains("loud=false"));
    let (output, _) = called("greet", &json!({"name": "Ann"}));
    assert_eq!(output.events().one("tool.started")["arguments"]["greeting"], "Hello", "it is shown as it is run");
}

#[test]
fn null_means_not_given_unless_the_schema_allows_it() {
    let read = told("read_file", &json!({"path": "lines.txt", "offset": null, "limit": null}));
    assert!(read.contains("1\tone") && read.contains("4\tfour"), "{read}");
    let greeted = told("greet", &json!({"name": "Ann", "greeting": null, "mark": null}));
    assert!(greeted.contains("Hello Ann 2") && !greeted.contains("mark=!"), "{greeted}");
    let refused = told("read_file", &json!({"path": null}));
    assert!(refused.contains("- `path`: expected a string, got null"), "{refused}");
}

#[test]
fn an_integer_may_be_written_as_a_float() {
    let read = told("read_file", &json!({"path": "lines.txt", "offset": 2.0, "limit": 1.0}));
    assert!(read.contains("2\ttwo") && !read.contains("three"), "{read}");
    assert!(told("greet", &json!({"name": "Ann", "times": 3.0})).contains("Ann 3 mark"));
    let refused = told("read_file", &json!({"path": "lines.txt", "limit": 1.5}));
    assert!(refused.contains("- `limit`: expected an integer, got 1.5"), "{refused}");
}

#[test]
fn each_mistake_names_the_path_what_was_expected_and_what_was_given() {
    for (tool, arguments, expected) in [
        ("read_file", json!({"path": "lines.txt", "limit": -1}), "- `limit`: expected at least 0, got -1"),
        ("read_file", json!({"path": 7}), "- `path`: expected a string, got 7"),
        ("read_file", json!({"pth": "a"}), "- `path`: required, but missing"),
        ("read_file", json!({"pth": "a"}), "- `pth`: unknown; expected one of path, offset, limit"),
        ("grep", json!({"pattern": "a", "limit": "ten"}), "- `limit`: expected an integer, got \"ten\""),
        ("grep", json!({"pattern": "a", "context": -3}), "- `context`: expected at least 0, got -3"),
        (
            "todo",
            json!({"items": [{"text": "a", "status": "finished"}]}),
            "- `items[0].status`: expected one of \"pending\", \"doing\", \"done\", \"in_progress\", \"completed\", got \"finished\"",
        ),
        ("todo", json!({"items": ["a"]}), "- `items[0]`: expected an object, got \"a\""),
        ("recall", json!({"id": ["r1"]}), "- `id`: expected a string, got a list of 1 item"),
    ] {
        let read = told(tool, &arguments);
        assert!(read.contains(expected), "{tool} {arguments}: {read}");
    }
}

#[test]
fn no_number_makes_a_tool_answer_in_the_words_of_its_implementation() {
    let numbers = [json!(-1), json!(0), json!(1e30), json!(-1e30), json!(u64::MAX), json!(i64::MIN), json!(0.5)];
    for (tool, arguments, names) in [
        ("read_file", json!({"path": "lines.txt"}), &["offset", "limit"][..]),
        ("list_dir", json!({}), &["depth"]),
        ("grep", json!({"pattern": "o"}), &["context", "limit"]),
        ("recall", json!({"query": "o"}), &["offset", "limit"]),
        ("run_command", json!({"command": "true"}), &["timeout"]),
        ("fetch_url", json!({"url": "http://192.0.2.1/"}), &["max_tokens"]),
    ] {
        for name in names {
            for number in &numbers {
                let mut arguments = arguments.clone();
                arguments[*name] = number.clone();
                let (output, read) = called(tool, &arguments);
                for word in ["invalid value", "invalid type", "usize", "u64", "panicked", "floating point"] {
                    assert!(!read.contains(word) && !output.stderr.contains(word), "{tool} {arguments}: {read}");
                }
            }
        }
    }
}
