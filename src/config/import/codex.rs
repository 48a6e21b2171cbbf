//! codex: `~/.codex`.

use serde_json::Value;

use super::EntryPlan;
use super::claude::{take_directories, take_hooks};
use super::home::{ForeignHome, parse_commented, parse_toml};
use super::parts::{entries, take_commands, take_model, take_servers};

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
            Some(model) => take_model(home, name, base_url, key.as_deref(), model),
            None => home.leave("model", name, format!("config.toml names no model for {base_url}")),
        }
    }
}
