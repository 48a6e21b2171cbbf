//! A model behind a server: sends requests and receives replies, whatever the wire.
//!
//! If a server refuses an optional part, the plan of requests changes (`learn`) for the rest of this process, and the
//! error says so: who asked sends the request again, and counts it.

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

use super::assembly::Assembly;
use super::catalogue::providers::{self, place_of};
use super::changed_keys::list_changed_keys;
use super::decode::ReplyReading;
use super::endpoint::Endpoint;
use super::endpoint::is_configured;
use super::memory::RefusalMemory;
use super::plan::{KnownFacts, RequestPlan};
use super::probe::{ProbeScope, Probed, probe_server};
use super::reply::HttpReply;
use super::unconfigured::no_model;
use super::written::WrittenResults;
use super::{ConnectError, Surroundings, history, learn, wires};
use crate::config::{ModelConfig, Wire};
use crate::model::{
    Allowance, ChatModel, Learnt, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyStream, ServerWindow,
};
use crate::safety::net::{self, Net};

/// A model behind a server.
pub(super) struct ModelServer {
    info: ModelInfo,
    endpoint: Arc<Endpoint>,
    net: Arc<Net>,
    /// The plan before anything was refused.
    first_plan: Arc<RequestPlan>,
    memory: Arc<RefusalMemory>,
    state: Mutex<ServerState>,
    written: WrittenResults,
    /// The server's statements about itself; it is asked once, if nothing declares the window.
    found: Arc<OnceLock<Option<ServerWindow>>>,
    inquiry: Mutex<Inquiry>,
    /// Done once Ollama has said what the model could have, if the window is ours to choose.
    settled: tokio::sync::OnceCell<()>,
    /// For the advice if nothing is configured.
    keys_set: Vec<&'static str>,
}

/// The state of the question to the server which program it is. A run of one request has no use for the answer, so the
/// server is asked when another request is to be expected: a call has begun, or the second request is sent.
#[derive(Clone, Copy, PartialEq)]
enum Inquiry {
    /// The window is declared, the server is public, or it was asked.
    Done,
    BeforeFirst,
    AfterFirst,
}

/// The state that changes while a server is used.
struct ServerState {
    plan: Arc<RequestPlan>,
    /// The refusals that changed the plan, in the server's words.
    refusals: Vec<String>,
    /// Notices for the user, delivered with the next reply.
    notices: Vec<String>,
}

impl ModelServer {
    /// Checks the configuration without connecting.
    pub fn new(
        config: &ModelConfig,
        mut info: ModelInfo,
        known: KnownFacts,
        around: &Surroundings,
    ) -> Result<Self, ConnectError> {
        let endpoint = Endpoint::new(config, &info.id, around)?;
        let net = Arc::clone(&around.net);
        let (plan, notices) = RequestPlan::new(config, &info.id, &endpoint.address(), known)?;
        info.configured = is_configured(config);
        info.sees = plan.sees;
        info.reads_documents = plan.sees && wires::takes_documents(plan.wire, &plan.dialect);
        info.calls_tools = plan.tools;
        info.largest_output = plan.largest_output(info.largest_output);
        info.thinking_budget = plan.thinking_budget();
        provider_name(config, plan.wire).clone_into(&mut info.provider);
        let memory = Arc::clone(&around.memory);
        let mut state = ServerState { plan: Arc::new(plan.clone()), refusals: Vec::new(), notices };
        for refusal in memory.recall(&plan.host, &info.id) {
            if let Some(lesson) = learn::learn_lesson(&state.plan, &refusal.to_error(), &[]) {
                let day = refusal.day();
                state.plan = Arc::new(lesson.plan);
                state
                    .notices
                    .push(format!("{} (as learnt on {day}; agent model check finds out anew)", lesson.notice));
            }
        }
        let (first_plan, state) = (Arc::new(plan), Mutex::new(state));
        let asks = config.context_window.is_none() && net::is_private(endpoint.base());
        let settled = tokio::sync::OnceCell::new_with((!asks || first_plan.wire != Wire::Ollama).then_some(()));
        let asks = asks && settled.initialized();
        let inquiry = Mutex::new(if asks { Inquiry::BeforeFirst } else { Inquiry::Done });
        let found = Arc::default();
        let keys_set = providers::list_set_keys(&around.env);
        let endpoint = Arc::new(endpoint);
        let written = WrittenResults::default();
        Ok(Self { info, endpoint, net, first_plan, memory, state, written, found, inquiry, settled, keys_set })
    }

    /// The server without the model, for requests that are not conversations.
    pub fn endpoint(&self) -> Arc<Endpoint> {
        Arc::clone(&self.endpoint)
    }

    /// The host and the provider's name for the model, by which refusals are remembered.
    pub fn name(&self) -> (String, String) {
        (self.first_plan.host.clone(), self.info.id.clone())
    }

    /// The current plan of requests.
    pub fn plan(&self) -> Arc<RequestPlan> {
        Arc::clone(&self.state.lock().expect("no holder of the plan panics").plan)
    }

    /// Changes the plan according to a refusal; returns false if that would not change the request.
    fn learn(&self, refused: &RequestPlan, request: &ModelRequest<'_>, error: &ModelError) -> bool {
        let mut state = self.state.lock().expect("no holder of the plan panics");
        let Some(lesson) = learn::learn_lesson(refused, error, request.tools) else { return false };
        let write = |plan: &RequestPlan| (plan.wire, plan.encode(request, &WrittenResults::default()));
        if write(&lesson.plan) == write(refused) {
            return false;
        }
        state.plan = Arc::new(lesson.plan.with_cap(None));
        state.notices.push(lesson.notice);
        state.refusals.push(error.message.clone());
        self.memory.keep(&self.first_plan.host, &self.info.id, error);
        true
    }

    async fn answer(&self, request: ModelRequest<'_>) -> Result<Box<dyn ReplyStream>, ModelError> {
        if !self.info.configured {
            return Err(no_model(&self.net, &self.info.id, &self.keys_set).await);
        }
        let plan = self.plan();
        let plan = if request.output_cap.is_some() { Arc::new(plan.with_cap(request.output_cap)) } else { plan };
        if let Some(why) = plan.refuses_tools(&self.info.name).filter(|_| !request.tools.is_empty()) {
            return Err(self.endpoint.error(ModelErrorKind::BadRequest, why));
        }
        let sent = self.send(&plan, &request).await;
        sent.map_err(|error| ModelError { is_lesson: self.learn(&plan, &request, &error), ..error })
    }

    /// Asks a private server which program it is, and waits for the answer.
    pub async fn probed(&self) -> Option<Probed> {
        let probed = self.probe(ProbeScope::All).await?;
        let window = if self.plan().wire == Wire::Ollama { probed.choose_window() } else { probed.window };
        Some(Probed { window, ..probed })
    }

    async fn probe(&self, scope: ProbeScope) -> Option<Probed> {
        probe_server(&self.net, self.endpoint.base(), &self.headers_alone(), &self.info.id, scope).await
    }

    /// The headers of a request that is not a conversation.
    fn headers_alone(&self) -> HeaderMap {
        let plan = self.plan();
        let auth = plan.dialect.auth.unwrap_or_else(|| wires::choose_auth(plan.wire));
        self.endpoint.headers(auth, false, &[])
    }

    /// Chooses the window that Ollama is asked for.
    async fn choose_window(&self) {
        let Some(probed) = self.probe(ProbeScope::Ollama).await else { return };
        let Some(window) = probed.choose_window() else { return };
        let _ = self.found.set(Some(ServerWindow { server: probed.server, window, largest: probed.largest }));
        let mut state = self.state.lock().expect("no holder of the plan panics");
        let mut plan = RequestPlan::clone(&state.plan);
        plan.settings.served_window = Some(window);
        state.plan = Arc::new(plan);
    }

    /// Asks a private server for its window, unless it was asked already or it is too early.
    fn inquire(&self) {
        let mut inquiry = self.inquiry.lock().expect("no holder panics");
        let before = std::mem::replace(&mut *inquiry, Inquiry::Done);
        if before != Inquiry::AfterFirst {
            *inquiry = if before == Inquiry::BeforeFirst { Inquiry::AfterFirst } else { before };
            return;
        }
        let headers = self.headers_alone();
        let (net, found) = (Arc::clone(&self.net), Arc::clone(&self.found));
        let (base, model) = (self.endpoint.base().clone(), self.info.id.clone());
        tokio::spawn(async move {
            let probed = probe_server(&net, &base, &headers, &model, ProbeScope::All).await;
            let window = |probed: Probed| {
                Some(ServerWindow { server: probed.server, window: probed.window?, largest: None })
            };
            let _ = found.set(probed.and_then(window));
        });
    }

    async fn send(
        &self,
        plan: &RequestPlan,
        request: &ModelRequest<'_>,
    ) -> Result<Box<dyn ReplyStream>, ModelError> {
        let (body, mut headers) = plan.encode(request, &self.written);
        let session = request.session_id;
        let of_dialect: Vec<(String, String)> = (plan.dialect.headers.iter())
            .map(|(name, value)| (name.clone(), value.replace("{session}", session)))
            .collect();
        headers.extend(of_dialect.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let auth = plan.dialect.auth.unwrap_or_else(|| wires::choose_auth(plan.wire));
        let headers = || self.endpoint.headers(auth, plan.settings.streaming, &headers);
        let body = Bytes::from(body);
        let asked = Instant::now();
        let url = self.endpoint.url(plan.wire, &plan.dialect, plan.settings.streaming);
        let sent = self.endpoint.send(&url, &headers, body.clone()).await;
        // Seven questions at once would delay the request itself.
        self.inquire();
        let (response, exchange) = sent?;
        let reply = Assembly::new(plan.origin(), history::call_ids(request.items));
        let mut reply = reply.with_redactor(self.endpoint.redactor.clone());
        let notices = std::mem::take(&mut self.state.lock().expect("no holder of the plan panics").notices);
        let log_failure = self.endpoint.log.as_ref().and_then(|log| log.take_failure());
        notices.into_iter().chain(log_failure).for_each(|words| reply.notice(words));
        let reading = ReplyReading::new(wires::create_decoder(plan.wire, &plan.dialect, request.tools), reply);
        let header = |name: &str| response.headers().get(name)?.to_str().ok();
        let allowance = Allowance::read(header, Timestamp::now());
        let stream = Box::pin(response.bytes_stream());
        let mut reply = HttpReply::new(stream, reading, self.endpoint(), body, exchange, asked);
        reply.allowance = allowance;
        Ok(Box::new(reply))
    }
}

/// The provider behind a server, by the names of OpenTelemetry; for an unknown host, the one whose protocol it speaks.
pub(super) fn provider_name(config: &ModelConfig, wire: Wire) -> &'static str {
    let host = place_of(config.base_url.as_deref());
    match providers::by_host(host).map(|provider| provider.id) {
        Some("google") => "gcp.gemini",
        Some("xai") => "x_ai",
        Some("mistral") => "mistral_ai",
        Some("moonshotai") => "moonshot_ai",
        Some(id) => id,
        None if host == "openai" => "openai",
        None if host.ends_with(".amazonaws.com") => "aws.bedrock",
        None if host.ends_with("aiplatform.googleapis.com") => "gcp.vertex_ai",
        None => match wire {
            Wire::Chat | Wire::Responses => "openai",
            Wire::Anthropic => "anthropic",
            Wire::Ollama => "ollama",
            Wire::Gemini => "gcp.gemini",
        },
    }
}

impl ChatModel for ModelServer {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        Box::pin(self.answer(request))
    }

    fn prepare(&self) {
        self.inquire();
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { *self.settled.get_or_init(|| self.choose_window()).await })
    }

    fn find_window(&self) -> Option<ServerWindow> {
        self.found.get().copied().flatten()
    }

    fn learnt(&self) -> Learnt {
        let state = self.state.lock().expect("no holder of the plan panics");
        Learnt { refusals: state.refusals.clone(), keys: list_changed_keys(&self.first_plan, &state.plan) }
    }

    fn preview(&self, request: ModelRequest<'_>) -> Value {
        let (body, _) = self.plan().encode(&request, &WrittenResults::default());
        serde_json::from_slice(&body).expect("what was written is JSON")
    }
}
