//! Bodies that are templates, at their author's request (`template: jinja` under `metadata`). They can read the
//! variables listed here and nothing else: no environment, no state, no file.

use std::path::Path;

use jiff::Zoned;
use serde_json::{Map, Value, json};

use crate::template::{self, Template, Undefined};

/// The variables of the run.
#[derive(Debug, Clone, Default)]
pub struct RunVariables {
    /// The workspace, absolute.
    pub dir: String,
    pub git_branch: Option<String>,
    pub os: String,
    pub shell: String,
    pub user_id: String,
    /// `--var NAME=VALUE`.
    pub vars: Map<String, Value>,
}

/// The variables of the skill.
pub(super) struct SkillVariables<'a> {
    pub name: &'a str,
    pub directory: Option<&'a Path>,
    /// The person's text after `/skill NAME`.
    pub arguments: &'a str,
}

/// Renders a body.
///
/// # Errors
/// The template is wrong; the error has the line in the body if known.
pub(super) fn render_body(
    text: &str,
    subject: &SkillVariables<'_>,
    around: &RunVariables,
) -> Result<String, (Option<usize>, String)> {
    let workspace = json!({
        "dir": around.dir, "git_branch": around.git_branch, "os": around.os, "shell": around.shell,
    });
    let directory = subject.directory.map(Path::to_string_lossy);
    let skill = json!({ "name": subject.name, "directory": directory, "arguments": subject.arguments });
    let context = template::make_object([
        ("skill", template::convert_value(&skill)),
        ("arguments", subject.arguments.into()),
        ("workspace", template::convert_value(&workspace)),
        ("work_dir", around.dir.as_str().into()),
        ("user_id", around.user_id.as_str().into()),
        ("vars", template::convert_value(&around.vars)),
        ("datetime", template::make_clock(Zoned::now())),
    ]);
    let compiled = Template::compile("SKILL.md", text, Undefined::Error);
    compiled.and_then(|template| template.render(&context)).map_err(|error| (error.line, error.message))
}

/// The syntax error of a template, if any, with its line.
pub(super) fn find_mistake(text: &str) -> Option<(Option<usize>, String)> {
    Template::compile("SKILL.md", text, Undefined::Error).err().map(|error| (error.line, error.message))
}
