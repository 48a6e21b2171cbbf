//! The shape of `hooks/NAME.yaml`: a command that runs at an event of a run, and may have its say.

use std::time::Duration;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::duration::WrittenDuration;
use super::merge::Merged;
use super::mistake::Mistake;
use super::peer_tools::find_own_tool;
use super::settings::Named;
use super::source::{Sources, SubjectKind};
use crate::base::text::GlobPattern;

/// The longest time limit.
const LONGEST: Duration = Duration::from_mins(10);

/// One hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The name of the file.
    pub name: String,
    /// A disabled hook does not run.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The event at which it runs.
    pub on: HookEvent,
    /// The calls at which it runs; every one without. Only for events of tools.
    #[serde(default, rename = "match")]
    pub matches: HookMatch,
    /// Program and arguments. It gets one JSON object on stdin.
    pub command: Vec<String>,
    /// The longest that it may take.
    #[serde(default = "usual_limit")]
    pub time_limit: WrittenDuration,
    /// The names of tools and of their arguments that it reads and writes.
    #[serde(default)]
    pub speaks: HookSpeech,
    /// True: it runs outside of the sandbox.
    #[serde(default)]
    pub trusted: bool,
}

/// The names that a hook knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookSpeech {
    #[default]
    Own,
    /// Those of Claude Code: `Bash`, `file_path`.
    Claude,
}

/// The calls at which a hook runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HookMatch {
    /// Names of tools, separated by `|`; `*` stands for any letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A glob for the files that a call names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl HookConfig {
    /// The patterns for names of tools; `None` if every tool is meant.
    ///
    /// # Errors
    /// One of them is none.
    pub fn compile_tools(&self) -> Result<Option<Vec<GlobPattern>>, String> {
        let compile = |name| GlobPattern::word(&own_tool_name(name, self.speaks));
        self.matches.tool.as_deref().map(|tool| tool.split('|').map(compile).collect()).transpose()
    }
}

/// Our name for one of `match.tool`. A hook of Claude Code may have its names.
pub(super) fn own_tool_name(name: &str, speaks: HookSpeech) -> String {
    let theirs = (speaks == HookSpeech::Claude).then(|| find_own_tool(name.trim())).flatten();
    theirs.unwrap_or_else(|| name.trim().to_owned())
}

/// What a hook runs at. The names of Claude Code are read too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(transform = add_peer_names)]
pub enum HookEvent {
    /// A conversation begins or goes on.
    #[serde(alias = "SessionStart")]
    SessionStart,
    /// A person sent a message.
    #[serde(alias = "UserPromptSubmit")]
    Prompt,
    /// Before a call, and before a person is asked about it.
    #[serde(alias = "PreToolUse")]
    BeforeTool,
    /// After a call.
    #[serde(alias = "PostToolUse")]
    AfterTool,
    /// A person is about to be asked about a call.
    #[serde(alias = "PermissionRequest")]
    Permission,
    /// The conversation is about to be compressed.
    #[serde(alias = "PreCompact")]
    BeforeCompress,
    /// The agent has answered.
    #[serde(alias = "Stop")]
    Stop,
    /// A person leaves a conversation, or a run has ended.
    #[serde(alias = "SessionEnd")]
    SessionEnd,
    /// A person is asked something.
    #[serde(alias = "Notification")]
    Notify,
}

impl HookEvent {
    /// Its name in files, and that of Claude Code.
    pub fn names(self) -> [&'static str; 2] {
        match self {
            Self::SessionStart => ["session_start", "SessionStart"],
            Self::Prompt => ["prompt", "UserPromptSubmit"],
            Self::BeforeTool => ["before_tool", "PreToolUse"],
            Self::AfterTool => ["after_tool", "PostToolUse"],
            Self::Permission => ["permission", "PermissionRequest"],
            Self::BeforeCompress => ["before_compress", "PreCompact"],
            Self::Stop => ["stop", "Stop"],
            Self::SessionEnd => ["session_end", "SessionEnd"],
            Self::Notify => ["notify", "Notification"],
        }
    }
}

/// The schema has our names alone: aliases are no part of it.
fn add_peer_names(schema: &mut Schema) {
    let Some(Value::Array(forms)) = schema.ensure_object().get_mut("oneOf") else { return };
    let events = forms.iter().filter_map(|form| HookEvent::deserialize(&form["const"]).ok());
    let peers: Vec<&str> = events.map(|event| event.names()[1]).collect();
    forms.push(json!({ "type": "string", "enum": peers, "description": "The names of Claude Code." }));
}

fn yes() -> bool {
    true
}

fn usual_limit() -> WrittenDuration {
    WrittenDuration::from_secs(10)
}

/// Finds hooks that cannot run.
pub(super) fn check_hooks(
    merged: &Merged,
    sources: &Sources,
    hooks: &Named<HookConfig>,
    mistakes: &mut Vec<Mistake>,
) {
    for (name, hook) in hooks {
        let Some(node) = merged.get(SubjectKind::Hooks, name) else { continue };
        let mut tell = |key: &str, message: &str| {
            let place = node.get(key).unwrap_or(node).place;
            mistakes.push(Mistake::place_at(sources, place, message));
        };
        if hook.command.first().is_none_or(|program| program.trim().is_empty()) {
            tell("command", "the command names no program");
        }
        if hook.time_limit.is_zero() || *hook.time_limit > LONGEST {
            tell("time_limit", "`time_limit` must be more than nothing and at most 10m");
        }
        if let Some(Err(why)) = hook.matches.path.as_deref().map(GlobPattern::path) {
            tell("match", &format!("`match.path` is no pattern: {why}"));
        }
        if let Err(why) = hook.compile_tools() {
            tell("match", &format!("`match.tool` is no pattern: {why}"));
        }
        if hook.matches != HookMatch::default()
            && !matches!(hook.on, HookEvent::BeforeTool | HookEvent::AfterTool | HookEvent::Permission)
        {
            tell("match", "`match` is for before_tool, after_tool and permission");
        }
    }
}
