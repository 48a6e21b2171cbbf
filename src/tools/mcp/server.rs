//! One server: started when it is wanted, listed once it is up, started again when it has gone.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Instant;

use serde_json::{Map, Value};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Duration, timeout};

use crate::base::diff;
use crate::base::output::{ToolError, ToolErrorKind};
use crate::base::text;
use crate::config::{McpPermission, McpServerConfig};
use crate::safety::process::{ServerProcess, ServerStreams};
use crate::safety::sandbox::Sandbox;
use crate::skills::ServedSkill;

use super::known::KnownServer;
use super::live::{FIRST_WAIT, LiveServer, ServerLink};
use super::naming::choose_tools;
use super::offered::OfferedNames;
use super::program::{ENDED, explain_end, start_program};
use super::{CallNews, McpCallError, McpConnection, McpEra, McpReply, McpSurroundings, McpTransport, OPENING};

/// The most tools of a server.
const MOST_TOOLS: usize = 2000;
/// The most skills of a server.
const MOST_SKILLS: usize = 200;

/// A server of tools.
pub struct McpServer {
    config: McpServerConfig,
    sandbox: Option<Sandbox>,
    around: Arc<McpSurroundings>,
    known: Mutex<Option<KnownServer>>,
    /// The tools whose definitions were sent; set once.
    sent: OnceLock<Vec<Arc<Value>>>,
    live: Mutex<LiveServer>,
    /// Told when `live` changes.
    changed: Condvar,
    link: tokio::sync::Mutex<ServerLink>,
    pub(super) offers: OfferedNames,
    process: Mutex<Option<ServerProcess>>,
    errors: Arc<Mutex<String>>,
}

/// Connects to a server, again and again until it is up, as long as anybody wants it.
pub(super) async fn keep_trying(server: Weak<McpServer>) {
    while let Some(wanted) = server.upgrade() {
        if wanted.connect().await.is_ok() {
            return;
        }
        let wait = wanted.link.lock().await.find_wait();
        drop(wanted);
        tokio::time::sleep(wait).await;
    }
}

/// What a server listed when its connection was opened.
struct ServerLists {
    tools: Vec<Arc<Value>>,
    skills: Vec<ServedSkill>,
    /// Which of its tools cannot be offered, and why.
    wrong: Option<String>,
    /// Why there are no skills, if they were wanted in vain.
    note: Option<String>,
}

impl McpServer {
    pub(super) fn new(config: McpServerConfig, sandbox: Option<Sandbox>, around: Arc<McpSurroundings>) -> Self {
        let known = KnownServer::read(&KnownServer::path(&around.cache, &config));
        Self {
            config,
            sandbox,
            around,
            known: Mutex::new(known),
            sent: OnceLock::new(),
            live: Mutex::default(),
            changed: Condvar::new(),
            link: tokio::sync::Mutex::default(),
            offers: OfferedNames::default(),
            process: Mutex::default(),
            errors: Arc::default(),
        }
    }

    pub(super) fn is_of(&self, file: &McpServerConfig, dir: &Path) -> bool {
        self.config == *file && self.around.dir == dir
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The time limit of its calls.
    pub fn timeout(&self) -> Duration {
        *self.config.timeout
    }

    /// True if its calls run without asking.
    pub fn is_allowed(&self) -> bool {
        self.config.permission == McpPermission::Allow
    }

    /// Its command or address, for people.
    pub fn place(&self) -> String {
        self.around.redactor.redact(&self.config.describe_place()).into_owned()
    }

    /// Why it is not up, or not whole, once, in a sentence.
    pub(super) fn take_failure(&self) -> Option<String> {
        let why = self.live().take_failure()?;
        let told = format!("the server of tools `{}` {why}", self.config.name);
        Some(self.quote(&told, 400))
    }

    /// Its state in a few words, and the number of its tools as far as they are known.
    pub fn status(&self) -> (String, usize) {
        let live = self.live();
        let known = || self.known().as_ref().map_or(0, |known| known.tools.len());
        let count = live.tools.as_ref().map_or_else(known, Vec::len);
        (live.describe_state(), count)
    }

    pub(super) fn is_starting(&self) -> bool {
        let live = self.live();
        live.begun && live.tools.is_none() && live.failure.is_none()
    }

    /// True if it has listed its tools in this run, and nothing failed since.
    pub fn is_up(&self) -> bool {
        let live = self.live();
        live.tools.is_some() && live.failure.is_none()
    }

    /// True if the list of its tools is known, from now or from the last time.
    pub(super) fn is_known(&self) -> bool {
        self.known().is_some() || self.live().tools.is_some()
    }

    /// True for the first caller.
    pub(super) fn is_to_begin(&self) -> bool {
        !std::mem::replace(&mut self.live().begun, true)
    }

    /// Waits until it has listed its tools, or failed.
    pub(super) fn wait_for_list(&self, until: Instant) {
        let mut live = self.live();
        while live.tools.is_none() && live.failure.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            live = self.changed.wait_timeout(live, left).expect("no holder of the state panics").0;
        }
    }

    /// The tools whose definitions are sent: from the first call on always the same.
    pub(super) fn fix_sent(&self) -> &[Arc<Value>] {
        let known = || self.known().as_ref().map(|known| known.tools.clone());
        self.sent.get_or_init(|| known().or_else(|| self.live().tools.clone()).unwrap_or_default())
    }

    /// Its skills, from now or from the last time.
    pub(super) fn skills(&self) -> Vec<ServedSkill> {
        let known = || self.known().as_ref().map(|known| known.skills.clone());
        let live = self.live();
        live.tools.as_ref().map(|_| live.skills.clone()).or_else(known).unwrap_or_default()
    }

    /// The tools that it has beside those; `None` until it is up.
    pub(super) fn list_late(&self) -> Option<Vec<Arc<Value>>> {
        let sent = self.sent.get()?;
        let is_late = |raw: &&Arc<Value>| !sent.iter().any(|other| other["name"] == raw["name"]);
        Some(self.live().tools.as_ref()?.iter().filter(is_late).cloned().collect())
    }

    /// How the running server describes a tool differently from `sent`: a diff; `None` if it does not, or is not up.
    pub(super) fn find_change(&self, sent: &Arc<Value>) -> Option<String> {
        let live = self.live();
        let now = live.tools.as_ref()?.iter().find(|raw| raw["name"] == sent["name"])?;
        if now == sent || self.known().as_ref().is_some_and(|known| known.tools.contains(now)) {
            return None;
        }
        let write = |raw: &Value| serde_json::to_string_pretty(raw).unwrap_or_default();
        Some(diff::unify_nameless(&write(sent), &write(now)))
    }

    /// Remembers that calls of a tool were allowed as it is now.
    pub(super) fn accept_tool(&self, name: &str) {
        let now = self.live().tools.iter().flatten().find(|raw| raw["name"] == name).cloned();
        let mut known = self.known();
        let place = known.as_mut().and_then(|known| known.tools.iter_mut().find(|raw| raw["name"] == name));
        if let (Some(now), Some(place)) = (now, place) {
            *place = now;
            known.iter().for_each(|known| known.write(&KnownServer::path(&self.around.cache, &self.config)));
        }
    }

    /// Calls a tool, and starts the server if it is not up.
    ///
    /// # Errors
    /// It cannot be started, refused the call, or went away meanwhile.
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
        heard: UnboundedSender<CallNews>,
    ) -> Result<McpReply, ToolError> {
        let name = self.name();
        let connection = self.connect().await;
        let connection = connection.map_err(|why| ToolError::permanent(format!("The server `{name}` {why}")))?;
        let called = connection.call_tool(tool, arguments, &heard).await;
        if matches!(called, Err(McpCallError::Unauthorized(_))) {
            // The next call begins with the tokens of a new login.
            self.link.lock().await.open = None;
        }
        called.map_err(|error| match error {
            McpCallError::Refused(why) => ToolError::permanent(why),
            McpCallError::Unauthorized(why) => {
                let advice = format!("the person can run `agent mcp login {name}`, then send the call again");
                ToolError::permanent(format!("The server `{name}` wants a login{why}: {advice}."))
            }
            McpCallError::Gone(why) => ToolError::new(
                ToolErrorKind::Permanent,
                format!(
                    "The server `{name}` went away during the call, which may have run in part ({why}){}. The next \
                     call starts it again.",
                    self.quote_errors()
                ),
            ),
        })
    }

    /// The connection, opened if there is none.
    ///
    /// # Errors
    /// The end of a sentence about the server.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<Arc<McpConnection>, String> {
        let mut link = self.link.lock().await;
        if let Some(open) = link.open.as_ref().filter(|open| !open.is_closed()) {
            return Ok(Arc::clone(open));
        }
        link.open = None;
        let wait = link.find_wait();
        if !wait.is_zero() {
            let why = self.live().failure.clone().unwrap_or_default();
            return Err(format!("{why} (the next try is possible in {} s)", wait.as_secs() + 1));
        }
        let opened = match self.open().await {
            Err(why) if why == ENDED => Err(explain_end(self.take_process(), &self.config).await.unwrap_or(why)),
            opened => opened,
        };
        let mut live = self.live();
        match opened {
            Ok((connection, ServerLists { tools, skills, wrong, note })) => {
                live.note_success();
                let said = [Some(connection.describe()), wrong.clone(), note].into_iter().flatten();
                let said = said.collect::<Vec<_>>().join("; ");
                live.description = self.quote(&said, 600);
                (live.tools, live.skills, live.wrong) = (Some(tools), skills, wrong);
                let connection = Arc::new(connection);
                tokio::spawn(follow_changes(Arc::downgrade(self), Arc::downgrade(&connection)));
                *link = ServerLink::default();
                link.open = Some(Arc::clone(&connection));
                self.changed.notify_all();
                Ok(connection)
            }
            Err(why) => {
                let why = self.quote(&format!("{why}{}", self.quote_errors()), 600);
                link.note_failure();
                live.failure = Some(why.clone());
                self.changed.notify_all();
                Err(why)
            }
        }
    }

    /// Opens a connection and lists the tools and skills.
    async fn open(&self) -> Result<(McpConnection, ServerLists), String> {
        let (connection, listed) = timeout(OPENING, self.open_in_some_era())
            .await
            .unwrap_or_else(|_| Err(format!("was not up within {} s", OPENING.as_secs())))?;
        let (mut tools, wrong) = choose_tools(&self.config.tools, &listed)?;
        let skills = timeout(*self.config.timeout, connection.list_skills(MOST_SKILLS)).await;
        let (skills, note) = match skills.unwrap_or_else(|_| Err("does not list its skills in time".to_owned())) {
            Ok(skills) => (skills, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        self.remember(&connection, &mut tools, Some(&skills));
        Ok((connection, ServerLists { tools, skills, wrong, note }))
    }

    /// Begins as the last time, else by what the server says it speaks, else as most servers do.
    async fn open_in_some_era(&self) -> Result<(McpConnection, Vec<Arc<Value>>), String> {
        let known = self.known().as_ref().map(|known| known.era);
        let first = match self.open_in(known).await {
            Err(_) if known.is_some() => self.open_in(None).await,
            opened => opened,
        };
        match first {
            // Some servers answer a method that they do not know with something else than an error.
            Err(why) => self.open_in(Some(McpEra::Handshake)).await.map_err(|_| why),
            opened => opened,
        }
    }

    async fn open_in(&self, era: Option<McpEra>) -> Result<(McpConnection, Vec<Arc<Value>>), String> {
        let transport = match &self.config.url {
            Some(url) => McpTransport::Http {
                net: Arc::clone(&self.around.net),
                url: url.clone(),
                headers: self.config.headers.clone(),
                oauth: self.config.oauth.clone(),
                tokens: self.around.tokens.clone(),
            },
            None => McpTransport::Streams(self.start()?),
        };
        let connection = McpConnection::open(transport, era).await?;
        let tools = connection.list_tools(MOST_TOOLS).await?;
        Ok((connection, tools))
    }

    /// Remembers the era and the lists; without `skills`, those that were known. A tool that is known stays as it was allowed;
    /// one that did not change is in memory once.
    fn remember(&self, connection: &McpConnection, tools: &mut [Arc<Value>], skills: Option<&[ServedSkill]>) {
        let mut known = self.known();
        let of_known = |raw: &mut Arc<Value>| {
            let mut tools = known.iter().flat_map(|known| &known.tools);
            let Some(allowed) = tools.find(|other| other["name"] == raw["name"]) else { return Arc::clone(raw) };
            if allowed == raw {
                *raw = Arc::clone(allowed);
            }
            Arc::clone(allowed)
        };
        let tools = tools.iter_mut().map(of_known).collect();
        let before = || known.as_ref().map(|known| known.skills.clone()).unwrap_or_default();
        let now = KnownServer { era: connection.era(), tools, skills: skills.map_or_else(before, <[_]>::to_vec) };
        if known.as_ref() != Some(&now) {
            now.write(&KnownServer::path(&self.around.cache, &self.config));
            *known = Some(now);
        }
    }

    /// Starts its program.
    fn start(&self) -> Result<ServerStreams, String> {
        let (process, streams) =
            start_program(&self.config, self.sandbox.as_ref(), &self.around, Arc::clone(&self.errors))?;
        *self.process.lock().expect("no holder of the process panics") = Some(process);
        Ok(streams)
    }

    /// What it said, in a line of this width: secrets are masked before it is cut.
    pub(super) fn quote(&self, said: &str, width: usize) -> String {
        text::one_line(&self.around.redactor.redact(said), width)
    }

    /// The last line of its stderr, or what it sent that is no message, as the end of a sentence.
    pub(super) fn quote_errors(&self) -> String {
        let errors = self.errors.lock().expect("no holder of the text panics");
        errors.trim_end().lines().last().map_or_else(String::new, |last| format!(": {}", self.quote(last, 200)))
    }

    /// Ends its processes.
    pub(super) fn kill(&self) {
        drop(self.take_process());
    }

    fn take_process(&self) -> Option<ServerProcess> {
        self.process.lock().expect("no holder of the process panics").take()
    }

    fn live(&self) -> MutexGuard<'_, LiveServer> {
        self.live.lock().expect("no holder of the state panics")
    }

    fn known(&self) -> MutexGuard<'_, Option<KnownServer>> {
        self.known.lock().expect("no holder of what is known panics")
    }
}

/// Lists the tools of a server again whenever it says that they changed, at most once a second, as long as it is there. One
/// that cannot list them keeps those that it had.
async fn follow_changes(server: Weak<McpServer>, connection: Weak<McpConnection>) {
    let Some(mut changes) = connection.upgrade().map(|connection| connection.hear_changes()) else { return };
    while !matches!(changes.recv().await, Err(RecvError::Closed)) {
        let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade()) else { return };
        let listed = connection.list_tools(MOST_TOOLS).await;
        if let Ok((mut tools, _)) = listed.and_then(|listed| choose_tools(&server.config.tools, &listed)) {
            server.remember(&connection, &mut tools, None);
            server.live().tools = Some(tools);
        }
        tokio::time::sleep(FIRST_WAIT).await;
    }
}
