//! Where the key of a server comes from: a variable, a file, a program; and that it stays there.

use serde_json::json;

use crate::output::Output;
use crate::reply::Reply;
use crate::run::Run;
use crate::server::{Request, Server};

/// The key that a request carries.
fn key_of(request: &Request) -> String {
    let header = request.headers.iter().find(|(name, _)| name == "authorization");
    header.map(|(_, value)| value.trim_start_matches("Bearer ").to_owned()).unwrap_or_default()
}

fn with_key(server: &Server, key: &str) -> Run {
    Run::task(server, "hello").config("models/default.yaml", &format!("api_key: {key}\n"))
}

fn keys(server: &Server) -> Vec<String> {
    server.requests().iter().map(key_of).collect()
}

fn assert_no_trace(output: &Output, key: &str) {
    assert!(!output.shown().contains(key), "{}", output.shown());
    let logs = output.place.session_logs();
    let is_clean = |log: &std::path::PathBuf| !std::fs::read_to_string(log).expect("a log").contains(key);
    assert!(!logs.is_empty() && logs.iter().all(is_clean), "no log holds it");
}

#[test]
fn a_variable_a_file_and_a_program_give_the_key() {
    let server = Server::always(Reply::text("done"));
    with_key(&server, "{ env: MY_KEY }").env("MY_KEY", "of-a-variable-4711").run().success();
    let run = with_key(&server, "{ file: ~/.my-key }");
    std::fs::write(run.place().home().join(".my-key"), "of-a-file-4711\n").expect("written");
    run.run().success();
    with_key(&server, "{ command: [sh, -c, 'echo \" of-a-program-4711 \"; pwd >&2'] }").run().success();
    assert_eq!(keys(&server), ["of-a-variable-4711", "of-a-file-4711", "of-a-program-4711"]);
}

#[test]
fn a_refused_key_is_asked_for_again_once() {
    let count = "n=$(cat ~/n 2>/dev/null || echo 0); echo $((n + 1)) > ~/n; echo token-number-4711-$n";
    let key = format!("{{ command: [sh, -c, '{count}'] }}");
    let server = Server::answering(|request, _| match key_of(request).as_str() {
        "token-number-4711-1" => Reply::text("done"),
        _ => Reply::error(401, "expired"),
    });
    let output = with_key(&server, &key).args(["-o", "jsonl"]).run().success();
    assert_eq!(keys(&server), ["token-number-4711-0", "token-number-4711-1"]);
    assert_no_trace(&output, "token-number-4711");
    // The same key again is not sent again.
    let server = Server::always(Reply::error(401, "expired"));
    with_key(&server, "{ command: [echo, the-same-key-4711] }").run().exits(4);
    assert_eq!(keys(&server), ["the-same-key-4711"]);
}

#[test]
fn a_key_is_asked_for_again_when_its_time_is_over() {
    let count = "n=$(cat ~/n 2>/dev/null || echo 0); echo $((n + 1)) > ~/n; echo token-number-4711-$n";
    for (refresh, expected) in [("", [0, 0, 0]), (", refresh: 0s", [0, 1, 2])] {
        let server = Server::start([
            Reply::call("todo", &json!({ "items": [] })),
            Reply::call("todo", &json!({ "items": [] })),
            Reply::text("done"),
        ]);
        with_key(&server, &format!("{{ command: [sh, -c, '{count}']{refresh} }}")).run().success();
        let expected = expected.map(|number| format!("token-number-4711-{number}"));
        assert_eq!(keys(&server), expected, "{refresh}");
    }
}

#[test]
fn what_a_program_printed_is_masked_where_a_tool_shows_it_and_no_command_gets_it() {
    let server = Server::start([
        Reply::call("run_command", &json!({ "command": "env; cat secret.txt" })),
        Reply::text("done"),
    ]);
    let run = with_key(&server, "{ command: [printf, zebra-crossing-4711-blue] }")
        .file("secret.txt", "zebra-crossing-4711-blue");
    let output = run.args(["--approve", "all", "-o", "jsonl"]).run().success();
    let asked = server.requests();
    let result = asked[1].last_result();
    assert!(result.contains("***") && !result.contains("zebra"), "{result}");
    assert_no_trace(&output, "zebra-crossing");
}

#[test]
fn a_source_that_gives_no_key_is_one_clear_error() {
    let server = Server::always(Reply::text("done"));
    for (key, why) in [
        (
            "{ command: [sh, -c, 'echo no login >&2; exit 3'] }",
            "the command of `api_key`, sh, failed (exit code 3): no login",
        ),
        ("{ command: [no-such-program] }", "the command of `api_key`, no-such-program, cannot be started"),
        ("{ command: ['true'] }", "true gives no key"),
        ("{ command: [printf, 'a\\nb'] }", "cannot carry"),
        ("{ file: ~/none }", "does not exist"),
        ("{ file: none }", "is named neither from / nor from ~/ on"),
    ] {
        with_key(&server, key).run().exits(4).reason_has(why);
    }
    assert!(server.requests().is_empty(), "nothing was sent");
    for (key, why) in [
        ("{ command: [] }", "the list `command` names no program"),
        ("{ command: [false] }", "`command`: expected text, found true or false"),
        ("{ cmd: x }", "unknown key `cmd`"),
        ("{ env: A, file: b }", "one of `env`, `file`, `command`, `aws` and `google`"),
        ("{}", "one of `env`, `file`, `command`, `aws` and `google`"),
        ("{ env: A, refresh: 5m }", "`refresh` belongs to a `command`"),
    ] {
        with_key(&server, key).run().exits(3).stderr_has(why);
    }
}

#[test]
fn a_project_names_no_program_for_a_key() {
    let server = Server::always(Reply::text("done"));
    let run =
        Run::task(&server, "hello").file(".agent/models/default.yaml", "api_key: { command: [touch, ran] }\n");
    let output = run.args(["--trust"]).run().stderr_has("api_key");
    assert!(!output.place.exists("ran"), "{}", output.shown());
}

#[test]
fn a_pasted_key_stands_in_for_its_variable_and_is_readable_by_one_person() {
    let server = Server::always(Reply::text("done"));
    let place = Run::task(&server, "hello").place();
    let key = |args: &[&str]| Run::at(&place).arg("key").args(args.iter().copied());
    key(&["list"]).run().success().stdout_has("No key is set");
    key(&["set", "deepseek"]).stdin("pasted-key-4711\n").run().success().stdout_has("DeepSeek");
    let listed = key(&["list"]).run().success().stdout_has("deepseek").stdout_has("stored");
    assert!(!listed.shown().contains("pasted-key"), "{}", listed.shown());
    let file = place.data().join("agent/keys");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).expect("kept").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let ask = |run: Run| {
        let model = "api_key: '{{ env.DEEPSEEK_API_KEY }}'\n";
        run.args(["run", "hello"]).server(&server).config("models/default.yaml", model).run().success();
        keys(&server).pop()
    };
    assert_eq!(ask(Run::at(&place)).as_deref(), Some("pasted-key-4711"));
    let set = Run::at(&place).env("DEEPSEEK_API_KEY", "set-key-4711");
    assert_eq!(ask(set).as_deref(), Some("set-key-4711"), "the variable counts first");
    key(&["remove", "deepseek"]).run().success();
    key(&["remove", "deepseek"]).run().exits(2).reason_has("no key of DeepSeek is stored");
    for (args, input, why) in [
        (["set", "deepsek"], "k", "did you mean `deepseek`?"),
        (["set", "ollama"], "k", "no provider `ollama` takes a key"),
        (["set", "openai"], " \n", "no key was given"),
        (["set", "openai"], "two words", "a key is one word"),
    ] {
        key(&args).stdin(input).run().exits(2).reason_has(why);
    }
}

#[test]
fn a_login_is_for_providers_that_allow_one() {
    let log_in = |name: &str, pasted: &str| Run::new().args(["login", name]).stdin(pasted).run();
    log_in("anthropic", "")
        .exits(2)
        .stderr_has("has no login for programs like this one; `agent key set anthropic`");
    log_in("ollama", "").exits(2).stderr_has("Ollama needs no key");
    log_in("openruoter", "").exits(2).stderr_has("openrouter");
    let refused = log_in("openrouter", "http://localhost/callback?error=access_denied\n");
    let output = refused.exits(4).stderr_has("OpenRouter refused the login: access_denied");
    let address = output.stdout.lines().find(|line| line.contains("https://")).expect("an address");
    let parts =
        ["https://openrouter.ai/auth?callback_url=http%3A%2F%2Flocalhost%3A", "&code_challenge_method=S256"];
    assert!(parts.iter().all(|part| address.contains(part)), "{address}");
}

#[test]
fn what_a_model_writes_of_a_secret_is_masked_in_the_log_and_in_events() {
    let key = "zq81kfMMdk20sLLpqWe7";
    let line = json!({ "command": format!("echo {key}") });
    let server = Server::start([Reply::call("run_command", &line), Reply::text(&format!("It is {key}."))]);
    let run = Run::task(&server, "task").args(["--approve", "all", "-o", "jsonl"]).env("SOME_API_KEY", key);
    let output = run.run().success();
    let of = |kind: &str| output.stdout.lines().filter(|line| line.contains(kind)).collect::<String>();
    for kind in ["\"tool.started\"", "\"tool.finished\"", "\"type\":\"message\""] {
        assert!(!of(kind).is_empty() && !of(kind).contains(key), "{kind}: {}", of(kind));
    }
    assert!(!output.stderr.contains(key), "{}", output.stderr);
    let exported = Run::at(&output.place).args(["session", "export", "--to", "json"]).run().success();
    assert!(!exported.stdout.contains(key), "{}", exported.stdout);
}
