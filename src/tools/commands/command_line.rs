//! Turns the templates of a command tool and the arguments of a call into a command.
//!
//! In a list each part becomes one argument, whatever its value contains. A line for the shell never contains a
//! value: values are passed as positional parameters (`"${1}"`), so nothing in them is read as shell syntax.

use std::fmt::Write;

use serde_json::Value;

use crate::base::{output::ToolError, text};
use crate::config::{CommandLine, ToolConfig};
use crate::safety::process::SHELL;
use crate::template::{self, PieceTemplate, RenderedPiece, TemplateError, Undefined};

/// A command that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyCommand {
    /// Program and arguments.
    pub line: Vec<String>,
    /// The command for a person: exact, quoted for a shell.
    pub shown: String,
    /// The command for the policy: a line that a shell would read as this command. If no such line exists, the values
    /// are left open.
    pub judged: String,
    pub workdir: Option<String>,
    pub env: Vec<(String, String)>,
}

/// Renders the command of a tool. A part, directory or variable that needs a missing argument is left out; in a
/// line for the shell it becomes empty.
///
/// # Errors
/// A template cannot be rendered with these arguments.
pub fn render_command(tool: &ToolConfig, arguments: &Value) -> Result<ReadyCommand, ToolError> {
    let given = GivenArguments::new(arguments);
    let (line, shown, judged) = match &tool.command {
        Some(CommandLine::Arguments(parts)) => {
            let rendered: Result<Vec<Option<String>>, ToolError> =
                parts.iter().map(|part| given.text(part)).collect();
            let line: Vec<String> = rendered?.into_iter().flatten().collect();
            let joined = |quoted: fn(&str) -> String| {
                line.iter().map(|argument| quoted(argument)).collect::<Vec<_>>().join(" ")
            };
            let (shown, judged) = (joined(text::shell_word), joined(text::shell_quoted));
            (line, shown, judged)
        }
        Some(CommandLine::Shell(line)) => given.shell(line)?,
        None => return Err(ToolError::permanent("the tool has no command")),
    };
    if line.first().is_none_or(String::is_empty) {
        return Err(ToolError::parameter("with these arguments the command names no program"));
    }
    let workdir = tool.workdir.as_deref().map(|dir| given.text(dir)).transpose()?.flatten();
    let mut env = Vec::new();
    for (name, value) in tool.env.iter().flatten() {
        if let Some(value) = given.text(value)? {
            env.push((name.clone(), value));
        }
    }
    Ok(ReadyCommand { line, shown, judged, workdir, env })
}

/// The arguments of a call, as templates read them. `null` counts as missing.
struct GivenArguments(template::Value);

impl GivenArguments {
    fn new(arguments: &Value) -> Self {
        let mut arguments = arguments.clone();
        if let Some(fields) = arguments.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        Self(template::convert_value(&arguments))
    }

    /// One text; `None` if a required argument is missing.
    fn text(&self, source: &str) -> Result<Option<String>, ToolError> {
        if !template::is_template(source) {
            return Ok(Some(source.to_owned()));
        }
        let rendered = PieceTemplate::compile("command", source, Undefined::Error)
            .and_then(|template| template.render(&self.0));
        match rendered {
            Ok(pieces) => Ok(Some(pieces.iter().map(RenderedPiece::text).collect())),
            Err(error) if !error.missing.is_empty() => Ok(None),
            Err(error) => Err(refuse_template(&error)),
        }
    }

    fn shell(&self, source: &str) -> Result<(Vec<String>, String, String), ToolError> {
        if cfg!(not(unix)) {
            return Err(ToolError::permanent(
                "a command with `shell: true` needs a POSIX shell, and there is none",
            ));
        }
        let pieces = PieceTemplate::compile("command", source, Undefined::Empty)
            .and_then(|template| template.render(&self.0))
            .map_err(|error| refuse_template(&error))?;
        let (mut script, mut shown, mut judged, mut values) =
            (String::new(), String::new(), String::new(), Vec::new());
        // Within quotes, comments and here-documents a quoted value is not the word that the shell would make of it.
        let is_plain = pieces.iter().all(|piece| match piece {
            RenderedPiece::Literal(text) => !text.contains(['\'', '"', '\\', '`', '#']) && !text.contains("<<"),
            RenderedPiece::Given(_) => true,
        });
        for piece in pieces {
            match piece {
                RenderedPiece::Literal(text) => {
                    script += &text;
                    shown += &text;
                    judged += &text;
                }
                RenderedPiece::Given(value) => {
                    shown += &text::shell_word(&value);
                    judged += &text::shell_quoted(&value);
                    values.push(value);
                    let _ = write!(script, "\"${{{}}}\"", values.len());
                }
            }
        }
        let name = "sh".to_owned();
        let line =
            [SHELL[0].to_owned(), SHELL[1].to_owned(), script.clone(), name].into_iter().chain(values).collect();
        Ok((line, shown, if is_plain { judged } else { script }))
    }
}

impl RenderedPiece {
    fn text(&self) -> &str {
        match self {
            Self::Literal(text) | Self::Given(text) => text,
        }
    }
}

fn refuse_template(error: &TemplateError) -> ToolError {
    ToolError::parameter(format!("the command cannot be made from these arguments: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(yaml: &str) -> ToolConfig {
        crate::base::yaml::parse_document(&format!("name: t\n{yaml}")).expect("a tool")
    }

    #[test]
    fn each_part_is_one_argument_whatever_it_holds() {
        let tool = tool(r#"command: ["cargo", "test", "-p", "{{ package }}", "--features={{ features }}", "--"]"#);
        let table = [
            (json!({"package": "a b; rm -rf /"}), vec!["cargo", "test", "-p", "a b; rm -rf /", "--"]),
            (json!({"package": ""}), vec!["cargo", "test", "-p", "", "--"]),
            (
                json!({"package": "{{ x }}$(y)`z`'\"\n", "features": null}),
                vec!["cargo", "test", "-p", "{{ x }}$(y)`z`'\"\n", "--"],
            ),
            (
                json!({"package": true, "features": "a,b"}),
                vec!["cargo", "test", "-p", "true", "--features=a,b", "--"],
            ),
            (json!({"package": ["a", "b"]}), vec!["cargo", "test", "-p", "[\"a\",\"b\"]", "--"]),
        ];
        for (arguments, expected) in table {
            assert_eq!(render_command(&tool, &arguments).expect("renders").line, expected, "{arguments}");
        }
        let shown = render_command(&tool, &json!({"package": "it's"})).expect("renders").shown;
        assert_eq!(shown, r"cargo test -p 'it'\''s' --");
    }

    #[test]
    fn no_value_is_part_of_a_line_for_the_shell() {
        let tool =
            tool("shell: true\ncommand: \"grep {{ pattern }}{% if path %} {{ path }}{% endif %} | head {{ n }}\"");
        let ready =
            render_command(&tool, &json!({"pattern": "'; rm -rf $(x) #", "path": "a b"})).expect("renders");
        let expected = ["/bin/sh", "-c", "grep \"${1}\" \"${2}\" | head ", "sh", "'; rm -rf $(x) #", "a b"];
        assert_eq!(ready.line, expected);
        assert_eq!(ready.shown, r"grep ''\''; rm -rf $(x) #' 'a b' | head ");
        assert_eq!(ready.judged, r"grep ''\''; rm -rf $(x) #' 'a b' | head ");
    }

    #[test]
    fn what_is_judged_is_the_very_command_or_leaves_the_values_open() {
        for (yaml, expected) in [
            ("command: [time, \"{{ v }}\"]", r"'time' ''\''$(x)'"),
            ("shell: true\ncommand: \"a {{ v }}$(b {{ v }})\"", r"a ''\''$(x)'$(b ''\''$(x)')"),
            ("shell: true\ncommand: \"a '{{ v }}'\"", r#"a '"${1}"'"#),
            ("shell: true\ncommand: \"a <<E\\n{{ v }}\\nE\"", "a <<E\n\"${1}\"\nE"),
        ] {
            let ready = render_command(&tool(yaml), &json!({"v": "'$(x)"})).expect("renders");
            assert_eq!(ready.judged, expected, "{yaml}");
        }
    }

    #[test]
    fn directory_and_variables_are_rendered_too() {
        let tool = tool(
            "command: [x]\nworkdir: \"crates/{{ name }}\"\nenv: {A: \"{{ name }}\", B: \"{{ other }}\", C: c}",
        );
        let ready = render_command(&tool, &json!({"name": "n"})).expect("renders");
        assert_eq!(ready.workdir.as_deref(), Some("crates/n"));
        assert_eq!(ready.env, [("A".to_owned(), "n".to_owned()), ("C".to_owned(), "c".to_owned())]);
        assert_eq!(render_command(&tool, &json!({})).expect("renders").workdir, None);
        assert!(render_command(&tool, &json!({"name": "a\u{0}"})).is_err());
    }
}
