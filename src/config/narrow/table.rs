//! The table of the keys that a project may set.

use super::super::permissions::ApprovalMode;
use super::super::source::SubjectKind;

/// The way in which a value may differ from the user's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::config) enum NarrowRule {
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

/// Dotted keys, separated by spaces, and the rule of each.
pub(super) type NarrowRow = (&'static str, NarrowRule);

const LIMITS: &[NarrowRow] = &[
    (
        "limits.max_turns limits.max_tokens limits.max_cost limits.max_parallel limits.max_depth \
         limits.loop_window limits.loop_threshold",
        NarrowRule::Lower,
    ),
    ("limits.max_requests", NarrowRule::FewerRequests),
    ("limits.max_time limits.tool_timeout limits.max_tool_timeout limits.tool_idle_timeout", NarrowRule::Shorter),
];

/// Keys that make requests smaller. The compression of history costs requests, so it is up to the user.
const CONTEXT: &[NarrowRow] = &[("context.budget context.tool_result_max_tokens", NarrowRule::Lower)];

const PERMISSIONS: &[NarrowRow] = &[
    ("permissions.max", NarrowRule::Stricter(&["read", "write", "admin"])),
    ("permissions.rules", NarrowRule::Restricting),
];

const SETTINGS: &[NarrowRow] = &[("default_agent", NarrowRule::Agent)];

const AGENTS: &[NarrowRow] = &[
    (
        "name description system_prompt termination_summary_prompt compression_prompt roles.router.prompt \
         roles.planner.prompt roles.executor.prompt roles.reflector.prompt",
        NarrowRule::Own,
    ),
    ("tools", NarrowRule::FewerTools),
    ("skills", NarrowRule::FewerSkills),
    ("approval", NarrowRule::Stricter(&ApprovalMode::STRICTEST_FIRST)),
    // The other modes allow the same calls; the user decides what they may spend.
    ("mode", NarrowRule::OneOf(&["explore"])),
    ("plan_approval", NarrowRule::OneOf(&["true"])),
    ("plans", NarrowRule::OneOf(&["false"])),
];

/// For models of the user: a project brings none.
const MODELS: &[NarrowRow] =
    &[("name temperature", NarrowRule::Own), ("max_output_tokens context_window", NarrowRule::Lower)];

/// For every tool.
const TOOL_LIMITS: &[NarrowRow] = &[
    ("timeout", NarrowRule::ShorterThan(&["limits", "tool_timeout"])),
    ("max_tokens", NarrowRule::LowerThan(&["context", "tool_result_max_tokens"])),
];

/// For a tool that is built in, or the user's.
const TOOLS: &[NarrowRow] =
    &[("enabled", NarrowRule::OneOf(&["false"])), ("requires_confirmation", NarrowRule::OneOf(&["true"]))];

/// For a command that the project brings. It never runs without a question as one that only reads.
const OWN_TOOLS: &[NarrowRow] = &[
    (
        "name enabled command shell description parameters workdir env effects output_format requires_confirmation",
        NarrowRule::Own,
    ),
    ("permission", NarrowRule::OneOf(&["write", "admin"])),
    ("idempotent", NarrowRule::OneOf(&["false"])),
];

/// For a flow that the project brings: its steps run under the user's policy. It changes none of the user's flows.
const OWN_FLOWS: &[NarrowRow] = &[("name description inputs steps outputs answer", NarrowRule::Own)];

/// For a server of tools that the project brings: its calls always ask, and it runs inside walls.
const OWN_SERVERS: &[NarrowRow] = &[
    ("name enabled command env url headers oauth tools timeout", NarrowRule::Own),
    ("permission", NarrowRule::OneOf(&["ask"])),
];

/// For a hook that the project brings: it runs inside the walls of commands.
const OWN_HOOKS: &[NarrowRow] = &[
    ("name enabled on match command speaks time_limit", NarrowRule::Own),
    ("trusted", NarrowRule::OneOf(&["false"])),
];

/// The keys that an agent added by the project inherits from the user's default agent, so that it is not wider.
pub(super) const STANDS_ON: &str =
    "model tools skills approval mode plan_approval plans roles permissions limits context sandbox";

/// The keys of a kind with their rules. `is_own` is true if the project brings the thing itself.
pub(super) fn list_keys(kind: SubjectKind, is_own: bool) -> impl Iterator<Item = (&'static str, NarrowRule)> {
    let parts: &[&[NarrowRow]] = match (kind, is_own) {
        (SubjectKind::Settings, _) => &[SETTINGS, LIMITS, CONTEXT, PERMISSIONS],
        (SubjectKind::Agents, _) => &[AGENTS, LIMITS, CONTEXT, PERMISSIONS],
        (SubjectKind::Models, false) => &[MODELS],
        (SubjectKind::Tools, false) => &[TOOLS, TOOL_LIMITS],
        (SubjectKind::Tools, true) => &[OWN_TOOLS, TOOL_LIMITS],
        (SubjectKind::Flows, true) => &[OWN_FLOWS],
        (SubjectKind::Mcp, true) => &[OWN_SERVERS],
        (SubjectKind::Hooks, true) => &[OWN_HOOKS],
        (SubjectKind::Models, true)
        | (SubjectKind::SessionStores, _)
        | (SubjectKind::Flows | SubjectKind::Mcp | SubjectKind::Hooks, false) => &[],
    };
    let rows = parts.iter().copied().flatten();
    rows.flat_map(|(keys, rule)| keys.split_whitespace().map(move |key| (key, *rule)))
}

/// How a project may set the value at a path.
pub(in crate::config) enum RuleOfPath {
    Rule(NarrowRule),
    /// Only the values below it have rules.
    Section,
    /// Not at all.
    Unknown,
}

/// Finds the rule for the value at `path`.
pub(in crate::config) fn find_rule(kind: SubjectKind, is_own: bool, path: &[&str]) -> RuleOfPath {
    let leads_there = |key: &str| key.split('.').take(path.len()).eq(path.iter().copied());
    match list_keys(kind, is_own).find(|(key, _)| leads_there(key)) {
        None => RuleOfPath::Unknown,
        Some((key, rule)) if key.split('.').count() == path.len() => RuleOfPath::Rule(rule),
        Some(_) => RuleOfPath::Section,
    }
}
