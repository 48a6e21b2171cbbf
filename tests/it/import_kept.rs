//! `agent import`: each server keeps its own keys, and a row says what is lost.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::output::Output;
use crate::run::{Place, Run};

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, text).expect("written");
}

/// Imports these files of a home.
fn import(files: &[(&str, &str)]) -> (Arc<Place>, Output) {
    let place = Place::new();
    for (path, text) in files {
        put(&place.home().join(path), text);
    }
    let done = Run::at(&place).arg("import").run().success();
    (place, done)
}

fn written(place: &Place, path: &str) -> String {
    fs::read_to_string(place.home().join(".config/agent").join(path)).expect("written")
}

#[test]
fn the_key_of_a_server_is_read_by_no_other() {
    let claude = json!({ "mcpServers": {
        "github": { "url": "https://g.example/mcp", "headers": { "Authorization": "Bearer key-of-github" } },
        "linear": { "url": "https://l.example/mcp", "headers": { "Authorization": "Bearer key-of-linear" } },
        "one": { "command": "srv", "env": { "API_KEY": "key-of-one", "ONE_TOKEN": "token-of-one" } },
        "two": { "command": "srv", "env": { "API_KEY": "key-of-two" }, "args": ["--api-key", "key-of-args"] },
    } });
    let opencode = json!({ "mcp": {
        "jira": { "url": "https://j.example/mcp", "headers": { "Authorization": "Bearer {env:JIRA_TOKEN}" } },
        "file": { "url": "https://f.example/mcp", "headers": { "Authorization": "Bearer {file:~/.token}" } },
        "local": { "command": ["srv", "--token={env:LOCAL_TOKEN}"], "environment": { "LEVEL": "{env:LEVEL}" } },
    } });
    let (place, done) = import(&[
        (".claude.json", &claude.to_string()),
        (".config/opencode/opencode.json", &opencode.to_string()),
    ]);
    for (file, line) in [
        ("github", r#"headers: { "Authorization": "{{ env.GITHUB_AUTHORIZATION }}" }"#),
        ("linear", r#"headers: { "Authorization": "{{ env.LINEAR_AUTHORIZATION }}" }"#),
        ("one", r#"env: { "API_KEY": "{{ env.API_KEY }}", "ONE_TOKEN": "{{ env.ONE_TOKEN }}" }"#),
        ("two", r#"command: ["srv", "--api-key", "{{ env.TWO_API_KEY }}"]"#),
        ("two", r#"env: { "API_KEY": "{{ env.TWO_API_KEY_2 }}" }"#),
        ("jira", r#"headers: { "Authorization": "Bearer {{ env.JIRA_TOKEN }}" }"#),
        ("local", r#"command: ["srv", "--token={{ env.LOCAL_TOKEN }}"]"#),
        ("local", r#"env: { "LEVEL": "{{ env.LEVEL }}" }"#),
    ] {
        let text = written(&place, &format!("mcp/{file}.yaml"));
        assert!(text.contains(line), "{file}: {text}");
    }
    assert!(done.stdout.contains("its Authorization is not copied: set LINEAR_AUTHORIZATION"), "{}", done.shown());
    assert!(done.stdout.contains("a file is not read for a value"), "{}", done.shown());
    assert!(!place.home().join(".config/agent/mcp/file.yaml").exists());
}

#[test]
fn a_row_says_what_of_a_provider_or_a_prompt_is_lost() {
    let config = r#"model = "m"
[model_providers.azure]
base_url = "https://a.example/openai"
env_key = "AZURE_KEY"
wire_api = "responses"
query_params = { api-version = "2025-04-01" }
http_headers = { X-Team = "blue", X-Api-Key = "plain-value-99" }
env_http_headers = { X-Org = "ORG" }
"#;
    let (place, done) = import(&[
        (".codex/config.toml", config),
        (".codex/prompts/check.md", "---\nargument-hint: [number]\n---\nCheck $FILES and $1.\n"),
    ]);
    let model = written(&place, "models/azure.yaml");
    for line in [
        "wire: responses\n",
        r#"headers: { "X-Org": "{{ env.ORG }}", "X-Api-Key": "{{ env.AZURE_X_API_KEY }}", "X-Team": "blue" }"#,
        "api_key: { env: AZURE_KEY }\n",
    ] {
        assert!(model.contains(line), "{line}: {model}");
    }
    assert!(done.stdout.contains("without `query_params`"), "{}", done.shown());
    assert!(done.stdout.contains("$FILES is not filled in"), "{}", done.shown());
    assert!(written(&place, "commands/check.md").contains("argument-hint: \"[number]\""));
    Run::at(&place).args(["config", "check"]).run().success();
}

#[test]
fn a_project_gets_no_models() {
    let place = Place::new();
    let settings = json!({ "provider": { "local": {
        "options": { "baseURL": "http://localhost:1/v1" }, "models": { "q": {} } } } });
    put(&place.workspace().join("opencode.json"), &settings.to_string());
    let done = Run::at(&place).args(["import", "--project"]).run().success();
    assert!(done.stdout.contains("a project brings no models"), "{}", done.shown());
    assert!(!place.workspace().join(".agent/models").exists());
}

#[test]
fn a_name_of_another_script_is_shown_and_a_command_may_have_it() {
    let servers = json!({ "mcpServers": { "中文": { "command": "srv" } } }).to_string();
    let (place, done) = import(&[
        (".claude.json", &servers),
        (".claude/commands/提交.md", "Commit $ARGUMENTS\n"),
        (".claude/agents/审查.md", "You review.\n"),
    ]);
    for name in ["中文", "审查"] {
        let row = done.stdout.lines().find(|line| line.contains(name)).expect("a row");
        assert!(row.contains("its name has no ASCII letter"), "{row}");
    }
    assert_eq!(written(&place, "commands/提交.md"), "Commit $ARGUMENTS\n");
    let checked = Run::at(&place).args(["config", "check"]).run().success();
    assert!(!checked.stderr.contains("is no command"), "{}", checked.shown());
}
