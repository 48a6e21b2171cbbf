//! `agent acp`: the Agent Client Protocol over stdin and stdout, so that editors (and programs) hold conversations.
//!
//! Each session is a conversation of its own, and several run side by side. A person is asked through the editor under the
//! same policy as everywhere; nothing is allowed by silence. The agent ends with the editor.

mod rpc;
mod updates;
mod editor;
mod content;
mod place;
mod session;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::agent::assembly::{self, SessionChoice};
use crate::conversation::session::Store;
use crate::faces::serving::ServingSetup;

use editor::EditorOffers;
use place::read_place;
use rpc::{RpcError, RpcPeer};
use session::{AcpSession, MODEL_ADVICE, OpenSessions};
use updates::send_update;

/// The version of the protocol.
const VERSION: u64 = 1;
/// The longest line that is read: pictures are in base64.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// The agent of an editor.
struct AcpServer {
    setup: Mutex<Arc<ServingSetup>>,
    peer: Arc<RpcPeer>,
    offers: Mutex<EditorOffers>,
    sessions: OpenSessions,
    /// The sessions of the messages that are being answered, by the ids of their requests.
    prompts: Mutex<BTreeMap<String, String>>,
}

/// Serves an editor until it closes its end.
///
/// # Errors
/// A thread cannot be started.
pub fn serve_editor(setup: ServingSetup, runtime: &Runtime) -> io::Result<()> {
    let peer = RpcPeer::start(io::stdout())?;
    let reader = Arc::clone(&peer);
    let (sender, mut lines) = mpsc::unbounded_channel();
    let read = move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', &mut line) {
                Ok(LONGEST_LINE) if !line.ends_with(b"\n") => {
                    let why = format!("a message has at most {} MiB", LONGEST_LINE >> 20);
                    reader.respond(&Value::Null, Err(RpcError::new(RpcError::REQUEST, why)));
                    if input.skip_until(b'\n').is_err() {
                        return;
                    }
                }
                // A line without its end is half a message: the editor is gone.
                Ok(1..) if line.ends_with(b"\n") => {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    };
    std::thread::Builder::new().name("requests".to_owned()).spawn(read)?;
    let server = Arc::new(AcpServer {
        setup: Mutex::new(Arc::new(setup)),
        peer,
        offers: Mutex::default(),
        sessions: OpenSessions::default(),
        prompts: Mutex::default(),
    });
    runtime.block_on(async {
        while let Some(line) = lines.recv().await {
            server.take_line(&line);
        }
        server.peer.close();
        let open: Vec<_> = std::mem::take(&mut *server.sessions()).into_values().collect();
        for session in open {
            session.close().await;
        }
    });
    Ok(())
}

impl AcpServer {
    fn setup(&self) -> Arc<ServingSetup> {
        Arc::clone(&self.setup.lock().expect("no holder of the setup panics"))
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AcpSession>>> {
        self.sessions.lock().expect("no holder of the sessions panics")
    }

    fn prompts(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.prompts.lock().expect("no holder of the messages panics")
    }

    fn take_line(self: &Arc<Self>, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let refuse = |code, why: &str| self.peer.respond(&Value::Null, Err(RpcError::new(code, why)));
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else {
            return refuse(RpcError::PARSE, "a message is one line of JSON");
        };
        if !message.is_object() {
            return refuse(RpcError::REQUEST, "a message is an object");
        }
        let params = message["params"].take();
        match (message["method"].as_str().map(str::to_owned), message["id"].take()) {
            (None, id) if !message["method"].is_null() => {
                self.peer.respond(&id, Err(RpcError::new(RpcError::REQUEST, "a method is a text")));
            }
            (None, id) => {
                message["id"] = id;
                self.peer.take_answer(&mut message);
            }
            (Some(method), Value::Null) => self.hear(&method, &params),
            (Some(method), id) => self.begin_request(method, id, params),
        }
    }

    /// A notification.
    fn hear(&self, method: &str, params: &Value) {
        let of_prompt = || self.prompts().get(&params["requestId"].to_string()).cloned();
        let session = match method {
            "session/cancel" => params["sessionId"].as_str().map(str::to_owned),
            "$/cancel_request" => of_prompt(),
            _ => None,
        };
        if let Some(session) = session.and_then(|id| self.sessions().get(&id).cloned()) {
            session.cancel.trigger();
        }
    }

    fn begin_request(self: &Arc<Self>, method: String, id: Value, params: Value) {
        // Decided as they come, not when their tasks run: a cancel that follows is of this message, and one that comes
        // before its answer is refused.
        if method == "session/prompt"
            && let Ok(session) = self.find(&params)
            && let Ok(name) = word(&params, "sessionId")
        {
            let mut prompts = self.prompts();
            if prompts.values().any(|of| of == name) {
                let busy = RpcError::new(RpcError::REQUEST, "a message of this session is being answered");
                self.peer.respond(&id, Err(busy));
                return;
            }
            session.cancel.reset();
            prompts.insert(id.to_string(), name.to_owned());
        }
        let server = Arc::clone(self);
        tokio::spawn(async move {
            let answer = server.answer(&method, &params).await;
            let opened = answer.as_ref().ok().and_then(|answer| answer["sessionId"].as_str().map(str::to_owned));
            server.prompts().remove(&id.to_string());
            server.peer.respond(&id, answer);
            let opened = opened.or_else(|| {
                let again = matches!(&*method, "session/load" | "session/resume");
                params["sessionId"].as_str().filter(|_| again).map(str::to_owned)
            });
            if let Some(session) = opened
                && let Ok(open) = server.find(&json!({ "sessionId": session }))
            {
                send_update(&server.peer, &session, &open.commands().await);
            }
        });
    }

    async fn answer(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        match method {
            "initialize" => {
                *self.offers.lock().expect("no holder of the offers panics") = EditorOffers::read(params);
                Ok(describe_agent())
            }
            "logout" => {
                let without_keys =
                    self.setup().forget_keys().map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
                *self.setup.lock().expect("no holder of the setup panics") = Arc::new(without_keys);
                Ok(json!({}))
            }
            "authenticate" => {
                let setup = self.setup();
                let (_, config) = setup.load(Path::new("."))?;
                Ok(setup.check_model(&config, MODEL_ADVICE).map(|()| json!({}))?)
            }
            "session/new" => {
                let (id, session) = self.open(params, &SessionChoice::New)?;
                let mut described = session.describe().await;
                described["sessionId"] = id.clone().into();
                self.sessions().insert(id, Arc::new(session));
                Ok(described)
            }
            "session/load" | "session/resume" => {
                let id = word(params, "sessionId")?.to_owned();
                read_place(params)?;
                // One that is open is closed first: an editor that opens it again wants it from the beginning.
                let open = self.sessions().remove(&id);
                if let Some(open) = open {
                    open.close().await;
                }
                let choice = SessionChoice::Id(id.clone());
                let (_, session) = self.open(params, &choice)?;
                if method == "session/load" {
                    session.replay().await?;
                }
                let described = session.describe().await;
                self.sessions().insert(id, Arc::new(session));
                Ok(described)
            }
            "session/list" => self.list(params),
            "session/prompt" => self.find(params)?.prompt(params).await,
            "session/set_mode" => self.find(params)?.set_mode(&params["modeId"]),
            "session/set_config_option" => {
                let options = self.find(params)?.choose(word(params, "configId")?, &params["value"]).await?;
                Ok(json!({ "configOptions": options }))
            }
            "session/close" => {
                let id = word(params, "sessionId")?;
                let open = self.sessions().remove(id);
                open.ok_or_else(|| unknown(id))?.close().await;
                Ok(json!({}))
            }
            "session/delete" => {
                let id = word(params, "sessionId")?;
                let open = self.sessions().remove(id);
                if let Some(open) = open {
                    open.close().await;
                    drop(open);
                }
                let deleted = self.store(Path::new("."))?.delete(id);
                deleted.map(|_| json!({})).map_err(|error| RpcError::new(RpcError::NOT_FOUND, error.to_string()))
            }
            other => Err(RpcError::new(RpcError::METHOD, format!("there is no method `{other}`"))),
        }
    }

    fn open(&self, params: &Value, choice: &SessionChoice) -> Result<(String, AcpSession), RpcError> {
        let offers = *self.offers.lock().expect("no holder of the offers panics");
        AcpSession::open(&self.setup(), &self.peer, offers, params, choice)
    }

    fn find(&self, params: &Value) -> Result<Arc<AcpSession>, RpcError> {
        let id = word(params, "sessionId")?;
        self.sessions().get(id).cloned().ok_or_else(|| unknown(id))
    }

    fn list(&self, params: &Value) -> Result<Value, RpcError> {
        let cwd = params["cwd"].as_str().map(Path::new);
        let cwd = cwd.map(|cwd| crate::files::canonicalize(cwd).unwrap_or_else(|_| cwd.to_path_buf()));
        let listed = self.store(cwd.as_deref().unwrap_or(Path::new(".")))?.list(cwd.as_deref(), Timestamp::now());
        let listed = listed.map_err(|error| RpcError::new(RpcError::INTERNAL, error.to_string()))?;
        let own = listed.sessions.into_iter().filter(|session| session.parent.is_none());
        let sessions: Vec<Value> = own
            .map(|session| {
                json!({
                    "sessionId": session.id, "cwd": session.workspace, "title": session.title,
                    "updatedAt": session.updated_at,
                })
            })
            .collect();
        Ok(json!({ "sessions": sessions }))
    }

    /// The store of sessions, as the configuration of a directory says.
    fn store(&self, dir: &Path) -> Result<Store, RpcError> {
        Ok(assembly::open_store(&self.setup().load(dir)?.1))
    }
}

fn word<'p>(params: &'p Value, name: &str) -> Result<&'p str, RpcError> {
    params[name].as_str().ok_or_else(|| RpcError::params(format!("`{name}` is missing")))
}

fn unknown(id: &str) -> RpcError {
    RpcError::new(RpcError::NOT_FOUND, format!("no session `{id}` is open"))
}

fn describe_agent() -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentInfo": { "name": "agent", "title": "agent", "version": env!("CARGO_PKG_VERSION") },
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": false },
            "auth": { "logout": {} },
            "sessionCapabilities": { "list": {}, "delete": {}, "resume": {}, "close": {}, "additionalDirectories": {} },
        },
        "authMethods": [{
            "type": "terminal",
            "id": "setup",
            "name": "Choose a model",
            "description": "Asks which provider or local server answers, and for its key",
            "args": ["acp", "--setup"],
        }],
    })
}
