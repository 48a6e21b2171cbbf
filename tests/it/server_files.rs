//! The files of servers of tools: added and removed by commands, and their mistakes.

use serde_json::json;

use crate::run::{Place, Run};
use crate::tool_servers::program;

#[test]
fn servers_are_added_listed_and_removed() {
    let place = Place::new();
    let run = |args: &[&str]| Run::at(&place).args(args.iter().copied()).run();
    assert!(run(&["mcp", "list"]).success().stdout.contains("No server is configured"));
    let program = program();
    run(&["mcp", "add", "t", "--env", "LEVEL=a b", "--", &program, "old"]).success();
    assert_eq!(run(&["mcp", "add", "t", "--", "x"]).code, 2, "nothing is overwritten");
    assert_eq!(run(&["mcp", "add", "../x", "--", "x"]).code, 2);
    run(&["mcp", "add", "u", "--url", "not a url"]).exits(2).stderr_has("is not an http:// or https:// address");
    assert!(run(&["mcp", "list"]).success().stdout.contains("not started"));
    assert!(run(&["mcp", "check"]).success().stdout.contains("up (2025-11-25, tester 1.2)"));
    assert!(run(&["mcp", "tools", "t"]).success().stdout.contains("t__echo"));
    let called = run(&["mcp", "call", "t__variables", "--approve", "all"]).success();
    assert!(called.stdout.contains("LEVEL=a b"), "{}", called.shown());
    let slow = "command: [sh, -c, touch started; sleep 60]\nsandbox: false\n";
    let checked = Run::at(&place).config("mcp/slow.yaml", slow).args(["mcp", "check", "t"]).run().success();
    assert!(!place.exists("started"), "another server is left alone: {}", checked.shown());
    run(&["mcp", "remove", "t"]).success();
    assert_eq!(run(&["mcp", "remove", "t"]).code, 2);
}

#[test]
fn a_check_of_the_configuration_starts_no_server() {
    let marking = "command: [sh, -c, touch started; sleep 60]\nsandbox: false\n";
    let checked = Run::new().args(["config", "check"]).config("mcp/t.yaml", marking).run().success();
    assert!(!checked.place.exists("started"), "{}", checked.shown());
}

#[test]
fn mistakes_in_a_file_have_their_place() {
    for (file, place, why) in [
        ("env: { A: b }\n", "t.yaml:1", "needs `command`"),
        ("command: [x]\nurl: http://x\n", "t.yaml:2:6", "not both"),
        ("url: ftp://x\n", "t.yaml:1:6", "http:// or https://"),
        ("command: [x]\nheaders: { A: b }\n", "t.yaml:2", "`headers` are for a server with `url`"),
        ("command: [x]\noauth: { client_id: a }\n", "t.yaml:2", "`oauth` is for a server with `url`"),
        ("url: http://x\noauth: { client_secret: a }\n", "t.yaml:2", "belongs to a `client_id`"),
        ("command: [x]\ntimeout: 0\n", "t.yaml:2", "more than nothing"),
        ("command: [x]\nsandbox: true\n", "t.yaml:2", "what the server may reach"),
        ("comand: [x]\n", "t.yaml:1:1", "command"),
    ] {
        let checked = Run::new().args(["config", "check"]).config("mcp/t.yaml", file).run();
        assert_eq!(checked.code, 3, "{file}: {}", checked.shown());
        assert!(checked.stderr.contains(place) && checked.stderr.contains(why), "{file}: {}", checked.shown());
    }
}

#[test]
fn a_client_that_was_registered_beforehand_is_named_in_either_kind_of_file() {
    let place = Place::new();
    let add = ["mcp", "add", "t", "--url", "http://x", "--client-id", "ours", "--client-secret-env", "SECRET"];
    Run::at(&place).args(add).run().success();
    let shared = json!({ "mcpServers": { "u": { "url": "http://y", "oauth": { "clientId": "ours", "callbackPort": 8090 } } } });
    let run = Run::at(&place).file(".mcp.json", shared.to_string()).env("SECRET", "sesame-open-1234");
    run.args(["--trust", "config", "check"]).run().success();
    let written = std::fs::read_to_string(place.home().join(".config/agent/mcp/t.yaml")).expect("a file");
    assert!(written.contains("client_id: ours") && written.contains("{{ env.SECRET }}"), "{written}");
}

#[test]
fn a_shared_server_whose_address_is_a_variable_that_is_unset_is_left_out() {
    let servers = json!({ "mcpServers": {
        "api": { "url": "${API_BASE_URL}/mcp" },
        "empty": { "command": "${PROGRAM_OF_IT}" },
        "good": { "command": "true" },
    } });
    let run = Run::new().file(".mcp.json", servers.to_string());
    let checked = run.args(["config", "check", "--trust"]).run().success();
    let checked = checked
        .stderr_has("`api` is left out")
        .stderr_has("(API_BASE_URL is not set)")
        .stderr_has("`empty` is left out")
        .stderr_has("(PROGRAM_OF_IT is not set)");
    assert_eq!(checked.stderr.matches("API_BASE_URL").count(), 1, "{}", checked.shown());
    assert!(!checked.stderr.contains("`good`"), "{}", checked.shown());
}
