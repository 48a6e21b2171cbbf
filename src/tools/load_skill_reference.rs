//! `load_skill_reference`: reads lines of a file that a skill's instructions name, and nothing outside its folder.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::base::{present, tokens::BYTES_PER_TOKEN};
use crate::config::{Permission, SkillDisclosure};
use crate::conversation::{event::EventKind, knowledge::SECTION};
use crate::model::ToolDefinition;
use crate::skills::{FileContent, FilePage, FileWindow, SkillCatalogue};

use super::load_skill::refuse_skill;
use super::{CallContext, Tool, ToolFuture, define_tool, parse_arguments, text_of};

/// The tool, which is offered only if there are skills.
pub struct LoadSkillReference {
    definition: ToolDefinition,
    catalogue: Arc<SkillCatalogue>,
    disclosure: SkillDisclosure,
}

#[derive(Deserialize)]
struct SkillReferenceArguments {
    name: String,
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl LoadSkillReference {
    /// Reads the files of the skills of `catalogue`.
    pub fn new(catalogue: Arc<SkillCatalogue>, disclosure: SkillDisclosure) -> Self {
        let definition = ToolDefinition {
            advice: "Only for a file that the skill names.",
            is_trusted: true,
            ..define_tool(
                "load_skill_reference",
                "Reads a text file in a skill's directory.",
                (Permission::Read, &[]),
                json!({
                    "name": { "type": "string" },
                    "path": { "type": "string" },
                    "offset": { "type": "integer" },
                    "limit": { "type": "integer" },
                }),
                &["name", "path"],
            )
        };
        Self { definition, catalogue, disclosure }
    }

    async fn read(
        &self,
        arguments: &SkillReferenceArguments,
        context: CallContext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let SkillReferenceArguments { name, path, offset, limit } = arguments;
        if !context.skills.contains(name) {
            self.catalogue.get_offered(name).map_err(|error| refuse_skill(&error))?;
        }
        if let Some(file) = self.catalogue.find_file(name, path) {
            let root = context.reach.workspace().root();
            if file.ancestors().take_while(|above| *above != root).any(|above| context.reach.omits(above, above)) {
                return Err(ToolError::permanent(format!("{path} of skill `{name}` is denied by a rule")));
            }
        }
        let window = FileWindow::new(*offset, *limit, context.max_tokens.saturating_mul(BYTES_PER_TOKEN));
        self.catalogue.fetch(name, Some(path)).await.map_err(|error| refuse_skill(&error))?;
        let page = self.catalogue.reference(name, path, window).map_err(|error| refuse_skill(&error))?;
        let mut output = show_page(name, &page);
        let is_text = matches!(page.content, FileContent::Lines { .. });
        if self.disclosure == SkillDisclosure::System
            && is_text
            && context.skills.show_reference(name, path, (*offset, *limit), (&page.title(), &output.observation))
        {
            output.observation =
                format!("`{}` of skill `{name}`: see \"{SECTION}\" in the system prompt.", page.title());
        }
        if self.disclosure == SkillDisclosure::Message {
            output.skill = Some(name.clone());
        }
        (context.notify)(EventKind::SkillReferenced {
            name: arguments.name.clone(),
            path: page.path,
            tokens: output.observation.len() as u64 / 4,
        });
        Ok(output)
    }
}

impl Tool for LoadSkillReference {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn has_network(&self, arguments: &Value) -> bool {
        text_of(arguments, "name").is_some_and(|name| self.catalogue.is_served(name))
    }

    fn subject(&self, arguments: &Value) -> String {
        let part = |key: &str| arguments[key].as_str().unwrap_or_default();
        format!("{}: {}", part("name"), part("path"))
    }

    fn call<'a>(&'a self, arguments: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: SkillReferenceArguments = parse_arguments(arguments)?;
            self.read(&arguments, context).await
        })
    }
}

fn show_page(skill: &str, page: &FilePage) -> ToolOutput {
    let (text, first, last, lines, cut) = match &page.content {
        FileContent::Lines { text, first, last, lines, cut } => (text, *first, *last, *lines, *cut),
        FileContent::Other(what) => {
            let observation = format!("{} is not shown: {what}, {} bytes", page.path, page.size);
            return ToolOutput {
                result: json!({ "skill": skill, "path": page.path, "size": page.size, "content": null }),
                summary: format!("{what}, {} bytes", page.size),
                observation,
                truncated: true,
                ..ToolOutput::default()
            };
        }
    };
    let truncated = cut || last < lines;
    let mut observation = present::break_text_marks(text).into_owned();
    if truncated || first > 1 {
        let separator = if text.ends_with('\n') { "" } else { "\n" };
        let cut = if cut { "; the line is too long and was cut" } else { "" };
        let rest = if last < lines { format!("; the rest from offset {}", last + 1) } else { String::new() };
        observation = format!("{observation}{separator}[lines {first} to {last} of {lines}{cut}{rest}]");
    }
    ToolOutput {
        result: json!({
            "skill": skill, "path": page.path, "size": page.size,
            "content": text, "first": first, "last": last, "lines": lines,
        }),
        summary: format!("{} lines", (last + 1).saturating_sub(first)),
        observation,
        truncated,
        ..ToolOutput::default()
    }
}
