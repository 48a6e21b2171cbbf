//! The shape of `models/NAME.yaml`: the server of a model, its capabilities and its prices.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::api_key::ApiKey;
use super::duration::WrittenDuration;
use super::wire::{self, Wire};
use crate::base::secrets::Secret;

/// One model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub name: String,
    pub provider: ModelProvider,
    /// The protocol; `auto` chooses it by the host and the model.
    #[serde(default, with = "wire")]
    #[schemars(with = "Option<wire::WireChoice>")]
    pub wire: Option<Wire>,
    /// The row of the dialects for the server's differences; `auto` chooses it by the host, `none` is the baseline.
    pub dialect: Option<String>,
    /// The server, with its version path and without a final slash: `https://api.openai.com/v1`.
    pub base_url: Option<String>,
    /// The key, or where it is to be had: `{ env: NAME }`, `{ file: PATH }`, `{ command: [PROGRAM, …], refresh: 50m }`.
    pub api_key: Option<ApiKey>,
    /// The provider's name for the model.
    pub model: Option<String>,
    /// Tokens; a declared value overrides the catalogue.
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// `null`: not sent.
    pub temperature: Option<f64>,
    /// The amount of reasoning, from `none` to `max`; a level that the model lacks becomes its nearest. `null` leaves
    /// it to the provider.
    pub reasoning_effort: Option<String>,
    /// How long the provider's cache keeps a prompt, where a request can say so (Anthropic's models); `null` leaves it
    /// to the provider.
    pub cache: Option<CacheLifetime>,
    /// The provider's own tools that the model may use, and that run there: `web_search`.
    #[serde(default)]
    pub server_tools: Vec<ServerTool>,
    /// Merged into each request.
    #[serde(default)]
    pub extra_body: Map<String, Value>,
    /// Sent with each request; never shown.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    pub prices: Option<Prices>,
    #[serde(default)]
    pub retry: RetryConfig,
    #[serde(default)]
    pub timeouts: Timeouts,
    #[serde(default)]
    pub capabilities: Capabilities,
    /// The replies of a `scripted` model.
    pub script: Option<Vec<ScriptReply>>,
    /// The recording whose replies a `replay` model gives back: a path, relative to where the agent starts.
    pub recording: Option<PathBuf>,
}

impl ModelConfig {
    /// A model of a server, with nothing else declared.
    pub fn of_server(name: String, base_url: String, id: String) -> Self {
        Self { name, base_url: Some(base_url), model: Some(id), ..Self::default() }
    }
}

/// A tool that the provider runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerTool {
    WebSearch,
}

/// The time for which a cache keeps a prompt after its last use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheLifetime {
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// What is written costs twice as much as other input.
    #[serde(rename = "1h")]
    Hour,
}

/// The kind of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelProvider {
    /// Any server of one of the protocols in [`Wire`].
    #[default]
    Openai,
    /// A script in this file.
    Scripted,
    /// A recording (`--record`).
    Replay,
}

/// USD per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: f64,
    /// If it is not given, cached input costs the same as other input.
    pub cached_input: Option<f64>,
    /// Input that the server writes to its cache; if it is not given, it costs the same as other input.
    pub cache_write: Option<f64>,
    pub output: f64,
    /// The prices of larger requests, smallest first. A whole request has the prices of the last tier that its input
    /// exceeds.
    #[serde(default)]
    pub tiers: Vec<PriceTier>,
    /// True if only one source states the prices: costs are then shown with `~`.
    #[serde(skip)]
    pub about: bool,
}

/// USD per million tokens of a request with more input than `above`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceTier {
    /// Tokens of input.
    pub above: u64,
    pub input: f64,
    pub cached_input: Option<f64>,
    pub cache_write: Option<f64>,
    pub output: f64,
}

impl Prices {
    /// The prices of requests of any size, and those of larger ones in any order.
    pub fn new(base: PriceTier, mut tiers: Vec<PriceTier>, about: bool) -> Self {
        let PriceTier { above: _, input, cached_input, cache_write, output } = base;
        tiers.sort_by_key(|tier| tier.above);
        Self { input, cached_input, cache_write, output, tiers, about }
    }

    /// The prices of a request that exceeds no tier.
    pub fn base(&self) -> PriceTier {
        let Self { input, cached_input, cache_write, output, .. } = *self;
        PriceTier { above: 0, input, cached_input, cache_write, output }
    }

    /// The prices where the cache keeps what is written for an hour: twice that of other input, as Anthropic states.
    /// Without a price of its own a cache is not written by marks.
    pub fn with_hourly_cache(self) -> Self {
        const HOURLY: f64 = 2.0;
        let double = |cache_write: Option<f64>, input: f64| cache_write.map(|_| input * HOURLY);
        let tier = |tier: &PriceTier| PriceTier { cache_write: double(tier.cache_write, tier.input), ..*tier };
        let tiers = self.tiers.iter().map(tier).collect();
        Self { cache_write: double(self.cache_write, self.input), tiers, ..self }
    }

    /// The prices of a request with `input_tokens` in all, including those from the cache.
    pub fn choose_tier(&self, input_tokens: u64) -> PriceTier {
        let reached = self.tiers.iter().filter(|tier| input_tokens > tier.above);
        reached.max_by_key(|tier| tier.above).copied().unwrap_or_else(|| self.base())
    }

    /// The next tier above this one that costs more.
    pub fn find_dearer(&self, than: &PriceTier) -> Option<PriceTier> {
        let dearer =
            |tier: &&PriceTier| tier.above > than.above && (tier.input > than.input || tier.output > than.output);
        self.tiers.iter().filter(dearer).min_by_key(|tier| tier.above).copied()
    }
}

/// Retries of transient failures. `Retry-After` is a lower bound of every delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Attempts in all, including the first.
    pub attempts: u32,
    pub base_delay: WrittenDuration,
    pub max_delay: WrittenDuration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        let [base_delay, max_delay] = [1, 60].map(WrittenDuration::from_secs);
        Self { attempts: 5, base_delay, max_delay }
    }
}

/// Limits of the waits for a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    pub connect: WrittenDuration,
    /// From the request to the first byte of the reply.
    pub first_byte: WrittenDuration,
    /// Between two reads of a reply; keep-alive comments count.
    pub idle: WrittenDuration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let [connect, first_byte, idle] = [10, 120, 120].map(WrittenDuration::from_secs);
        Self { connect, first_byte, idle }
    }
}

/// The features of a server and its model. Undeclared ones are determined by the dialect and the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    pub streaming: bool,
    pub tools: bool,
    /// `false` asks for one call at a time, if the server supports that.
    pub parallel_tool_calls: bool,
    /// Tools are declared strict if their schemas allow it.
    pub strict_tools: bool,
    /// Usage is asked for (`stream_options`).
    pub stream_usage: Option<bool>,
    /// The server enforces a schema.
    pub structured_output: Option<bool>,
    /// The model sees pictures.
    pub vision: Option<bool>,
    pub prompt_cache_key: Option<bool>,
    /// The server caches up to marks in the messages (`cache_control`), as Anthropic's models do, even through routers.
    pub cache_breakpoints: Option<bool>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            streaming: true,
            tools: true,
            parallel_tool_calls: true,
            strict_tools: false,
            stream_usage: None,
            structured_output: None,
            vision: None,
            prompt_cache_key: None,
            cache_breakpoints: None,
        }
    }
}

/// One reply of a script. The first unused one whose `when` is met is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptReply {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<ScriptCondition>,
    /// A template: reads `task`, `results`, `session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ScriptCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptError>,
    /// The delay before each chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<WrittenDuration>,
    /// Characters per streamed piece; without it, the whole text comes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<usize>,
    /// May be given any number of times; otherwise a reply is given once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// The conditions of a scripted reply; all that are given must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptCondition {
    /// The last user text contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_contains: Option<String>,
    /// The result of this turn's last call contains this: what the model read, or its data as compact JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_contains: Option<String>,
    /// This turn's last call was of this tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
}

/// A call in a script. Strings in `arguments` are templates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    pub name: String,
    /// An object, or the raw text, as if the model had written it.
    pub arguments: Value,
}

/// A failure in a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptError {
    /// The HTTP status that a server would have sent.
    pub status: Option<u16>,
    pub message: String,
}
