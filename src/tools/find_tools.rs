//! `find_tools`, and the definition of `call_tool`: they let a model use more tools than are sent with every
//! request.
//!
//! The model reads one line about each such tool in its prompt, asks here for the definitions that it needs, as
//! text, and calls them through `call_tool`. So the prefix of a conversation never changes.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::{output::ToolOutput, text};
use crate::config::Permission;
use crate::model::ToolDefinition;

use super::finding::rank::rank_texts;
use super::{CallContext, Tool, ToolFuture, bytes_for, count_noun, define_tool, parse_arguments};

/// The name of the tool that finds others.
pub const FIND_TOOLS: &str = "find_tools";
/// The name by which the model calls a tool whose definition was not sent.
pub const CALL_TOOL: &str = "call_tool";
/// The most definitions in one answer.
const MOST: usize = 5;

/// `find_tools`: full definitions by a search.
pub struct FindTools {
    definition: ToolDefinition,
    tools: Vec<ToolDefinition>,
    /// The searched text of each tool.
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct FindToolsArguments {
    query: String,
}

impl FindTools {
    /// Searches these tools, whose definitions are not sent.
    pub fn new(tools: Vec<ToolDefinition>) -> Self {
        let definition = define_tool(
            FIND_TOOLS,
            "Returns the definitions of further tools. Give a name, or words that say what you need; then use \
             call_tool.",
            (Permission::Read, &[]),
            json!({ "query": { "type": "string", "description": "A name, or words" } }),
            &["query"],
        );
        let texts = tools.iter().map(write_searched).collect();
        Self { definition, tools, texts }
    }

    /// Only the tool of this name, else the best matches.
    fn find(&self, query: &str) -> Vec<&ToolDefinition> {
        if let Some(named) = self.tools.iter().find(|tool| tool.name == query.trim()) {
            return vec![named];
        }
        rank_texts(query, &self.texts).into_iter().take(MOST).map(|position| &self.tools[position]).collect()
    }
}

impl Tool for FindTools {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn is_trusted(&self) -> bool {
        true
    }

    fn subject(&self, arguments: &Value) -> String {
        text::one_line(arguments["query"].as_str().unwrap_or_default(), 80)
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let FindToolsArguments { query } = parse_arguments(given)?;
            let found = self.find(&query);
            let most = bytes_for(context.max_tokens);
            let mut observation = String::new();
            let mut shown = Vec::new();
            for tool in &found {
                let text = describe_tool(tool);
                if !shown.is_empty() && observation.len() + text.len() > most {
                    break;
                }
                observation += &text;
                shown.push(json!({
                    "name": tool.name, "description": tool.description, "parameters": *tool.parameters
                }));
            }
            if found.is_empty() {
                let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
                observation = format!("No tool fits. There are: {}.", text::take_head(&names.join(", "), most));
            }
            let count = shown.len();
            Ok(ToolOutput {
                result: json!({ "tools": shown }),
                observation: observation.trim_end().to_owned(),
                summary: count_noun(count as u64, "tool", "tools"),
                truncated: count < found.len(),
                ..ToolOutput::default()
            })
        })
    }
}

/// The definition of `call_tool`. Nothing runs under this name: a call of it is treated as a call of the tool it
/// names.
pub fn call_tool() -> ToolDefinition {
    define_tool(
        CALL_TOOL,
        "Calls a tool that find_tools returned. The result is that of the tool.",
        (Permission::Read, &[]),
        json!({
            "name": { "type": "string", "description": "The tool" },
            "arguments": { "type": "object", "description": "As its parameters say" },
        }),
        &["name", "arguments"],
    )
}

/// The name counts twice: a query that contains it means this tool.
fn write_searched(tool: &ToolDefinition) -> String {
    let mut text = format!("{} {} {}", tool.name, tool.name, tool.description);
    for (name, property) in tool.parameters["properties"].as_object().into_iter().flatten() {
        text.extend([" ", name, " ", property["description"].as_str().unwrap_or_default()]);
    }
    text
}

fn describe_tool(tool: &ToolDefinition) -> String {
    format!("{}: {}\nparameters: {}\n\n", tool.name, tool.description, tool.parameters)
}
