//! Single entries in the words of this program: servers, commands, agents, hooks, models.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;
use std::path::Path;

use serde_json::{Map, Value};

use super::EntryPlan;
use super::home::{ForeignHome, clean_name, parse_yaml};
use crate::base::frontmatter;
use crate::base::secrets::looks_secret;
use crate::config::mcp::refuse_server_name;
use crate::template::escape_text;

/// A text as YAML reads it back, whatever is in it: JSON is YAML.
pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// The same where our strings are templates.
pub(super) fn quote_literal(text: &str) -> String {
    quote(&escape_text(text))
}

/// True if templates can name it as a variable.
fn is_variable(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_good(c) && !c.is_ascii_digit()) && name.chars().all(is_good)
}

fn name_variable(name: &str) -> Result<String, String> {
    if is_variable(name) { Ok(format!("{{{{ env.{name} }}}}")) } else { Err(format!("`{name}` is no variable")) }
}

/// A value of an environment or a header: `${NAME}` becomes the variable of ours; what looks like a secret is left out,
/// and its variable named instead.
fn translate_value(key: &str, value: &str, notes: &mut Vec<String>) -> Result<String, String> {
    let is_count = key.to_ascii_lowercase().ends_with("tokens") && value.parse::<u64>().is_ok();
    let is_secret = !is_count && (names_key(key) || !key.is_empty() && find_key("", value).is_some());
    let (mut out, mut literal) = (String::new(), String::new());
    let mut rest = value;
    let mut has_variable = false;
    while let Some((before, after)) = rest.split_once('$') {
        out += &escape_text(before);
        literal += before;
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let length = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (written, end) = braced.unwrap_or_else(|| after.split_at(length));
        let (name, default) = written.split_once(":-").map_or((written, None), |(name, word)| (name, Some(word)));
        let name = name.strip_prefix("env:").unwrap_or(name);
        if braced.is_none() && !is_variable(name) {
            // `$1` of a shell.
            out.push('$');
            literal.push('$');
            rest = after;
            continue;
        }
        if !is_variable(name) || default.is_some_and(|word| word.contains("${")) {
            return Err(format!("`${{{written}}}` is no variable"));
        }
        has_variable = true;
        let is_key = is_secret || looks_secret(name);
        if is_key && default.is_some_and(|word| !word.is_empty()) {
            notes.push(format!("the default of {name} is not copied: set {name}"));
        }
        let default = default.filter(|_| !is_key).map(|word| format!(" | default({})", quote(word)));
        let _ = write!(out, "{{{{ env.{name}{} }}}}", default.unwrap_or_default());
        rest = end;
    }
    out += &escape_text(rest);
    literal += rest;
    // Beside a variable, letters are part of a key.
    let mut words = literal.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    if !is_secret || value.is_empty() || (has_variable && words.all(is_scheme)) {
        return Ok(out);
    }
    let mut variable: String =
        key.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if !is_variable(&variable) {
        variable.insert(0, '_');
    }
    notes.push(format!("its {key} is not copied: set {variable}"));
    name_variable(&variable)
}

/// True if a variable, a header or a flag of this name has a key.
fn names_key(name: &str) -> bool {
    looks_secret(name) || name.to_ascii_lowercase().ends_with("authorization")
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn skip_scheme(text: &str) -> &str {
    text.split_once(' ').filter(|(word, _)| is_scheme(word)).map_or(text, |(_, rest)| rest.trim_start())
}

/// True for what ends a value in a line.
fn is_break(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '\\')
}

/// True if a command line gives a key by this name, and not a number, a path or a mode.
fn is_key(name: &str, value: &str) -> bool {
    const OTHERS: [&str; 8] = ["file", "path", "dir", "type", "stdin", "id", "name", "url"];
    const SHORTEST: usize = 6;
    let name = name.to_ascii_lowercase();
    let is_other = name.starts_with("no-") || OTHERS.iter().any(|end| name.rsplit(['-', '_']).next() == Some(end));
    let is_variable = value.starts_with('$') && is_variable(value.trim_matches(['$', '{', '}', ';', ')']));
    let is_elsewhere = ["/", "./", "../", "~", "-", "$("].iter().any(|start| value.starts_with(start));
    let is_plain =
        value.len() < SHORTEST || value.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '_'));
    // A password may be short, or a number.
    let is_password = name.contains("pass") && !matches!(value, "" | "true" | "false");
    names_key(&name) && !is_other && !is_variable && !is_elsewhere && (is_password || !is_plain)
}

/// The name of the first key in a text after `flag`, and where its value begins: in a word, a line of a shell, or JSON.
fn find_key<'t>(flag: &'t str, text: &'t str) -> Option<(&'t str, usize)> {
    let is_mark = |c: char| is_break(c) || "=:,;&|(){}[]<>".contains(c);
    let is_foreign = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.');
    let (mut name, mut last, mut at) = (flag, "", 0);
    for token in text.split_inclusive(is_mark) {
        let (before, rest) = text.split_at(at);
        let word = token.trim_end_matches(is_mark);
        let value = skip_scheme(rest);
        // After a flag the whole word is its value.
        let value = if at == 0 { value } else { value.split(is_break).next().unwrap_or_default() };
        // Keys in addresses are masked later.
        let is_address = before.rsplit(is_break).next().is_some_and(|run| run.contains("://"));
        if !word.is_empty() && !is_address && is_key(name, value) {
            return Some((name, at));
        }
        at += token.len();
        if !word.is_empty() {
            last = word.rsplit(is_foreign).next().unwrap_or_default().trim_start_matches('-');
        }
        // `X-Api-Key:VALUE`, but not `keycloak:latest`.
        let is_header = word.is_empty()
            || text[at..].starts_with(is_break)
            || last.contains(|c: char| c.is_ascii_uppercase())
            || name == "H"
            || name.ends_with("header");
        name = match &token[word.len()..] {
            "=" => last,
            ":" if is_header => last,
            _ if word.starts_with('-') => last,
            _ if word.is_empty() => name,
            _ => "",
        };
    }
    None
}

/// A word of a command line after `flag`: `VALUE`, `--api-key=VALUE`, `-eTOKEN=VALUE`, `--header=Authorization: VALUE`.
fn translate_word(flag: &str, word: &str, notes: &mut Vec<String>) -> Result<String, String> {
    let Some((name, start)) = find_key(flag, word) else { return translate_value("", word, notes) };
    let (head, value) = word.split_at(start);
    // What else the line says would be lost.
    let goes_on = start > 0 && skip_scheme(value).contains(|c| is_break(c) || ",;&|".contains(c));
    if goes_on || head.trim_end().contains(is_break) {
        return Err("its line holds a key: name a variable there".to_owned());
    }
    Ok(translate_value("", head, notes)? + &translate_value(name, value, notes)?)
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
    let mut notes = Vec::new();
    let file = home.name_file(name);
    let written = match refuse_server_name(&file).filter(|_| !file.is_empty()) {
        Some(why) => Err(why),
        None => write_server(home, server, &mut notes),
    };
    match written {
        Ok(text) => {
            let to = Path::new("mcp").join(format!("{file}.yaml"));
            home.add("server", file, EntryPlan::Write(to, text), notes.join("; "));
        }
        Err(why) => home.leave("server", name, why),
    }
}

/// The file of a server, or why there is none.
fn write_server(home: &ForeignHome<'_>, server: &Value, notes: &mut Vec<String>) -> Result<String, String> {
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
                .map(|(word, flag)| Ok(quote(&translate_word(flag, &home.fill_root(word), notes)?)))
                .collect();
            let _ = writeln!(out, "command: [{}]", words?.join(", "));
        }
        (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => {
            let _ = writeln!(out, "url: {}", quote(&translate_value("", &url, notes)?));
        }
        (None, Some(_)) => return Err("its address does not begin with http:// or https://".to_owned()),
    }
    if text(&["type", "transport"]).as_deref() == Some("sse") {
        notes.push("its transport `sse` is asked as `http`".to_owned());
    }
    let (mut env, mut headers) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in ["env", "envs", "environment"].iter().flat_map(|key| entries(&server[*key])) {
        env.insert(key.clone(), translate_value(key, &text_of(value), notes)?);
    }
    for key in ["env_vars", "env_keys"].iter().flat_map(|key| list_texts(&server[*key])) {
        let variable = name_variable(&key)?;
        env.entry(key).or_insert(variable);
    }
    for (key, value) in ["headers", "http_headers"].iter().flat_map(|key| entries(&server[*key])) {
        headers.insert(key.clone(), translate_value(key, &text_of(value), notes)?);
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
            notes.push(format!("without `{key}`"));
        }
    }
    for (key, _) in entries(server).filter(|(key, _)| !SERVER_KEYS.contains(&key.as_str())) {
        notes.push(format!("without `{key}`"));
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
        if body.trim().is_empty() {
            home.leave("command", name, "it has no text");
            continue;
        }
        let body = home.fill_root(&body);
        if body.contains("!`") {
            notes.push("commands in its text do not run".to_owned());
        }
        let text = if kept.is_empty() { body } else { format!("---\n{kept}---\n{body}") };
        home.add("command", name, EntryPlan::Write(to, text), notes.join("; "));
    }
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

/// A model at an endpoint.
pub(super) fn take_model(home: &mut ForeignHome<'_>, name: &str, base_url: &str, key: Option<&str>, model: &str) {
    if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
        return home.leave("model", name, "its address does not begin with http:// or https://");
    }
    let mut out =
        format!("provider: openai\nbase_url: {}\nmodel: {}\n", quote_literal(base_url), quote_literal(model));
    let mut note = String::new();
    // `$NAME` and `{env:NAME}` name a variable; anything else would be the key itself.
    let variable = key.and_then(|key| {
        let inner = key.strip_prefix("{env:").and_then(|key| key.strip_suffix('}')).or(key.strip_prefix('$'));
        inner.map(|name| name.trim_matches(['{', '}']).to_owned()).filter(|name| is_variable(name))
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
