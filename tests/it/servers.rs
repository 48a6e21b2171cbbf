//! Third-party servers, on each wire: a task with calls, a closing request at a limit, an answer by a schema, and
//! what goes wrong on the way.
//!
//! `.ci/servers` installs and starts them and names their addresses (`AGENT_TEST_AIMOCK`: scripted answers,
//! tests/servers/answers.json; `AGENT_TEST_LITELLM`: a translator in front of them); `.ci/llama` does so for llama.cpp
//! (`AGENT_TEST_LLAMA`). Without them these tests are skipped.

use std::io::Write;

use crate::output::Output;
use crate::run::Run;

/// The ways in which a run can use a server.
const WIRES: [&str; 3] = ["chat", "responses", "anthropic"];

/// A server on a wire, and the model that is asked there.
struct Way<'u> {
    url: &'u str,
    wire: &'static str,
    model: &'static str,
    /// By this the scripted server counts requests apart.
    name: String,
}

impl Way<'_> {
    fn run(&self, args: &[&str]) -> Output {
        let Self { url, wire, model, name } = self;
        let model = format!(
            "provider: openai\nwire: {wire}\nbase_url: {url}\nmodel: {model}\napi_key: none\ncontext_window: 32000\n\
             headers: {{ x-test-id: {name} }}\nretry: {{ attempts: 3, base_delay: 1ms, max_delay: 5s }}\n"
        );
        let agent = "tools: [read_file, list_dir]\ntermination_summary_prompt: closing words\n";
        Run::new()
            .args(["run"])
            .args(args.iter().copied())
            .config("models/default.yaml", &model)
            .config("agents/default.yaml", agent)
            .file("note.txt", "hello\n")
            .file("person.json", r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}"#)
            .run()
    }

    fn told(&self, what: &str, output: &Output) -> String {
        format!("{what}, {} as {} of {}\n{}", self.wire, self.model, self.url, output.shown())
    }

    /// The features that every server must have.
    fn serves(&self) {
        let output = self.run(&["-o", "jsonl", "read the file"]);
        let told = self.told("a task with calls", &output);
        assert!(output.code == 0 && output.stdout.contains("The file says: hello é ✓."), "{told}");
        assert_eq!(output.events().of("tool.finished").len(), 2, "{told}");

        let output = self.run(&["--max-turns", "1", "list for ever"]);
        let told = self.told("a closing request", &output);
        assert!(output.code == 8 && output.stdout == "Stopped in good order.\n", "{told}");

        let output = self.run(&["--schema", "person.json", "who is it"]);
        let told = self.told("an answer by a schema", &output);
        assert!(output.code == 0 && output.stdout == "{\"name\":\"Ada\"}\n", "{told}");
    }
}

/// The address in a variable; none where it is not set, which is told.
fn server(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        // The handle, because what `eprintln!` writes is shown only when a test fails.
        let _ = writeln!(std::io::stderr(), "skipped: {variable} names no server (.ci/servers starts one)");
    }
    url
}

#[test]
fn a_scripted_server_serves_every_wire() {
    let Some(url) = server("AGENT_TEST_AIMOCK") else { return };
    for wire in WIRES {
        let way = Way { url: &url, wire, model: "scripted", name: wire.to_owned() };
        way.serves();

        let output = way.run(&["-o", "jsonl", "too often"]);
        let told = way.told("a rate limit", &output);
        assert!(output.code == 0 && output.stdout.contains("At last."), "{told}");
        assert_eq!(output.events().of("retry").len(), 1, "{told}");

        let output = way.run(&["break off"]);
        let told = way.told("a stream that breaks off", &output);
        assert!(output.code == 5, "{told}");

        let output = way.run(&["nothing matches this"]);
        let told = way.told("a request that is refused", &output);
        assert!(output.code == 5 || output.code == 6, "{told}");
    }
}

#[test]
fn a_translator_serves_every_wire_whatever_stands_behind_it() {
    let Some(url) = server("AGENT_TEST_LITELLM") else { return };
    for wire in WIRES {
        for model in ["by-chat", "by-messages"] {
            Way { url: &url, wire, model, name: "translated".to_owned() }.serves();
        }
    }
}

/// Its model writes noise: that there is an answer is all that can be said of it.
#[test]
fn llama_cpp_answers_on_every_wire() {
    let Some(url) = server("AGENT_TEST_LLAMA") else { return };
    for wire in WIRES {
        let way = Way { url: &url, wire, model: "noise", name: wire.to_owned() };
        let output = way.run(&["-o", "jsonl", "--set", "models.default.max_output_tokens=64", "hello"]);
        let told = way.told("a message", &output);
        assert!([0, 7, 8].contains(&output.code), "{told}");
        assert!(output.events().of("message").len() > 1, "{told}");
    }
}
