//! What is wrong with a tool, beyond what its types say: a command that cannot be run, a schema that is none, a
//! template that reads what no argument is called.

use super::merge::Merged;
use super::mistake::{Mistake, did_you_mean};
use super::settings::Named;
use super::source::{Kind, Sources};
use super::tool::{CommandLine, ToolConfig};
use crate::template::{PieceTemplate, TemplateError, Undefined, is_template};
use crate::validator::Validator;
use crate::yaml::{Node, Tree};

/// The longest name that servers take.
const LONGEST_NAME: usize = 64;

pub(super) fn check(merged: &Merged, sources: &Sources, tools: &Named<ToolConfig>, mistakes: &mut Vec<Mistake>) {
    for (name, tool) in tools {
        let Some(node) = merged.get(Kind::Tools, name) else { continue };
        let mut found = Found { node, sources, mistakes };
        found.name(name);
        match &tool.command {
            Some(command) => {
                found.command(command, tool);
                found.schema(tool);
                found.placeholders(tool);
            }
            None => found.switches_only(),
        }
        if tool.max_tokens == Some(0) {
            found.tell(&["max_tokens"], "`max_tokens` must be at least 1");
        }
        if tool.timeout.is_some_and(|timeout| timeout.is_zero()) {
            found.tell(&["timeout"], "`timeout` must be more than nothing");
        }
    }
}

struct Found<'f> {
    node: &'f Node,
    sources: &'f Sources,
    mistakes: &'f mut Vec<Mistake>,
}

impl Found<'_> {
    /// At the value, or at the whole where there is none.
    fn tell(&mut self, path: &[&str], message: impl Into<String>) -> &mut Mistake {
        let node = self.node.at(path.iter().copied()).unwrap_or(self.node);
        self.mistakes.push(Mistake::at(self.sources, node.place, message));
        self.mistakes.last_mut().expect("one was just added")
    }

    fn name(&mut self, name: &str) {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(good) {
            let message = format!("`{name}` is no name for a tool: letters, digits, `_` and `-`, {LONGEST_NAME} at most");
            self.tell(&["name"], message);
        }
    }

    fn command(&mut self, command: &CommandLine, tool: &ToolConfig) {
        let shell = tool.shell == Some(true);
        match command {
            CommandLine::Arguments(_) if shell => {
                self.tell(&["command"], "with `shell: true` the command is one text, not a list");
            }
            CommandLine::Arguments(parts) if parts.first().is_none_or(|program| program.trim().is_empty()) => {
                self.tell(&["command"], "the command names no program");
            }
            CommandLine::Shell(_) if !shell => {
                let hint = "write [\"program\", \"argument\"], or add `shell: true`";
                self.tell(&["command"], "the command is a list of arguments").hint = Some(hint.to_owned());
            }
            CommandLine::Shell(line) if line.trim().is_empty() => {
                self.tell(&["command"], "the command is empty");
            }
            _ => {}
        }
        if tool.description.as_deref().is_none_or(|text| text.trim().is_empty()) {
            self.tell(&["description"], "the key `description` is missing: what the model is told of the tool");
        }
        for name in tool.env.iter().flat_map(|env| env.keys()) {
            if name.is_empty() || name.contains(['=', '\0']) {
                self.tell(&["env", name], format!("`{name}` is no name of a variable"));
            }
        }
    }

    fn schema(&mut self, tool: &ToolConfig) {
        let schema = tool.schema();
        if schema["type"] != "object" {
            self.tell(&["parameters", "type"], "arguments are an object: `type: object`");
        } else if let Err(why) = Validator::new(&schema) {
            self.tell(&["parameters"], format!("`parameters` is no valid JSON Schema: {why}"));
        }
        let known: Vec<&str> = tool.arguments().collect();
        let required = schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
        for (index, name) in required.enumerate().filter(|(_, name)| !known.contains(name)) {
            let message = format!("`{name}` is required, but no property describes it");
            let hint = did_you_mean(name, known.iter().copied());
            self.tell(&["parameters", "required", &index.to_string()], message).hint = hint;
        }
    }

    fn placeholders(&mut self, tool: &ToolConfig) {
        let known: Vec<&str> = tool.arguments().collect();
        for key in ["command", "workdir", "env"] {
            let Some(node) = self.node.get(key) else { continue };
            self.placeholders_of(node, &known);
        }
    }

    fn placeholders_of(&mut self, node: &Node, known: &[&str]) {
        let scalar = match &node.tree {
            Tree::List(items) => return items.iter().for_each(|item| self.placeholders_of(item, known)),
            Tree::Map(entries) => return entries.iter().for_each(|(_, value)| self.placeholders_of(value, known)),
            Tree::Scalar(scalar) if is_template(&scalar.text) => scalar,
            Tree::Scalar(_) => return,
        };
        let template = match PieceTemplate::compile("template", &scalar.text, Undefined::Error) {
            Ok(template) => template,
            Err(error) => return self.mistakes.push(Mistake::template(self.sources, node, &error)),
        };
        for variable in template.variables() {
            let name = variable.split('.').next().unwrap_or(&variable);
            if known.contains(&name) {
                continue;
            }
            let error = TemplateError {
                message: format!("no parameter is called `{name}`"),
                missing: vec![name.to_owned()],
                ..place_of(&scalar.text, name)
            };
            let hint = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known {
                [] => "`parameters` describes none".to_owned(),
                known => format!("the parameters are {}", known.join(", ")),
            });
            self.mistakes.push(Mistake::template(self.sources, node, &error).hint(hint));
        }
    }

    fn switches_only(&mut self) {
        for key in ToolConfig::OF_COMMANDS {
            let Some((key, _)) = self.node.entries().iter().find(|(other, _)| other.text == key) else { continue };
            let message = format!("`{}` is for a tool that has a `command`", key.text);
            self.mistakes.push(Mistake::at(self.sources, key.place, message));
        }
    }
}

/// Where a template reads a name.
fn place_of(text: &str, name: &str) -> TemplateError {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: &usize| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        let inside = before.rfind('{') > before.rfind('}');
        inside && !before.ends_with(word) && !after.starts_with(word)
    };
    let at = text.match_indices(name).map(|(at, _)| at).find(whole);
    TemplateError {
        message: String::new(),
        line: at.map(|at| text[..at].matches('\n').count() + 1),
        column: None,
        range: at.map(|at| at..at + name.len()),
        missing: Vec::new(),
    }
}
