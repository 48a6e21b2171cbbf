//! A request of Google's own interface to Gemini. The model is named in its address.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::asked::{OutgoingRequest, write_body};
use super::super::chat::simplify_schema;
use super::super::effort::Effort;
use super::contents::{Content, write_contents};
use super::flags::{GeminiFlags, GeminiThinking};
use crate::model::ToolChoice;

#[derive(Serialize)]
#[serde(untagged)]
enum GeminiField<'a> {
    Tools([FunctionDeclarations<'a>; 1]),
    System(Content<'a>),
    Contents(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclarations<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: Value,
}

/// The fields that may differ between requests.
const VARYING: [&str; 2] = ["generationConfig", "toolConfig"];

/// The body of a request.
pub fn encode_request(asked: &OutgoingRequest<'_>, flags: &GeminiFlags) -> Vec<u8> {
    let has_tools = !asked.tools.is_empty();
    let write_tools = || {
        let declarations = asked.tools.iter().map(|tool| FunctionDeclaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: simplify_schema(&tool.parameters),
        });
        GeminiField::Tools([FunctionDeclarations { function_declarations: declarations.collect() }])
    };
    let system = Some(asked.system).filter(|system| !system.trim_start().is_empty());
    let large = [
        ("systemInstruction", system.map(|text| GeminiField::System(Content::system(text)))),
        ("tools", has_tools.then(write_tools)),
        ("contents", Some(GeminiField::Contents(write_contents(asked.turns, flags)))),
    ];
    let is_late = |key: &str, _: &Map<_, _>| VARYING.contains(&key);
    write_body(asked, Map::new(), large, write_tail(asked, flags), is_late)
}

fn write_tail(asked: &OutgoingRequest<'_>, flags: &GeminiFlags) -> Map<String, Value> {
    let has_tools = !asked.tools.is_empty();
    let forbids = asked.tool_choice == ToolChoice::None && has_tools && flags.choice_none;
    let generation = write_generation(asked, flags);
    let mut config = Map::new();
    if forbids {
        config.insert("functionCallingConfig".to_owned(), json!({"mode": "NONE"}));
    }
    if has_tools && !asked.settings.server_tools.is_empty() {
        // What the server did goes back, beside our calls.
        config.insert("includeServerSideToolInvocations".to_owned(), true.into());
    }
    let fields = [
        ("toolConfig", (!config.is_empty()).then_some(Value::Object(config))),
        ("generationConfig", (!generation.is_empty()).then_some(Value::Object(generation))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn write_generation(asked: &OutgoingRequest<'_>, flags: &GeminiFlags) -> Map<String, Value> {
    let settings = asked.settings;
    let enforces = flags.answer_format && (flags.format_with_tools || asked.tools.is_empty());
    let schema = asked.schema.filter(|_| enforces);
    let fields = [
        ("maxOutputTokens", settings.output_limit().map(Value::from)),
        ("temperature", settings.temperature.filter(|_| flags.temperature).map(Value::from)),
        ("thinkingConfig", write_thinking(settings.effort, flags.thinking)),
        ("responseMimeType", schema.map(|_| "application/json".into())),
        ("responseJsonSchema", schema.map(simplify_schema)),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Thoughts are asked for wherever the model has them; how many, only where the model file says so.
fn write_thinking(effort: Option<Effort>, thinking: GeminiThinking) -> Option<Value> {
    let mut config = json!({"includeThoughts": true});
    match thinking {
        GeminiThinking::Absent => return None,
        GeminiThinking::Budget => {
            // The budgets that Google's compatible interface gives the same levels.
            let budget = effort.map(|effort| match effort {
                Effort::None => 0,
                Effort::Minimal | Effort::Low => 1024,
                Effort::Medium => 8192,
                Effort::High | Effort::Xhigh | Effort::Max => 24_576,
            });
            if let Some(budget) = budget {
                config["thinkingBudget"] = budget.into();
                config["includeThoughts"] = (budget > 0).into();
            }
        }
        GeminiThinking::Level => {
            let level = effort.map(|effort| match effort {
                Effort::None | Effort::Minimal => "minimal",
                Effort::Low => "low",
                Effort::Medium => "medium",
                Effort::High | Effort::Xhigh | Effort::Max => "high",
            });
            if let Some(level) = level {
                config["thinkingLevel"] = level.into();
            }
        }
    }
    Some(config)
}
