//! The table of the keys that a project may set.

use super::super::document::RULES;
use super::super::source::Kind;

/// The way in which a value may differ from the user's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rule {
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
pub(super) type Row = (&'static [&'static str], Rule);

const LIMITS: [Row; 12] = [
    (&["limits", "max_turns"], Rule::Lower),
    (&["limits", "max_requests"], Rule::FewerRequests),
    (&["limits", "max_time"], Rule::Shorter),
    (&["limits", "max_tokens"], Rule::Lower),
    (&["limits", "max_cost"], Rule::Lower),
    (&["limits", "tool_timeout"], Rule::Shorter),
    (&["limits", "max_tool_timeout"], Rule::Shorter),
    (&["limits", "tool_idle_timeout"], Rule::Shorter),
    (&["limits", "max_parallel"], Rule::Lower),
    (&["limits", "max_depth"], Rule::Lower),
    (&["limits", "loop_window"], Rule::Lower),
    (&["limits", "loop_threshold"], Rule::Lower),
];

/// Keys that make requests smaller. The compression of history costs requests, so it is up to the user.
const CONTEXT: [Row; 2] =
    [(&["context", "budget"], Rule::Lower), (&["context", "tool_result_max_tokens"], Rule::Lower)];

const PERMISSIONS: [Row; 2] =
    [(&["permissions", "max"], Rule::Stricter(&["read", "write", "admin"])), (&RULES, Rule::Restricting)];

const SETTINGS: [Row; 1] = [(&["default_agent"], Rule::Agent)];

const AGENTS: [Row; 14] = [
    (&["name"], Rule::Own),
    (&["description"], Rule::Own),
    (&["system_prompt"], Rule::Own),
    (&["termination_summary_prompt"], Rule::Own),
    (&["compression_prompt"], Rule::Own),
    (&["tools"], Rule::FewerTools),
    (&["skills"], Rule::FewerSkills),
    (&["approval"], Rule::Stricter(&["never", "ask", "edits", "all"])),
    // The other modes allow the same calls; the user decides what they may spend.
    (&["mode"], Rule::OneOf(&["explore"])),
    (&["plan_approval"], Rule::OneOf(&["true"])),
    (&["roles", "router", "prompt"], Rule::Own),
    (&["roles", "planner", "prompt"], Rule::Own),
    (&["roles", "executor", "prompt"], Rule::Own),
    (&["roles", "reflector", "prompt"], Rule::Own),
];

/// For models of the user: a project brings none.
const MODELS: [Row; 4] = [
    (&["name"], Rule::Own),
    (&["temperature"], Rule::Own),
    (&["max_output_tokens"], Rule::Lower),
    (&["context_window"], Rule::Lower),
];

/// For a tool that is built in, or the user's.
const TOOLS: [Row; 4] = [
    (&["enabled"], Rule::OneOf(&["false"])),
    (&["requires_confirmation"], Rule::OneOf(&["true"])),
    (&["timeout"], Rule::ShorterThan(&["limits", "tool_timeout"])),
    (&["max_tokens"], Rule::LowerThan(&["context", "tool_result_max_tokens"])),
];

/// For a command that the project brings. It never runs without a question as one that only reads.
const OWN_TOOLS: [Row; 15] = [
    (&["name"], Rule::Own),
    (&["enabled"], Rule::Own),
    (&["command"], Rule::Own),
    (&["shell"], Rule::Own),
    (&["description"], Rule::Own),
    (&["parameters"], Rule::Own),
    (&["workdir"], Rule::Own),
    (&["env"], Rule::Own),
    (&["effects"], Rule::Own),
    (&["output_format"], Rule::Own),
    (&["requires_confirmation"], Rule::Own),
    (&["permission"], Rule::OneOf(&["write", "admin"])),
    (&["timeout"], Rule::ShorterThan(&["limits", "tool_timeout"])),
    (&["max_tokens"], Rule::LowerThan(&["context", "tool_result_max_tokens"])),
    (&["idempotent"], Rule::OneOf(&["false"])),
];

/// For a flow that the project brings: its steps run under the user's policy. It changes none of the user's flows.
const OWN_FLOWS: [Row; 6] = [
    (&["name"], Rule::Own),
    (&["description"], Rule::Own),
    (&["inputs"], Rule::Own),
    (&["steps"], Rule::Own),
    (&["outputs"], Rule::Own),
    (&["answer"], Rule::Own),
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
pub(super) fn table(kind: Kind, is_own: bool) -> Vec<Row> {
    match (kind, is_own) {
        (Kind::Settings, _) => [&SETTINGS[..], &LIMITS, &CONTEXT, &PERMISSIONS].concat(),
        (Kind::Agents, _) => [&AGENTS[..], &LIMITS, &CONTEXT, &PERMISSIONS].concat(),
        (Kind::Models, false) => MODELS.to_vec(),
        (Kind::Tools, false) => TOOLS.to_vec(),
        (Kind::Tools, true) => OWN_TOOLS.to_vec(),
        (Kind::Flows, true) => OWN_FLOWS.to_vec(),
        (Kind::Models, true) | (Kind::SessionStores, _) | (Kind::Flows, false) => Vec::new(),
    }
}

/// `Some(true)` if a project may set the value at `path` to narrow it; `Some(false)` if only the values below are
/// judged.
pub(in crate::config) fn is_settable(kind: Kind, is_own: bool, path: &[&str]) -> Option<bool> {
    let rows = table(kind, is_own);
    let is_row = rows.iter().any(|(row, _)| *row == path);
    (is_row || rows.iter().any(|(row, _)| row.starts_with(path))).then_some(is_row)
}
