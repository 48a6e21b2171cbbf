//! A tool of a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::base::image::{Image, decode_base64};
use crate::base::output::{ToolError, ToolErrorKind, ToolOutput};
use crate::base::validator::Validator;
use crate::base::{json, present, text};
use crate::config::format_duration;
use crate::conversation::event::EventKind;
use crate::conversation::knowledge::Ledger;
use crate::model::ToolDefinition;
use crate::safety::Reach;
use crate::tools::{CallContext, Tool, ToolFuture, bytes_for};

use super::naming::define_tool;
use super::questions::{ServerQuestion, answer_question};
use super::{CallNews, McpPart, McpReply, McpServer, McpServers};

/// The mark before every difference in a definition.
const CHANGED: &str = "The server describes this tool otherwise than when it was last allowed";

/// One tool of one server.
pub(super) struct McpTool {
    definition: ToolDefinition,
    server: Arc<McpServer>,
    /// Weak, as the servers end with the agent, and not with a tool that somebody kept.
    servers: Weak<McpServers>,
    /// As it was sent to the model.
    raw: Arc<Value>,
    /// True once a call was judged that knew of the change.
    told: AtomicBool,
}

/// A task that ends when nobody waits for it.
struct Awaited<T>(JoinHandle<T>);

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl McpTool {
    /// A tool that the server lists as `raw`; `None` if it cannot be offered.
    pub fn share(server: &Arc<McpServer>, servers: &Arc<McpServers>, raw: &Arc<Value>) -> Option<Arc<dyn Tool>> {
        let definition = define_tool(server.name(), raw).ok()?;
        let (server, servers, raw) = (Arc::clone(server), Arc::downgrade(servers), Arc::clone(raw));
        Some(Arc::new(Self { definition, server, servers, raw, told: AtomicBool::new(false) }))
    }

    /// Its name at the server.
    fn name(&self) -> &str {
        self.raw["name"].as_str().unwrap_or_default()
    }

    async fn run(&self, arguments: Value, context: CallContext<'_>) -> Result<ToolOutput, ToolError> {
        let gone = || ToolError::permanent("The servers of tools have ended with their run.");
        let servers = self.servers.upgrade().ok_or_else(gone)?;
        let runtime = servers.runtime().ok_or_else(gone)?;
        let (heard, mut hearing) = tokio::sync::mpsc::unbounded_channel();
        let Value::Object(arguments) = arguments else { return Err(ToolError::parameter("an object is needed")) };
        let (server, name) = (Arc::clone(&self.server), self.name().to_owned());
        let was_told = self.told.load(Ordering::Relaxed);
        let raw = Arc::clone(&self.raw);
        let mut task = Awaited(runtime.spawn(async move {
            // A server that was not up when the call was judged may describe the tool otherwise.
            let _ = server.connect().await;
            match server.find_change(&raw).filter(|_| !was_told) {
                Some(change) => {
                    let why = format!(
                        "{CHANGED}. Send the call again if it is still right: a person is asked.\n{change}"
                    );
                    Err(ToolError::permanent(why))
                }
                None => server.call_tool(&name, arguments, heard).await,
            }
        }));
        let mut late = std::pin::pin!(sleep(context.timeout));
        let reply = loop {
            tokio::select! {
                reply = &mut task.0 => break reply,
                Some(news) = hearing.recv() => match news {
                    CallNews::Progress(message) => {
                        (context.live)(&format!("{}\n", self.server.quote(&message, 200)));
                    }
                    CallNews::Question(question) => {
                        tokio::select! {
                            reply = &mut task.0 => break reply,
                            () = self.put_question(question, context) => {}
                        }
                        // The person's time counts against no limit.
                        late.as_mut().reset(Instant::now() + context.timeout);
                    }
                },
                () = &mut late => {
                    let (limit, why) = (format_duration(context.timeout), self.server.quote_errors());
                    let why = format!("The call took longer than {limit} and was stopped{why}.");
                    return Err(ToolError::new(ToolErrorKind::Timeout, why));
                }
            }
        };
        let reply = reply.map_err(|_| gone())??;
        self.server.accept_tool(self.name());
        self.shape_reply(reply, bytes_for(context.max_tokens))
    }

    /// Has the person answer a question of the server.
    async fn put_question(&self, question: ServerQuestion, context: CallContext<'_>) {
        let ServerQuestion { message, kind, reply } = question;
        let (answer, warning) = answer_question(self.server.name(), &message, &kind, context.person).await;
        if let Some(message) = warning {
            (context.notify)(EventKind::Warning { message });
        }
        // A server that does not wait any more needs none.
        let _ = reply.send(answer);
    }

    fn shape_reply(&self, reply: McpReply, most: usize) -> Result<ToolOutput, ToolError> {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in reply.parts {
            match part {
                McpPart::Text(text) => texts.push(text),
                McpPart::Picture(data) => match decode_base64(&data).map(|bytes| Image::read(&bytes)) {
                    Some(Ok(image)) => images.push(image),
                    Some(Err(why)) => texts.push(format!("[a picture, not shown: it {why}]")),
                    None => texts.push("[a picture, not shown: it is not valid base64]".to_owned()),
                },
                McpPart::Unshown(what) => texts.push(format!("[not shown: {what}]")),
            }
        }
        let mut observation = texts.join("\n");
        if reply.is_error {
            return Err(ToolError::permanent(observation));
        }
        let promised = self.raw.get("outputSchema").and_then(|schema| Validator::new(schema).ok());
        if let (Some(data), Some(promised)) = (&reply.data, promised)
            && let Err(why) = promised.check("Its data do", data)
        {
            return Err(ToolError::permanent(format!("The server broke the schema of its own result. {why}")));
        }
        if observation.trim().is_empty()
            && let Some(data) = &reply.data
        {
            observation = present::fit_data(data, most, None).to_string();
        }
        let summary = match images.len() {
            0 => text::count_noun(observation.lines().count() as u64, "line", "lines"),
            count => text::count_noun(count as u64, "picture", "pictures"),
        };
        let result = reply.data.unwrap_or_else(|| json!({ "text": observation }));
        Ok(ToolOutput { result, observation, summary, images, ..ToolOutput::default() })
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn asks_always(&self) -> Option<&'static str> {
        if self.server.find_change(&self.raw).is_some() {
            self.told.store(true, Ordering::Relaxed);
            return Some("its server describes it otherwise than when it was last allowed");
        }
        (self.raw["annotations"]["destructiveHint"] == json!(true)).then_some("its server says that it destroys")
    }

    fn subject(&self, arguments: &Value) -> String {
        text::one_line(&arguments.to_string(), 100)
    }

    fn preview(&self, arguments: &Value, _: &Reach, _: &Ledger) -> Result<String, ToolError> {
        let change = self.server.find_change(&self.raw).map(|change| format!("\n\n{CHANGED}:\n{change}"));
        Ok(json::list_keys(arguments) + &change.unwrap_or_default())
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        Box::pin(self.run(given, context))
    }
}
