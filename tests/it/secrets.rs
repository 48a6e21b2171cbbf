//! Secrets: the value of a key is in the request's header and nowhere else.

use serde_json::json;

use crate::output::Output;
use crate::reply::{Reply, chunk, data, finish};
use crate::run::{KEY, Run};
use crate::server::Server;

#[test]
fn the_key_reaches_the_server_and_nothing_else() {
    let server = Server::start([
        Reply::call("run_command", &json!({"command": "env; echo key=$OPENAI_API_KEY"})),
        Reply::call("run_command", &json!({"command": "cat /proc/$PPID/environ | tr '\\0' '\\n'"})),
        Reply::text("done"),
    ]);
    let output = Run::task(&server, "task")
        .args(["--approve", "all", "-o", "jsonl", "-v"])
        .env("MY_SERVICE_TOKEN", "token-0123456789-never-shown")
        .run()
        .success();
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        for secret in [KEY, "token-0123456789-never-shown"] {
            assert!(!request.raw.contains(secret), "a secret is in the conversation: {}", request.raw);
        }
    }
    for secret in [KEY, "token-0123456789-never-shown"] {
        assert!(!output.stdout.contains(secret) && !output.stderr.contains(secret), "{}", output.shown());
        for (path, text) in output.place.kept() {
            assert!(!text.contains(secret), "{} holds a secret", path.display());
        }
    }
}

#[test]
fn errors_do_not_quote_the_key_even_where_the_provider_does() {
    let server = Server::always(Reply::error(401, &format!("Incorrect API key provided: {KEY}.")));
    let output = Run::task(&server, "task").args(["-o", "jsonl"]).run().exits(4);
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY), "{}", output.shown());
}

/// Neither an output nor what is kept has the key, or the beginning of it.
#[track_caller]
fn assert_keeps_key(output: &Output) {
    const BEGINNING: &str = "sk-test-0";
    assert!(!output.stdout.contains(BEGINNING) && !output.stderr.contains(BEGINNING), "{}", output.shown());
    for (path, text) in output.place.kept() {
        assert!(!text.contains(BEGINNING), "{} holds a part of the key", path.display());
    }
}

#[test]
fn a_key_that_straddles_the_end_of_what_is_quoted_is_not_shown_in_part() {
    let before = |length: usize| format!("{} {KEY} and more", "x".repeat(length));
    for reply in [
        Reply::error(400, &before(585)),
        Reply::body(400, "text/plain", before(585)),
        Reply::body(400, "text/html", format!("<!DOCTYPE html><p>{}", before(105))),
        Reply::sse(format!("data: {}\n\n", before(105))),
        Reply::body(200, "text/plain", before(185)),
        Reply::sse(data(&json!({"error": {"message": before(585), "code": 400}}))),
    ] {
        let server = Server::always(reply);
        let output = Run::task(&server, "task").quick_retries().args(["-o", "jsonl"]).run().exits(5);
        assert_keeps_key(&output);
    }
}

#[test]
fn a_server_cannot_have_the_key_shown_as_a_reason_a_name_or_an_id() {
    let why = format!("{} {KEY} and more", "why".repeat(130));
    let stop = json!({"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi."}],
        "stop_reason": why, "usage": {"input_tokens": 10, "output_tokens": 2}});
    let block = json!({"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "SAFETY",
        "finishMessage": format!("blocked for {KEY}"), "index": 0}], "usageMetadata": {"promptTokenCount": 10}});
    let call = json!([{"index": 0, "id": KEY, "function": {"name": KEY, "arguments": "{}"}}]);
    let calls = Reply::events(&[chunk(&json!({"tool_calls": call})), finish("tool_calls")]);
    for (wire, replies) in [
        ("anthropic", vec![Reply::json(200, &stop)]),
        ("gemini", vec![Reply::sse(data(&block))]),
        ("chat", vec![calls, Reply::text("Hi.")]),
    ] {
        let server = Server::start(replies);
        let run = Run::task(&server, "task").config("models/default.yaml", &format!("wire: {wire}\n"));
        let output = run.args(["-o", "jsonl"]).run();
        assert!(output.stdout.contains("***"), "{wire}: {}", output.shown());
        assert_keeps_key(&output);
    }
}

#[test]
fn a_dry_run_and_the_configuration_show_no_secret() {
    let server = Server::start([]);
    for args in [
        vec!["run", "--dry-run", "task"],
        vec!["config", "show"],
        vec!["config", "explain", "models.default.api_key"],
    ] {
        let output = Run::new()
            .args(args)
            .server(&server)
            .config("models/default.yaml", "headers: { X-Auth: header-0123456789-secret }\n")
            .run()
            .success();
        for secret in [KEY, "header-0123456789-secret"] {
            assert!(!output.stdout.contains(secret) && !output.stderr.contains(secret), "{}", output.shown());
        }
    }
    Run::new().args(["config", "show"]).server(&server).run().success().stdout_has("***");
}

#[test]
fn a_mistake_in_a_file_with_a_key_does_not_show_the_key() {
    let output = Run::new()
        .args(["config", "check"])
        .config("models/default.yaml", "api_key: key-0123456789-written-out\nbase_url: [not, a, string]\n")
        .run()
        .exits(3)
        .stderr_has("models/default.yaml:2");
    assert!(
        !output.stderr.contains("key-0123456789") && !output.stdout.contains("key-0123456789"),
        "{}",
        output.shown()
    );
}

#[test]
fn prompts_cannot_read_secrets_from_the_environment() {
    let run = |extra: &str| {
        let server = Server::always(Reply::text("ok"));
        let output = Run::task(&server, "task")
            .config(
                "agents/default.yaml",
                "system_prompt: \"team={{ env.TEAM }} key={{ env.OPENAI_API_KEY | default('hidden') }}\"\n",
            )
            .config("agent.yaml", extra)
            .env("TEAM", "blue")
            .run();
        (output, server.requests())
    };
    let (output, requests) = run("");
    assert!(requests.iter().all(|request| !request.raw.contains(KEY)), "{}", output.shown());
    output.success();
    assert!(requests[0].system().contains("team=blue key=hidden"), "{}", requests[0].system());
}

#[test]
fn prompts_see_no_credentials_within_a_value() {
    const ADDRESS: &str = "postgres://bob:s3cr3tpw99@h/db";
    let system = |extra: &str| {
        let server = Server::always(Reply::text("ok"));
        Run::task(&server, "task")
            .config("agents/default.yaml", "system_prompt: \"at={{ env.DATABASE_URL }} at {{ env.SITE_URL }}.\"\n")
            .config("agent.yaml", extra)
            .env("DATABASE_URL", ADDRESS)
            .env("SITE_URL", "https://h/?page=2")
            .run()
            .success();
        server.requests()[0].system().to_owned()
    };
    assert_eq!(system(""), "at=postgres://***@h/db at https://h/?page=2.");
    assert!(system("prompts: { allow_env: [DATABASE_URL] }\n").contains(ADDRESS));
}

#[test]
fn a_title_and_the_events_hold_no_key_and_the_plain_answer_is_the_models() {
    const PASSWORD: &str = "pa\\ss\"w0rd-9x7";
    let server = Server::always(Reply::text(&format!("It is {PASSWORD}.")));
    let run = |args: &[&str]| {
        let args = args.iter().copied();
        Run::task(&server, "task").args(args).env("DB_PASSWORD", PASSWORD).run().success()
    };
    assert_eq!(run(&[]).stdout, format!("It is {PASSWORD}.\n"));
    for format in ["json", "jsonl"] {
        let output = run(&["-o", format]);
        assert!(
            output.stdout.contains("\"result\":\"It is ***.\"") && !output.stdout.contains("w0rd"),
            "{}",
            output.shown()
        );
    }
    let kept = run(&[]);
    let list = Run::at(&kept.place).args(["session", "list"]).run().success().stdout;
    let id = list.split_whitespace().next().expect("an id").to_owned();
    let title = format!("t {PASSWORD}-value");
    let renamed = Run::at(&kept.place).args(["session", "rename", &id, &title]).env("DB_PASSWORD", PASSWORD).run();
    let renamed = renamed.success();
    let listed = Run::at(&renamed.place).args(["session", "list"]).run().success();
    assert!(listed.stdout.contains("t ***-value"), "{}", listed.shown());
    assert!(renamed.place.kept().iter().all(|(_, text)| !text.contains("w0rd")));
}

#[test]
fn a_key_with_a_line_feed_is_trimmed_and_one_with_garbage_is_refused() {
    let server = Server::start([Reply::text("ok")]);
    Run::task(&server, "task").env("OPENAI_API_KEY", format!("{KEY}\n")).run().success();
    assert_eq!(server.only_request().header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let output = Run::task(&server, "task").env("OPENAI_API_KEY", "two\nlines").run().fails();
    assert!([3, 4].contains(&output.code), "{}", output.shown());
}

#[test]
fn the_key_for_openai_is_not_sent_to_another_models_server() {
    let server = Server::start([Reply::text("ok")]);
    Run::new()
        .args(["run", "-m", "local", "task"])
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_ORG_ID", "org-1")
        .config(
            "models/local.yaml",
            &format!("name: local\nprovider: openai\nbase_url: \"{}\"\nmodel: tiny\n", server.url()),
        )
        .run()
        .success();
    let request = server.only_request();
    assert!(
        !request.headers.iter().any(|(_, value)| value.contains(KEY) || value.contains("org-1")),
        "{:?}",
        request.headers
    );
}

#[test]
fn a_key_that_is_piped_in_is_neither_sent_nor_kept() {
    let server = Server::start([Reply::text("done")]);
    let output =
        Run::task(&server, "explain").args(["-o", "jsonl"]).stdin(format!("OPENAI_API_KEY={KEY}\n")).run();
    let output = output.success();
    let request = server.only_request();
    assert!(request.user().contains("OPENAI_API_KEY=***"), "{}", request.raw);
    assert!(!request.raw.contains(KEY) && !output.stdout.contains(KEY), "{}", output.shown());
    assert!(output.place.kept().iter().all(|(_, text)| !text.contains(KEY)), "a session holds it");
}

/// Made here, so that no file of the repository contains text that looks like a key.
fn made_up_keys() -> [String; 4] {
    let random = "a1B2c3D4".repeat(5);
    [
        format!("ghp_{}", &random[..36]),
        format!("sk-proj-{random}"),
        format!("eyJ{random}.eyJ{random}.{random}"),
        format!("-----BEGIN PRIVATE KEY-----\n{random}\n{random}\n-----END PRIVATE KEY-----"),
    ]
}

#[test]
fn what_has_the_shape_of_a_key_never_leaves_the_tool_that_saw_it() {
    let keys = made_up_keys();
    for format in ["concise", "raw", "detailed"] {
        let server = Server::start([
            Reply::call("read_file", &json!({"path": "keys.txt"})),
            Reply::call("run_command", &json!({"command": "cat keys.txt"})),
            Reply::call("run_command", &json!({"command": "cat keys.txt >&2; exit 1"})),
            Reply::call("grep", &json!({"pattern": "ghp_|sk-|eyJ"})),
            Reply::text("done"),
        ]);
        let output = Run::task(&server, "task")
            .file("keys.txt", keys.join("\n"))
            .args(["--approve", "all", "-o", "jsonl", "-v", "--set", &format!("tool_output.format={format}")])
            .run()
            .success();
        let stats = Run::at(&output.place).args(["stats", "-o", "json"]).run().success();
        let secret = |text: &str| text.contains("a1B2c3D4a1B2");
        assert!(!secret(&output.stdout) && !secret(&output.stderr), "{}", output.shown());
        assert!(!secret(&stats.stdout), "{}", stats.shown());
        for request in server.requests() {
            assert!(!secret(&request.raw), "{}", request.raw);
        }
        for (path, text) in output.place.kept() {
            assert!(!secret(&text), "{} holds a key", path.display());
        }
    }
}

#[test]
fn what_a_person_types_is_theirs() {
    let server = Server::start([Reply::text("ok")]);
    let [key, ..] = made_up_keys();
    Run::task(&server, &format!("is {key} a token?")).run().success();
    assert!(server.only_request().user().contains(&key));
}

#[test]
fn a_private_key_written_line_by_line_stays_hidden_in_live_output() {
    let line = "a1B2c3D4".repeat(8);
    let command = format!(
        "echo begin; echo '-----BEGIN PRIVATE KEY-----'; for i in 1 2 3; do sleep 0.02; echo {line}; done; \
         echo '-----END PRIVATE KEY-----'; echo over"
    );
    let script = format!("#!/bin/sh\n{command}\n");
    let server =
        Server::start([Reply::call("run_command", &json!({"command": "sh show.sh"})), Reply::text("done")]);
    let output =
        Run::task(&server, "task").file("show.sh", script).args(["--approve", "all", "-o", "jsonl", "-v"]).run();
    let output = output.success();
    let chunks =
        output.events().of("tool.output").iter().map(|event| event["chunk"].to_string()).collect::<String>();
    assert!(chunks.contains("begin") && chunks.contains("over"), "{chunks}");
    assert!(!output.stdout.contains("a1B2") && !output.stderr.contains("a1B2"), "{}", output.shown());
}

/// The variables that a command sees.
fn seen_by_a_command(settings: &str, variables: &[(&str, &str)]) -> String {
    let mut run = Run::new()
        .args(["tool", "call", "run_command", r#"{"command": "env"}"#, "--approve", "all"])
        .config("agent.yaml", settings);
    for (name, value) in variables {
        run = run.env(name, *value);
    }
    run.run().success().stdout
}

#[test]
fn commands_get_what_is_harmless_and_what_the_settings_name() {
    let variables = [
        ("DATABASE_URL", "postgres://app:s3cr3t@db/app"),
        ("MYSQL_PWD", "hunter2hunter2"),
        ("GITHUB_PAT", "some-long-value"),
        ("SENTRY_DSN", "https://abc@sentry.example.com/1"),
        ("HTTPS_PROXY", "http://me:s3cr3t@127.0.0.1:9"),
        ("CARGO_REGISTRY_TOKEN", "some-long-value"),
        ("BASH_ENV", "/nonexistent"),
        ("NODE_OPTIONS", "--require /nonexistent.js"),
        ("MY_OWN", "mine"),
        ("CARGO_HOME", "/nonexistent/cargo"),
        ("LC_ALL", "C"),
    ];
    for mode in ["on", "off"] {
        let seen = seen_by_a_command(&format!("sandbox: {{ mode: {mode} }}\n"), &variables);
        for (name, _) in &variables[..9] {
            assert!(!seen.contains(&format!("{name}=")), "{mode}: {name} in {seen}");
        }
        assert!(seen.contains("CARGO_HOME=/nonexistent/cargo") && seen.contains("LC_ALL=C"), "{mode}: {seen}");
        let settings = format!("sandbox: {{ mode: {mode}, env: [DATABASE_URL, 'MY_*', 'CARGO_*'] }}\n");
        let seen = seen_by_a_command(&settings, &variables);
        assert!(seen.contains("DATABASE_URL=") && seen.contains("MY_OWN=mine"), "{mode}: {seen}");
        assert!(!seen.contains("CARGO_REGISTRY_TOKEN") && !seen.contains("s3cr3t"), "{mode}: {seen}");
    }
    for (env, said) in [("['A=b']", "sets one"), ("['']", "empty"), ("['A[']", "not a pattern")] {
        let output =
            Run::new().args(["config", "check"]).config("agent.yaml", &format!("sandbox: {{ env: {env} }}\n"));
        output.run().exits(3).stderr_has(said);
    }
}

#[test]
fn values_of_secrets_are_hidden_and_ordinary_words_are_not() {
    let server = Server::start([
        Reply::call("read_file", &json!({"path": "notes.txt"})),
        Reply::call("run_command", &json!({"command": "cat notes.txt"})),
        Reply::text("done"),
    ]);
    let notes = "word disabled\npassword hunter2hunter2\ndatabase s3cr3t-of-db-42\npath /run/user/1000/agent\n";
    Run::task(&server, "task")
        .args(["--approve", "all"])
        .file("notes.txt", notes)
        .env("KEYRING_BACKEND", "disabled")
        .env("MYSQL_PWD", "hunter2hunter2")
        .env("DATABASE_URL", "postgres://app:s3cr3t-of-db-42@db/app")
        .env("SSH_AUTH_SOCK", "/run/user/1000/agent")
        .run()
        .success();
    for request in &server.requests()[1..] {
        let raw = &request.raw;
        assert!(raw.contains("word disabled") && raw.contains("path /run/user/1000/agent"), "{raw}");
        assert!(!raw.contains("hunter2") && !raw.contains("s3cr3t"), "{raw}");
    }
}

#[test]
fn a_key_in_the_query_of_an_address_is_not_shown() {
    let address = |server: &Server| format!("{}?key=query-0123456789-secret&api_key=tiny&v=2", server.url());
    let config = |server: &Server| format!("base_url: \"{}\"\n", address(server));
    let server = Server::always(Reply::error(400, "no such thing at /v1?key=query-0123456789-secret"));
    let failed = Run::task(&server, "task").config("models/default.yaml", &config(&server)).run().exits(5);
    let shown =
        Run::new().args(["config", "show"]).config("models/default.yaml", &config(&server)).run().success();
    let explained = Run::new()
        .args(["config", "explain", "models.default.base_url"])
        .config("models/default.yaml", &config(&server))
        .run()
        .success();
    for output in [&failed, &shown, &explained] {
        for secret in ["query-0123456789-secret", "tiny"] {
            assert!(!output.stdout.contains(secret) && !output.stderr.contains(secret), "{}", output.shown());
        }
    }
    assert!(shown.stdout.contains("?key=***&api_key=***&v=2"), "{}", shown.shown());
}
