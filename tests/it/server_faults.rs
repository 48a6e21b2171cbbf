//! What servers of tools get wrong: definitions, lines that are no messages, secrets in what they say.

use serde_json::json;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;
use crate::tool_servers::{call, file};

#[test]
fn a_wrong_definition_is_named_and_takes_no_other_tool_with_it() {
    for words in [&["wrong", "old"], &["wrong", "new"]] {
        let file = file(words, "");
        let (output, requests) = call(&file, &["--approve", "all"], "t__echo", &json!({"text": "hi"}));
        assert!(requests[1].last_result().contains("hi"), "{words:?}: {}", requests[1].last_result());
        let events = output.events();
        let warnings = events.of("warning");
        let told: Vec<&str> = warnings.iter().filter_map(|event| event["message"].as_str()).collect();
        let why = "the server of tools `t` has tools that cannot be offered: \"bare\" has no `inputSchema` that is \
                   an object of at most 32 KiB, 7 is no `name`, \"flat\" has no `inputSchema` that is an object of at \
                   most 32 KiB";
        assert_eq!(told, [why], "{words:?}");
        let checked = Run::new().args(["mcp", "check"]).config("mcp/t.yaml", &file).run().success();
        assert!(checked.stdout.contains("\"bare\" has no `inputSchema`"), "{}", checked.shown());
        let listed = Run::new().args(["mcp", "tools"]).config("mcp/t.yaml", &file).run().success().stdout;
        assert!(listed.contains("t__far") && !listed.contains("t__bare"), "{listed}");
    }
}

#[test]
fn a_call_whose_answer_is_no_message_says_so() {
    let secret = "env: { KEY: \"{{ env.MY_TOKEN }}\" }\n";
    for (word, more, told) in [
        (
            "noise=Traceback: no sesame-open-1234 there",
            "timeout: 1s\n",
            "longer than 1s and was stopped: it sent a line that is no JSON",
        ),
        ("deep", "", "went away during the call, which may have run in part"),
        ("huge", "", "went away during the call, which may have run in part"),
        (
            "noise={\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
            "",
            "it sent a line that is no message: it asks nothing",
        ),
        ("noise={\"level\":\"info\"}", "timeout: 1s\n", "it sent a line that is no message: it asks nothing"),
    ] {
        let server = Server::start([Reply::call("t__echo", &json!({"text": "x"})), Reply::text("done")]);
        let run = Run::task(&server, "task").args(["--approve", "all"]).env("MY_TOKEN", "sesame-open-1234");
        run.config("mcp/t.yaml", &file(&[word], &format!("{secret}{more}"))).run().success();
        let requests = server.requests();
        let result = requests[1].last_result();
        assert!(result.contains(told) && !result.contains("sesame"), "{word}: {result}");
        let why = ["Traceback: no *** there", "recursion limit exceeded", "longer than 16 MiB", "no message"];
        assert!(why.iter().any(|why| result.contains(why)), "{word}: {result}");
        assert!(result.len() < 800, "{word}: {result}");
    }
}

#[test]
fn what_a_server_says_is_masked_before_it_is_cut() {
    let long = format!("{} sesame-open-sesame-1234", "x".repeat(185));
    let refusal = format!("{} sesame-open-sesame-1234", "x".repeat(285));
    let words = [format!("progress={long}"), format!("refusal={refusal}")];
    let file = file(&[&words[0], &words[1]], "env: { KEY: \"{{ env.MY_TOKEN }}\" }\ntimeout: 2s\n");
    let server = Server::start([Reply::call("t__wait", &json!({})), Reply::text("done")]);
    let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]);
    let output = run.env("MY_TOKEN", "sesame-open-sesame-1234").config("mcp/t.yaml", &file).run().success();
    let told =
        output.events().of("tool.output").iter().map(|event| event["chunk"].to_string()).collect::<String>();
    assert!(told.contains("xxx") && !told.contains("sesame"), "{told}");
    let run = Run::new()
        .server(&server)
        .arg("chat")
        .config("mcp/t.yaml", &file)
        .env("MY_TOKEN", "sesame-open-sesame-1234");
    let output = run.stdin("Read @t:note://gone\n").run().stderr_has("xxx");
    assert!(!output.stderr.contains("sesame"), "{}", output.shown());
}
