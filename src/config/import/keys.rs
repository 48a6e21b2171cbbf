//! Texts of their servers as templates of ours: a variable stays one, and a key becomes a variable of its server.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use crate::base::secrets::looks_secret;
use crate::template::escape_text;

/// A text as YAML reads it back, whatever is in it: JSON is YAML.
pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// The same where our strings are templates.
pub(super) fn quote_literal(text: &str) -> String {
    quote(&escape_text(text))
}

/// The variables that stand for keys so far, each with the key, so that no two keys get the same.
pub(super) type KeyVariables = BTreeMap<String, String>;

/// What is translated for one server.
pub(super) struct KeyReading<'k> {
    /// The name of its file.
    pub server: &'k str,
    pub taken: &'k mut KeyVariables,
    pub notes: Vec<String>,
}

impl KeyReading<'_> {
    /// A value of an environment or a header: `${NAME}` becomes the variable of ours; what looks like a secret is left out,
    /// and a variable named instead: of the same name if `is_own` and no other key has it.
    pub fn translate_value(&mut self, key: &str, value: &str, is_own: bool) -> Result<String, String> {
        let value = &*mark_variables(value);
        if value.contains("{file:") {
            return Err("a file is not read for a value: name a variable there".to_owned());
        }
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
            let (name, default) =
                written.split_once(":-").map_or((written, None), |(name, word)| (name, Some(word)));
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
                self.notes.push(format!("the default of {name} is not copied: set {name}"));
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
        let variable = self.choose_variable(key, value, is_own);
        self.notes.push(format!("its {key} is not copied: set {variable}"));
        name_variable(&variable)
    }

    /// A variable for a key that no other key has.
    fn choose_variable(&mut self, key: &str, value: &str, is_own: bool) -> String {
        let plain = shout(key);
        let server = shout(self.server);
        let own =
            if plain.starts_with(&format!("{server}_")) { plain.clone() } else { format!("{server}_{plain}") };
        let numbered = (2..).map(|number| format!("{own}_{number}"));
        let mut names = is_own.then_some(plain).into_iter().chain([own.clone()]).chain(numbered);
        let is_free = |name: &String| self.taken.get(name).is_none_or(|key| key == value);
        let chosen = names.find(is_free).unwrap_or(own);
        self.taken.insert(chosen.clone(), value.to_owned());
        chosen
    }

    /// A word of a command line after `flag`: `VALUE`, `--api-key=VALUE`, `-eTOKEN=VALUE`, `--header=Authorization: VALUE`.
    pub fn translate_word(&mut self, flag: &str, word: &str) -> Result<String, String> {
        let word = &*mark_variables(word);
        let Some((name, start)) = find_key(flag, word) else { return self.translate_value("", word, false) };
        let (head, value) = word.split_at(start);
        // What else the line says would be lost.
        let goes_on = start > 0 && skip_scheme(value).contains(|c| is_break(c) || ",;&|".contains(c));
        if goes_on || head.trim_end().contains(is_break) {
            return Err("its line holds a key: name a variable there".to_owned());
        }
        Ok(self.translate_value("", head, false)? + &self.translate_value(name, value, false)?)
    }
}

/// A name as that of a variable.
fn shout(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if is_variable(&name) { name } else { format!("_{name}") }
}

/// `{env:NAME}`, as opencode writes it, and `${env:NAME}` are `${NAME}`.
fn mark_variables(text: &str) -> String {
    text.replace("${env:", "{env:").replace("{env:", "${")
}

/// True if templates can name it as a variable.
pub(super) fn is_variable(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_good(c) && !c.is_ascii_digit()) && name.chars().all(is_good)
}

pub(super) fn name_variable(name: &str) -> Result<String, String> {
    if is_variable(name) { Ok(format!("{{{{ env.{name} }}}}")) } else { Err(format!("`{name}` is no variable")) }
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
