//! Finds mistakes in a tool that its types do not: a command that cannot be run, an invalid schema, a template that
//! reads an unknown argument.

use std::ops::Range;

use super::merge::Merged;
use super::mistake::{Mistake, did_you_mean};
use super::settings::Named;
use super::source::{Sources, SubjectKind};
use super::tool::{CommandLine, ToolConfig};
use crate::base::open_command::split_command;
use crate::base::validator::Validator;
use crate::base::yaml::{Node, YamlTree};
use crate::template::{PieceTemplate, TemplateError, Undefined, is_template};

pub(super) fn check_commands(
    merged: &Merged,
    sources: &Sources,
    tools: &Named<ToolConfig>,
    mistakes: &mut Vec<Mistake>,
) {
    for (name, tool) in tools {
        let Some(node) = merged.get(SubjectKind::Tools, name) else { continue };
        let mut found = FoundCommand { node, sources, mistakes };
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

struct FoundCommand<'f> {
    node: &'f Node,
    sources: &'f Sources,
    mistakes: &'f mut Vec<Mistake>,
}

impl FoundCommand<'_> {
    /// Reports a mistake at the value, or at the whole tool if there is none.
    fn tell(&mut self, path: &[&str], message: impl Into<String>) -> &mut Mistake {
        let node = self.node.find(path.iter().copied()).unwrap_or(self.node);
        self.mistakes.push(Mistake::place_at(self.sources, node.place, message));
        self.mistakes.last_mut().expect("one was just added")
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
            self.tell(&["description"], "the key `description` is missing: it describes the tool to the model");
        }
        for name in tool.env.iter().flat_map(|env| env.keys()) {
            if name.is_empty() || name.contains(['=', '\0']) {
                self.tell(&["env", name], format!("`{name}` is not the name of a variable"));
            }
        }
    }

    fn schema(&mut self, tool: &ToolConfig) {
        let schema = tool.schema();
        if schema["type"] != "object" {
            self.tell(&["parameters", "type"], "arguments are an object: `type: object`");
        } else if let Err(why) = Validator::new(&schema) {
            self.tell(&["parameters"], format!("`parameters` is not a valid JSON Schema: {why}"));
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
            let in_shell = key == "command" && tool.shell == Some(true);
            self.placeholders_of(node, &known, in_shell);
        }
    }

    fn placeholders_of(&mut self, node: &Node, known: &[&str], in_shell: bool) {
        let scalar = match &node.tree {
            YamlTree::List(items) => {
                return items.iter().for_each(|item| self.placeholders_of(item, known, false));
            }
            YamlTree::Map(entries) => {
                return entries.iter().for_each(|(_, value)| self.placeholders_of(value, known, false));
            }
            YamlTree::Scalar(scalar) if is_template(&scalar.text) => scalar,
            YamlTree::Scalar(_) => return,
        };
        let template = match PieceTemplate::compile("template", &scalar.text, Undefined::Error) {
            Ok(template) => template,
            Err(error) => return self.mistakes.push(Mistake::template(self.sources, node, &error)),
        };
        if let Some(at) = in_shell.then(|| inside_quotes(&scalar.text)).flatten() {
            let error = TemplateError {
                message: "the placeholder is inside quotes".to_owned(),
                ..error_at(&scalar.text, Some(at..at + 2))
            };
            let hint = "leave the quotes out: each value is already one argument, whatever it contains";
            self.mistakes.push(Mistake::template(self.sources, node, &error).hint(hint));
        }
        for variable in template.variables() {
            let name = variable.split('.').next().unwrap_or(&variable);
            if known.contains(&name) {
                continue;
            }
            let error = TemplateError {
                message: format!("no parameter is called `{name}`"),
                ..error_at(&scalar.text, range_of(&scalar.text, name))
            };
            let hint = did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known {
                _ if name == "env" => {
                    "only a whole value below `env` reads the environment, as in `TOKEN: \"{{ env.TOKEN }}\"`"
                        .to_owned()
                }
                [] => "`parameters` describes none".to_owned(),
                known => format!("the parameters are {}", known.join(", ")),
            });
            self.mistakes.push(Mistake::template(self.sources, node, &error).hint(hint));
        }
    }

    fn switches_only(&mut self) {
        for key in ToolConfig::OF_COMMANDS.split(' ') {
            let Some((key, _)) = self.node.entries().iter().find(|(other, _)| other.text == key) else { continue };
            let message = format!("`{}` is for a tool that has a `command`", key.text);
            self.mistakes.push(Mistake::place_at(self.sources, key.place, message));
        }
    }
}

/// The range in which a template reads a name.
fn range_of(text: &str, name: &str) -> Option<Range<usize>> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: &usize| {
        let (before, after) = (&text[..*at], &text[at + name.len()..]);
        let inside = before.rfind('{') > before.rfind('}');
        inside && !before.ends_with(word) && !after.starts_with(word)
    };
    let at = text.match_indices(name).map(|(at, _)| at).find(whole)?;
    Some(at..at + name.len())
}

fn error_at(text: &str, range: Option<Range<usize>>) -> TemplateError {
    range.map_or_else(TemplateError::default, |range| TemplateError::place_at(text, range, String::new()))
}

/// The first `{{` of a line for the shell that is inside quotes of the shell, or in a here-document that takes no values.
pub(super) fn inside_quotes(line: &str) -> Option<usize> {
    const TAGS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
    let (mut before, mut at) = (String::new(), 0);
    loop {
        let tags = TAGS.iter().filter_map(|(open, close)| Some((at + line[at..].find(open)?, *open, *close)));
        let (start, open, close) = tags.min()?;
        before.push_str(&line[at..start]);
        if open == "{{" && matches!(split_command(&before).quote, Some('\'' | '"')) {
            return Some(start);
        }
        // A value is a part of a word, whatever it is.
        before.extend((open == "{{").then_some('_'));
        at = line[start..].find(close).map_or(line.len(), |length| start + length + close.len());
    }
}

#[cfg(test)]
mod tests {
    use super::inside_quotes;

    #[test]
    fn placeholders_between_quotes_are_found() {
        let table = [
            ("grep {{ x }} | head", None),
            ("grep '{{ x }}'", Some(6)),
            ("grep \"a {{ x }}\"", Some(8)),
            ("echo 'it' {{ x }} \"b\" {{ y }}", None),
            ("echo it\\'s {{ x }}", None),
            ("{% if x == 'a' %}-a {{ x }}{% endif %}", None),
            ("echo \"\\\"{{ x }}\"", Some(8)),
            ("cat <<'E'\n{{ x }}\nE", Some(10)),
            ("cat <<E\nit's {{ x }}\nE\nls {{ x }} '{{ x }}'", Some(35)),
            ("echo \"$(ls {{ x }})\" # '\nls {{ x }}", None),
        ];
        for (line, expected) in table {
            assert_eq!(inside_quotes(line), expected, "{line}");
        }
    }
}
