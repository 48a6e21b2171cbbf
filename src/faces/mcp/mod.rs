//! `agent mcp serve`: other programs use the agent by the Model Context Protocol, over stdin and stdout.
//!
//! A client runs tasks and goes on with sessions; it can never do more than the policy of who started the server. Sessions
//! of the workspace are its resources; the person's commands and prompts are its prompts.

mod person;
mod run;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::agent::Cancel;
use crate::agent::assembly::{self, RunOptions, SessionChoice};
use crate::config::{ApprovalMode, Config};
use crate::conversation::export::{ExportForm, Exported};
use crate::faces::chat;
use crate::faces::serving::{ServingError, ServingSetup};
use crate::files::workspace::Workspace;
use crate::prompt::{MODULES, Registry};
use crate::safety::Nobody;
use crate::tools::{McpCall, McpOffer, serve_client};

use run::{RunRequest, carry_out};

/// The beginning of the address of a session.
const SESSIONS: &str = "agent://sessions/";
/// The argument of a command of the person.
const ARGUMENTS: &str = "arguments";
/// The longest that running tasks have to end once the client is gone.
const GRACE: Duration = Duration::from_secs(5);

/// The agent as a client sees it.
struct AgentOffer {
    setup: Arc<ServingSetup>,
    /// The directory that is served, canonical.
    root: PathBuf,
    /// Ends every run.
    end: Cancel,
    runs: Mutex<JoinSet<()>>,
}

/// Serves a client on stdin and stdout until it closes its end, or until `end` is triggered. Either ends the runs.
///
/// # Errors
/// It does not speak the protocol: a sentence.
pub fn serve_program(setup: ServingSetup, root: PathBuf, runtime: &Runtime, end: &Cancel) -> Result<(), String> {
    let (setup, end) = (Arc::new(setup), end.clone());
    let offer = Arc::new(AgentOffer { setup, root, end: end.clone(), runs: Mutex::default() });
    runtime.block_on(async {
        let (mut fed, input) = tokio::io::duplex(64 * 1024);
        let mut stdin = tokio::io::stdin();
        tokio::spawn(async move {
            tokio::select! {
                _ = tokio::io::copy(&mut stdin, &mut fed) => end.trigger(),
                () = end.triggered() => {}
            }
        });
        let served = serve_client(Arc::clone(&offer) as Arc<dyn McpOffer>, input, tokio::io::stdout()).await;
        let mut runs = std::mem::take(&mut *offer.runs.lock().expect("no holder of the runs panics"));
        // Their commands are killed, and their logs closed.
        let _ = tokio::time::timeout(GRACE, async { while runs.join_next().await.is_some() {} }).await;
        served
    })
}

impl AgentOffer {
    fn load(&self) -> Result<(Workspace, Arc<Config>), String> {
        self.setup.load(&self.root).map_err(ServingError::into_message)
    }
}

impl McpOffer for AgentOffer {
    fn instructions(&self) -> String {
        format!(
            "`run` gives a coding agent one task in {}, and returns its answer; `continue` sends it another message. \
             Write tasks that stand for themselves: it sees the files there and nothing of your conversation.",
            self.root.display()
        )
    }

    fn list_tools(&self) -> Value {
        let word = |about: &str| json!({ "type": "string", "description": about });
        let session = word("The session that goes on: `session_id` of an earlier result");
        let workspace = word("The directory to work in, at or below the one that is served");
        let approve = json!({
            "type": "string",
            "enum": ApprovalMode::STRICTEST_FIRST,
            "description": "Which calls run without a question; at most what the server was started with",
        });
        json!([
            {
                "name": "run",
                "title": "Do a task",
                "description": "Give the agent a task in the workspace: it reads, edits and runs commands until it is \
                                done, and answers.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "task": word("What is to be done"),
                        "workspace": workspace,
                        "approve": approve,
                        "agent": word("The agent, one of the configured ones"),
                        "model": word("The model, one of the configured ones"),
                    },
                    "required": ["task"],
                    "additionalProperties": false,
                },
            },
            {
                "name": "continue",
                "title": "Go on with a session",
                "description": "Send the agent another message in the conversation of an earlier run.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "session": session,
                        "message": word("What it is told"),
                        "workspace": workspace,
                        "approve": approve,
                    },
                    "required": ["session", "message"],
                    "additionalProperties": false,
                },
            },
        ])
    }

    fn begin_call(&self, name: &str, arguments: Map<String, Value>, can_ask: bool) -> Result<McpCall, String> {
        let request = RunRequest::read(name, arguments)?;
        let (sender, news) = mpsc::unbounded_channel();
        let mut runs = self.runs.lock().expect("no holder of the runs panics");
        while runs.try_join_next().is_some() {}
        let (setup, root, end) = (Arc::clone(&self.setup), self.root.clone(), self.end.clone());
        runs.spawn(carry_out(setup, root, request, can_ask, sender, end));
        Ok(McpCall { news })
    }

    fn list_resources(&self) -> Result<Value, String> {
        let store = assembly::open_store(&self.load()?.1);
        let listed = store.list(Some(&self.root), Timestamp::now()).map_err(|error| error.to_string())?;
        let own = listed.sessions.into_iter().filter(|session| session.parent.is_none());
        let resource = own.map(|session| {
            json!({
                "uri": format!("{SESSIONS}{}", session.id),
                "name": session.id,
                "title": session.title,
                "mimeType": "text/markdown",
            })
        });
        Ok(resource.collect())
    }

    fn read_resource(&self, uri: &str) -> Result<String, String> {
        let unknown = || format!("there is no resource `{uri}`: they begin with {SESSIONS}");
        let id = uri.strip_prefix(SESSIONS).ok_or_else(unknown)?;
        let store = assembly::open_store(&self.load()?.1);
        let summary = store.summarize(id).map_err(|error| error.to_string())?;
        // What belongs to another workspace is none of the client's business.
        if self.root != Path::new(&summary.workspace) {
            return Err(unknown());
        }
        let (session, _) = store.read(id).map_err(|error| error.to_string())?;
        let exported = Exported::read(&session, Vec::new()).map_err(|error| error.to_string())?;
        Ok(exported.write(ExportForm::Markdown))
    }

    fn list_prompts(&self) -> Result<Value, String> {
        let (_, config) = self.load()?;
        let commands = config.own_commands(chat::is_built_in).found;
        let mut prompts: Vec<Value> = commands
            .iter()
            .map(|command| {
                let argument = json!({ "name": ARGUMENTS, "description": command.hint });
                let arguments = if command.hint.is_empty() { json!([]) } else { json!([argument]) };
                json!({ "name": command.name, "description": command.about, "arguments": arguments })
            })
            .collect();
        let registry = Registry::new(&config.prompt_dirs);
        for name in registry.names().map_err(|error| error.to_string())? {
            if name.starts_with(MODULES) || commands.iter().any(|command| command.name == name) {
                continue;
            }
            // One that cannot be read hides no other.
            let Ok(released) = registry.get_released(&name) else { continue };
            // Those of the program are for its own roles.
            if released.stable.is_built_in() {
                continue;
            }
            let required = &released.stable.head.required_vars;
            let arguments = required.iter().filter_map(|name| name.strip_prefix("vars."));
            let arguments = arguments.map(|name| json!({ "name": name, "required": true }));
            prompts.push(json!({
                "name": name,
                "description": released.stable.head.description,
                "arguments": arguments.collect::<Vec<_>>(),
            }));
        }
        Ok(Value::Array(prompts))
    }

    fn write_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<Value, String>> {
        async move {
            let (workspace, config) = self.load()?;
            let message =
                |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
            let commands = config.own_commands(chat::is_built_in).found;
            if let Some(command) = commands.iter().find(|command| command.name == name) {
                let given = arguments.get(ARGUMENTS).and_then(Value::as_str).unwrap_or_default();
                return Ok(json!([message("user", &chat::write_message(command, given)?)]));
            }
            let options = RunOptions {
                prompt: Some(name.to_owned()),
                vars: arguments.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
                ..self.setup.options.clone()
            };
            let services = assembly::assemble_services(&config, &workspace, &options, Arc::new(Nobody));
            let agent = services.map_err(|error| error.message)?.agent;
            let store = assembly::open_store(&config);
            let opened = assembly::read_conversation(&store, &workspace, &SessionChoice::Ephemeral, &agent);
            let conversation = opened.map_err(|error| error.message)?.conversation;
            let messages = agent.briefing.preview_messages(&conversation, &assembly::new_run_id(), &agent.limits);
            let messages = serde_json::to_value(messages.map_err(|error| format!("{error:#}"))?);
            let messages = messages.map_err(|error| error.to_string())?;
            // The protocol knows no system messages.
            let all = messages.as_array().into_iter().flatten().map(|said| {
                let role = if said["role"] == "assistant" { "assistant" } else { "user" };
                message(role, said["content"].as_str().unwrap_or_default())
            });
            Ok(all.collect())
        }
        .boxed()
    }
}
