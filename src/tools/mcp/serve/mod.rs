//! The other side of the door to rmcp: a server over two streams, in our own words.
//!
//! Both eras are spoken. What a call asks a person goes to the client as an elicitation: as a request of the server in the
//! old era, as a result that asks for input in the new one, where the call waits until the client calls again.

mod parked;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities, ContentBlock,
    CreateTaskResult, ElicitRequest, ElicitRequestParams, ElicitationAction, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, Implementation, InputRequest,
    InputRequiredResult, InputResponses, ListPromptsResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, ServiceExt};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use parked::ParkedCalls;

/// The name under which a question is asked and answered.
const ANSWER: &str = "answer";

/// What a client may use.
pub trait McpOffer: Send + Sync + 'static {
    /// What a client should know before it calls anything.
    fn instructions(&self) -> String;

    /// The tools, as the protocol writes a list of them.
    fn list_tools(&self) -> Value;

    /// Begins a call. Dropping what is returned cancels it. `can_ask` is true if the client can ask a person.
    ///
    /// # Errors
    /// There is no such tool, or an argument is wrong: a sentence.
    fn begin_call(&self, name: &str, arguments: Map<String, Value>, can_ask: bool) -> Result<McpCall, String>;

    /// The resources, as the protocol writes a list of them.
    ///
    /// # Errors
    /// A sentence.
    fn list_resources(&self) -> Result<Value, String>;

    /// The text of a resource, as Markdown.
    ///
    /// # Errors
    /// There is none at this address: a sentence.
    fn read_resource(&self, uri: &str) -> Result<String, String>;

    /// The prompts, as the protocol writes a list of them.
    ///
    /// # Errors
    /// A sentence.
    fn list_prompts(&self) -> Result<Value, String>;

    /// The messages of a prompt, as the protocol writes them.
    ///
    /// # Errors
    /// There is no such prompt, or it cannot be rendered: a sentence.
    fn write_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<Value, String>>;
}

/// A call that runs.
pub struct McpCall {
    pub news: mpsc::UnboundedReceiver<McpCallNews>,
}

/// What happens in a call.
pub enum McpCallNews {
    /// How far it is, in a few words.
    Progress(String),
    Asked(McpQuestion),
    /// Its result; nothing follows.
    Ended(McpResult),
}

/// A question to the person behind a client.
pub struct McpQuestion {
    pub text: String,
    /// The answers to choose from; if there are none, the answer is free.
    pub choices: Vec<String>,
    /// Takes the answer; `None` if there is none.
    pub answer: oneshot::Sender<Option<String>>,
}

/// The result of a call.
pub struct McpResult {
    pub text: String,
    pub data: Value,
    pub has_failed: bool,
}

/// Serves one client until it closes its end.
///
/// # Errors
/// It does not speak the protocol: a sentence.
pub async fn serve_client(
    offer: Arc<dyn McpOffer>,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), String> {
    let parked = Arc::new(ParkedCalls::default());
    let server = OfferServer { offer, parked: Arc::clone(&parked) };
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(format!("the client does not speak the protocol: {error}")),
    };
    let ended = running.waiting().await;
    parked.end_all();
    ended.map(drop).map_err(|error| error.to_string())
}

struct OfferServer {
    offer: Arc<dyn McpOffer>,
    parked: Arc<ParkedCalls>,
}

/// What a call does next.
enum CallStep {
    Progress(String),
    Asks(McpQuestion),
    Ended(CallToolResult),
}

/// Where the progress of a call is told.
struct ProgressPeer {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    count: f64,
}

impl ProgressPeer {
    fn new(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token(), count: 0.0 }
    }

    async fn tell(&mut self, message: String) {
        let Some(token) = self.token.clone() else { return };
        self.count += 1.0;
        let told = ProgressNotificationParam::new(token, self.count).with_message(message);
        // A client that is gone ends the call by itself.
        let _ = self.peer.notify_progress(told).await;
    }
}

impl McpCall {
    /// Waits for what the call does next.
    async fn next(&mut self) -> CallStep {
        match self.news.recv().await {
            Some(McpCallNews::Progress(message)) => CallStep::Progress(message),
            Some(McpCallNews::Asked(question)) => CallStep::Asks(question),
            Some(McpCallNews::Ended(result)) => CallStep::Ended(convert_result(result)),
            None => {
                let lost = McpResult { text: "The run was lost.".into(), data: Value::Null, has_failed: true };
                CallStep::Ended(convert_result(lost))
            }
        }
    }
}

impl McpQuestion {
    fn request(&self) -> ElicitRequestParams {
        let field = if self.choices.is_empty() {
            json!({ "type": "string", "title": "Answer" })
        } else {
            json!({ "type": "string", "title": "Answer", "enum": self.choices })
        };
        let schema = json!({ "type": "object", "properties": { ANSWER: field }, "required": [ANSWER] });
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.text.clone(),
            requested_schema: serde_json::from_value(schema).expect("a form of one field"),
        }
    }

    fn input_request(&self) -> BTreeMap<String, InputRequest> {
        BTreeMap::from([(ANSWER.to_owned(), InputRequest::Elicitation(ElicitRequest::new(self.request())))])
    }
}

/// The answer in what a client was told; `None` if the person gave none.
fn read_answer(responses: Option<&InputResponses>) -> Option<String> {
    let response = responses?.get(ANSWER)?;
    (response["action"] == "accept").then(|| response["content"][ANSWER].as_str().map(str::to_owned))?
}

fn convert_result(result: McpResult) -> CallToolResult {
    let content = vec![ContentBlock::text(result.text)];
    let mut converted =
        if result.has_failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    converted.structured_content = Some(result.data).filter(Value::is_object);
    converted
}

/// True if the client can put a form before a person.
fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let asks = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // One that names no kind of elicitation means forms.
    asks.is_some_and(|asks| asks.form.is_some() || asks.url.is_none())
}

/// A complete result, as the protocol writes it.
fn read_result<T: DeserializeOwned>(mut result: Value) -> Result<T, ErrorData> {
    result["resultType"] = "complete".into();
    serde_json::from_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn refuse(why: String) -> ErrorData {
    ErrorData::invalid_params(why, None)
}

impl ServerHandler for OfferServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("agent", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.offer.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        read_result(json!({ "tools": self.offer.list_tools() }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = context.client_capabilities();
        let asks = can_ask(capabilities.as_ref());
        let mut call = match &request.request_state {
            Some(state) => {
                let why = "this call waits for no answer: it ended, or waited too long";
                let answer = read_answer(request.input_responses.as_ref());
                self.parked.go_on(state, answer).ok_or_else(|| refuse(why.to_owned()))?
            }
            None => self
                .offer
                .begin_call(&request.name, request.arguments.unwrap_or_default(), asks)
                .map_err(refuse)?,
        };
        if capabilities.is_some_and(|capabilities| capabilities.supports_tasks()) {
            return Ok(CallToolResponse::Task(CreateTaskResult::new(self.parked.begin_task(call))));
        }
        let mut progress = ProgressPeer::new(&context);
        let is_modern = context.protocol_version().is_some_and(|version| !version.has_initialize());
        loop {
            let step = tokio::select! {
                step = call.next() => step,
                () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
            };
            match step {
                CallStep::Progress(message) => progress.tell(message).await,
                CallStep::Ended(result) => return Ok(result.into()),
                CallStep::Asks(question) if !asks => drop(question.answer.send(None)),
                CallStep::Asks(question) if is_modern => {
                    let requests = question.input_request();
                    let state = self.parked.park(call, question);
                    return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
                }
                CallStep::Asks(mut question) => {
                    let asked = question.request();
                    let answered = tokio::select! {
                        answered = context.peer.create_elicitation(asked) => answered.ok(),
                        () = question.answer.closed() => None,
                        () = context.ct.cancelled() => None,
                    };
                    let accepted = answered.filter(|answer| answer.action == ElicitationAction::Accept);
                    let form = accepted.and_then(|answer| answer.content);
                    let said = form.and_then(|form| form[ANSWER].as_str().map(str::to_owned));
                    // The run may have ended meanwhile.
                    let _ = question.answer.send(said);
                }
            }
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = self.offer.list_resources().map_err(|why| ErrorData::internal_error(why, None))?;
        read_result(json!({ "resources": listed }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text =
            self.offer.read_resource(&request.uri).map_err(|why| ErrorData::resource_not_found(why, None))?;
        let content = json!({ "uri": request.uri, "mimeType": "text/markdown", "text": text });
        read_result::<ReadResourceResult>(json!({ "contents": [content] })).map(ReadResourceResponse::Complete)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let listed = self.offer.list_prompts().map_err(|why| ErrorData::internal_error(why, None))?;
        read_result(json!({ "prompts": listed }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let messages = self.offer.write_prompt(&request.name, &arguments).await.map_err(refuse)?;
        read_result::<GetPromptResult>(json!({ "messages": messages })).map(GetPromptResponse::Complete)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.parked.describe_task(&request.task_id).ok_or_else(|| unknown_task(&request.task_id))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let answer = read_answer(Some(&request.input_responses));
        self.parked.answer_task(&request.task_id, answer).ok_or_else(|| unknown_task(&request.task_id))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.parked.cancel_task(&request.task_id).ok_or_else(|| unknown_task(&request.task_id))
    }
}

fn unknown_task(id: &str) -> ErrorData {
    refuse(format!("there is no task `{id}`"))
}
