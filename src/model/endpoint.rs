//! The address of a server, its key, and its failures in our words. The only user of async-openai, whose configuration
//! makes addresses and headers.

use std::sync::Arc;
use std::time::Duration;

use async_openai::config::{Config, OPENAI_API_BASE, OpenAIConfig};
use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};

use super::dialect::{Auth, Dialect};
use super::errors::{self, Hints, StatedError};
use super::key::ServerKey;
use super::wire_log::{Exchange, WireLog};
use super::{ConnectError, Surroundings, wires};
use crate::base::secrets::{Redactor, secrets_in};
use crate::config::{ModelConfig, ModelProvider, Timeouts, Wire, format_duration};
use crate::model::{ModelError, ModelErrorKind};
use crate::safety::net::{self, Net, SendError};

/// The wait for an answer that comes whole, as a multiple of the wait for the beginning of one.
const WHOLE: u32 = 5;

const EVENT_STREAM: &str = "text/event-stream";

/// A server, and the means to reach it.
pub(super) struct Endpoint {
    openai: OpenAIConfig,
    key: ServerKey,
    query: String,
    /// The headers of the model file.
    own_headers: HeaderMap,
    /// The provider's name for the model.
    pub model: String,
    /// Removes secrets, even if a server repeats them.
    pub redactor: Redactor,
    pub timeouts: Timeouts,
    net: Arc<Net>,
    pub log: Option<Arc<WireLog>>,
    base: Url,
}

/// True if requests can be made at all: `OpenAI` itself needs a key.
pub fn is_configured(config: &ModelConfig) -> bool {
    let has_key = config.api_key.as_ref().is_some_and(|key| key.given().is_none_or(|key| !key.is_empty()));
    let is_openai = config.provider == ModelProvider::Openai && base_of(config).starts_with(OPENAI_API_BASE);
    let names_key = |name: &String| name.eq_ignore_ascii_case(AUTHORIZATION.as_str());
    has_key || !is_openai || config.headers.keys().any(names_key)
}

fn base_of(config: &ModelConfig) -> &str {
    config.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty()).unwrap_or(OPENAI_API_BASE)
}

impl Endpoint {
    /// Checks the configuration without connecting.
    pub fn new(config: &ModelConfig, model: &str, around: &Surroundings) -> Result<Self, ConnectError> {
        let wrong = |key: &str, why: String| ConnectError::wrong(&config.name, key, why);
        let key = ServerKey::new(config.api_key.as_ref(), around);
        let key = key.map_err(|why| wrong("api_key", why))?;
        let base = base_of(config);
        let (base, query) = base.split_once('?').unwrap_or((base, ""));
        let base = base.trim_end_matches('/');
        let base = wires::REQUEST_PATHS.iter().find_map(|path| base.strip_suffix(path)).unwrap_or(base);
        // Unset fields would be filled from OpenAI's environment variables and sent to whatever host this is.
        let openai = OpenAIConfig::new().with_api_key("").with_org_id("").with_project_id("").with_api_base(base);
        let mut own_headers = HeaderMap::new();
        for (name, value) in &config.headers {
            let bad = |why: String| wrong(&format!("headers.{name}"), why);
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| bad(error.to_string()))?;
            let value = HeaderValue::from_str(value.reveal().trim()).map_err(|error| bad(error.to_string()))?;
            own_headers.insert(name, value);
        }
        let base = net::parse_url(base).map_err(|error| wrong("base_url", error.to_string()))?;
        Ok(Self {
            openai,
            redactor: create_redactor(&key.current(), config).with_late(around.late_secrets.clone()),
            key,
            query: query.to_owned(),
            own_headers,
            model: model.to_owned(),
            timeouts: config.timeouts.clone(),
            net: Arc::clone(&around.net),
            log: around.wire_log.clone(),
            base,
        })
    }

    /// The base URL, without its query.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// `host[:port]/path`, by which the dialect is found.
    pub fn address(&self) -> String {
        format!("{}{}", self.host(), self.base.path().trim_end_matches('/'))
    }

    /// The address of a request over a wire.
    pub fn url(&self, wire: Wire, dialect: &Dialect, streaming: bool) -> Url {
        let base = self.base.path().trim_end_matches('/');
        let (path, query) = wires::choose_path(wire, dialect, base, &self.model, streaming);
        let mut url = self.base.clone();
        url.set_path(&path);
        let queries = [query.unwrap_or_default(), &self.query].into_iter().filter(|query| !query.is_empty());
        let query = queries.collect::<Vec<_>>().join("&");
        url.set_query(Some(&*query).filter(|query| !query.is_empty()));
        url
    }

    /// The headers of a request: the key where `auth` wants it, then `more`, both overridden by those of the model
    /// file.
    pub fn headers(&self, auth: Auth, streaming: bool, more: &[(&str, String)]) -> HeaderMap {
        let mut headers = self.openai.headers();
        headers.remove(AUTHORIZATION);
        let key = self.key.current();
        let (name, value) = match auth {
            Auth::Bearer => (AUTHORIZATION, format!("Bearer {key}")),
            Auth::XApiKey => (HeaderName::from_static("x-api-key"), key.clone()),
            Auth::ApiKey => (HeaderName::from_static("api-key"), key.clone()),
            Auth::XGoogApiKey => (HeaderName::from_static("x-goog-api-key"), key.clone()),
        };
        if let (false, Ok(value)) = (key.is_empty(), HeaderValue::from_str(&value)) {
            headers.insert(name, value);
        }
        for (name, value) in more {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
            {
                headers.insert(name, value);
            }
        }
        for (name, value) in &self.own_headers {
            // Betas of the model file are added to those that the request needs.
            let both = headers.get(name).filter(|_| name == "anthropic-beta").and_then(|needed| {
                HeaderValue::from_bytes(&[needed.as_bytes(), b",", value.as_bytes()].concat()).ok()
            });
            headers.insert(name.clone(), both.unwrap_or_else(|| value.clone()));
        }
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if streaming { EVENT_STREAM } else { "application/json" };
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(accept));
        headers
    }

    /// Sends a body and waits for a successful response, whose bytes belong in the log of the exchange. `headers` makes
    /// the headers with the key that is known; where the server refuses it and its source has another one, the body is
    /// sent once more.
    pub async fn send(
        &self,
        url: &Url,
        headers: &(dyn Fn() -> HeaderMap + Sync),
        body: Bytes,
    ) -> Result<(Response, Exchange), ModelError> {
        let no_key = |why: String| self.error(ModelErrorKind::Authentication, why);
        self.key.ready().await.map_err(no_key)?;
        let key = self.key.current();
        match self.send_once(url, headers(), body.clone()).await {
            Err(error) if self.is_refused(&error) && self.key.renew(&key).await.map_err(no_key)? => {
                self.send_once(url, headers(), body).await
            }
            sent => sent,
        }
    }

    /// True if the server refuses the key.
    fn is_refused(&self, error: &ModelError) -> bool {
        error.status == Some(401) || (error.status == Some(403) && self.key.signs())
    }

    async fn send_once(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(Response, Exchange), ModelError> {
        self.key.sign(url, &mut headers, &body);
        let mut exchange = Exchange::begin(self.log.as_ref(), url, &headers, &body);
        let sent =
            self.respond(url, headers, body).await.inspect_err(|error| exchange.record_failure(&error.message));
        let response = sent?;
        exchange.record_answer(&response);
        if response.status().is_success() {
            return Ok((response, exchange));
        }
        Err(self.refusal(response, exchange).await)
    }

    async fn respond(&self, url: &Url, headers: HeaderMap, body: Bytes) -> Result<Response, ModelError> {
        let request = |client: &Client| client.post(url.clone()).headers(headers.clone()).body(body.clone());
        let sending = self.net.send(url, *self.timeouts.connect, request);
        let streams = headers.get(ACCEPT).is_some_and(|kind| kind == EVENT_STREAM);
        let patience = *self.timeouts.first_byte * if streams { 1 } else { WHOLE };
        match tokio::time::timeout(patience, sending).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(SendError::Http(error))) => Err(self.unreachable(&error)),
            Ok(Err(SendError::Net(error))) => Err(self.error(ModelErrorKind::BadRequest, error.to_string())),
            Err(_) if streams => Err(self.no_first_byte(patience)),
            Err(_) => Err(self.no_whole_answer(patience)),
        }
    }

    /// Sends a body to a path of the server and reads the whole answer.
    pub async fn post(&self, path: &str, body: Bytes) -> Result<Bytes, ModelError> {
        const MOST: usize = 64 * 1024 * 1024;
        let headers = || self.headers(Auth::Bearer, false, &[]);
        let mut url = net::parse_url(&self.openai.url(path)).unwrap_or_else(|_| self.base.clone());
        url.set_query(Some(&*self.query).filter(|query| !query.is_empty()));
        let (mut response, mut exchange) = self.send(&url, &headers, body).await?;
        let mut whole = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            exchange.read(&piece);
            whole.extend_from_slice(&piece);
            if whole.len() > MOST {
                return Err(self.error(ModelErrorKind::TooLarge, "the answer is larger than 64 MiB"));
            }
        }
        Ok(whole.freeze())
    }

    /// A failure, with secrets redacted.
    pub fn error(&self, kind: ModelErrorKind, words: impl Into<String>) -> ModelError {
        self.redact(ModelError::new(kind, &self.model, words))
    }

    fn redact(&self, error: ModelError) -> ModelError {
        ModelError { message: self.redactor.redact_known(&error.message).into_owned(), ..error }
    }

    /// A failure in the server's words. `status` is that of the response, if it was not a success.
    pub fn judge(&self, status: Option<u16>, said: StatedError, hints: Hints) -> ModelError {
        // Before the words are cut: of a key that was cut, a part would stay.
        let message = self.redactor.redact_known(&said.message).into_owned();
        let said = StatedError { message, ..said };
        self.redact(errors::judge_failure(status, said, hints, &self.model))
    }

    /// The error for an answer that did not come in full. The server may still be working on the request, so it is not
    /// sent again.
    fn no_whole_answer(&self, limit: Duration) -> ModelError {
        let (host, limit) = (self.host(), format_duration(limit));
        let words = format!(
            "no answer from {host} within {limit}, {WHOLE} times timeouts.first_byte, as answers come whole here \
             (capabilities.streaming: false). It may still be at work, so the request is not sent again"
        );
        self.error(ModelErrorKind::BadRequest, words)
    }

    pub fn no_first_byte(&self, limit: Duration) -> ModelError {
        let limit = format_duration(limit);
        let words = format!("no answer from {} within {limit} (timeouts.first_byte)", self.host());
        self.error(ModelErrorKind::Transient, words)
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let (host, why) = (self.host(), net::list_causes(error));
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
            let limit = format_duration(*self.timeouts.connect);
            format!("no connection to {host} within {limit} (timeouts.connect)")
        } else if error.is_connect() {
            format!("cannot connect to {host}: {why}")
        } else {
            format!("the connection to {host} broke before a response: {why}")
        };
        self.error(ModelErrorKind::Transient, words)
    }

    /// The error in a response that is not a success.
    async fn refusal(&self, response: Response, mut exchange: Exchange) -> ModelError {
        let status = response.status();
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let hints = Hints::read(&header, jiff::Timestamp::now());
        if let Some(target) = header("location").filter(|_| status.is_redirection()) {
            let words = format!("the server redirects to {target}. Set base_url to that address.");
            let error = self.error(ModelErrorKind::BadRequest, words);
            return ModelError { status: Some(status.as_u16()), ..error };
        }
        let body = read_body(response, *self.timeouts.idle).await;
        exchange.read(&body);
        let mut said = StatedError::read(&self.redactor.redact_known(&String::from_utf8_lossy(&body)));
        if said.message.is_empty() {
            status.canonical_reason().unwrap_or_default().clone_into(&mut said.message);
        }
        self.judge(Some(status.as_u16()), said, hints)
    }

    fn host(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
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

fn create_redactor(key: &str, config: &ModelConfig) -> Redactor {
    let headers = config.headers.values().map(|value| value.reveal().trim().to_owned());
    let address = config.base_url.as_deref().map(secrets_in).unwrap_or_default();
    Redactor::new(std::iter::once(key.to_owned()).chain(headers).chain(address).collect())
}
