//! The plan of requests to one server with one model, made from the model file, the dialect and the catalogue, and
//! changed by the server's refusals. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::asked::{OutgoingRequest, RequestSettings};
use super::dialect::{self, Dialect};
use super::effort::Effort;
use super::extra::merge_extra;
use super::history::{self, CallIds, HistoryRules, Pictures};
use super::turns::{ModelPart, WireTurn};
use super::written::WrittenResults;
use super::{ConnectError, anthropic, chat, wires};
use serde_json::Map;

use crate::config::{Capabilities, ModelConfig, ServerTool, Wire};
use crate::conversation::message::Origin;
use crate::model::ModelRequest;

/// The form of the requests to a server.
#[derive(Debug, Clone)]
pub struct RequestPlan {
    pub wire: Wire,
    /// True if the model file names the wire.
    pub wire_is_declared: bool,
    pub dialect: Dialect,
    pub settings: RequestSettings,
    /// True if the model sees pictures.
    pub sees: bool,
    /// True if reasoning goes back to the server that sent it.
    pub echoes_reasoning: bool,
    /// True if tools are sent.
    pub tools: bool,
    /// The tools that the server refused, by their names.
    pub refused_tools: BTreeSet<String>,
    /// The levels of reasoning that the model has; `None` if they are unknown.
    pub levels: Option<Vec<Effort>>,
    /// The host, as the origin of the data that its replies want back.
    pub host: String,
}

/// The facts that the catalogue has about the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownFacts {
    pub wire: Option<Wire>,
    pub sees: Option<bool>,
    pub levels: Option<Vec<Effort>>,
    pub most_output_tokens: Option<u64>,
}

impl RequestPlan {
    /// The plan for the first request, and notices about it for the user. `address` is that of the server,
    /// `host[:port]/path`.
    pub fn new(
        config: &ModelConfig,
        model: &str,
        address: &str,
        known: KnownFacts,
    ) -> Result<(Self, Vec<String>), ConnectError> {
        let chosen = config.dialect.as_deref().map(str::trim).filter(|name| !matches!(*name, "" | "auto"));
        let dialect = dialect::resolve_dialect(chosen, address, model)
            .map_err(|why| ConnectError::wrong(&config.name, "dialect", why))?;
        // A host that serves two wires tells them apart by path, and the catalogue knows only the host.
        let has_choice = matches!(dialect.wire, Some(Wire::Chat | Wire::Responses));
        let wire = config.wire.or(known.wire.filter(|_| has_choice)).or(dialect.wire).unwrap_or(Wire::Chat);
        let mut dialect = dialect;
        apply_declared(&mut dialect, config.capabilities);
        if let Some(lifetime) = config.cache {
            (dialect.chat.cache_lifetime, dialect.anthropic.cache_lifetime) = (lifetime, lifetime);
        }
        let mut notices = Vec::new();
        let effort = choose_effort(config, known.levels.as_deref(), wire, &dialect, &mut notices)?;
        let mut extra = if wire == Wire::Chat { dialect.body.clone() } else { Map::new() };
        if let Some(serde_json::Value::Object(thinking)) = extra.get_mut("thinking").filter(|_| effort.is_some()) {
            // The effort says whether the model thinks.
            thinking.shift_remove("type");
        }
        merge_extra(&mut extra, &config.extra_body);
        // A null takes away what the program itself would set.
        let removed = config.extra_body.iter().filter(|(_, value)| value.is_null());
        extra.extend(removed.map(|(key, value)| (key.clone(), value.clone())));
        let can = config.capabilities;
        let has_search = wire == dialect.wire.unwrap_or(Wire::Chat);
        let search = dialect.web_search.clone().filter(|_| has_search);
        if search.is_none() && !config.server_tools.is_empty() {
            let why = "the web search of this server is not known here (known are those of anthropic, openai, gemini from \
                       Gemini 3 on, xai and openrouter, on the wires that they speak best)";
            return Err(ConnectError::wrong(&config.name, "server_tools", why.to_owned()));
        }
        let settings = RequestSettings {
            server_tools: config.server_tools.iter().filter_map(|ServerTool::WebSearch| search.clone()).collect(),
            model: model.to_owned(),
            streaming: can.streaming,
            max_output_tokens: config.max_output_tokens,
            most_output_tokens: config.max_output_tokens.or(known.most_output_tokens),
            accepted_output_tokens: None,
            served_window: config.context_window,
            output_cap: None,
            temperature: config.temperature,
            effort,
            parallel_calls: can.parallel_tool_calls,
            strict_tools: can.strict_tools,
            extra,
        };
        let host = address.split('/').next().unwrap_or_default().to_owned();
        let sees = can.vision.or(known.sees).unwrap_or(false);
        let plan = Self {
            wire,
            wire_is_declared: config.wire.is_some(),
            dialect,
            settings,
            sees,
            echoes_reasoning: true,
            tools: can.tools,
            refused_tools: BTreeSet::new(),
            levels: known.levels,
            host,
        };
        Ok((plan, notices))
    }

    /// The origin of this server's replies.
    pub fn origin(&self) -> Origin {
        Origin { wire: self.wire.name().to_owned(), host: self.host.clone(), model: self.settings.model.clone() }
    }

    /// The plan of a single request whose reply may have at most `cap` tokens.
    pub fn with_cap(&self, cap: Option<u64>) -> Self {
        Self { settings: RequestSettings { output_cap: cap, ..self.settings.clone() }, ..self.clone() }
    }

    /// The most tokens that a reply can have, if more is known than the window.
    pub fn largest_output(&self, model_writes: Option<u64>) -> Option<u64> {
        let written = self.settings.written_limit().or(self.settings.max_output_tokens);
        match self.wire {
            Wire::Anthropic => Some(anthropic::most_tokens(&self.settings)),
            Wire::Chat | Wire::Responses | Wire::Ollama | Wire::Gemini => written.or(model_writes),
        }
    }

    /// The tokens of thought that requests ask for, if they ask for a number.
    pub fn thinking_budget(&self) -> Option<u64> {
        (self.wire == Wire::Anthropic)
            .then(|| anthropic::thinking_budget(&self.settings, &self.dialect.anthropic))
            .flatten()
    }

    /// The body of a request, and the headers that it needs beside the key. `written` knows the request before.
    pub fn encode(
        &self,
        request: &ModelRequest<'_>,
        written: &WrittenResults,
    ) -> (Vec<u8>, Vec<(&'static str, String)>) {
        let origin = self.origin();
        let rules = HistoryRules {
            origin: &origin,
            ids: if self.wire == Wire::Chat { self.dialect.chat.ids } else { CallIds::Word64 },
            pictures: if self.sees { wires::place_pictures(self.wire, &self.dialect) } else { Pictures::Notes },
            documents: wires::takes_documents(self.wire, &self.dialect),
            user_after_results: wires::user_after_results(self.wire, &self.dialect),
        };
        let mut turns = history::write_turns(request, &rules);
        if !self.echoes_reasoning {
            strip_reasoning(&mut turns);
        }
        written.reuse(&mut turns);
        let mut offered = Cow::Borrowed(request.tools);
        if !self.refused_tools.is_empty() {
            offered.to_mut().retain(|tool| !self.leaves_out(&tool.name));
        }
        let asked = OutgoingRequest {
            settings: &self.settings,
            system: request.system,
            turns: &turns,
            tools: if self.tools { &offered } else { &[] },
            tool_choice: request.tool_choice,
            schema: request.schema,
            session_id: request.session_id,
        };
        let headers = wires::list_headers(self.wire, &asked, &self.dialect);
        (wires::encode_request(self.wire, &asked, &self.dialect), headers)
    }

    /// True if the server refused a tool of this name.
    pub fn leaves_out(&self, tool: &str) -> bool {
        self.refused_tools.contains(tool)
    }

    /// Returns the reason that the server is certain to refuse a request with tools, and what to do; `None` if it may
    /// accept one.
    pub fn refuses_tools(&self, name: &str) -> Option<String> {
        let always_thinks = self.levels.as_ref().is_some_and(|levels| !levels.contains(&Effort::None));
        let forbids = self.wire == Wire::Chat && self.dialect.chat.tools_forbid_reasoning && self.tools;
        (forbids && always_thinks).then(|| {
            let model = &self.settings.model;
            format!("{model} calls tools only over Responses: set `wire: responses` in models/{name}.yaml")
        })
    }
}

fn strip_reasoning(turns: &mut Vec<WireTurn<'_>>) {
    for turn in turns {
        if let WireTurn::Model(parts) = turn {
            parts.retain(|part| !matches!(part, ModelPart::Reasoning { .. }));
        }
    }
}

/// Overrides the dialect with what the model file declares.
fn apply_declared(dialect: &mut Dialect, declared: Capabilities) {
    let Dialect { chat, responses, anthropic, gemini, .. } = dialect;
    if let Some(asked) = declared.stream_usage {
        chat.stream_options = asked;
    }
    match declared.structured_output {
        Some(true) if chat.answer_format == chat::AnswerFormat::Absent => {
            chat.answer_format = chat::AnswerFormat::JsonSchema;
        }
        Some(false) => {
            chat.answer_format = chat::AnswerFormat::Absent;
            responses.answer_format = false;
            anthropic.answer_format = false;
            gemini.answer_format = false;
        }
        _ => {}
    }
    if let Some(has) = declared.prompt_cache_key {
        (chat.cache_key, responses.cache_key) = (has, has);
    }
    if let Some(has) = declared.cache_breakpoints {
        (chat.cache_marks, anthropic.cache_marks) = (has, has);
    }
}

/// The level of reasoning to ask for: the nearest that the model has.
fn choose_effort(
    config: &ModelConfig,
    levels: Option<&[Effort]>,
    wire: Wire,
    dialect: &Dialect,
    notices: &mut Vec<String>,
) -> Result<Option<Effort>, ConnectError> {
    let Some(word) = config.reasoning_effort.as_deref().map(str::trim).filter(|word| !word.is_empty()) else {
        return Ok(None);
    };
    let Some(asked) = Effort::read(&word.to_ascii_lowercase()) else {
        let known: Vec<&str> = Effort::ALL.iter().map(|level| level.word()).collect();
        let why = format!("`{word}` is not a level of reasoning. The levels are {}", known.join(", "));
        return Err(ConnectError::wrong(&config.name, "reasoning_effort", why));
    };
    let by_field;
    let levels = match levels {
        Some(levels) => levels,
        None if wire == Wire::Chat => {
            by_field = dialect.chat.effort.levels();
            if !dialect.chat.effort.has_levels() && !by_field.is_empty() {
                // The field is a switch: all levels of reasoning are the same to it.
                return Ok(Some(asked));
            }
            &by_field
        }
        None => &Effort::ALL,
    };
    let got = asked.nearest(levels);
    match got {
        Some(level) if level == asked => {}
        Some(level) => notices.push(format!(
            "{} has no reasoning_effort `{word}`: `{}` is asked for",
            config.model.as_deref().unwrap_or(&config.name),
            level.word()
        )),
        None => notices.push(format!(
            "{} has no levels of reasoning: reasoning_effort `{word}` is not sent",
            config.model.as_deref().unwrap_or(&config.name)
        )),
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Item, UserText};

    #[test]
    fn where_a_host_serves_two_wires_the_path_decides() {
        for (address, declared, wire) in [
            ("api.minimax.io/v1", None, Wire::Chat),
            ("api.minimax.io/anthropic", None, Wire::Anthropic),
            ("api.deepseek.com/anthropic", None, Wire::Anthropic),
            ("api.z.ai/api/anthropic", None, Wire::Anthropic),
            ("api.minimax.io/anthropic", Some(Wire::Chat), Wire::Chat),
            ("api.openai.com/v1", None, Wire::Chat),
        ] {
            let server = ModelConfig::of_server("m".to_owned(), format!("https://{address}"), "m".to_owned());
            let config = ModelConfig { wire: declared, ..server };
            // What the catalogue knows of the model at this host.
            let known = KnownFacts { wire: Some(Wire::Chat), ..KnownFacts::default() };
            let (plan, _) = RequestPlan::new(&config, "m", address, known).expect("a plan");
            assert_eq!(plan.wire, wire, "{address}");
        }
    }

    #[test]
    fn a_model_that_a_dialect_lets_think_can_be_told_not_to() {
        for (effort, thinks) in [(None, "enabled"), (Some("none"), "disabled"), (Some("high"), "enabled")] {
            let server = ModelConfig::of_server(
                "m".to_owned(),
                "https://api.z.ai/api/paas/v4".to_owned(),
                "glm-5.3".to_owned(),
            );
            let config = ModelConfig { reasoning_effort: effort.map(str::to_owned), ..server };
            let (plan, _) = RequestPlan::new(&config, "glm-5.3", "api.z.ai/api/paas/v4", KnownFacts::default())
                .expect("a plan");
            let items = [Item::Said(UserText::by_person("hello"))];
            let request = ModelRequest::from_items(&items, "s");
            let (body, _) = plan.encode(&request, &WrittenResults::default());
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(
                (&body["thinking"]["type"], &body["thinking"]["clear_thinking"]),
                (&thinks.into(), &false.into())
            );
        }
    }
}
