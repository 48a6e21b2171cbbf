//! Any server of the OpenAI chat-completions protocol. The one door to async-openai, whose configuration makes the
//! address and the headers, and whose types make the fields of a request. Bodies are read by our own decoder, since
//! typed chunks refuse much of what real servers send.

use std::sync::Arc;
use std::time::Duration;

use async_openai::config::{Config, OPENAI_API_BASE, OpenAIConfig};
use async_openai::types::chat::{
    ChatCompletionStreamOptions, ResponseFormat, ResponseFormatJsonSchema, ToolChoiceOptions,
};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::ConnectError;
use super::assemble::Assembly;
use super::errors::{self, Hints, Judged, Said};
use super::reply::HttpReply;
use super::request::{self, Body};
use super::unconfigured::no_model;
use crate::config::{ModelConfig, Timeouts, format_duration};
use crate::contract::{ChatModel, ModelError, ModelErrorKind, ModelInfo, ReplyStream, Request, ToolChoice};
use crate::net::{self, Net, SendError};
use crate::secrets::{Redactor, secrets_in};

/// A model behind a server.
pub(super) struct OpenAi {
    info: ModelInfo,
    endpoint: Arc<Endpoint>,
    net: Arc<Net>,
    config: ModelConfig,
}

/// The address of a server, and its failures in our words.
pub(super) struct Endpoint {
    url: Url,
    headers: HeaderMap,
    model: String,
    /// Knows what is never shown, even if a server repeats it.
    redactor: Redactor,
    pub timeouts: Timeouts,
}

impl OpenAi {
    /// Checks the configuration; connects to nothing.
    pub fn new(config: &ModelConfig, info: ModelInfo, net: Arc<Net>) -> Result<Self, ConnectError> {
        let wrong = |key: &str, why: String| ConnectError::wrong(&config.name, key, why);
        let key = config.api_key.as_ref().map(|key| key.reveal().trim()).unwrap_or_default();
        let base =
            config.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty()).unwrap_or(OPENAI_API_BASE);
        let is_openai = base.starts_with(OPENAI_API_BASE);
        let has_header = config.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let info = ModelInfo { configured: !(key.is_empty() && is_openai && !has_header), ..info };
        if HeaderValue::from_str(key).is_err() {
            let why = "it holds a line break or another character that no header can carry".to_owned();
            return Err(wrong("api_key", why));
        }
        let (base, query) = base.split_once('?').unwrap_or((base, ""));
        let base = base.trim_end_matches('/').trim_end_matches("/chat/completions");
        // Unset fields would be filled from the variables of OpenAI, and sent to whatever host this is.
        let openai = OpenAIConfig::new().with_api_key(key).with_org_id("").with_project_id("").with_api_base(base);
        let mut headers = openai.headers();
        if key.is_empty() {
            headers.remove(AUTHORIZATION);
        }
        for (name, value) in &config.headers {
            let bad = |why: String| wrong(&format!("headers.{name}"), why);
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| bad(error.to_string()))?;
            let value = HeaderValue::from_str(value.reveal().trim()).map_err(|error| bad(error.to_string()))?;
            headers.insert(name, value);
        }
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if config.capabilities.streaming { "text/event-stream" } else { "application/json" };
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(accept));

        let mut url =
            net::parse_url(&openai.url("/chat/completions")).map_err(|e| wrong("base_url", e.to_string()))?;
        if !query.is_empty() {
            url.set_query(Some(query));
        }
        let endpoint = Endpoint {
            url,
            headers,
            model: info.id.clone(),
            redactor: redactor(key, config),
            timeouts: config.timeouts.clone(),
        };
        Ok(Self { info, endpoint: Arc::new(endpoint), net, config: config.clone() })
    }

    #[cfg(test)]
    pub fn endpoint(&self) -> Arc<Endpoint> {
        Arc::clone(&self.endpoint)
    }

    fn body<'a>(&'a self, request: &Request<'a>) -> Body<'a> {
        let can = self.config.capabilities;
        let tools = if can.tools { request.tools } else { &[] };
        let mut tail = Map::new();
        if request.tool_choice == ToolChoice::None && !tools.is_empty() {
            tail.insert("tool_choice".to_owned(), json(&ToolChoiceOptions::None));
        }
        Body {
            head: self.head(request, !tools.is_empty()),
            tools,
            strict: can.strict_tools,
            system: request.system,
            items: request.items,
            aside: request.aside,
            vision: can.vision,
            breakpoints: can.cache_breakpoints,
            tail,
            extra: &self.config.extra_body,
        }
    }

    /// The fields that stay the same for a whole session, and only those that the model file declares.
    fn head(&self, request: &Request<'_>, has_tools: bool) -> Map<String, Value> {
        let can = self.config.capabilities;
        let mut head = Map::new();
        let mut set = |key: &str, value: Value| {
            head.insert(key.to_owned(), value);
        };
        set("model", self.info.id.as_str().into());
        set("stream", can.streaming.into());
        if can.streaming && can.stream_usage {
            let options = ChatCompletionStreamOptions { include_usage: Some(true), include_obfuscation: None };
            set("stream_options", json(&options));
        }
        if let Some(most) = self.config.max_output_tokens {
            set(self.endpoint.output_limit_field(), most.into());
        }
        if let Some(temperature) = self.config.temperature {
            set("temperature", temperature.into());
        }
        if let Some(effort) = &self.config.reasoning_effort {
            set("reasoning_effort", effort.as_str().into());
        }
        if let Some(schema) = request.schema.filter(|_| can.structured_output) {
            let json_schema = ResponseFormatJsonSchema {
                name: "answer".to_owned(),
                description: None,
                schema: schema.clone(),
                strict: request::allows_strict(schema).then_some(true),
            };
            set("response_format", json(&ResponseFormat::JsonSchema { json_schema }));
        }
        if can.prompt_cache_key {
            set("prompt_cache_key", request.session_id.into());
        }
        if has_tools && can.parallel_tool_calls {
            set("parallel_tool_calls", true.into());
        }
        head
    }

    async fn send(&self, body: Bytes, assembly: Assembly) -> Result<Box<dyn ReplyStream>, ModelError> {
        let endpoint = &self.endpoint;
        let asked = Instant::now();
        let response = self.respond(&endpoint.url, body.clone()).await?;
        let stream = Box::pin(response.bytes_stream());
        Ok(Box::new(HttpReply::new(stream, assembly, Arc::clone(endpoint), body, asked)))
    }

    /// Sends a body and waits for a successful response.
    async fn respond(&self, url: &Url, body: Bytes) -> Result<Response, ModelError> {
        let endpoint = &self.endpoint;
        let request =
            |client: &Client| client.post(url.clone()).headers(endpoint.headers.clone()).body(body.clone());
        let sending = self.net.send(url, endpoint.timeouts.connect, request);
        let first_byte = endpoint.timeouts.first_byte;
        let response = match tokio::time::timeout(first_byte, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(SendError::Http(error))) => return Err(endpoint.unreachable(&error)),
            Ok(Err(SendError::Net(error))) => {
                return Err(endpoint.error(ModelErrorKind::BadRequest, error.to_string()));
            }
            Err(_) => return Err(endpoint.no_first_byte(first_byte)),
        };
        if response.status().is_success() { Ok(response) } else { Err(endpoint.refusal(response).await) }
    }

    /// Sends a body to another path of the same server and reads the whole answer.
    pub(super) async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, ModelError> {
        const MOST: usize = 64 * 1024 * 1024;
        let mut url = self.endpoint.url.clone();
        let base = url.path().trim_end_matches("/chat/completions").to_owned();
        url.set_path(&(base + path));
        let mut response = self.respond(&url, body).await?;
        let mut whole = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.endpoint.unreachable(&error))? {
            whole.extend_from_slice(&piece);
            if whole.len() > MOST {
                return Err(self.endpoint.error(ModelErrorKind::TooLarge, "the answer is larger than 64 MiB"));
            }
        }
        Ok(whole.freeze())
    }

    /// A failure of this server, in our own words.
    pub(super) fn error(&self, kind: ModelErrorKind, words: String) -> ModelError {
        self.endpoint.error(kind, words)
    }
}

impl ChatModel for OpenAi {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        if !self.info.configured {
            return Box::pin(async { Err(no_model(&self.net, &self.info.id).await) });
        }
        let body = Bytes::from(self.body(&request).to_vec());
        let assembly = Assembly::new(request::call_ids(request.items));
        Box::pin(self.send(body, assembly))
    }

    fn preview(&self, request: Request<'_>) -> Value {
        json(&self.body(&request))
    }
}

impl Endpoint {
    /// The name of the field that limits a reply. Only OpenAI itself asks for the newer one.
    fn output_limit_field(&self) -> &'static str {
        let host = self.url.host_str().unwrap_or_default();
        let is_openai = ["api.openai.com", "openai.azure.com"].iter().any(|known| {
            host.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        });
        if is_openai { "max_completion_tokens" } else { "max_tokens" }
    }

    /// A failure, with secrets blotted out.
    pub fn error(&self, kind: ModelErrorKind, words: impl Into<String>) -> ModelError {
        let message = self.redactor.redact_known(&words.into()).into_owned();
        ModelError { kind, status: None, message, model: self.model.clone(), retry_after: None }
    }

    /// A failure in the server's words. `status` is that of the response, if it was not a success.
    pub fn refused(&self, status: Option<u16>, said: Said) -> ModelError {
        self.judged(status, said, Hints::default())
    }

    fn judged(&self, status: Option<u16>, said: Said, hints: Hints) -> ModelError {
        let Judged { kind, words, status, retry_after } = errors::judge(status, said, hints, &self.model);
        ModelError { status, retry_after, ..self.error(kind, words) }
    }

    pub fn no_first_byte(&self, limit: Duration) -> ModelError {
        let limit = format_duration(limit);
        let words = format!("no answer from {} within {limit} (timeouts.first_byte)", self.host());
        self.error(ModelErrorKind::Transient, words)
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let (host, why) = (self.host(), net::causes(error));
        if why.contains("invalid peer certificate") {
            let hint = if why.contains("CaUsedAsEndEntity") {
                "Its certificate is that of an authority, which no server may present as its own. Make one with \
                 basicConstraints=CA:FALSE."
            } else {
                "Set SSL_CERT_FILE to a file with the certificates to trust."
            };
            let words = format!("{host} is not trusted: {why}. {hint}");
            return self.error(ModelErrorKind::BadRequest, words);
        }
        let words = if error.is_connect() && error.is_timeout() {
            let limit = format_duration(self.timeouts.connect);
            format!("no connection to {host} within {limit} (timeouts.connect)")
        } else if error.is_connect() {
            format!("cannot connect to {host}: {why}")
        } else {
            format!("the connection to {host} broke before a response: {why}")
        };
        self.error(ModelErrorKind::Transient, words)
    }

    /// The error in a response that is not a success.
    async fn refusal(&self, response: Response) -> ModelError {
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let hints = Hints::read(&header, jiff::Timestamp::now());
        if let Some(target) = header("location").filter(|_| status.is_redirection()) {
            let words = format!("the server redirects to {target}. Set base_url to that address.");
            let error = self.error(ModelErrorKind::BadRequest, words);
            return ModelError { status: Some(status.as_u16()), ..error };
        }
        let body = read_body(response, self.timeouts.idle).await;
        let mut said = Said::read(&String::from_utf8_lossy(&body));
        if said.message.is_empty() {
            status.canonical_reason().unwrap_or_default().clone_into(&mut said.message);
        }
        self.judged(Some(status.as_u16()), said, hints)
    }

    fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// The body of an error, up to a limit.
async fn read_body(mut response: Response, patience: Duration) -> Vec<u8> {
    const MOST: usize = 256 * 1024;
    let mut body = Vec::new();
    while let Ok(Ok(Some(bytes))) = tokio::time::timeout(patience, response.chunk()).await {
        body.extend_from_slice(&bytes);
        if body.len() > MOST {
            break;
        }
    }
    body
}

fn redactor(key: &str, config: &ModelConfig) -> Redactor {
    let headers = config.headers.values().map(|value| value.reveal().trim().to_owned());
    let address = config.base_url.as_deref().map(secrets_in).unwrap_or_default();
    Redactor::of(std::iter::once(key.to_owned()).chain(headers).chain(address).collect())
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("what is sent has only string keys")
}
