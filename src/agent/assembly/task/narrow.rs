//! Narrows the settings of a helper to be no wider than those of the agent that calls it. Pure functions.

use std::time::Duration;

use crate::config::{
    AgentConfig, ApprovalMode, Permission, PermissionRule, RuleEffect, SandboxMode, SandboxSettings,
    WrittenDuration,
};

/// The bounds that the caller sets.
pub(super) struct Caller<'a> {
    pub settings: &'a AgentConfig,
    /// The names of the caller's tools.
    pub tools: &'a [String],
    /// The time that the caller has left.
    pub time: Option<Duration>,
}

/// Returns the settings of `helper` when `caller` calls it.
pub(super) fn narrow_helper(helper: &AgentConfig, caller: &Caller<'_>) -> AgentConfig {
    let above = caller.settings;
    let mut own = helper.clone();
    own.model = helper.model.clone().or_else(|| Some(above.model_name().to_owned()));
    own.approval = choose_stricter(helper.approval, above.approval);
    own.permissions.max = helper.permissions.max.min(above.permissions.max);
    own.permissions.rules = combine_rules(&above.permissions.rules, &helper.permissions.rules);
    own.sandbox = combine_sandboxes(&above.sandbox, &helper.sandbox);
    own.narrowed.tools.push(caller.tools.to_vec());
    own.narrowed.skills.push(above.skills.clone());
    own.narrowed.skills.extend(above.narrowed.skills.iter().cloned());
    // Whole seconds read better.
    let left =
        caller.time.map(|left| if left.as_secs() == 0 { left } else { Duration::from_secs(left.as_secs()) });
    own.limits.max_time = [own.limits.max_time, left.map(WrittenDuration)].into_iter().flatten().min();
    own.limits.max_parallel = own.limits.max_parallel.min(above.limits.max_parallel);
    own.limits.max_depth = own.limits.max_depth.min(above.limits.max_depth.saturating_sub(1));
    own
}

/// True if the helper could change nothing, wherever it is called from.
pub(super) fn only_reads(helper: &AgentConfig, caller: &AgentConfig) -> bool {
    helper.permissions.max.min(caller.permissions.max) == Permission::Read
}

fn choose_stricter(a: ApprovalMode, b: ApprovalMode) -> ApprovalMode {
    /// Strictest first.
    const ORDER: [ApprovalMode; 5] =
        [ApprovalMode::Never, ApprovalMode::Ask, ApprovalMode::Auto, ApprovalMode::Edits, ApprovalMode::All];
    ORDER.into_iter().find(|mode| *mode == a || *mode == b).unwrap_or(a)
}

/// Combines rules: everything that either side denies or asks about, and only what both allow.
fn combine_rules(above: &[PermissionRule], own: &[PermissionRule]) -> Vec<PermissionRule> {
    let is_allow = |rule: &&PermissionRule| rule.subject().is_some_and(|(effect, _)| effect == RuleEffect::Allow);
    let added = own.iter().filter(|rule| !above.contains(rule) && !is_allow(rule));
    let kept = above.iter().filter(|rule| !is_allow(rule) || own.contains(rule));
    kept.chain(added).cloned().collect()
}

fn combine_sandboxes(above: &SandboxSettings, own: &SandboxSettings) -> SandboxSettings {
    let is_on = [above, own].iter().any(|settings| settings.mode == SandboxMode::On);
    // Without a sandbox, the caller itself can write and reach anything.
    let is_open = above.mode == SandboxMode::Off;
    SandboxSettings {
        mode: if is_on { SandboxMode::On } else { SandboxMode::Off },
        write: if is_open { own.write.clone() } else { join_lists(&above.write, &own.write) },
        network: match (is_open || above.reaches_all(), own.reaches_all()) {
            (true, _) => own.network.clone(),
            (false, true) => above.network.clone(),
            (false, false) => join_lists(&above.network, &own.network),
        },
        env: join_lists(&above.env, &own.env),
    }
}

fn join_lists(above: &[String], own: &[String]) -> Vec<String> {
    own.iter().filter(|entry| above.contains(entry)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn agent(over: Value) -> AgentConfig {
        let mut whole = json!({
            "name": "a",
            "limits": {
                "max_turns": 30, "max_requests": null, "max_time": "10m", "max_tokens": null, "max_cost": null, "tool_timeout": "10s",
                "max_tool_timeout": "10s", "tool_idle_timeout": null, "max_parallel": 4, "max_depth": 1,
                "loop_window": 12, "loop_threshold": 3,
            },
            "context": {
                "budget": null, "compress_at": 0.8, "compress_to": 0.5, "keep_recent": 0.2, "strategy": "staged",
                "layers": { "system": 0.5, "context": 0.6, "input": 0.8, "reminders": 0.2 },
                "reserve_output": null, "tool_result_max_tokens": 8000,
            },
            "tool_output": { "format": "concise", "encoding": "text" },
        });
        for (key, value) in over.as_object().expect("an object") {
            match value.as_object().filter(|_| whole[key].is_object()) {
                Some(inner) => inner.iter().for_each(|(name, value)| whole[key][name] = value.clone()),
                None => whole[key] = value.clone(),
            }
        }
        serde_json::from_value(whole).expect("settings")
    }

    /// The value that a helper gets for a key, given the caller's value and its own.
    fn got(path: &str, (callers, own): (Value, Value)) -> Value {
        let over = |value: Value| match path.split_once('.') {
            Some((section, key)) => agent(json!({ section: { key: value } })),
            None => agent(json!({ path: value })),
        };
        let above = over(callers);
        let caller = Caller { settings: &above, tools: &[], time: Some(Duration::from_mins(5)) };
        let whole = serde_json::to_value(narrow_helper(&over(own), &caller)).expect("data");
        whole.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default()
    }

    #[test]
    fn a_helper_gets_no_more_than_its_caller_and_no_more_than_its_own() {
        let (deny, ask) = (json!({ "deny": "*", "path": "x/**" }), json!({ "ask": "run_command" }));
        let (allow, other) = (json!({ "allow": "write_file" }), json!({ "allow": "edit_file" }));
        for (path, callers, own, expected) in [
            ("permissions.max", json!("read"), json!("admin"), json!("read")),
            ("permissions.max", json!("admin"), json!("read"), json!("read")),
            ("permissions.rules", json!([deny]), json!([ask]), json!([deny, ask])),
            ("permissions.rules", json!([allow, deny]), json!([other]), json!([deny])),
            ("permissions.rules", json!([allow]), json!([allow, other]), json!([allow])),
            ("approval", json!("ask"), json!("all"), json!("ask")),
            ("approval", json!("all"), json!("edits"), json!("edits")),
            ("approval", json!("never"), json!("all"), json!("never")),
            ("sandbox.mode", json!("on"), json!("off"), json!("on")),
            ("sandbox.mode", json!("off"), json!("on"), json!("on")),
            ("sandbox.mode", json!("off"), json!("off"), json!("off")),
            ("sandbox.write", json!(["a"]), json!(["a", "b"]), json!(["a"])),
            ("sandbox.network", json!([]), json!(["*"]), json!([])),
            ("sandbox.network", json!(["*"]), json!(["x.org"]), json!(["x.org"])),
            ("sandbox.network", json!(["x.org"]), json!(["x.org", "y.org"]), json!(["x.org"])),
            ("sandbox.env", json!(["A"]), json!(["A", "B"]), json!(["A"])),
            ("limits.max_time", json!("10m"), json!("1h"), json!("5m")),
            ("limits.max_time", json!("10m"), json!("1m"), json!("1m")),
            ("limits.max_turns", json!(3), json!(9), json!(9)),
            ("limits.max_parallel", json!(2), json!(9), json!(2)),
            ("limits.max_depth", json!(1), json!(5), json!(0)),
            ("limits.max_depth", json!(3), json!(1), json!(1)),
            ("model", json!("big"), Value::Null, json!("big")),
            ("model", json!("big"), json!("small"), json!("small")),
        ] {
            let what = format!("{path}: {callers} and {own}");
            assert_eq!(got(path, (callers, own)), expected, "{what}");
        }
    }

    #[test]
    fn the_lists_of_the_caller_hold_for_the_helper() {
        let above = agent(json!({ "skills": ["a-*"] }));
        let tools = ["read_file".to_owned()];
        let caller = Caller { settings: &above, tools: &tools, time: None };
        let own = narrow_helper(&agent(json!({})), &caller);
        assert_eq!(own.narrowed.tools, [["read_file"]]);
        assert_eq!(own.narrowed.skills, [["a-*"]]);
    }
}
