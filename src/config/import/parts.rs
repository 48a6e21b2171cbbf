//! Single entries in the words of this program: servers, commands, agents, hooks, models.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

use super::EntryPlan;
use super::home::{ForeignHome, clean_name, parse_yaml};
use crate::base::frontmatter;
use crate::base::secrets::looks_secret;
use crate::config::peer_tools::find_own_tool;

/// A text as YAML reads it back, whatever is in it: JSON is YAML.
pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// A value of an environment or a header: `${NAME}` becomes the variable of ours; what looks like a secret is left out,
/// and its variable named instead.
fn translate_value(key: &str, value: &str, notes: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    let mut has_variable = false;
    while let Some((before, after)) = rest.split_once('$') {
        let (name, end) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, end)) => (name, end),
            None => {
                let length = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                after.split_at(length)
            }
        };
        let (name, default) = name.split_once(":-").map_or((name, None), |(name, word)| (name, Some(word)));
        let name = name.trim_start_matches("env:");
        if name.is_empty() {
            out += before;
            out.push('$');
            rest = after;
            continue;
        }
        has_variable = true;
        let default = default.map_or_else(String::new, |word| format!(" | default('{word}')"));
        let _ = write!(out, "{before}{{{{ env.{name}{default} }}}}");
        rest = end;
    }
    out += rest;
    let is_secret = looks_secret(key) || key.eq_ignore_ascii_case("authorization");
    if has_variable || !is_secret || value.is_empty() {
        return out;
    }
    let variable: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    notes.push(format!("its {key} is not copied: set {variable}"));
    format!("{{{{ env.{variable} }}}}")
}

/// The texts of a list, or of one text.
pub(super) fn list_texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// The keys of servers that are understood, or say nothing that is lost.
const SERVER_KEYS: [&str; 21] = [
    "command", "cmd", "args", "url", "httpUrl", "serverUrl", "uri", "type", "transport", "env", "envs",
    "environment", "env_vars", "env_keys", "headers", "http_headers", "bearer_token_env_var", "disabled",
    "enabled", "name", "description",
];

/// A server of tools, in the forms of `mcpServers` and of those who spell it a little otherwise.
pub(super) fn take_server(home: &mut ForeignHome<'_>, name: &str, server: &Value) {
    let text = |keys: &[&str]| keys.iter().find_map(|key| server[*key].as_str()).map(str::to_owned);
    let mut notes = Vec::new();
    let mut out = String::new();
    let command = ["command", "cmd"].iter().find(|key| !server[**key].is_null());
    let mut line: Vec<String> = command.map(|key| list_texts(&server[*key])).unwrap_or_default();
    line.extend(list_texts(&server["args"]));
    let url = text(&["url", "httpUrl", "serverUrl", "uri"]);
    match (&url, line.is_empty()) {
        (None, true) => return home.leave("server", name, "it names neither a command nor an address"),
        (_, false) => {
            // `--api-key VALUE`
            let keys = std::iter::once("").chain(line.iter().map(|word| {
                if word.starts_with('-') && !word.contains('=') { word.trim_start_matches('-') } else { "" }
            }));
            let words: Vec<String> = line
                .iter()
                .zip(keys)
                .map(|(word, key)| quote(&translate_value(key, &home.fill_root(word), &mut notes)))
                .collect();
            let _ = writeln!(out, "command: [{}]", words.join(", "));
        }
        (Some(url), true) => drop(writeln!(out, "url: {}", quote(&translate_value("", url, &mut notes)))),
    }
    if text(&["type", "transport"]).as_deref() == Some("sse") {
        notes.push("its transport `sse` is asked as `http`".to_owned());
    }
    let (mut env, mut headers) = (Vec::new(), Vec::new());
    for (key, value) in ["env", "envs", "environment"].iter().flat_map(|key| entries(&server[*key])) {
        env.push(format!("{}: {}", quote(key), quote(&translate_value(key, text_of(value).as_str(), &mut notes))));
    }
    for key in ["env_vars", "env_keys"].iter().flat_map(|key| list_texts(&server[*key])) {
        env.push(format!("{}: {}", quote(&key), quote(&format!("{{{{ env.{key} }}}}"))));
    }
    for (key, value) in ["headers", "http_headers"].iter().flat_map(|key| entries(&server[*key])) {
        headers.push(format!(
            "{}: {}",
            quote(key),
            quote(&translate_value(key, text_of(value).as_str(), &mut notes))
        ));
    }
    if let Some(variable) = text(&["bearer_token_env_var"]) {
        headers.push(format!("Authorization: {}", quote(&format!("Bearer {{{{ env.{variable} }}}}"))));
    }
    for (key, list) in [("env", env), ("headers", headers)] {
        if !list.is_empty() {
            let _ = writeln!(out, "{key}: {{ {} }}", list.join(", "));
        }
    }
    for (key, _) in entries(server).filter(|(key, _)| !SERVER_KEYS.contains(&key.as_str())) {
        notes.push(format!("without `{key}`"));
    }
    let is_off = server["disabled"] == true || server["enabled"] == false;
    if is_off {
        out += "enabled: false\n";
    }
    let name = home.name_file(name);
    let to = Path::new("mcp").join(format!("{name}.yaml"));
    home.add("server", name, EntryPlan::Write(to, out), notes.join("; "));
}

pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Servers by name.
pub(super) fn take_servers(home: &mut ForeignHome<'_>, servers: Option<&Value>) {
    for (name, server) in servers.into_iter().flat_map(entries) {
        take_server(home, name, server);
    }
}

/// Slash commands: Markdown with a head of which we know three keys.
pub(super) fn take_commands(home: &mut ForeignHome<'_>, folders: &[String]) {
    for (name, path) in home.list(folders, ".md") {
        let Some(text) = home.read_path(&path) else { continue };
        let name = home.name_file(&name);
        let to = Path::new("commands").join(format!("{name}.md"));
        let Ok((head, body)) = split_head(&text) else {
            home.leave("command", name, "its head cannot be read");
            continue;
        };
        let mut notes: Vec<String> = Vec::new();
        let mut kept = String::new();
        for (key, value) in &head {
            match key.as_str() {
                "description" | "argument-hint" => drop(writeln!(kept, "{key}: {}", quote(&text_of(value)))),
                key => notes.push(format!("without `{key}`")),
            }
        }
        let body = home.fill_root(&body);
        if body.contains("!`") {
            notes.push("commands in its text do not run".to_owned());
        }
        let text = if kept.is_empty() { body } else { format!("---\n{kept}---\n{body}") };
        home.add("command", name, EntryPlan::Write(to, text), notes.join("; "));
    }
}

/// Agents: Markdown whose body is the system prompt.
pub(super) fn take_agents(home: &mut ForeignHome<'_>, folders: &[String]) {
    for (name, path) in home.list(folders, ".md") {
        let Some(text) = home.read_path(&path) else { continue };
        let Ok((head, body)) = split_head(&text) else {
            home.leave("agent", name, "its head cannot be read");
            continue;
        };
        let mut notes = Vec::new();
        let mut out = String::new();
        for (key, value) in &head {
            match key.as_str() {
                "name" => {}
                "description" => drop(writeln!(out, "description: {}", quote(text_of(value).trim()))),
                "tools" => out += &translate_tools(value, &mut notes),
                "model" if value == "inherit" => {}
                "model" => notes.push(format!("without its model {}: it has that of its caller", text_of(value))),
                key => notes.push(format!("without `{key}`")),
            }
        }
        let body = if ["{{", "{%", "{#"].iter().any(|mark| body.contains(mark)) {
            format!("{{% raw %}}{body}{{% endraw %}}")
        } else {
            body
        };
        let _ = writeln!(out, "system_prompt: {}", quote(body.trim()));
        let name = home.name_file(&name);
        let to = Path::new("agents").join(format!("{name}.yaml"));
        home.add("agent", name, EntryPlan::Write(to, out), notes.join("; "));
    }
}

/// The line `tools` of an agent.
fn translate_tools(value: &Value, notes: &mut Vec<String>) -> String {
    let names = match value {
        Value::String(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        // opencode says which are off.
        Value::Object(_) => entries(value).filter(|(_, on)| **on == true).map(|(name, _)| name.clone()).collect(),
        other => list_texts(other),
    };
    let mut own = Vec::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        match find_own_tool(name).filter(|own| !own.contains("__")) {
            Some(name) if !own.contains(&name) => own.push(name),
            Some(_) => {}
            None => notes.push(format!("without the tool {name}")),
        }
    }
    if own.is_empty() { String::new() } else { format!("tools: [{}]\n", own.join(", ")) }
}

/// The head of a Markdown file as data, and what follows it.
fn split_head(text: &str) -> Result<(Map<String, Value>, String), String> {
    let parts = frontmatter::split_head(text).map_err(|error| error.to_string())?;
    let head = match parts.head {
        None => Map::new(),
        Some(head) => match parse_yaml(head) {
            Ok(Value::Object(head)) => head,
            Ok(Value::Null) => Map::new(),
            // Others read texts with colons as they stand.
            _ => head.lines().filter_map(read_plain_line).collect(),
        },
    };
    Ok((head, parts.body.to_owned()))
}

/// A line `key: value` whose value is taken as it stands.
fn read_plain_line(line: &str) -> Option<(String, Value)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_key.then(|| (key.to_owned(), value.trim().into()))
}

/// A model at an endpoint.
pub(super) fn take_model(home: &mut ForeignHome<'_>, name: &str, base_url: &str, key: Option<&str>, model: &str) {
    let mut out = format!("provider: openai\nbase_url: {}\nmodel: {}\n", quote(base_url), quote(model));
    let mut note = String::new();
    // `$NAME` and `{env:NAME}` name a variable; anything else would be the key itself.
    let variable = key.and_then(|key| {
        let inner = key.strip_prefix("{env:").and_then(|key| key.strip_suffix('}')).or(key.strip_prefix('$'));
        inner.map(|name| name.trim_matches(['{', '}']).to_owned())
    });
    match (key, variable) {
        (_, Some(variable)) => drop(writeln!(out, "api_key: {{ env: {variable} }}")),
        (Some(_), None) => {
            note = format!(
                "its key is not copied: agent key set, or `api_key: {{ env: NAME }}` in models/{name}.yaml"
            );
        }
        (None, None) => {}
    }
    let name = clean_name(name);
    let to = Path::new("models").join(format!("{name}.yaml"));
    home.add("model", name, EntryPlan::Write(to, out), note);
}
