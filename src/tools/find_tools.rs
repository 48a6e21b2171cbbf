//! `find_tools`, and the definition of `call_tool`: they let a model use more tools than are sent with every
//! request.
//!
//! The model reads one line about each such tool in its prompt, asks here for the definitions that it needs, as
//! text, and calls them through `call_tool`. So the prefix of a conversation never changes.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::{output::ToolOutput, text};
use crate::config::Permission;
use crate::model::ToolDefinition;

use super::finding::rank::rank_texts;
use super::mcp::McpServers;
use super::{CallContext, Tool, ToolFuture, bytes_for, count_noun, define_tool, parse_arguments};

/// The name of the tool that finds others.
pub const FIND_TOOLS: &str = "find_tools";
/// The name by which the model calls a tool whose definition was not sent.
pub const CALL_TOOL: &str = "call_tool";
/// The most definitions in one answer.
const MOST: usize = 5;
/// The most bytes of an answer that found nothing.
const MOST_OF_A_MISS: usize = 2000;

/// `find_tools`: full definitions by a search.
pub struct FindTools {
    definition: ToolDefinition,
    tools: Vec<ToolDefinition>,
    /// The searched text of each tool.
    texts: Vec<String>,
    /// The servers whose further tools are searched too.
    servers: Option<Arc<McpServers>>,
}

#[derive(Deserialize)]
struct FindToolsArguments {
    query: String,
}

impl FindTools {
    /// Searches these tools, whose definitions are not sent, and those that servers list later.
    pub fn new(tools: Vec<ToolDefinition>, servers: Option<Arc<McpServers>>) -> Self {
        let definition = ToolDefinition {
            is_trusted: true,
            ..define_tool(
                FIND_TOOLS,
                "Returns the definitions of further tools. Give a name, or words that say what you need; then use \
                 call_tool.",
                (Permission::Read, &[]),
                json!({ "query": { "type": "string", "description": "A name, or words" } }),
                &["query"],
            )
        };
        let texts = tools.iter().map(write_searched).collect();
        Self { definition, tools, texts, servers }
    }

    /// The definitions of the tools that servers listed since.
    fn list_late(&self) -> Vec<ToolDefinition> {
        let servers =
            self.servers.iter().flat_map(|servers| (0..servers.iter().count()).map(move |at| (servers, at)));
        let tools = servers.filter_map(|(servers, at)| servers.late_tools(at)).flatten();
        tools.map(|tool| tool.definition().clone()).collect()
    }

    /// Only the tool of this name, else the best matches.
    fn find<'f>(&'f self, late: &'f [ToolDefinition], query: &str) -> Vec<&'f ToolDefinition> {
        let all: Vec<&ToolDefinition> = self.tools.iter().chain(late).collect();
        if let Some(named) = all.iter().find(|tool| tool.name == query.trim()) {
            return vec![named];
        }
        let of_late: Vec<String> = late.iter().map(write_searched).collect();
        let texts: Vec<&String> = self.texts.iter().chain(&of_late).collect();
        rank_texts(query, &texts).into_iter().take(MOST).map(|position| all[position]).collect()
    }
}

impl Tool for FindTools {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn subject(&self, arguments: &Value) -> String {
        text::one_line(arguments["query"].as_str().unwrap_or_default(), 80)
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(async move {
            let FindToolsArguments { query } = parse_arguments(given)?;
            if let Some(servers) = &self.servers {
                servers.settle().await;
            }
            let late = self.list_late();
            let found = self.find(&late, &query);
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
                let names: Vec<&str> = self.tools.iter().chain(&late).map(|tool| tool.name.as_str()).collect();
                let near = text::find_nearest(&query, names.iter().copied());
                let names = if near.is_empty() { names } else { near };
                let listed = text::take_head(&names.join(", "), most.min(MOST_OF_A_MISS)).to_owned();
                let count = self.tools.len() + late.len();
                observation = format!("None of {count} tools fits: try other words. There are: {listed}.");
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

/// The positions of the tools that fit a request, best first.
pub fn rank_tools(request: &str, tools: &[&ToolDefinition]) -> Vec<usize> {
    let texts: Vec<String> = tools.iter().map(|tool| write_searched(tool)).collect();
    rank_texts(request, &texts)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::testing::Place;
    use super::*;

    /// The rows of a file of `tests/tool_queries/`, two texts each.
    fn rows(name: &str) -> Vec<(String, String)> {
        let path = format!("{}/tests/tool_queries/{name}.tsv", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("the file is there");
        let row = |line: &str| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned()));
        text.lines().filter_map(row).collect()
    }

    fn thousand() -> FindTools {
        let tool = |(name, description): (String, String)| ToolDefinition {
            name,
            description,
            parameters: Arc::new(json!({ "type": "object", "properties": {} })),
            permission: Permission::Read,
            default: true,
            ..ToolDefinition::default()
        };
        FindTools::new(rows("tools").into_iter().map(tool).collect(), None)
    }

    #[test]
    fn the_right_tool_of_a_thousand_is_among_the_first_five() {
        let (find, queries) = (thousand(), rows("queries"));
        assert_eq!((find.tools.len(), queries.len()), (1000, 200));
        let is_missed =
            |(query, name): &&(String, String)| find.find(&[], query).iter().all(|found| found.name != *name);
        let missed: Vec<_> = queries.iter().filter(is_missed).collect();
        assert!(missed.len() <= queries.len() / 20, "{} are not found: {missed:#?}", missed.len());
    }

    #[test]
    fn a_miss_is_short() {
        let output = Place::new().call(&thousand(), json!({ "query": "qqqq zzzz" })).expect("an answer");
        assert!(output.observation.len() < 2200, "{}", output.observation.len());
        assert!(output.observation.starts_with("None of 1000 tools fits"));
    }
}
