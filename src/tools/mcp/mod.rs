//! Servers of tools, by the Model Context Protocol: their processes and connections, and each of their tools as a
//! [`Tool`].
//!
//! Invariants:
//! - A definition that was sent once stays as it is for the session. The list that a server had when it was last up is
//!   sent at once, without waiting for it; what comes later is found by `find_tools`.
//! - What a server says of itself never widens what a call may do: its annotations only narrow, and a tool that changed
//!   since it was allowed asks again.
//! - Every server ends with the last owner of its [`McpServers`]. They live on a thread with a runtime of its own, so that
//!   none delays a prompt.

#![cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "no connection is opened"))]

#[cfg(feature = "mcp")]
mod client;
#[cfg(feature = "mcp")]
mod login;
#[cfg(feature = "mcp")]
mod pages;
#[cfg(feature = "mcp")]
mod refusals;
#[cfg(feature = "mcp")]
mod rounds;
#[cfg(feature = "mcp")]
mod serve;
#[cfg(feature = "mcp")]
mod skill_wire;
#[cfg(not(feature = "mcp"))]
mod no_client;
mod known;
mod live;
mod naming;
mod questions;
mod server;
mod offered;
mod offers;
mod program;
mod skills;
mod tool;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::base::secrets::{Redactor, Secret};
use crate::config::{McpOauth, McpServerConfig};
use crate::safety::net::Net;
use crate::safety::process::ServerStreams;
use crate::safety::sandbox::Sandbox;

use super::Tool;
use super::commands::Environment;

#[cfg(feature = "mcp")]
use client::McpConnection;
#[cfg(not(feature = "mcp"))]
use no_client::NoConnection as McpConnection;
use questions::ServerQuestion;
use tool::McpTool;

#[cfg(feature = "mcp")]
use login::McpLogin;
#[cfg(feature = "mcp")]
pub use login::{LoginServer, TokenFile};
pub use naming::name_tool;
pub use offers::TypedOffer;
#[cfg(feature = "mcp")]
pub use serve::{McpCall, McpCallNews, McpOffer, McpQuestion, McpResult, serve_client};
pub use server::McpServer;

/// The longest that a server may take to be up, which for some means to be fetched first.
const OPENING: Duration = Duration::from_mins(1);
/// The longest that a first run waits for the tools of servers of which nothing is known.
const FIRST_LISTS: Duration = Duration::from_secs(2);

/// How a connection begins: the era of the protocol's revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum McpEra {
    /// Until 2025-11-25: by `initialize`.
    Handshake,
    /// From 2026-07-28 on: by `server/discover`; every request stands for itself.
    Discovery,
}

/// The way to a server.
enum McpTransport {
    Streams(ServerStreams),
    Http {
        net: Arc<Net>,
        url: String,
        headers: BTreeMap<String, Secret>,
        oauth: Option<McpOauth>,
        tokens: PathBuf,
    },
}

/// The result of a call.
struct McpReply {
    parts: Vec<McpPart>,
    /// The result as data, if the server gave any.
    data: Option<Value>,
    is_error: bool,
}

/// One part of a result.
enum McpPart {
    Text(String),
    /// In base64.
    Picture(String),
    /// What no model is shown, in a few words.
    Unshown(String),
}

/// What a call hears while it runs.
enum CallNews {
    /// How far it is.
    Progress(String),
    Question(ServerQuestion),
}

/// The reason that a call has no result.
enum McpCallError {
    /// The server refused it.
    Refused(String),
    /// It wants another login; the end of a sentence says what for.
    Unauthorized(String),
    /// The server went away meanwhile.
    Gone(String),
}

/// What all servers of a run share.
pub struct McpSurroundings {
    /// The environment of commands.
    pub env: Environment,
    /// The directory in which they run: the workspace.
    pub dir: PathBuf,
    pub net: Arc<Net>,
    /// The directory in which their lists of tools are remembered.
    pub cache: PathBuf,
    /// The directory of the tokens of logins.
    pub tokens: PathBuf,
    /// Masks secrets in what is said of them.
    pub redactor: Arc<Redactor>,
}

/// The servers of a run.
pub struct McpServers {
    servers: Vec<Arc<McpServer>>,
    /// The thread on which they live, once one of them is wanted; `None` if it cannot be had.
    thread: OnceLock<Option<ServerThread>>,
    /// Set once the first lists were waited for.
    waited: OnceLock<()>,
}

/// The thread of the connections. Dropping it ends the thread.
struct ServerThread {
    runtime: Handle,
    #[expect(dead_code, reason = "the thread waits for its end")]
    end: oneshot::Sender<()>,
}

impl McpServers {
    /// The servers of a configuration, each with the boundary around it, if it has one. Nothing is started yet.
    pub fn new(servers: Vec<(McpServerConfig, Option<Sandbox>)>, around: McpSurroundings) -> Self {
        let around = Arc::new(around);
        let server = |(config, sandbox)| Arc::new(McpServer::new(config, sandbox, Arc::clone(&around)));
        Self {
            servers: servers.into_iter().map(server).collect(),
            thread: OnceLock::new(),
            waited: OnceLock::new(),
        }
    }

    /// True if they are the servers of these files, in this directory.
    pub fn are_of(&self, files: &[&McpServerConfig], dir: &Path) -> bool {
        self.servers.len() == files.len()
            && self.servers.iter().zip(files).all(|(server, file)| server.is_of(file, dir))
    }

    /// The servers, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<McpServer>> {
        self.servers.iter()
    }

    /// Starts every server, without waiting, unless that was done.
    pub fn begin(&self) {
        self.begin_these(self.servers.iter());
    }

    fn begin_these<'s>(&self, servers: impl Iterator<Item = &'s Arc<McpServer>>) {
        let Some(runtime) = self.runtime() else { return };
        for server in servers.filter(|server| server.is_to_begin()) {
            runtime.spawn(server::keep_trying(Arc::downgrade(server)));
        }
    }

    /// A sentence for each server that is not up, once.
    pub fn take_failures(&self) -> Vec<String> {
        self.servers.iter().filter_map(|server| server.take_failure()).collect()
    }

    /// Waits for no first lists: none is started for them.
    pub fn leave_unstarted(&self) {
        let _ = self.waited.set(());
    }

    /// Starts these of the servers, and waits until each is up or has failed. Nobody waits for the others after it.
    pub fn wait_until_up(&self, these: &[&Arc<McpServer>]) {
        self.leave_unstarted();
        self.begin_these(these.iter().copied());
        for server in these {
            server.wait_for_list(Instant::now() + OPENING);
        }
    }

    /// Waits until every server that was begun is up or has failed, or until it takes too long.
    pub async fn settle(&self) {
        const LOOK: Duration = Duration::from_millis(20);
        let until = Instant::now() + OPENING;
        while self.servers.iter().any(|server| server.is_starting()) && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Starts the servers of which nothing is known, and waits a moment for their lists, unless that was done.
    fn await_first_lists(&self) {
        if self.servers.iter().any(|server| !server.is_known()) && self.waited.set(()).is_ok() {
            self.begin();
            let until = Instant::now() + FIRST_LISTS;
            self.servers.iter().filter(|server| !server.is_known()).for_each(|server| server.wait_for_list(until));
        }
    }

    /// The tools to send: those that are known, and those of new servers that list them within a moment.
    pub fn tools(self: &Arc<Self>) -> Vec<(Arc<McpServer>, Arc<dyn Tool>)> {
        self.await_first_lists();
        let of_server = |server: &Arc<McpServer>| {
            let tools = server.fix_sent().iter().filter_map(|raw| McpTool::share(server, self, raw));
            tools.map(|tool| (Arc::clone(server), tool)).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(of_server).collect()
    }

    /// The tools that came after the others were sent, of all servers; none before they did.
    pub fn late_tools(self: &Arc<Self>, server: usize) -> Option<Vec<Arc<dyn Tool>>> {
        let server = self.servers.get(server)?;
        Some(server.list_late()?.iter().filter_map(|raw| McpTool::share(server, self, raw)).collect())
    }

    /// The runtime in which the servers live; `None` if this system has no thread left.
    fn runtime(&self) -> Option<&Handle> {
        let start = || {
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            let handle = runtime.handle().clone();
            let (end, ended) = oneshot::channel();
            let serve = move || {
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            };
            std::thread::Builder::new().name("mcp".to_owned()).spawn(serve).ok()?;
            Some(ServerThread { runtime: handle, end })
        };
        self.thread.get_or_init(start).as_ref().map(|thread| &thread.runtime)
    }
}

/// Begins a login at a server; returns the address that a person opens as well. The browser comes back to `redirect`.
///
/// # Errors
/// The end of a sentence about the server.
#[cfg(feature = "mcp")]
pub async fn begin_login(
    net: &Net,
    server: &LoginServer<'_>,
    redirect: &str,
) -> Result<(McpLogin, String), String> {
    let challenge = client::find_challenge(net, server.url).await;
    McpLogin::begin(server, redirect, challenge).await
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.servers.iter().map(|server| server.name())).finish()
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        self.servers.iter().for_each(|server| server.kill());
    }
}
