//! A request of the Messages API.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::asked::{OutgoingRequest, write_body};
use super::cloud::ClaudeCloud;
use super::flags::AnthropicFlags;
use super::headers::list_betas;
use super::messages::{Block, Mark, Message, write_messages};
use super::thinking::{self, Asks};
use super::tools::{AnthropicTool, allows_strict, write_tools};
use crate::model::ToolChoice;

#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicField<'a> {
    Tools(Vec<AnthropicTool<'a>>),
    System(&'a str),
    /// With a mark.
    SystemBlock([Block<'a>; 1]),
    Messages(Vec<Message<'a>>),
}

/// The body of a request. Only the cache marks move within what it shares with the request before.
pub fn encode_request(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Vec<u8> {
    let mark = Mark::from_flags(flags);
    let system = Some(asked.system).filter(|system| !system.trim_start().is_empty());
    let write_system = |text| match mark {
        Some(_) => AnthropicField::SystemBlock([Block::text(text, mark)]),
        None => AnthropicField::System(text),
    };
    let tools = || AnthropicField::Tools(write_tools(asked, flags, mark));
    let large = [
        ("tools", (!asked.tools.is_empty()).then(tools)),
        ("system", system.map(write_system)),
        ("messages", Some(AnthropicField::Messages(write_messages(asked.turns, flags)))),
    ];
    let is_late = |key: &str, _: &Map<_, _>| VARYING.contains(&key);
    write_body(asked, write_head(asked, flags), large, write_tail(asked, flags), is_late)
}

/// The fields that stay the same for a whole session.
fn write_head(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Map<String, Value> {
    let is_bedrock = flags.cloud == Some(ClaudeCloud::Bedrock);
    let betas = if is_bedrock { list_betas(asked, flags) } else { Vec::new() };
    let fields = [
        ("model", flags.cloud.is_none().then(|| asked.settings.model.as_str().into())),
        ("anthropic_version", flags.cloud.map(|cloud| cloud.version().into())),
        ("anthropic_beta", (!betas.is_empty()).then(|| betas.into())),
        ("max_tokens", Some(thinking::most_tokens(asked.settings).into())),
        ("stream", (!is_bedrock).then(|| asked.settings.streaming.into())),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The fields that may differ between requests.
const VARYING: [&str; 4] = ["thinking", "temperature", "output_config", "tool_choice"];

fn write_tail(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Map<String, Value> {
    let settings = asked.settings;
    let asks = Asks::choose(asked, flags);
    let effort = settings.effort.filter(|_| flags.effort_field).and_then(thinking::spell_level);
    let schema = asked.schema.filter(|schema| flags.answer_format && allows_strict(schema));
    let mut config = Map::new();
    if let Some(level) = effort {
        config.insert("effort".to_owned(), level.into());
    }
    if let Some(schema) = schema {
        config.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    // A model that is thinking accepts no temperature.
    let temperature = settings.temperature.filter(|_| flags.temperature && !asks.is_on());
    let fields = [
        ("thinking", asks.field(flags)),
        ("temperature", temperature.map(Value::from)),
        ("output_config", (!config.is_empty()).then_some(Value::Object(config))),
        ("tool_choice", tool_choice(asked, flags)),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn tool_choice(asked: &OutgoingRequest<'_>, flags: &AnthropicFlags) -> Option<Value> {
    if asked.tools.is_empty() {
        return None;
    }
    match asked.tool_choice {
        ToolChoice::None => flags.choice_none.then(|| json!({"type": "none"})),
        ToolChoice::Auto => (flags.parallel_switch && !asked.settings.parallel_calls)
            .then(|| json!({"type": "auto", "disable_parallel_tool_use": true})),
    }
}
