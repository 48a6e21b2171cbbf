//! The shape of `mcp/NAME.yaml`: a server of the Model Context Protocol, whose tools the model may call.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::WrittenDuration;
use super::merge::Merged;
use super::mistake::Mistake;
use super::settings::{Named, everything};
use super::source::{Sources, SubjectKind};
use crate::base::secrets::Secret;
use crate::base::text;

/// One server: it is started by `command` and speaks over its stdin and stdout, or is reached at `url`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    /// The name of the file. Its tools are called `NAME__TOOL`.
    pub name: String,
    /// A disabled server is not started, and none of its tools is shown to the model.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Program and arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables that the program gets besides the harmless ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Secret>,
    /// The address of a server that speaks streamable HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request to `url`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// How a login at `url` names this program, where it cannot register itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<McpOauth>,
    /// Names and globs of its tools; `!` excludes.
    #[serde(default = "everything")]
    pub tools: Vec<String>,
    /// What calls of its tools need. What the server says of a tool only narrows it.
    #[serde(default)]
    pub permission: McpPermission,
    /// The time limit of one call, up to the agent's `max_tool_timeout`.
    #[serde(default = "usual_timeout")]
    pub timeout: WrittenDuration,
    /// `false`, or the walls inside which the program runs.
    #[serde(default)]
    pub sandbox: McpSandbox,
}

/// The client that a login is made for: one that was registered beforehand, or a document about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpOauth {
    /// The id that its authorization server gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The secret that came with the id, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// The https address of a client id metadata document, for servers that take one; others register the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// The port of this machine that the browser comes back to, where it was registered; any free one by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
}

/// What calls of a server's tools need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpPermission {
    /// A person is asked.
    #[default]
    Ask,
    /// They run without asking, until outside content has entered the conversation.
    Allow,
}

/// The walls around a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum McpSandbox {
    /// `false`: it runs with the user's own permissions.
    Off(bool),
    Walls(McpWalls),
}

/// What a server inside the sandbox may reach besides the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpWalls {
    /// Directories that it may write, as in `sandbox.write`.
    pub write: Vec<String>,
    /// `["*"]`: the network of this machine; none by default.
    pub network: Vec<String>,
}

impl McpServerConfig {
    /// Its command or address, for people.
    pub fn describe_place(&self) -> String {
        let words = || self.command.iter().map(|word| text::shell_word(word)).collect::<Vec<_>>().join(" ");
        self.url.clone().unwrap_or_else(words)
    }
}

impl Default for McpSandbox {
    fn default() -> Self {
        Self::Off(false)
    }
}

impl McpSandbox {
    /// The walls, if there are any.
    pub fn walls(&self) -> Option<&McpWalls> {
        match self {
            Self::Off(_) => None,
            Self::Walls(walls) => Some(walls),
        }
    }
}

fn yes() -> bool {
    true
}

fn usual_timeout() -> WrittenDuration {
    WrittenDuration::from_secs(60)
}

/// True for an address of the web.
pub fn is_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Why a server cannot have this name, if so: `__` ends a server's name in those of its tools, so one with such a name
/// could take the tools of another.
pub fn refuse_server_name(name: &str) -> Option<String> {
    let is_wrong =
        name.is_empty() || name.contains("__") || name.ends_with('_') || name.contains(char::is_control);
    is_wrong.then(|| format!("`{name}` is no name for a server of tools: `__` divides it from those of its tools"))
}

/// Finds servers that cannot be started or reached.
pub(super) fn check_servers(
    merged: &Merged,
    sources: &Sources,
    servers: &Named<McpServerConfig>,
    mistakes: &mut Vec<Mistake>,
) {
    for (name, server) in servers {
        let Some(node) = merged.get(SubjectKind::Mcp, name) else { continue };
        let mut tell = |key: &str, message: &str| {
            let place = node.get(key).unwrap_or(node).place;
            mistakes.push(Mistake::place_at(sources, place, message));
        };
        if let Some(why) = refuse_server_name(name) {
            tell("name", &why);
        }
        let has_program = server.command.first().is_some_and(|program| !program.trim().is_empty());
        match (&server.url, server.command.is_empty()) {
            (None, true) => tell("command", "a server needs `command` (a list of words) or `url`"),
            (Some(_), false) => tell("url", "a server has `command` or `url`, not both"),
            (Some(url), true) if !is_address(url) => tell("url", "`url` is an http:// or https:// address"),
            (None, false) if !has_program => tell("command", "the command names no program"),
            _ => {}
        }
        if server.url.is_some() && !server.env.is_empty() {
            tell("env", "`env` is for a server with `command`; headers are for one with `url`");
        }
        if server.url.is_none() && !server.headers.is_empty() {
            tell("headers", "`headers` are for a server with `url`; `env` is for one with `command`");
        }
        if let Some(oauth) = &server.oauth {
            if server.url.is_none() {
                tell("oauth", "`oauth` is for a server with `url`");
            }
            if oauth.client_secret.is_some() && oauth.client_id.is_none() {
                tell("oauth", "`oauth.client_secret` belongs to a `client_id`");
            }
            if oauth.client_metadata_url.as_ref().is_some_and(|url| !url.starts_with("https://")) {
                tell("oauth", "`oauth.client_metadata_url` is an https:// address");
            }
        }
        if server.timeout.is_zero() {
            tell("timeout", "`timeout` must be more than nothing");
        }
        match &server.sandbox {
            McpSandbox::Off(true) => {
                tell("sandbox", "`sandbox` is false, or what the server may reach: `{ write: [], network: [] }`");
            }
            McpSandbox::Walls(_) if server.url.is_some() => {
                tell("sandbox", "`sandbox` is for a server with `command`");
            }
            McpSandbox::Walls(walls) if walls.network.iter().any(|host| host != "*") => {
                tell("sandbox", "`sandbox.network` of a server is [] or [\"*\"]");
            }
            _ => {}
        }
    }
}
