//! The first steps of a new user: `agent doctor`, and the questions of `agent init`.

use serde_json::json;

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::{KEY, Run};
use crate::server::Server;

fn doctor(server: &Server) -> Run {
    Run::new().arg("doctor").server(server)
}

#[test]
fn the_doctor_asks_the_model_one_short_question_and_tells_what_it_takes() {
    let server = Server::start([Reply::text("one two three four five")]);
    let output = doctor(&server).run().success();
    let host = server.url().replace("http://", "").replace("/v1", "");
    let output = output.stdout_has(&format!("scripted-model at {host} answers; it streams, calls tools"));
    let output = output.stdout_has("this took one request, ").stdout_has("declare `context_window`");
    for check in ["version", "config", "model", "sandbox", "terminal", "disk", "state", "git"] {
        let is_line = |line: &str| line.split_whitespace().nth(1) == Some(check);
        assert!(output.stdout.lines().any(is_line), "{check} is missing in\n{}", output.shown());
    }
    assert!(!output.shown().contains(KEY));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_doctor_looks_for_a_newer_version_only_when_it_is_told_to() {
    let own = env!("CARGO_PKG_VERSION");
    let no_version = json!({"version": "soon"});
    for (status, body, expected) in [
        (200, json!({"version": "999.0.1"}), "weak  newer    version 999.0.1 is published at"),
        (200, json!({"version": own}), &format!("ok    newer    the newest published version is {own}")),
        (200, no_version, "its agent.json names no version"),
        (200, json!([]), "its agent.json names no version"),
        (404, json!({}), "HTTP 404 for"),
    ] {
        let releases = Server::always(Reply::json(status, &body));
        let run = Run::new().args(["doctor", "--online"]).env("AGENT_RELEASES", format!("{}/", releases.url()));
        run.server(&Server::always(Reply::text("one"))).run().success().stdout_has(expected);
        let asked: Vec<String> = releases.requests().into_iter().map(|request| request.path).collect();
        assert_eq!(asked, ["/v1/agent.json"]);
    }
    let releases = Server::always(Reply::json(200, &json!({"version": "999.0.1"})));
    let server = Server::always(Reply::text("one"));
    doctor(&server).env("AGENT_RELEASES", releases.url()).run().success();
    assert!(releases.requests().is_empty());
    let unknown = Run::new().args(["doctor", "--online"]).server(&server).run().success();
    unknown.stdout_has("nobody said where releases lie");
}

#[test]
fn the_doctor_names_what_earlier_runs_left() {
    let server = Server::always(Reply::text("one"));
    let run = doctor(&server);
    let lacks = run.run().success();
    assert!(!lacks.stdout.contains("delete there"), "{}", lacks.shown());
    let run = doctor(&server);
    let undone = run.place().home().join(".local/state/agent/undone/20261128-a1b2c3");
    std::fs::create_dir_all(&undone).expect("made");
    std::fs::write(undone.join("hook"), "x".repeat(3 << 20)).expect("written");
    run.run().success().stdout_has("1 in ").stdout_has("undone (3 MiB): what commands made");
}

#[test]
fn the_doctor_fails_without_a_model_and_says_how_to_get_one() {
    let output = Run::new().arg("doctor").run().exits(1);
    let output = output.stdout_has("bad   model    none is configured").stdout_has("agent run -m demo");
    output.stdout_has("OPENAI_API_KEY");
}

#[test]
fn the_doctor_fails_with_the_words_of_a_server_that_refuses() {
    let server = Server::start([Reply::error(401, "no such key")]);
    let output = doctor(&server).run().exits(1);
    let output = output.stdout_has("bad   model").stdout_has("does not answer").stdout_has("agent model check");
    assert!(!output.shown().contains(KEY));
}

#[test]
fn the_doctor_shows_the_mistakes_of_the_configuration_and_checks_the_rest() {
    let server = Server::start([]);
    let run = doctor(&server).config("agent.yaml", "limits: { max_turns: many }\n");
    let output = run.run().exits(1);
    output.stdout_has("bad   config").stdout_has("agent.yaml:1:").stdout_has("disk");
    assert!(server.requests().is_empty());
}

#[test]
fn on_a_terminal_the_doctor_keeps_to_its_width_and_knows_what_the_terminal_can() {
    let script = "provider: scripted\nscript: [ { text: hello } ]\n";
    let run = Run::new().arg("doctor").config("models/default.yaml", script);
    for (columns, variables, says) in [
        (40, [("TERM", "xterm-256color"), ("LANG", "C.UTF-8")], "40×30,"),
        (100, [("TERM", "dumb"), ("LANG", "C.UTF-8")], "TERM is dumb"),
        (100, [("TERM", "xterm-256color"), ("LANG", "C")], "the locale is C: set LANG=C.UTF-8"),
    ] {
        let run =
            variables.iter().fold(Run::at(&run.place()).arg("doctor"), |run, (name, value)| run.env(name, *value));
        let mut terminal = Terminal::sized(&run, columns, 30);
        assert_eq!(terminal.exit_code(), 0, "{}", terminal.screen());
        let raw = terminal.raw_to_the_end();
        assert!(raw.contains(says), "{says} is missing in\n{raw}");
        let columns = usize::from(columns);
        let is_a_word = |line: &str| !line.trim().contains(' ');
        assert!(raw.lines().all(|line| line.trim_end().chars().count() < columns || is_a_word(line)), "{raw}");
    }
}

/// Answers the questions of `init`, of which the first is answered with the number of the entry `pick` picks.
fn init(run: &Run, pick: fn(&str) -> bool, answers: &[(&str, &str)]) -> Terminal {
    let mut terminal = Terminal::sized(run, 100, 60);
    terminal.wait_for("Number [1]:");
    let screen = terminal.screen();
    let entry = screen.lines().find(|line| pick(line)).expect("it is offered").trim();
    let number = entry.split('.').next().expect("it has a number").to_owned();
    terminal.line(&number);
    for (question, answer) in answers {
        terminal.wait_for(question);
        terminal.line(answer);
    }
    terminal
}

#[test]
fn init_asks_for_the_model_and_writes_a_configuration_that_is_sound() {
    let run = Run::new().arg("init");
    let answers = [("leaves it to ANTHROPIC_API_KEY):", ""), ("Model [claude", "claude-haiku-4-5")];
    let mut terminal = init(&run, |line| line.ends_with(". Anthropic"), &answers);
    terminal.wait_for("Set ANTHROPIC_API_KEY to your key");
    assert_eq!(terminal.exit_code(), 0);
    let place = run.place();
    let file = std::fs::read_to_string(place.config().join("models/default.yaml")).expect("it was written");
    assert!(
        file.contains("api_key: \"{{ env.ANTHROPIC_API_KEY }}\"") && file.contains("claude-haiku-4-5"),
        "{file}"
    );
    let written: Vec<_> = place.kept().into_iter().filter(|(path, _)| path.starts_with(place.config())).collect();
    assert_eq!(written.len(), 1, "one small file: {written:?}");
    Run::at(&place).args(["config", "check"]).run().success();
    let model = Run::at(&place).args(["config", "explain", "models.default.base_url"]).run().success();
    model.stdout_has("https://api.anthropic.com/v1").stdout_has("models/default.yaml");
    // Another time there is nothing to ask, and nothing is overwritten.
    let mut again = Terminal::start(&Run::at(&place).arg("init"));
    assert_eq!(again.exit_code(), 0);
    assert!(again.raw_to_the_end().contains("0 files written"));
}

#[test]
fn init_without_a_terminal_copies_one_file_and_with_flags_what_is_asked_for() {
    let place = Run::new().arg("init").run().success().stdout_has("1 file written").place;
    let file = std::fs::read_to_string(place.config().join("models/default.yaml")).expect("it was written");
    assert!(
        file.contains("api_key: \"{{ env.OPENAI_API_KEY }}\"") && file.contains("# Copied from agent "),
        "{file}"
    );
    Run::at(&place).args(["prompt", "list"]).run().success().stdout_has("system");
    Run::at(&place)
        .args(["init", "--skills=nothing"])
        .run()
        .fails()
        .stderr_has("there is no built-in skill `nothing`");
    Run::at(&place).args(["init", "--skills=workspace-tour"]).run().success();
    assert!(
        place.config().join("skills/workspace-tour/SKILL.md").exists() && !place.config().join("prompts").exists()
    );
    Run::at(&place).args(["init", "--prompts"]).run().success();
    let diff = ["prompt", "diff", "system@user", "system@built-in"];
    let shown = Run::at(&place).args(diff).run().success().stdout;
    assert!(shown.contains("\n-# Copied from agent ") && shown.contains("prompts/system/v2.1.md"), "{shown}");
    Run::new().args(diff).run().exits(2).stderr_has("there is no `system` of the user");
}

#[test]
fn init_takes_any_server_and_never_a_key() {
    let server = Server::start([Reply::text("hello")]);
    let run = Run::new().arg("init");
    let url = server.url();
    let answers = [
        ("with the version path:", "not an address"),
        ("Type an address", url.as_str()),
        ("Model:", "{{ env.OPENAI_API_KEY }}"),
        ("That is not the name of a model", "local-model"),
    ];
    let mut terminal = init(&run, |line| line.contains("another server"), &answers);
    terminal.wait_for("`agent doctor` asks");
    assert_eq!(terminal.exit_code(), 0);
    let place = run.place();
    // The key of another provider does not reach it.
    let asked = Run::at(&place).args(["run", "hi"]).env("OPENAI_API_KEY", KEY).run().success();
    asked.stdout_is("hello\n");
    let request = server.only_request();
    assert_eq!(request.body["model"], json!("local-model"));
    assert_eq!(request.header("authorization"), None);
}

#[test]
fn a_pasted_key_is_kept_apart_and_shown_nowhere_and_without_an_answer_nothing_is_written() {
    let key = "sk-proj-0123456789abcdef0123456789abcdef";
    // No provider is asked: the way out is closed.
    let new = || Run::new().arg("init").env("HTTPS_PROXY", "http://127.0.0.1:9");
    let asked = "leaves it to OPENAI_API_KEY):";
    let answers = [(asked, "two words"), ("a key is one word", key), ("Model [", "\u{4}")];
    let run = new();
    let mut terminal = init(&run, |line| line.ends_with(". OpenAI"), &answers);
    assert_ne!(terminal.exit_code(), 0);
    let shown = terminal.raw_to_the_end();
    assert!(shown.contains("no file was written") && !shown.contains(key), "{shown}");
    assert!(run.place().kept().is_empty(), "{:?}", run.place().kept());

    let run = new();
    let mut terminal = init(&run, |line| line.ends_with(". OpenAI"), &[(asked, key), ("Model [", "")]);
    terminal.wait_for("which only you can read");
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.raw_to_the_end().contains(key));
    let file = std::fs::read_to_string(run.place().config().join("models/default.yaml")).expect("it was written");
    assert!(!file.contains(key) && file.contains("env.OPENAI_API_KEY"), "{file}");
    Run::at(&run.place()).args(["key", "list"]).run().success().stdout_has("stored");
}

#[test]
fn the_first_chat_asks_for_a_model_and_goes_on_with_it() {
    let server = Server::start([Reply::text("hello from there")]);
    let run = Run::new().arg("chat");
    let url = server.url();
    let answers = [("with the version path:", url.as_str()), ("Model:", "local-model")];
    let mut terminal = init(&run, |line| line.contains("another server"), &answers);
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    terminal.line("hi");
    terminal.wait_for("hello from there");
    // The next one does not ask.
    let again = Terminal::start(&Run::at(&run.place()).arg("chat"));
    again.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    assert!(!again.screen().contains("Which server"), "{}", again.screen());
}

#[test]
fn the_first_chat_can_be_the_demo_or_nothing() {
    let run = Run::new().arg("chat");
    let mut terminal = init(&run, |line| line.contains("the demo"), &[]);
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
    terminal.line("look around");
    terminal.wait_for("scripted demo");
    let run = Run::new().arg("chat");
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("Number [1]:");
    terminal.line("\u{4}");
    assert_ne!(terminal.exit_code(), 0);
    assert!(!run.place().config().join("models/default.yaml").exists());
}

#[test]
fn a_chat_whose_configuration_names_no_key_begins_with_how_to_get_one() {
    let run = Run::new().config("models/default.yaml", "model: gpt-5-mini\n").arg("chat");
    let terminal = Terminal::start(&run);
    terminal.wait_for("No model is configured yet.");
    terminal.wait_for("OPENAI_API_KEY");
    terminal.wait_for("-m demo");
    terminal.wait_until("the prompt", |screen| screen.trim_end().ends_with('>'));
}
