//! The table of what a project may set, key by key.

use super::super::document::RULES;
use super::super::source::Kind;

/// How a value may differ from the person's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rule {
    /// Any value: it says something of what the project brings itself.
    Own,
    /// A number that is no larger. Where the person has none, any.
    Lower,
    /// A number that is no smaller.
    Higher,
    /// A duration that is no longer.
    Shorter,
    /// The same for a single tool, whose own value beats one of the settings.
    LowerThan(&'static [&'static str]),
    ShorterThan(&'static [&'static str]),
    /// One of these words, strictest first: the person's, or one before it.
    Stricter(&'static [&'static str]),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The name of an agent that the person or the project has.
    Agent,
    /// Names and globs: what they take in of what the person's take in.
    FewerTools,
    FewerSkills,
    /// Rules that deny or ask, on top of the person's.
    Restricting,
}

/// A key, and its rule.
pub(super) type Row = (&'static [&'static str], Rule);

const LIMITS: [Row; 11] = [
    (&["limits", "max_turns"], Rule::Lower),
    (&["limits", "max_time"], Rule::Shorter),
    (&["limits", "max_tokens"], Rule::Lower),
    (&["limits", "max_cost"], Rule::Lower),
    (&["limits", "tool_timeout"], Rule::Shorter),
    (&["limits", "max_tool_timeout"], Rule::Shorter),
    (&["limits", "tool_idle_timeout"], Rule::Shorter),
    (&["limits", "max_parallel"], Rule::Lower),
    (&["limits", "max_depth"], Rule::Lower),
    (&["limits", "loop_window"], Rule::Higher),
    (&["limits", "loop_threshold"], Rule::Lower),
];

/// Those that make requests smaller. When and how history is compressed costs requests, and is the person's.
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
    // The other modes allow the same calls; what they spend is the person's to decide.
    (&["mode"], Rule::OneOf(&["explore"])),
    (&["plan_approval"], Rule::OneOf(&["true"])),
    (&["roles", "router", "prompt"], Rule::Own),
    (&["roles", "planner", "prompt"], Rule::Own),
    (&["roles", "executor", "prompt"], Rule::Own),
    (&["roles", "reflector", "prompt"], Rule::Own),
];

/// Of models that the person has: a project brings none.
const MODELS: [Row; 4] = [
    (&["name"], Rule::Own),
    (&["temperature"], Rule::Own),
    (&["max_output_tokens"], Rule::Lower),
    (&["context_window"], Rule::Lower),
];

/// Of a tool that is built in, or the person's.
const TOOLS: [Row; 4] = [
    (&["enabled"], Rule::OneOf(&["false"])),
    (&["requires_confirmation"], Rule::OneOf(&["true"])),
    (&["timeout"], Rule::ShorterThan(&["limits", "tool_timeout"])),
    (&["max_tokens"], Rule::LowerThan(&["context", "tool_result_max_tokens"])),
];

/// Of a command that the project brings. It never runs unasked as one that only reads does.
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

/// Of a flow that the project brings: its steps run by the person's policy. It changes none of the person's.
const OWN_FLOWS: [Row; 6] = [
    (&["name"], Rule::Own),
    (&["description"], Rule::Own),
    (&["inputs"], Rule::Own),
    (&["steps"], Rule::Own),
    (&["outputs"], Rule::Own),
    (&["answer"], Rule::Own),
];

/// The keys of an agent that the project adds which it has from the person's default agent, so that it is no wider.
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

/// The rows of a kind. `is_own` is whether the project brings the thing itself.
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

/// True if a project may set the value at `path`, if it narrows; `Some(false)` where only what stands below is judged.
pub(in crate::config) fn is_settable(kind: Kind, is_own: bool, path: &[&str]) -> Option<bool> {
    let rows = table(kind, is_own);
    let is_row = rows.iter().any(|(row, _)| *row == path);
    (is_row || rows.iter().any(|(row, _)| row.starts_with(path))).then_some(is_row)
}
