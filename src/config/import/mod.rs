//! What a person set up for another agent, in the words of this one: read from that agent's own files in the home or in a
//! project, each entry accounted for. Nothing of theirs is changed, and no key is copied: an entry names its variable instead.

mod agents;
mod claude;
mod codex;
mod home;
mod installed;
mod keys;
mod others;
mod parts;
mod plugin;
mod settle;
mod tree;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::base::spelling::spell;

use home::ForeignHome;

pub use installed::{PluginLock, digest_plugin, plugin_root, read_plugin_files};
pub use plugin::{ForeignPlugin, read_plugin};
pub use settle::{EntryState, settle_entries, write_entry};

/// An agent whose setup can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignAgent {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Crush,
    Goose,
    Aider,
    /// The servers of an `.mcp.json` in the workspace, which others wrote: only by name.
    #[serde(rename = "mcp.json")]
    McpJson,
}

impl ForeignAgent {
    /// All, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Crush,
        Self::Goose,
        Self::Aider,
        Self::McpJson,
    ];

    /// The word that the command line takes.
    pub fn word(self) -> &'static str {
        spell(&self)
    }
}

/// One thing that another agent was set up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportEntry {
    pub agent: ForeignAgent,
    /// `server`, `hook`, `rule`, …
    pub kind: &'static str,
    pub name: String,
    pub plan: EntryPlan,
    /// How it differs from theirs, or why it is not taken; empty if it is taken as it is.
    pub note: String,
}

/// What becomes of an entry. Paths are within the configuration directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryPlan {
    /// A file with this text.
    Write(PathBuf, String),
    /// A copy of this directory.
    Copy(PathBuf, PathBuf),
    /// Entries of a list of `agent.yaml`, as YAML.
    List(SettingsList, Vec<String>),
    /// It is used where it is.
    Used,
    /// Not possible.
    Left,
}

/// A list of `agent.yaml` that several entries fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsList {
    Rules,
    Directories,
}

impl SettingsList {
    /// Its key, and that of the mapping that it is in.
    pub fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Rules => ["permissions", "rules"],
            Self::Directories => ["sandbox", "write"],
        }
    }
}

/// Everything that these agents were set up with, in the home or in the workspace. Files that cannot be read are entries
/// that say so.
pub fn read_setups(agents: &[ForeignAgent], home: &Path, workspace: &Path, is_project: bool) -> Vec<ImportEntry> {
    let (mut all, mut keys) = (Vec::new(), keys::KeyVariables::new());
    for agent in agents {
        let mut home = ForeignHome::new(*agent, if is_project { workspace } else { home }, workspace);
        home.is_project = is_project;
        home.keys = std::mem::take(&mut keys);
        match agent {
            ForeignAgent::Claude => claude::read_claude(&mut home),
            ForeignAgent::Codex => codex::read_codex(&mut home),
            ForeignAgent::Gemini => others::read_gemini(&mut home),
            ForeignAgent::Opencode => others::read_opencode(&mut home),
            ForeignAgent::Crush => others::read_crush(&mut home),
            ForeignAgent::Goose => others::read_goose(&mut home),
            ForeignAgent::Aider => others::read_aider(&mut home),
            ForeignAgent::McpJson => others::read_mcp_json(&mut home),
        }
        all.extend(home.entries);
        keys = home.keys;
    }
    settle::drop_repeated(&mut all);
    all
}
