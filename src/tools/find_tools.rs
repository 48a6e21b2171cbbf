//! `find_tools`, and the definition of `call_tool`: how a model uses more tools than are sent with every request.
//!
//! The model reads one line of each such tool in its prompt, asks here for the definitions that it needs, as text,
//! and calls them through `call_tool`. What is sent ahead of a conversation so never changes.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::contract::{CallContext, Permission, Tool, ToolDefinition};
use crate::output::{ToolError, ToolOutput};
use crate::text;

use super::rank::rank;
use super::{arguments, bytes_for, counted, definition};

/// The name of the tool that finds others.
pub const FIND_TOOLS: &str = "find_tools";
/// The name by which the model calls a tool whose definition was not sent.
pub const CALL_TOOL: &str = "call_tool";
/// Definitions in one answer.
const MOST: usize = 5;

/// `find_tools`: full definitions by a search.
pub struct FindTools {
    definition: ToolDefinition,
    tools: Vec<ToolDefinition>,
    /// What is searched of each: name, description, parameters.
    texts: Vec<String>,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
}

impl FindTools {
    /// Finds these tools, which the model was not sent.
    #[must_use]
    pub fn new(tools: Vec<ToolDefinition>) -> Self {
        let definition = definition(
            FIND_TOOLS,
            "Returns the definitions of further tools. Give a name, or words that say what you need; then use \
             call_tool.",
            (Permission::Read, &[]),
            json!({ "query": { "type": "string", "description": "A name, or words" } }),
            &["query"],
        );
        let texts = tools.iter().map(searched).collect();
        Self { definition, tools, texts }
    }

    /// The tool of this name alone, else what fits best.
    fn find(&self, query: &str) -> Vec<&ToolDefinition> {
        match self.tools.iter().find(|tool| tool.name == query.trim()) {
            Some(named) => vec![named],
            None => rank(query, &self.texts).into_iter().take(MOST).map(|at| &self.tools[at]).collect(),
        }
    }
}

impl Tool for FindTools {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn trusted(&self) -> bool {
        true
    }

    fn subject(&self, arguments: &Value) -> String {
        text::one_line(arguments["query"].as_str().unwrap_or_default(), 80)
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Arguments { query } = arguments(given)?;
            let found = self.find(&query);
            let most = bytes_for(context.max_tokens);
            let mut observation = String::new();
            let mut shown = Vec::new();
            for tool in &found {
                let text = described(tool);
                if !shown.is_empty() && observation.len() + text.len() > most {
                    break;
                }
                observation += &text;
                shown.push(json!({
                    "name": tool.name, "description": tool.description, "parameters": tool.parameters
                }));
            }
            if found.is_empty() {
                let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
                observation = format!("No tool fits. There are: {}.", text::head(&names.join(", "), most));
            }
            let count = shown.len();
            Ok(ToolOutput {
                result: json!({ "tools": shown }),
                observation: observation.trim_end().to_owned(),
                summary: counted(count as u64, "tool", "tools"),
                truncated: count < found.len(),
                ..ToolOutput::default()
            })
        })
    }
}

/// What the model is told of `call_tool`. Nothing runs under this name: a call is taken for one of the tool it names.
#[must_use]
pub fn call_tool() -> ToolDefinition {
    definition(
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

fn described(tool: &ToolDefinition) -> String {
    format!("{}: {}\nparameters: {}\n\n", tool.name, tool.description, tool.parameters)
}

/// The name counts twice: who knows it means it.
fn searched(tool: &ToolDefinition) -> String {
    let mut text = format!("{} {} {}", tool.name, tool.name, tool.description);
    for (name, property) in tool.parameters["properties"].as_object().into_iter().flatten() {
        text.extend([" ", name, " ", property["description"].as_str().unwrap_or_default()]);
    }
    text
}
