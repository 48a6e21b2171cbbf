//! codex: `~/.codex`.

use serde_json::Value;

use super::EntryPlan;
use super::claude::{take_directories, take_hooks};
use super::home::{ForeignHome, parse_commented, parse_toml};
use super::keys::{KeyReading, quote};
use super::parts::{ForeignModel, entries, take_commands, take_model, take_servers, text_of};

pub(super) fn read_codex(home: &mut ForeignHome<'_>) {
    home.take_instructions(".codex/AGENTS.md");
    home.take_skills(&[".codex/skills".to_owned()]);
    take_commands(home, &[".codex/prompts".to_owned()]);
    if let Some(hooks) = home.read_object(".codex/hooks.json", parse_commented) {
        take_hooks(home, hooks.get("hooks").unwrap_or(&Value::Null));
    }
    let Some(settings) = home.read_object(".codex/config.toml", parse_toml) else { return };
    for (key, value) in &settings {
        match key.as_str() {
            "mcp_servers" => take_servers(home, Some(value)),
            "model_providers" => take_providers(home, value, settings.get("model")),
            "model" | "model_provider" => {
                home.leave("setting", key, "name a model with -m, or in models/default.yaml");
            }
            "approval_policy" | "sandbox_mode" => {
                home.leave("setting", key, "--approve, or `approval` in agents/default.yaml");
            }
            "hooks" => take_hooks(home, value),
            "sandbox_workspace_write" => {
                for (key, value) in entries(value) {
                    match key.as_str() {
                        "writable_roots" => take_directories(home, value),
                        "network_access" => {
                            home.leave("setting", key, "`sandbox.network` in agent.yaml names hosts");
                        }
                        key => home.leave_unknown(key),
                    }
                }
            }
            "profiles" => {
                for (name, _) in entries(value) {
                    home.leave("profile", name, "a directory for --config is a profile here");
                }
            }
            "projects" => home.add("setting", key, EntryPlan::Left, "trust is asked for anew"),
            key => home.leave_unknown(key),
        }
    }
}

fn take_providers(home: &mut ForeignHome<'_>, providers: &Value, model: Option<&Value>) {
    for (name, provider) in entries(providers) {
        let Some(base_url) = provider["base_url"].as_str() else {
            home.leave("model", name, "it has no base_url");
            continue;
        };
        let key = provider["env_key"].as_str().map(|variable| format!("${variable}"));
        match model.and_then(Value::as_str) {
            Some(id) => {
                let (lines, notes) = describe_provider(home, name, provider);
                take_model(home, ForeignModel { name, base_url, key: key.as_deref(), id, lines, notes });
            }
            None => home.leave("model", name, format!("config.toml names no model for {base_url}")),
        }
    }
}

/// What a file of a model can say of a provider besides its address and its key, and notes on the rest.
fn describe_provider(home: &mut ForeignHome<'_>, name: &str, provider: &Value) -> (String, Vec<String>) {
    let mut reading = KeyReading { server: name, taken: &mut home.keys, notes: Vec::new() };
    let (mut lines, mut headers) = (String::new(), Vec::new());
    for (key, value) in entries(provider) {
        match (key.as_str(), value.as_str()) {
            ("name" | "base_url" | "env_key" | "env_key_instructions", _) => {}
            ("wire_api", Some(wire @ ("responses" | "chat"))) => lines = format!("wire: {wire}\n"),
            ("http_headers" | "env_http_headers", _) => {
                for (header, value) in entries(value) {
                    let text = text_of(value);
                    let text = if key == "http_headers" { text } else { format!("${{{text}}}") };
                    match reading.translate_value(header, &text, false) {
                        Ok(text) => headers.push(format!("{}: {}", quote(header), quote(&text))),
                        Err(why) => reading.notes.push(format!("without the header {header}: {why}")),
                    }
                }
            }
            (key, _) => reading.notes.push(format!("without `{key}`")),
        }
    }
    if !headers.is_empty() {
        lines = format!("{lines}headers: {{ {} }}\n", headers.join(", "));
    }
    (lines, reading.notes)
}
