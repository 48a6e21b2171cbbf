//! `--schema`: which part of an answer is the data, and how it is printed.

use serde_json::{Value, json};

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

fn run(schema: &Value, answer: &str, args: &[&str]) -> Output {
    let server = Server::always(Reply::text(answer));
    Run::task(&server, "task")
        .args(["--schema", "schema.json"])
        .args(args.iter().copied())
        .file("schema.json", schema.to_string())
        .run()
}

#[test]
fn the_last_document_that_matches_is_the_answer() {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for (answer, expected) in [
        ("An example is {\"n\": 0}.\n\n```json\n{\"n\": 1}\n```\n", "{\"n\":1}\n"),
        ("```json\n{\"n\": 0}\n```\nThe answer is {\"n\": 1}, as [2] says.", "{\"n\":1}\n"),
        ("{\"n\": 1}\n\nIt has the form {\"n\": \"a number\"}.", "{\"n\":1}\n"),
        ("{\"n\": 1,}", "{\"n\":1}\n"),
    ] {
        run(&schema, answer, &[]).success().stdout_is(expected);
    }
}

#[test]
fn a_number_is_printed_as_it_was_written() {
    let answer = "{\"n\": 123456789012345678901234567890, \"x\": 1.10}";
    run(&json!({"type": "object"}), answer, &[])
        .success()
        .stdout_is("{\"n\":123456789012345678901234567890,\"x\":1.10}\n");
    let output = run(&json!({"type": "object"}), answer, &["-o", "json"]).success();
    assert!(
        output.stdout.contains("\"result\":{\"n\":123456789012345678901234567890,\"x\":1.10}"),
        "{}",
        output.stdout
    );
}

#[test]
fn null_is_an_answer() {
    for answer in ["null", "```json\nnull\n```"] {
        run(&json!({"type": ["object", "null"]}), answer, &[]).success().stdout_is("null\n");
    }
    run(&json!({"type": "string"}), "\"text\"", &[]).success().stdout_is("\"text\"\n");
}

#[test]
fn a_format_is_checked() {
    let schema = json!({"type": "object", "properties": {"day": {"type": "string", "format": "date"}}});
    run(&schema, "{\"day\": \"2024-02-29\"}", &[]).success();
    run(&schema, "{\"day\": \"2023-02-29\"}", &[]).exits(10).stdout_is("").stderr_has("format date");
}

#[test]
fn a_name_that_stands_twice_is_no_answer() {
    run(&json!({"type": "object"}), "{\"a\": 1, \"a\": 2}", &[]).exits(10).stderr_has("stands twice");
}
