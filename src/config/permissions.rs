//! The shape of `permissions`: the highest level of tools, and the rules over tools, paths and commands.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::spelling::spell;

/// The calls that run without asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// `edits` in a chat where every change can be taken back, else `ask`.
    #[default]
    Auto,
    /// Reading runs; writing and executing ask.
    Ask,
    /// Changes inside the workspace run as well: edits, and commands inside whole walls.
    Edits,
    /// Everything runs.
    All,
    /// Calls that would ask are refused.
    Never,
}

impl ApprovalMode {
    /// The names, the strictest first.
    pub const STRICTEST_FIRST: [&str; 5] = ["never", "ask", "auto", "edits", "all"];

    /// True if this lets nothing run unasked that `other` asks about.
    pub fn is_within(self, other: Self) -> bool {
        let rank = |mode: Self| Self::STRICTEST_FIRST.iter().position(|name| *name == mode.name());
        rank(self) <= rank(other)
    }

    /// Every mode, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Ask, Self::Edits, Self::All, Self::Never];

    /// The name in flags and files.
    pub fn name(self) -> &'static str {
        spell(&self)
    }

    /// The calls that run without a question, in a few words.
    pub fn explain(self) -> &'static str {
        match self {
            Self::Auto => "edits in a chat where every change can be taken back, else ask",
            Self::Ask => "reading runs; writing and executing ask",
            Self::Edits => "edits, and commands inside the walls, run as well",
            Self::All => "everything runs",
            Self::Never => "what would ask is refused",
        }
    }

    /// The mode of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// `permissions` in `agent.yaml`, and in an agent, whose rules are added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionSettings {
    /// Tools above this level are not shown to the model.
    pub max: Permission,
    /// Deny wins, then ask, then allow.
    pub rules: Vec<PermissionRule>,
}

/// The level of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    Read,
    #[default]
    Write,
    Admin,
}

/// One rule: `{ deny: write_file, path: "secrets/**" }`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// The tool whose calls are denied: a name or a glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// The tool about whose calls a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The tool whose calls run without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// A glob over the paths that a call reads and writes, links followed: relative to the workspace, or absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Globs over the words of a command, one each; a last `*` stands for any further words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEffect {
    Deny,
    Ask,
    Allow,
}

impl PermissionRule {
    /// The effect of the rule and the tool whose calls it covers; `None` unless it states exactly one effect.
    pub fn subject(&self) -> Option<(RuleEffect, &str)> {
        match (&self.deny, &self.ask, &self.allow) {
            (Some(tool), None, None) => Some((RuleEffect::Deny, tool)),
            (None, Some(tool), None) => Some((RuleEffect::Ask, tool)),
            (None, None, Some(tool)) => Some((RuleEffect::Allow, tool)),
            _ => None,
        }
    }
}

/// Formats it as it would be written: `deny: write_file, path: secrets/**`.
impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subjects = [("deny", &self.deny), ("ask", &self.ask), ("allow", &self.allow), ("path", &self.path)];
        let mut parts: Vec<String> = subjects
            .into_iter()
            .filter_map(|(key, value)| value.as_ref().map(|value| format!("{key}: {value}")))
            .collect();
        parts.extend(self.command.as_ref().map(|words| format!("command: [{}]", words.join(", "))));
        f.write_str(&parts.join(", "))
    }
}
