//! The table of the keys that a project may set.

use super::super::document::RULES;
use super::super::source::SubjectKind;

/// The way in which a value may differ from the user's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NarrowRule {
    /// Any value: it describes something that the project brings itself.
    Own,
    /// A number that is not larger. Any, if the user has none.
    Lower,
    /// A duration that is not longer.
    Shorter,
    /// A number that is not larger, for a single tool, whose own value overrides the settings'.
    LowerThan(&'static [&'static str]),
    /// A number of requests that is not larger than the user's, or than the default for the user's turns.
    FewerRequests,
    ShorterThan(&'static [&'static str]),
    /// One of these words, strictest first: the user's, or one before it.
    Stricter(&'static [&'static str]),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The name of an agent of the user or the project.
    Agent,
    /// Names and globs, which select from those that the user's select.
    FewerTools,
    FewerSkills,
    /// Rules that deny or ask, added to the user's.
    Restricting,
}

/// A key, and its rule.
pub(super) type NarrowRow = (&'static [&'static str], NarrowRule);

const LIMITS: [NarrowRow; 12] = [
    (&["limits", "max_turns"], NarrowRule::Lower),
    (&["limits", "max_requests"], NarrowRule::FewerRequests),
    (&["limits", "max_time"], NarrowRule::Shorter),
    (&["limits", "max_tokens"], NarrowRule::Lower),
    (&["limits", "max_cost"], NarrowRule::Lower),
    (&["limits", "tool_timeout"], NarrowRule::Shorter),
    (&["limits", "max_tool_timeout"], NarrowRule::Shorter),
    (&["limits", "tool_idle_timeout"], NarrowRule::Shorter),
    (&["limits", "max_parallel"], NarrowRule::Lower),
    (&["limits", "max_depth"], NarrowRule::Lower),
    (&["limits", "loop_window"], NarrowRule::Lower),
    (&["limits", "loop_threshold"], NarrowRule::Lower),
];

/// Keys that make requests smaller. The compression of history costs requests, so it is up to the user.
const CONTEXT: [NarrowRow; 2] =
    [(&["context", "budget"], NarrowRule::Lower), (&["context", "tool_result_max_tokens"], NarrowRule::Lower)];

const PERMISSIONS: [NarrowRow; 2] = [
    (&["permissions", "max"], NarrowRule::Stricter(&["read", "write", "admin"])),
    (&RULES, NarrowRule::Restricting),
];

const SETTINGS: [NarrowRow; 1] = [(&["default_agent"], NarrowRule::Agent)];

const AGENTS: [NarrowRow; 14] = [
    (&["name"], NarrowRule::Own),
    (&["description"], NarrowRule::Own),
    (&["system_prompt"], NarrowRule::Own),
    (&["termination_summary_prompt"], NarrowRule::Own),
    (&["compression_prompt"], NarrowRule::Own),
    (&["tools"], NarrowRule::FewerTools),
    (&["skills"], NarrowRule::FewerSkills),
    (&["approval"], NarrowRule::Stricter(&["never", "ask", "edits", "all"])),
    // The other modes allow the same calls; the user decides what they may spend.
    (&["mode"], NarrowRule::OneOf(&["explore"])),
    (&["plan_approval"], NarrowRule::OneOf(&["true"])),
    (&["roles", "router", "prompt"], NarrowRule::Own),
    (&["roles", "planner", "prompt"], NarrowRule::Own),
    (&["roles", "executor", "prompt"], NarrowRule::Own),
    (&["roles", "reflector", "prompt"], NarrowRule::Own),
];

/// For models of the user: a project brings none.
const MODELS: [NarrowRow; 4] = [
    (&["name"], NarrowRule::Own),
    (&["temperature"], NarrowRule::Own),
    (&["max_output_tokens"], NarrowRule::Lower),
    (&["context_window"], NarrowRule::Lower),
];

/// For a tool that is built in, or the user's.
const TOOLS: [NarrowRow; 4] = [
    (&["enabled"], NarrowRule::OneOf(&["false"])),
    (&["requires_confirmation"], NarrowRule::OneOf(&["true"])),
    (&["timeout"], NarrowRule::ShorterThan(&["limits", "tool_timeout"])),
    (&["max_tokens"], NarrowRule::LowerThan(&["context", "tool_result_max_tokens"])),
];

/// For a command that the project brings. It never runs without a question as one that only reads.
const OWN_TOOLS: [NarrowRow; 15] = [
    (&["name"], NarrowRule::Own),
    (&["enabled"], NarrowRule::Own),
    (&["command"], NarrowRule::Own),
    (&["shell"], NarrowRule::Own),
    (&["description"], NarrowRule::Own),
    (&["parameters"], NarrowRule::Own),
    (&["workdir"], NarrowRule::Own),
    (&["env"], NarrowRule::Own),
    (&["effects"], NarrowRule::Own),
    (&["output_format"], NarrowRule::Own),
    (&["requires_confirmation"], NarrowRule::Own),
    (&["permission"], NarrowRule::OneOf(&["write", "admin"])),
    (&["timeout"], NarrowRule::ShorterThan(&["limits", "tool_timeout"])),
    (&["max_tokens"], NarrowRule::LowerThan(&["context", "tool_result_max_tokens"])),
    (&["idempotent"], NarrowRule::OneOf(&["false"])),
];

/// For a flow that the project brings: its steps run under the user's policy. It changes none of the user's flows.
const OWN_FLOWS: [NarrowRow; 6] = [
    (&["name"], NarrowRule::Own),
    (&["description"], NarrowRule::Own),
    (&["inputs"], NarrowRule::Own),
    (&["steps"], NarrowRule::Own),
    (&["outputs"], NarrowRule::Own),
    (&["answer"], NarrowRule::Own),
];

/// The keys that an agent added by the project inherits from the user's default agent, so that it is not wider.
pub(super) const STANDS_ON: [&str; 11] = [
    "model",
    "tools",
    "skills",
    "approval",
    "mode",
    "plan_approval",
    "roles",
    "permissions",
    "limits",
    "context",
    "sandbox",
];

/// The rows of a kind. `is_own` is true if the project brings the thing itself.
pub(super) fn list_rows(kind: SubjectKind, is_own: bool) -> Vec<NarrowRow> {
    match (kind, is_own) {
        (SubjectKind::Settings, _) => [&SETTINGS[..], &LIMITS, &CONTEXT, &PERMISSIONS].concat(),
        (SubjectKind::Agents, _) => [&AGENTS[..], &LIMITS, &CONTEXT, &PERMISSIONS].concat(),
        (SubjectKind::Models, false) => MODELS.to_vec(),
        (SubjectKind::Tools, false) => TOOLS.to_vec(),
        (SubjectKind::Tools, true) => OWN_TOOLS.to_vec(),
        (SubjectKind::Flows, true) => OWN_FLOWS.to_vec(),
        (SubjectKind::Models, true) | (SubjectKind::SessionStores, _) | (SubjectKind::Flows, false) => Vec::new(),
    }
}

/// `Some(true)` if a project may set the value at `path` to narrow it; `Some(false)` if only the values below are
/// judged.
pub(in crate::config) fn is_settable(kind: SubjectKind, is_own: bool, path: &[&str]) -> Option<bool> {
    let rows = list_rows(kind, is_own);
    let is_row = rows.iter().any(|(row, _)| *row == path);
    (is_row || rows.iter().any(|(row, _)| row.starts_with(path))).then_some(is_row)
}
