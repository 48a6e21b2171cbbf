//! Gemini CLI, opencode, crush, goose, aider, and `.mcp.json` files.

use std::path::Path;

use serde_json::Value;

use super::EntryPlan;
use super::agents::take_agents;
use super::home::{ForeignHome, parse_commented, parse_toml, parse_yaml};
use super::keys::quote;
use super::parts::{ForeignModel, entries, list_texts, take_commands, take_model, take_server, take_servers};

/// What is said of settings that choose a model.
const MODEL: &str = "name a model with -m, or in models/default.yaml";
const APPROVAL: &str = "--approve, or rules in agent.yaml";

pub(super) fn read_gemini(home: &mut ForeignHome<'_>) {
    home.take_instructions(".gemini/GEMINI.md");
    home.take_skills(&[".gemini/skills".to_owned()]);
    for (name, path) in home.list(&[".gemini/commands".to_owned()], ".toml") {
        let Some(text) = home.read_path(&path) else { continue };
        match parse_toml(&text) {
            Ok(command) if command["prompt"].as_str().is_some_and(|prompt| !prompt.trim().is_empty()) => {
                let prompt = command["prompt"].as_str().unwrap_or_default();
                let mut notes = Vec::new();
                if prompt.contains("!{") {
                    notes.push("commands in its text do not run");
                }
                let prompt = prompt.replace("{{args}}", "$ARGUMENTS");
                let head = command["description"]
                    .as_str()
                    .map(|about| format!("---\ndescription: {}\n---\n", quote(about)));
                let to = Path::new("commands").join(format!("{}.md", home.name_command(&name)));
                let text = format!("{}{}\n", head.unwrap_or_default(), prompt.trim());
                home.add("command", name, EntryPlan::Write(to, text), notes.join("; "));
            }
            Ok(_) => home.leave("command", name, "it has no prompt"),
            Err(why) => home.leave("command", name, why),
        }
    }
    for (name, _) in home.list_dirs(&[".gemini/extensions".to_owned()]) {
        home.leave("extension", name, "extensions are not read");
    }
    let Some(settings) = home.read_object(".gemini/settings.json", parse_commented) else { return };
    for (key, value) in &settings {
        match key.as_str() {
            "mcpServers" => take_servers(home, Some(value)),
            "model" => home.leave("setting", key, MODEL),
            "tools" | "security" => home.leave("setting", key, APPROVAL),
            key => home.leave_unknown(key),
        }
    }
}

pub(super) fn read_opencode(home: &mut ForeignHome<'_>) {
    let dir = if home.is_project { ".opencode" } else { ".config/opencode" };
    home.take_instructions(&format!("{dir}/AGENTS.md"));
    home.take_skills(&["skill", "skills"].map(|folder| format!("{dir}/{folder}")));
    take_commands(home, &["command", "commands"].map(|folder| format!("{dir}/{folder}")));
    take_agents(home, &["agent", "agents"].map(|folder| format!("{dir}/{folder}")));
    let dirs: &[&str] = if home.is_project { &[".opencode/", ""] } else { &[".config/opencode/"] };
    for file in dirs.iter().flat_map(|dir| ["opencode.json", "opencode.jsonc"].map(|file| format!("{dir}{file}")))
    {
        let Some(settings) = home.read_object(&file, parse_commented) else { continue };
        for (key, value) in &settings {
            match key.as_str() {
                "$schema" => {}
                "mcp" => take_servers(home, Some(value)),
                "provider" => take_providers(home, value, "options", "baseURL", "apiKey"),
                "model" | "small_model" => home.leave("setting", key, MODEL),
                "permission" => home.leave("setting", key, APPROVAL),
                key => home.leave_unknown(key),
            }
        }
    }
}

pub(super) fn read_crush(home: &mut ForeignHome<'_>) {
    let file = if home.is_project { ".crush.json" } else { ".config/crush/crush.json" };
    let Some(settings) = home.read_object(file, parse_commented) else { return };
    for (key, value) in &settings {
        match key.as_str() {
            "$schema" => {}
            "mcp" => take_servers(home, Some(value)),
            "providers" => take_providers(home, value, "", "base_url", "api_key"),
            "models" => home.leave("setting", key, MODEL),
            "permissions" => home.leave("setting", key, APPROVAL),
            key => home.leave_unknown(key),
        }
    }
}

/// Endpoints with lists of models. `inner` is the key below which a provider has its address and its key.
fn take_providers(home: &mut ForeignHome<'_>, providers: &Value, inner: &str, url: &str, key: &str) {
    for (name, provider) in entries(providers) {
        let options = if inner.is_empty() { provider } else { &provider[inner] };
        let Some(base_url) = options[url].as_str() else {
            home.leave("model", name, "it has no address: -m PROVIDER/ID uses a known provider");
            continue;
        };
        let listed = provider["models"].as_array().into_iter().flatten().filter_map(|model| model["id"].as_str());
        let named = entries(&provider["models"]).map(|(id, _)| id.as_str());
        let models: Vec<&str> = listed.chain(named).collect();
        if models.is_empty() {
            home.leave("model", name, format!("no model of {base_url} is named"));
        }
        let known = [url, key, "id", "name", "type", "models"];
        let lost = entries(options).filter(|(key, _)| !known.contains(&key.as_str()));
        let notes: Vec<String> = lost.map(|(key, _)| format!("without `{key}`")).collect();
        for id in models {
            let (name, key, notes) = (&*format!("{name}-{id}"), options[key].as_str(), notes.clone());
            take_model(home, ForeignModel { name, base_url, key, id, notes, ..ForeignModel::default() });
        }
    }
}

pub(super) fn read_goose(home: &mut ForeignHome<'_>) {
    home.take_instructions(".config/goose/.goosehints");
    let Some(settings) = home.read_object(".config/goose/config.yaml", parse_yaml) else { return };
    for (key, value) in &settings {
        match key.as_str() {
            "extensions" => {
                for (name, extension) in entries(value) {
                    match extension["type"].as_str() {
                        Some("builtin" | "platform") => home.leave("server", name, "it is a part of goose"),
                        _ => take_server(home, name, extension),
                    }
                }
            }
            "GOOSE_MODEL" | "GOOSE_PROVIDER" => home.leave("setting", key, MODEL),
            "GOOSE_MODE" => home.leave("setting", key, APPROVAL),
            key => home.leave_unknown(key),
        }
    }
}

pub(super) fn read_aider(home: &mut ForeignHome<'_>) {
    let Some(settings) = home.read_object(".aider.conf.yml", parse_yaml) else { return };
    let model = settings.get("model").and_then(Value::as_str);
    for (key, value) in &settings {
        match (key.as_str(), model) {
            ("openai-api-base", Some(model)) if value.is_string() => {
                let (id, base_url) = (model.trim_start_matches("openai/"), value.as_str().unwrap_or_default());
                take_model(home, ForeignModel { name: "aider", base_url, id, ..ForeignModel::default() });
            }
            ("model" | "weak-model" | "editor-model" | "openai-api-base", _) => home.leave("setting", key, MODEL),
            ("read", _) => {
                for file in list_texts(value) {
                    home.leave("instructions", file, "put what it says into AGENTS.md, or attach it with -f");
                }
            }
            (key, _) if key.contains("api-key") => home.leave("key", key, "agent key set PROVIDER keeps a key"),
            (key, _) => home.leave_unknown(key),
        }
    }
}

pub(super) fn read_mcp_json(home: &mut ForeignHome<'_>) {
    let path = home.workspace.join(".mcp.json");
    let Some(text) = home.read_path(&path) else { return };
    match parse_commented(&text) {
        Ok(servers) => {
            take_servers(home, servers.get("mcpServers"));
            take_servers(home, servers.get("servers"));
        }
        Err(why) => home.leave("file", path.display().to_string(), why),
    }
}
