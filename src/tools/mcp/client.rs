//! The door to rmcp: one connection to a server, in our own words.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ContentBlock, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, FormElicitationCapability, GetPromptRequestParams, Implementation,
    ProgressNotificationParam, Prompt, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
    ResourceTemplate, SKILLS_EXTENSION_ID, SubscriptionFilter, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, RequestContext, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{broadcast, oneshot};

use crate::base::secrets::Secret;
use crate::base::text;
use crate::safety::net::{self, Net};

use super::login::{LoginServer, TokenFile, find_authorization};
use super::offers::{BegunArgument, CompletedOffer};
use super::questions::{QuestionKind, QuestionReply, ServerQuestion};
use super::refusals::{explain_opening, sort_refusal, word_refusal};
use super::{CallNews, McpCallError, McpEra, McpPart, McpReply, McpTransport};

/// The most messages about progress that wait for a call to take them; older ones are dropped.
const MOST_PROGRESS: usize = 64;
/// The longest that is kept of one, in bytes. Who shows it masks it, and shows less.
pub(super) const LONGEST_PROGRESS: usize = 4096;
/// The most questions that wait for a call to take them.
const MOST_QUESTIONS: usize = 16;

/// The wait before a subscription that ended is made again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An open connection. Dropping it closes it.
pub(super) struct McpConnection {
    pub(super) service: RunningService<RoleClient, McpListener>,
    pub(super) progress: broadcast::Sender<String>,
    pub(super) questions: QuestionSender,
    changes: broadcast::Sender<()>,
    /// The address of an HTTP server, and the file of the tokens for it.
    login: Option<(String, TokenFile)>,
}

/// Hears what the server says by itself. What it asks goes to the person of a running call; the model is not lent.
pub(super) struct McpListener {
    info: ClientConfig,
    progress: broadcast::Sender<String>,
    questions: QuestionSender,
    changes: broadcast::Sender<()>,
}

/// Questions for the calls that run: the first one to take it asks.
pub(super) type QuestionSender = broadcast::Sender<Arc<Mutex<Option<ServerQuestion>>>>;

impl ClientHandler for McpListener {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let share =
            told.total.map_or_else(|| told.progress.to_string(), |total| format!("{}/{total}", told.progress));
        let message = told.message.map_or(share.clone(), |message| format!("{share} {message}"));
        // Without a call that waits, nobody wants to know.
        let _ = self.progress.send(text::take_head(&message, LONGEST_PROGRESS).to_owned());
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        Ok(put_question(&self.questions, asked).await)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        // Nobody may have asked for the list yet.
        let _ = self.changes.send(());
    }
}

/// Has the person of a running call answer what a server asks.
pub(super) async fn put_question(questions: &QuestionSender, asked: ElicitRequestParams) -> ElicitResult {
    let (message, kind) = match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, QuestionKind::Form(serde_json::to_value(requested_schema).unwrap_or_default()))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => (message, QuestionKind::Page(url)),
        _ => return ElicitResult::new(ElicitationAction::Decline),
    };
    let (reply, replied) = oneshot::channel();
    let question = Arc::new(Mutex::new(Some(ServerQuestion { message, kind, reply })));
    // Without a call that runs, nobody is asked.
    let is_heard = questions.send(question).is_ok();
    match replied.await {
        Ok(QuestionReply::Accepted(None)) => ElicitResult::new(ElicitationAction::Accept),
        Ok(QuestionReply::Accepted(Some(fields))) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(fields)
        }
        Ok(QuestionReply::Cancelled) | Err(_) if is_heard => ElicitResult::new(ElicitationAction::Cancel),
        Ok(_) | Err(_) => ElicitResult::new(ElicitationAction::Decline),
    }
}

/// Hears by a subscription that the tools changed, as long as the server is there.
async fn follow_tools(peer: Peer<RoleClient>, changes: broadcast::Sender<()>) {
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    while let Ok(mut heard) = peer.listen(wanted.clone()).await {
        while let Ok(Some(_)) = heard.next().await {
            let _ = changes.send(());
        }
        if peer.is_transport_closed() {
            return;
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
        // What came meanwhile was not heard.
        let _ = changes.send(());
    }
}

impl McpConnection {
    /// Opens a connection. A server of which nothing is known is asked which revision it speaks.
    ///
    /// # Errors
    /// The end of a sentence about the server.
    pub async fn open(transport: McpTransport, era: Option<McpEra>) -> Result<Self, String> {
        let lifecycle = choose_lifecycle(era);
        let mut info = describe_client();
        if era == Some(McpEra::Handshake) {
            info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        }
        let (progress, _) = broadcast::channel(MOST_PROGRESS);
        let (questions, _) = broadcast::channel(MOST_QUESTIONS);
        let (changes, _) = broadcast::channel(1);
        let listener = McpListener {
            info,
            progress: progress.clone(),
            questions: questions.clone(),
            changes: changes.clone(),
        };
        let mut login = None;
        let opened = match transport {
            McpTransport::Streams(streams) => {
                listener.serve_with_lifecycle((streams.output, streams.input), lifecycle).await
            }
            McpTransport::Http { net, url, headers, oauth, tokens } => {
                let address = net::parse_url(&url).map_err(|error| format!("cannot be reached: {error}"))?;
                let client = net.client(&address, CONNECT_TIMEOUT);
                let client = client.map_err(|error| format!("cannot be reached: {error}"))?;
                let tokens = TokenFile::new(&tokens, &url);
                let allowed =
                    find_authorization(&LoginServer { url: &url, tokens: &tokens, oauth: oauth.as_ref() }).await?;
                login = Some((url.clone(), tokens));
                let mut config = StreamableHttpClientTransportConfig::with_uri(url);
                config.custom_headers = convert_headers(&headers)?;
                if let Some(allowed) = allowed {
                    let client = AuthClient::new(client, allowed);
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    listener.serve_with_lifecycle(transport, lifecycle).await
                } else {
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    listener.serve_with_lifecycle(transport, lifecycle).await
                }
            }
        };
        opened
            .map(|service| Self { service, progress, questions, changes, login })
            .map_err(|error| explain_opening(&error))
    }

    /// The era of the revision that was agreed on.
    pub fn era(&self) -> McpEra {
        let info = self.service.peer_info();
        let is_old = info.is_none_or(|info| info.protocol_version.has_initialize());
        if is_old { McpEra::Handshake } else { McpEra::Discovery }
    }

    /// Told whenever the server says that its tools changed; closed when it is gone. Must run on the servers' thread.
    pub fn hear_changes(&self) -> broadcast::Receiver<()> {
        let tools = self.service.peer_info().and_then(|info| info.capabilities.tools.clone());
        let tells = tools.is_some_and(|tools| tools.list_changed == Some(true));
        if tells && self.era() == McpEra::Discovery {
            tokio::spawn(follow_tools(self.service.peer().clone(), self.changes.clone()));
        }
        self.changes.subscribe()
    }

    /// The revision that was agreed on, and the server's name and version for itself.
    pub fn describe(&self) -> String {
        let Some(info) = self.service.peer_info() else { return String::new() };
        let server = info.server_info.as_ref().map(|server| format!(", {} {}", server.name, server.version));
        format!("{}{}", info.protocol_version, server.unwrap_or_default())
    }

    /// True if the server has gone.
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Calls a tool. `heard` gets what the server says of its progress, and what it asks. Dropping the future cancels the call.
    ///
    /// # Errors
    /// The server refused the call, or is gone.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        heard: &UnboundedSender<CallNews>,
    ) -> Result<McpReply, McpCallError> {
        let mut request = CallToolRequestParams::new(name.to_owned());
        request.arguments = Some(arguments);
        let (mut progress, mut questions) = (self.progress.subscribe(), self.questions.subscribe());
        let mut called = std::pin::pin!(self.complete_call(request));
        let result = loop {
            tokio::select! {
                result = &mut called => break result,
                Ok(message) = progress.recv() => {
                    let _ = heard.send(CallNews::Progress(message));
                }
                Ok(question) = questions.recv() => {
                    let taken = question.lock().expect("taking never panics").take();
                    if let Some(question) = taken {
                        let _ = heard.send(CallNews::Question(question));
                    }
                }
            }
        };
        let result = result.map_err(|error| sort_refusal(error, self.login.as_ref()))?;
        Ok(McpReply {
            parts: result.content.into_iter().map(convert_part).collect(),
            data: result.structured_content,
            is_error: result.is_error == Some(true),
        })
    }

    /// The text of a resource.
    ///
    /// # Errors
    /// The server has none at this address.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<McpPart>, String> {
        let read = self.service.read_resource(ReadResourceRequestParams::new(uri)).await;
        let contents = read.map_err(|error| word_refusal(&error))?.contents;
        Ok(contents.into_iter().map(|content| convert_part(ContentBlock::resource(content))).collect())
    }

    /// The addresses of the resources, each with its name.
    ///
    /// # Errors
    /// The server has none.
    pub async fn list_resources(&self) -> Result<Vec<(String, String)>, String> {
        let listed = self.service.list_all_resources().await.map_err(|error| word_refusal(&error))?;
        Ok(listed.into_iter().map(|resource| (resource.uri.clone(), text::one_line(&resource.name, 60))).collect())
    }

    /// The forms of addresses that the server fills in, each with its name.
    ///
    /// # Errors
    /// The server has none.
    pub async fn list_templates(&self) -> Result<Vec<(String, String)>, String> {
        let listed = self.service.list_all_resource_templates().await.map_err(|error| word_refusal(&error))?;
        let row = |form: ResourceTemplate| (form.uri_template.clone(), text::one_line(&form.name, 60));
        Ok(listed.into_iter().map(row).collect())
    }

    /// The values that the server offers for what a person begins to type.
    ///
    /// # Errors
    /// It completes nothing, or not this.
    pub async fn complete_argument(&self, begun: &BegunArgument) -> Result<Vec<String>, String> {
        let BegunArgument { of, argument, value } = begun;
        let asked = match of {
            CompletedOffer::Prompt(name) => self.service.complete_prompt_simple(name, argument, value).await,
            CompletedOffer::Template(form) => self.service.complete_resource_simple(form, argument, value).await,
        };
        asked.map_err(|error| word_refusal(&error))
    }

    /// The names of the prompts, each with those of its arguments.
    ///
    /// # Errors
    /// The server has none.
    pub async fn list_prompts(&self) -> Result<Vec<(String, Vec<String>)>, String> {
        let prompts = self.service.list_all_prompts().await.map_err(|error| word_refusal(&error))?;
        let names = |prompt: Prompt| {
            let arguments = prompt.arguments.into_iter().flatten().map(|argument| argument.name);
            (prompt.name, arguments.collect())
        };
        Ok(prompts.into_iter().map(names).collect())
    }

    /// The messages of a prompt.
    ///
    /// # Errors
    /// The server refuses the name or an argument.
    pub async fn write_prompt(&self, name: &str, arguments: Map<String, Value>) -> Result<Vec<McpPart>, String> {
        let asked = GetPromptRequestParams::new(name).with_arguments(arguments);
        let written = self.service.get_prompt(asked).await.map_err(|error| word_refusal(&error))?;
        Ok(written.messages.into_iter().map(|message| convert_part(message.content)).collect())
    }
}

/// What a server says about who may use it, in answer to a client without a login; `None` if it says nothing.
pub(super) async fn find_challenge(net: &Net, url: &str) -> Option<String> {
    let client = net.client(&net::parse_url(url).ok()?, CONNECT_TIMEOUT).ok()?;
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let opened = describe_client().serve_with_lifecycle(transport, choose_lifecycle(None)).await;
    opened.err()?.auth_challenge().map(str::to_owned)
}

fn describe_client() -> ClientConfig {
    let asks = ElicitationCapability::new()
        .with_form(FormElicitationCapability::default())
        .with_url(UrlElicitationCapability::default());
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = Some(asks);
    let extensions = [TASKS_EXTENSION_ID, SKILLS_EXTENSION_ID].map(|name| (name.to_owned(), Map::new()));
    capabilities.extensions = Some(extensions.into());
    ClientConfig::new(capabilities, Implementation::new("agent", env!("CARGO_PKG_VERSION")))
}

/// How to begin with a server of an era, or of none that is known.
fn choose_lifecycle(era: Option<McpEra>) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
    match era {
        Some(McpEra::Handshake) => ClientLifecycleMode::Initialize,
        Some(McpEra::Discovery) => ClientLifecycleMode::Discover { preferred_versions },
        None => ClientLifecycleMode::Auto { preferred_versions, legacy_version },
    }
}

fn convert_headers(headers: &BTreeMap<String, Secret>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let convert = |(name, value): (&String, &Secret)| {
        let mut value = HeaderValue::from_str(value.reveal()).ok()?;
        value.set_sensitive(true);
        Some((name.parse().ok()?, value))
    };
    let wrong = |name: &str| format!("cannot be reached: `{name}` is not a header with its value");
    headers.iter().map(|header| convert(header).ok_or_else(|| wrong(header.0))).collect()
}

fn convert_part(block: ContentBlock) -> McpPart {
    match block {
        ContentBlock::Text(text) => McpPart::Text(text.text),
        ContentBlock::Image(image) => McpPart::Picture(image.data),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => McpPart::Text(format!("{uri}:\n{text}")),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                McpPart::Unshown(format!("{uri}, {} bytes of base64", blob.len()))
            }
            _ => McpPart::Unshown("a resource of an unknown kind".to_owned()),
        },
        ContentBlock::ResourceLink(link) => McpPart::Text(format!("resource {}: {}", link.name, link.uri)),
        ContentBlock::Audio(audio) => McpPart::Unshown(format!("a sound ({})", audio.mime_type)),
        _ => McpPart::Unshown("content of an unknown kind".to_owned()),
    }
}
