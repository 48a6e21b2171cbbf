//! Single entries in the words of this program: servers, commands, agents, hooks, models.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;
use std::path::Path;

use serde_json::{Map, Value};

use super::home::{ForeignHome, choose_name, clean_name, parse_yaml};
use super::keys::{KeyReading, is_variable, name_variable, quote, quote_literal};
use super::{EntryPlan, ForeignAgent};
use crate::base::frontmatter;
use crate::config::mcp::refuse_server_name;

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
    let file = home.name_file(name);
    let mut taken = std::mem::take(&mut home.keys);
    let mut reading = KeyReading { server: &file, taken: &mut taken, notes: Vec::new() };
    let written = match refuse_server_name(&file).filter(|_| !file.is_empty()) {
        Some(why) => Err(why),
        None => write_server(home, server, &mut reading),
    };
    let notes = reading.notes.join("; ");
    home.keys = taken;
    match written {
        Ok(text) => {
            let to = Path::new("mcp").join(format!("{file}.yaml"));
            home.add("server", choose_name(&file, name), EntryPlan::Write(to, text), notes);
        }
        Err(why) => home.leave("server", name, why),
    }
}

/// The file of a server, or why there is none.
fn write_server(home: &ForeignHome<'_>, server: &Value, reading: &mut KeyReading<'_>) -> Result<String, String> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| server[*key].as_str()).map(str::to_owned);
    let mut out = String::new();
    let command = ["command", "cmd"].iter().find(|key| !server[**key].is_null());
    let mut line: Vec<String> = command.map(|key| list_texts(&server[*key])).unwrap_or_default();
    line.extend(list_texts(&server["args"]));
    match (line.first(), text(&["url", "httpUrl", "serverUrl", "uri"])) {
        (None, None) => return Err("it names neither a command nor an address".to_owned()),
        (Some(program), _) if program.trim().is_empty() => return Err("its command names no program".to_owned()),
        // One that is unset would leave none.
        (Some(program), _) if program.starts_with('$') && is_variable(program.trim_matches(['$', '{', '}'])) => {
            return Err("its program is a variable".to_owned());
        }
        (Some(_), _) => {
            // `--api-key VALUE`
            let flags = iter::once("").chain(line.iter().map(|word| {
                if word.starts_with('-') && !word.contains('=') { word.trim_start_matches('-') } else { "" }
            }));
            let words: Result<Vec<String>, String> = line
                .iter()
                .zip(flags)
                .map(|(word, flag)| Ok(quote(&reading.translate_word(flag, &home.fill_root(word))?)))
                .collect();
            let _ = writeln!(out, "command: [{}]", words?.join(", "));
        }
        (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => {
            let _ = writeln!(out, "url: {}", quote(&reading.translate_value("", &url, false)?));
        }
        (None, Some(_)) => return Err("its address does not begin with http:// or https://".to_owned()),
    }
    if text(&["type", "transport"]).as_deref() == Some("sse") {
        reading.notes.push("its transport `sse` is asked as `http`".to_owned());
    }
    let (mut env, mut headers) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in ["env", "envs", "environment"].iter().flat_map(|key| entries(&server[*key])) {
        env.insert(key.clone(), reading.translate_value(key, &text_of(value), true)?);
    }
    for key in ["env_vars", "env_keys"].iter().flat_map(|key| list_texts(&server[*key])) {
        let variable = name_variable(&key)?;
        env.entry(key).or_insert(variable);
    }
    for (key, value) in ["headers", "http_headers"].iter().flat_map(|key| entries(&server[*key])) {
        headers.insert(key.clone(), reading.translate_value(key, &text_of(value), false)?);
    }
    if let Some(variable) = text(&["bearer_token_env_var"]) {
        headers.insert("Authorization".to_owned(), format!("Bearer {}", name_variable(&variable)?));
    }
    for (key, values, is_taken) in [("env", env, !line.is_empty()), ("headers", headers, line.is_empty())] {
        let values: Vec<String> =
            values.iter().map(|(name, value)| format!("{}: {}", quote(name), quote(value))).collect();
        if is_taken && !values.is_empty() {
            let _ = writeln!(out, "{key}: {{ {} }}", values.join(", "));
        } else if !values.is_empty() {
            reading.notes.push(format!("without `{key}`"));
        }
    }
    for (key, _) in entries(server).filter(|(key, _)| !SERVER_KEYS.contains(&key.as_str())) {
        reading.notes.push(format!("without `{key}`"));
    }
    if server["disabled"] == true || server["enabled"] == false {
        out += "enabled: false\n";
    }
    Ok(out)
}

pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

pub(super) fn text_of(value: &Value) -> String {
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
        let file = home.name_command(&name);
        let name = choose_name(&file, &name);
        let to = Path::new("commands").join(format!("{file}.md"));
        let Ok((head, body)) = split_head(&text) else {
            home.leave("command", name, "its head cannot be read");
            continue;
        };
        let mut notes: Vec<String> = Vec::new();
        let mut kept = String::new();
        for (key, value) in &head {
            match key.as_str() {
                // `argument-hint: [PATH]` is a list to YAML.
                "argument-hint" if value.is_array() => {
                    let _ = writeln!(kept, "{key}: {}", quote(&format!("[{}]", list_texts(value).join(" "))));
                }
                "description" | "argument-hint" => drop(writeln!(kept, "{key}: {}", quote(&text_of(value)))),
                key => notes.push(format!("without `{key}`")),
            }
        }
        if body.trim().is_empty() {
            home.leave("command", name, "it has no text");
            continue;
        }
        let body = home.fill_root(&body);
        if body.contains("!`") {
            notes.push("commands in its text do not run".to_owned());
        }
        if home.agent == ForeignAgent::Codex {
            notes.extend(find_placeholder(&body).map(|name| format!("${name} is not filled in: write $1, $2, …")));
        }
        let text = if kept.is_empty() { body } else { format!("---\n{kept}---\n{body}") };
        home.add("command", name, EntryPlan::Write(to, text), notes.join("; "));
    }
}

/// The first placeholder with a name of its own, as prompts of codex have them.
fn find_placeholder(body: &str) -> Option<&str> {
    let mut names = body.split('$').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    });
    names.find(|name| !name.is_empty() && *name != "ARGUMENTS")
}

/// The head of a Markdown file as data, and what follows it.
pub(super) fn split_head(text: &str) -> Result<(Map<String, Value>, String), String> {
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

/// A model at an endpoint of theirs.
#[derive(Default)]
pub(super) struct ForeignModel<'m> {
    pub name: &'m str,
    pub base_url: &'m str,
    /// The name of its variable as they write it, or the key.
    pub key: Option<&'m str>,
    pub id: &'m str,
    /// Further lines of the file.
    pub lines: String,
    pub notes: Vec<String>,
}

/// Takes a model. A project brings none.
pub(super) fn take_model(home: &mut ForeignHome<'_>, model: ForeignModel<'_>) {
    let ForeignModel { name, base_url, key, id, lines, mut notes } = model;
    if home.is_project {
        return home.leave("model", name, "a project brings no models: import it without --project");
    }
    if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
        return home.leave("model", name, "its address does not begin with http:// or https://");
    }
    let (base_url, id) = (quote_literal(base_url), quote_literal(id));
    let mut out = format!("provider: openai\nbase_url: {base_url}\nmodel: {id}\n{lines}");
    // `$NAME` and `{env:NAME}` name a variable; anything else would be the key itself.
    let variable = key.and_then(|key| {
        let inner = key.strip_prefix("{env:").and_then(|key| key.strip_suffix('}')).or(key.strip_prefix('$'));
        inner.map(|name| name.trim_matches(['{', '}']).to_owned()).filter(|name| is_variable(name))
    });
    let name = clean_name(name);
    match (key, variable) {
        (_, Some(variable)) => drop(writeln!(out, "api_key: {{ env: {variable} }}")),
        (Some(_), None) => notes.push(format!(
            "its key is not copied: agent key set, or `api_key: {{ env: NAME }}` in models/{name}.yaml"
        )),
        (None, None) => {}
    }
    let to = Path::new("models").join(format!("{name}.yaml"));
    home.add("model", name, EntryPlan::Write(to, out), notes.join("; "));
}
