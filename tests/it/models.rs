//! Models by name: a known provider needs only its key, and the catalogue has the facts about its models.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::repl::said;
use crate::reply::Reply;
use crate::run::{GUARD, KEY, Place, Run};
use crate::server::Server;

#[test]
fn a_provider_wins_over_the_server_of_the_default_model() {
    let (other, ollama) = (Server::always(Reply::text("other")), Server::always(Reply::ollama("local")));
    let host = ollama.url().trim_end_matches("/v1").to_owned();
    Run::task(&other, "task").args(["-m", "ollama/qwen3:8b"]).env("OLLAMA_HOST", host).run().stdout_is("local\n");
    assert!(other.requests().is_empty());
    let requests = ollama.requests();
    let request = requests.iter().find(|request| request.path == "/api/chat").expect("it was asked");
    assert_eq!(request.body["model"], "qwen3:8b");
    assert_eq!(request.header("authorization"), None, "the key of another server stays with that");
}

#[test]
fn another_id_is_asked_of_the_agents_own_server() {
    for id in ["gpt-9", "meta-llama/Llama-3.3-70B-Instruct", "openai"] {
        let server = Server::always(Reply::text("ok"));
        Run::task(&server, "task").args(["-m", id]).run().success();
        assert_eq!(server.only_request().body["model"], id);
    }
}

#[test]
fn a_missing_key_is_one_line_that_names_the_variable() {
    for (model, variables) in [
        ("anthropic/claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-3.8-flash", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("openrouter/anthropic/claude-sonnet-5", "OPENROUTER_API_KEY"),
        ("mistral/mistral-small-2603", "MISTRAL_API_KEY"),
    ] {
        let server = Server::always(Reply::text("ok"));
        let output = Run::new()
            .args(["run", "task", "-m", model])
            .env("OPENAI_API_KEY", KEY)
            .env("OPENAI_BASE_URL", server.url())
            .run()
            .exits(4);
        assert!(output.stderr.contains(variables) && output.stderr.lines().count() == 1, "{}", output.shown());
        assert!(server.requests().is_empty());
    }
}

#[test]
fn the_key_of_a_provider_is_enough_to_make_its_request() {
    let output = Run::new()
        .args(["run", "task", "--dry-run", "-m", "groq/openai/gpt-oss-120b"])
        .env("GROQ_API_KEY", "gsk-secret-of-groq")
        .run()
        .success();
    let request: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(request["model"], "openai/gpt-oss-120b");
    assert!(!output.shown().contains("secret-of-groq"), "{}", output.shown());
}

#[test]
fn a_provider_is_asked_at_its_own_address() {
    // A proxy is told the host in the clear before anything else is sent.
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", proxy.local_addr().expect("bound"));
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (stream, _) = proxy.accept().expect("a connection");
        let mut line = String::new();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut line).expect("a line");
        tell.send(line).expect("the test waits");
        // The connection is held until the program gives up.
        let _ = reader.read_until(0, &mut Vec::new());
    });
    let running = Run::new()
        .args(["run", "task", "-m", "openrouter/anthropic/claude-sonnet-5"])
        .env("OPENROUTER_API_KEY", "sk-or-secret")
        .env("HTTPS_PROXY", address)
        .spawn();
    let line = told.recv_timeout(GUARD).expect("the proxy is asked");
    assert!(line.starts_with("CONNECT openrouter.ai:443 "), "{line}");
    running.signal(Signal::SIGTERM);
    running.wait().exits(143);
}

#[test]
fn a_price_that_is_not_known_is_null_and_no_cost_limit_can_hold() {
    let server = Server::always(Reply::text("ok"));
    let output = Run::task(&server, "task").args(["-o", "json"]).run().success();
    assert_eq!(output.json().get("cost_usd"), Some(&Value::Null), "{}", output.shown());
    let refused = Run::task(&Server::always(Reply::error(401, "no")), "task").args(["-o", "json"]).run().exits(4);
    assert_eq!(refused.json()["cost_usd"], 0.0, "nothing was used: {}", refused.shown());
    Run::task(&server, "task").args(["--max-cost", "1"]).run().exits(3).reason_has("`prices`");
    let local = Run::new().args(["run", "task", "-m", "ollama/qwen3", "--max-cost", "1"]).run();
    local.exits(3).reason_has("`prices`").reason_has("models/NAME.yaml");
}

#[test]
fn a_request_costs_what_its_size_does() {
    for (prices, usd) in [
        ("{ input: 10, output: 100 }", 0.012),
        ("{ input: 10, output: 100, tiers: [{ above: 500, input: 20, output: 200 }] }", 0.024),
        ("{ input: 10, output: 100, tiers: [{ above: 1000, input: 20, output: 200 }] }", 0.012),
    ] {
        let server = Server::always(Reply::text("ok").counted(1000));
        let run = Run::task(&server, "task").args(["-o", "json"]);
        let output = run.config("models/default.yaml", &format!("prices: {prices}\n")).run().success();
        let cost = output.json()["cost_usd"].as_f64().expect("a cost");
        assert!((cost - usd).abs() < 1e-9, "{prices}: {cost}");
    }
    let wrong = Run::new()
        .args(["config", "check"])
        .config("models/default.yaml", "prices: { input: 1, output: 2, cache_write: -1 }\n");
    wrong.run().exits(3).stderr_has("below 0");
}

#[test]
fn a_chat_switches_to_a_provider_and_stays_where_it_is_without_its_key() {
    let (own, ollama) = (Server::always(Reply::text("own")), Server::always(Reply::ollama("local")));
    let typed = "/model groq/openai/gpt-oss-20b\none\n/model ollama/qwen3\ntwo\n/model default\nthree\n";
    let output = Run::new()
        .server(&own)
        .env("OLLAMA_HOST", ollama.url().trim_end_matches("/v1"))
        .arg("chat")
        .stdin(typed)
        .run()
        .stderr_has("set GROQ_API_KEY")
        .stderr_has("The model is now qwen3.");
    assert_eq!((said(&own), said(&ollama)), (vec!["one".to_owned(), "three".to_owned()], vec!["two".to_owned()]));
    assert!(output.stdout.contains("local"), "{}", output.shown());
}

/// The output of `agent model list -o json` for models with `filter` in their names.
fn list(place: &std::sync::Arc<Place>, filter: &str) -> Vec<Value> {
    let output = Run::at(place).args(["model", "list", filter, "-o", "json"]).run().success();
    output.json()["models"].as_array().expect("a list").clone()
}

#[test]
fn the_list_has_configured_models_first_and_the_facts_of_each() {
    let run = Run::new().config(
        "models/mine.yaml",
        "provider: openai\nbase_url: https://openrouter.ai/api/v1\nmodel: anthropic/claude-sonnet-5\ncontext_window: 5000\n",
    );
    let place = run.place();
    run.args(["model", "list", "claude-sonnet-5"])
        .run()
        .success()
        .stdout_has("openrouter/anthropic/claude-sonnet-5");
    let models = list(&place, "claude-sonnet-5");
    assert_eq!((&models[0]["name"], &models[0]["context_window"]), (&json!("mine"), &json!(5000)));
    assert_eq!(models[0]["prices"]["about"], true, "one source says what it costs there");
    let sonnet = models.iter().find(|model| model["name"] == "anthropic/claude-sonnet-5-5").expect("it is known");
    assert_eq!(
        sonnet,
        &json!({
            "name": "anthropic/claude-sonnet-5-5",
            "id": "claude-sonnet-5-5",
            "source": "catalogue",
            "context_window": 1_000_000,
            "max_input_tokens": null,
            "max_output_tokens": 128_000,
            "prices": {
                "above": 0, "input": 2.0, "cached_input": 0.1, "cache_write": 2.5, "output": 10.0,
                "tiers": [], "about": false,
            },
            "sees": true,
            "levels": ["low", "medium", "high", "xhigh", "max"],
            "off": null,
            "wire": "anthropic",
            "ends": null,
        })
    );
    Run::new().args(["model", "list", "no-such-model"]).run().success().stdout_is("No such model.\n");
}

#[test]
fn another_catalogue_is_taken_from_a_file_or_an_address() {
    let listed = json!({ "openai": { "models": { "gpt-99": {
        "limit": { "context": 12_345, "output": 99 }, "cost": { "input": 1, "output": 2 } } } } });
    let run = Run::new().file("api.json", listed.to_string());
    let place = run.place();
    run.args(["model", "update", "api.json"]).run().success().stdout_has("1 models");
    assert_eq!(list(&place, "gpt-99")[0]["context_window"], 12_345);
    assert!(!list(&place, "openai/gpt-5-mini").is_empty(), "what it does not name is as before");

    let text = "agent-models 1 2026-11-20\norigin a company\n\n@openai\ngpt-98 w=777 p=1///2 c=2\n";
    let server = Server::answering(move |_, _| Reply::body(200, "text/plain", text));
    let address = server.url().replace("//", "//user:secret-word@") + "/models.txt?token=secret-token";
    let output = Run::at(&place).args(["model", "update", &address]).run().success();
    assert!(!format!("{}{}", output.stdout, output.stderr).contains("secret-"), "{}", output.shown());
    let models = list(&place, "gpt-9");
    assert_eq!(models.len(), 1, "the other one is replaced: {models:?}");
    assert_eq!(models[0]["context_window"], 777);
    let kept = std::fs::read_to_string(place.data().join("agent/models.txt")).expect("it is kept");
    assert!(kept.contains("/v1/models.txt (a company)") && !kept.contains("secret-"), "{kept}");
}

#[test]
fn what_is_no_catalogue_changes_nothing() {
    let head = "agent-models 1 2026-11-20\norigin x\n\n@openai\n";
    let good = format!("{head}gpt-98 w=777\n");
    let run = Run::new().file("good.txt", &good);
    let place = run.place();
    run.args(["model", "update", "good.txt"]).run().success();
    for (text, why) in [
        ("{}".to_owned(), "no models"),
        ("<html>".to_owned(), "does not begin"),
        (format!("{head}gpt-98 w=777 base_url=https://evil.example\n"), "line 5"),
        (format!("{head}gpt-98 w=1 o=2\n"), "larger than the window"),
        (good.replace("@openai", "@evil"), "not a known provider"),
        (good.replace("2026-11-20", "2020-01-01"), "older"),
        (good.replace("2026-11-20", "2999-01-01"), "in the future"),
        (format!("{head}{}", " ".repeat(6 * 1024 * 1024)), "longer than 5 MiB"),
    ] {
        Run::at(&place).file("bad", &text).args(["model", "update", "bad"]).run().exits(1).reason_has(why);
    }
    Run::at(&place).args(["model", "update", "nowhere.json"]).run().exits(1).reason_has("no such file");
    let server = Server::answering(|_, _| Reply::body(404, "text/plain", "gone"));
    Run::at(&place).args(["model", "update", server.url().as_str()]).run().exits(1).reason_has("404");
    assert_eq!(list(&place, "gpt-98")[0]["context_window"], 777, "the good one still stands");
}

#[test]
fn a_catalogue_of_the_user_that_cannot_be_used_is_named() {
    let run = Run::new();
    let place = run.place();
    let dir = place.data().join("agent");
    std::fs::create_dir_all(&dir).expect("made");
    std::fs::write(dir.join("models.txt"), "agent-models 1 2020-01-01\norigin x\n\n@openai\ngpt-5 w=1\n")
        .expect("written");
    run.args(["model", "list", "openai/gpt-5-mini"]).run().success().stderr_has("older").stdout_has("400k");
    let server = Server::always(Reply::text("ok"));
    let output = Run::at(&place).args(["run", "task"]).server(&server).run().success();
    assert!(output.stderr.contains("older"), "{}", output.shown());
}

#[test]
fn the_key_of_another_provider_is_enough() {
    let server = Server::always(Reply::text("hello"));
    let run = || Run::new().args(["run", "task"]).env("DEEPSEEK_API_KEY", "sk-deep-secret");
    let text = r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"text","text":"hello"}],"model":"claude-sonnet-5-5","stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":1}}"#;
    let anthropic = Server::answering(move |_, _| Reply::body(200, "application/json", text));
    let address = format!("{}/v1", anthropic.url().trim_end_matches("/v1"));
    let chosen = run().env("ANTHROPIC_API_KEY", "sk-ant-secret").env("ANTHROPIC_BASE_URL", &address);
    chosen.run().success().stdout_has("hello");
    let requests = anthropic.requests();
    assert_eq!(requests[0].body["model"], "claude-haiku-5-5", "the first of the two in the table of providers");
    // Whoever names a server has chosen.
    run().server(&server).run().success();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn where_another_model_is_named_a_key_of_another_provider_is_a_command_to_try() {
    let run =
        Run::new().args(["run", "task"]).env("ANTHROPIC_API_KEY", "sk-ant-secret").env("AGENT_MODEL", "gpt-5");
    let run = run.run().exits(4);
    let command = "ANTHROPIC_API_KEY is set: agent run -m anthropic/claude-haiku-5-5";
    assert!(run.stderr.contains(command) && !run.shown().contains("ant-secret"), "{}", run.shown());
}
