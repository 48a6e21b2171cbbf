//! Finds every mistake of a configuration at once, by walking its located trees along the schemas of their types.
//!
//! The schemas are those of [`super::schema`], made from the types that are read, so the two cannot disagree about
//! a key. Only failures and `config check` come here.

use serde_json::Value;

use super::document::{RULES, is_run_time_text};
use super::duration;
use super::gather::Gathered;
use super::hook::own_tool_name;
use super::merge::Merged;
use super::mistake::{Mistake, did_you_mean, suggest};
use super::prompt_source::{PromptRef, PromptSource};
use super::schema::generate_schema;
use super::settings::PROMPT_KEYS;
use super::source::{Sources, SubjectKind};
use super::through::PromptDir;
use crate::base::text::GlobPattern;
use crate::base::yaml::{Node, Scalar, YamlTree};
use crate::template::{Template, Undefined, is_template};

/// Checks a reference to a prompt, given the prompt directories (lowest first).
pub type PromptCheck<'p> = dyn FnMut(&[PromptDir], &str) -> Result<(), String> + 'p;

/// Finds unknown keys and wrong types in every document, and missing keys in the merged ones.
pub(super) fn against_schemas(gathered: &Gathered, merged: &Merged, mistakes: &mut Vec<Mistake>) {
    for kind in SubjectKind::ALL {
        let schema = generate_schema(kind);
        let documents = gathered.documents.iter().filter(|document| document.kind == kind);
        let mut walk = ConfigWalk { root: &schema, sources: &gathered.sources, mistakes, kind, partial: true };
        for document in documents {
            walk.node(&schema, &document.node, "");
        }
        walk.partial = false;
        for (_, node) in merged.of_kind(kind) {
            walk.find_missing(&schema, node, "");
        }
    }
}

/// Checks the syntax of inline prompts and of scripts.
pub(super) fn run_time_templates(gathered: &Gathered, mistakes: &mut Vec<Mistake>) {
    fn walk_node(node: &Node, path: &mut Vec<String>, found: &mut dyn FnMut(&[String], &Node, &str)) {
        match &node.tree {
            YamlTree::Map(entries) => {
                for (key, value) in entries {
                    path.push(key.text.to_string());
                    walk_node(value, path, found);
                    path.pop();
                }
            }
            YamlTree::List(items) => items.iter().for_each(|item| walk_node(item, path, found)),
            YamlTree::Scalar(Scalar { text, .. }) if is_template(text) => found(path, node, text),
            YamlTree::Scalar(_) => {}
        }
    }

    for document in &gathered.documents {
        walk_node(&document.node, &mut Vec::new(), &mut |path, node, text| {
            if !is_run_time_text(document.kind, path, node) {
                return;
            }
            // The prompt registry checks the included templates.
            if let Err(error) = Template::compile("template", text, Undefined::Error) {
                mistakes.push(Mistake::template(&gathered.sources, node, &error));
            }
        });
    }
}

/// Checks the prompts that agents and flows refer to.
pub(super) fn check_prompts(
    gathered: &Gathered,
    merged: &Merged,
    exists: &mut PromptCheck<'_>,
    mistakes: &mut Vec<Mistake>,
) {
    let agents = merged.of_kind(SubjectKind::Agents).map(|(_, agent)| agent);
    let of_agents = agents.flat_map(|agent| {
        let roles =
            ["router", "planner", "executor", "reflector"].map(|role| agent.find(["roles", role, "prompt"]));
        PROMPT_KEYS.map(|key| agent.get(key)).into_iter().chain(roles).flatten()
    });
    let mut nodes: Vec<&Node> = of_agents.collect();
    let mut groups: Vec<&Node> = merged.of_kind(SubjectKind::Flows).map(|(_, flow)| flow).collect();
    while let Some(group) = groups.pop() {
        let steps = group.get("steps").and_then(Node::items).unwrap_or_default();
        nodes.extend(steps.iter().filter_map(|step| step.get("prompt")));
        groups.extend(steps);
    }
    for node in nodes {
        let Ok(PromptSource::Registered(PromptRef { reference })) = node.read() else { continue };
        if let Err(message) = exists(&gathered.layers.prompt_dirs, &reference) {
            let place = node.get("ref").map_or(node.place, |reference| reference.place);
            mistakes.push(Mistake::place_at(&gathered.sources, place, message));
        }
    }
}

/// Checks the tools that permission rules and hooks name. The tools of a server are only known when it is asked.
pub(super) fn tools_of_rules(
    built_in: &[&str],
    gathered: &Gathered,
    merged: &Merged,
    mistakes: &mut Vec<Mistake>,
) {
    const OF_A_SERVER: &str = "__";
    let own = merged.of_kind(SubjectKind::Tools).map(|(name, _)| name);
    let tools: Vec<&str> = built_in.iter().copied().chain(own).collect();
    let means = |name: &str| match GlobPattern::word(name) {
        Ok(glob) => tools.iter().any(|tool| glob.matches(tool)),
        // Reported separately.
        Err(_) => true,
    };
    let mut check = |node: &Node, name: &str, own: &str| {
        if !own.is_empty() && !own.contains(OF_A_SERVER) && !means(own) {
            let mistake = Mistake::place_at(&gathered.sources, node.place, format!("there is no tool `{name}`"));
            mistakes.push(mistake.hint(suggest(name, &tools, "the tools are")));
        }
    };
    for document in &gathered.documents {
        for rule in document.node.find(RULES).and_then(Node::items).unwrap_or_default() {
            for node in ["deny", "ask", "allow"].into_iter().filter_map(|key| rule.get(key)) {
                let name = node.text().unwrap_or_default();
                check(node, name, name);
            }
        }
    }
    for (_, hook) in merged.of_kind(SubjectKind::Hooks) {
        let speaks = hook.get("speaks").and_then(|node| node.read().ok()).unwrap_or_default();
        let Some(node) = hook.get("match").and_then(|matches| matches.get("tool")) else { continue };
        for name in node.text().unwrap_or_default().split('|') {
            check(node, name.trim(), &own_tool_name(name, speaks));
        }
    }
}

struct ConfigWalk<'w> {
    root: &'w Value,
    sources: &'w Sources,
    mistakes: &'w mut Vec<Mistake>,
    kind: SubjectKind,
    /// True if keys may be missing because another layer has them.
    partial: bool,
}

impl<'w> ConfigWalk<'w> {
    /// `key` is the key of the node.
    fn node(&mut self, schema: &'w Value, node: &Node, key: &str) {
        let schema = self.resolve(schema, node);
        if let Some(allowed) = list_words(schema) {
            return self.word(&allowed, node, key);
        }
        let types = list_types(schema);
        if !types.is_empty() && !types.iter().any(|json_type| fits_type(node, json_type)) {
            let message = format!(
                "{}expected {}, found {}",
                end_prefix(key),
                describe_schema(schema, &types),
                describe_node(node)
            );
            let hint = quotes_matter(node, &types).map(str::to_owned);
            let mistake = Mistake::place_at(self.sources, node.place, message);
            return self.mistakes.push(Mistake { hint, ..mistake });
        }
        if schema.get("x-duration").is_some()
            && let Some(Err(message)) = node.text().filter(|_| !node.fits("null")).map(duration::parse_duration)
        {
            return self.mistakes.push(Mistake::place_at(self.sources, node.place, message));
        }
        if schema["minimum"] == 0 && node.text().is_some_and(|text| text.trim_start().starts_with('-')) {
            let message = format!("{}expected a number that is not below 0", end_prefix(key));
            return self.mistakes.push(Mistake::place_at(self.sources, node.place, message));
        }
        match &node.tree {
            YamlTree::Map(_) => self.map(schema, node),
            YamlTree::List(items) => {
                let partial = std::mem::replace(&mut self.partial, false);
                for item in items {
                    self.node(&schema["items"], item, key);
                    // Lists replace as a whole, so their items must be complete.
                    self.find_missing(&schema["items"], item, key);
                }
                self.partial = partial;
            }
            YamlTree::Scalar(_) => {}
        }
    }

    fn map(&mut self, schema: &'w Value, node: &Node) {
        let properties = schema["properties"].as_object();
        for (key, value) in node.entries() {
            match (properties.and_then(|properties| properties.get(&*key.text)), &schema["additionalProperties"]) {
                (Some(schema), _) => self.node(schema, value, &key.text),
                (None, Value::Bool(false)) => {
                    let known = properties.into_iter().flat_map(serde_json::Map::keys).map(String::as_str);
                    // A key of the settings that a flag got wrong may have meant a kind.
                    let may_be_kind = self.kind == SubjectKind::Settings && key.place.line == 0;
                    let kinds = SubjectKind::NAMED.map(SubjectKind::name);
                    let kinds = kinds.into_iter().filter(|_| may_be_kind);
                    let message = format!("unknown key `{}`", key.text);
                    let mistake = Mistake::place_at(self.sources, key.place, message);
                    let listed: Vec<&str> = known.clone().collect();
                    let hint = did_you_mean(&key.text, known.chain(kinds));
                    self.mistakes.push(mistake.hint(hint.unwrap_or(format!("known here: {}", listed.join(", ")))));
                }
                (None, additional) => self.node(additional, value, &key.text),
            }
        }
    }

    /// Finds missing required keys at any depth, except in lists.
    fn find_missing(&mut self, schema: &'w Value, node: &Node, key: &str) {
        let schema = self.resolve(schema, node);
        if !matches!(node.tree, YamlTree::Map(_)) {
            return;
        }
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if node.get(required).is_none() {
                let message = format!("{}the key `{required}` is missing", end_prefix(key));
                self.mistakes.push(Mistake::place_at(self.sources, node.place, message));
            }
        }
        for (key, value) in node.entries() {
            if let Some(schema) = schema["properties"].get(&*key.text) {
                self.find_missing(schema, value, &key.text);
            }
        }
    }

    /// Follows references, and chooses the first of several alternatives that fits the node.
    fn resolve(&self, mut schema: &'w Value, node: &Node) -> &'w Value {
        loop {
            if let Some(pointer) = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#')) {
                let Some(target) = self.root.pointer(pointer) else { return schema };
                schema = target;
            } else if let Some(branches) = schema["anyOf"].as_array() {
                let fitting = branches.iter().find(|branch| {
                    let types = list_types(self.resolve(branch, node));
                    types.is_empty() || types.iter().any(|json_type| fits_type(node, json_type))
                });
                match fitting.or(branches.first()) {
                    Some(branch) => schema = branch,
                    None => return schema,
                }
            } else {
                return schema;
            }
        }
    }

    fn word(&mut self, allowed: &[&str], node: &Node, key: &str) {
        let text = node.text();
        if text.is_some_and(|text| allowed.contains(&text)) {
            return;
        }
        let message = format!("{}expected one of {}", end_prefix(key), allowed.join(", "));
        let mistake = Mistake::place_at(self.sources, node.place, message);
        self.mistakes.push(mistake.did_you_mean(text.unwrap_or_default(), allowed.iter().copied()));
    }
}

fn end_prefix(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("`{key}`: ") }
}

/// The words of an enumeration, however the schema writes them: those with a description are in separate branches.
fn list_words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::as_str).collect();
    }
    let mut all = Vec::new();
    for branch in schema["oneOf"].as_array()? {
        match branch["const"].as_str() {
            Some(word) => all.push(word),
            None => all.extend(list_words(branch)?),
        }
    }
    Some(all)
}

fn list_types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(json_type) => vec![json_type],
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        _ if schema["oneOf"].is_array() => vec!["string"],
        _ => Vec::new(),
    }
}

/// True if a node has this type; a section without content counts as an empty one.
fn fits_type(node: &Node, json_type: &str) -> bool {
    node.fits(json_type) || matches!(json_type, "object" | "array") && node.is_blank()
}

fn describe_schema(schema: &Value, types: &[&str]) -> String {
    if schema.get("x-duration").is_some() {
        return "a duration (20ms, 30s, 1h 30m)".to_owned();
    }
    let words = types.iter().map(|json_type| match *json_type {
        "null" => "null",
        "string" => "text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        _ => "a mapping",
    });
    words.collect::<Vec<_>>().join(" or ")
}

/// Describes what was found, without the value, which may be a secret.
fn describe_node(node: &Node) -> &'static str {
    match &node.tree {
        YamlTree::List(_) => "a list",
        YamlTree::Map(_) => "a mapping",
        YamlTree::Scalar(_) if node.is_blank() => "nothing",
        YamlTree::Scalar(_) if node.fits("boolean") => "true or false",
        YamlTree::Scalar(_) if node.fits("number") => "a number",
        YamlTree::Scalar(_) if node.fits("null") => "null",
        YamlTree::Scalar(_) => "text",
    }
}

fn quotes_matter(node: &Node, types: &[&str]) -> Option<&'static str> {
    let YamlTree::Scalar(scalar) = &node.tree else { return None };
    let unquoted = Scalar { form: crate::base::yaml::ScalarForm::Plain, ..scalar.clone() };
    let unquoted = Node { tree: YamlTree::Scalar(unquoted), place: node.place };
    if types.contains(&"boolean") && ["yes", "no", "on", "off"].contains(&&*scalar.text.to_ascii_lowercase()) {
        Some("the words are true and false")
    } else if !scalar.text.is_empty() && types.iter().any(|json_type| unquoted.fits(json_type)) {
        Some("without the quotes it is one")
    } else if types.contains(&"string") {
        Some("put it in quotes")
    } else {
        None
    }
}
