//! Finds values of the right type that make no sense.

use std::collections::BTreeMap;

use super::api_key::ApiKey;
use super::children::is_pattern;
use super::merge::Merged;
use super::model::{ModelConfig, ModelProvider, PriceTier};
use super::permissions::PermissionSettings;
use super::sandbox::SandboxSettings;
use super::settings::{AgentConfig, ContextSettings, Limits, Named, Settings, SkillSettings, TelemetrySettings};
use super::source::SubjectKind;
use crate::base::secrets::Secret;
use crate::base::text::GlobPattern;

/// Takes the kind, the name, the path and the mistake.
pub(super) type MistakeReport<'r> = dyn FnMut(SubjectKind, &str, &[&str], &str) + 'r;

/// `settings`, `agents` and `models` are the readable parts of `merged`, with defaults for unreadable values. Relations
/// of two values are checked only if the section could be read as a whole.
pub(super) fn check_rules(
    merged: &Merged,
    settings: Option<&Settings>,
    agents: &Named<AgentConfig>,
    models: &Named<ModelConfig>,
    report: &mut MistakeReport<'_>,
) {
    let mut settings_agree = true;
    let is_whole = |kind: SubjectKind, name: &str, section: &str| {
        let node = merged.get(kind, name).and_then(|node| node.get(section));
        node.is_none_or(|node| match section {
            "limits" => node.read::<Limits>().is_ok(),
            _ => node.read::<ContextSettings>().is_ok(),
        })
    };
    if let Some(settings) = settings {
        let mut seen = |path: &[&str], message: &str| {
            settings_agree = false;
            report(SubjectKind::Settings, "", path, message);
        };
        check_limits(&settings.limits, is_whole(SubjectKind::Settings, "", "limits"), &mut seen);
        check_context(&settings.context, is_whole(SubjectKind::Settings, "", "context"), &mut seen);
        check_sandbox(&settings.sandbox, &mut seen);
        check_permissions(&settings.permissions, &mut seen);
        measure_settled(&settings.telemetry, &mut seen);
        check_skills(&settings.skills, &mut seen);
        if settings.templates.timeout.is_zero() {
            seen(&["templates", "timeout"], "must be more than 0");
        }
    }
    for (name, agent) in agents {
        // Inherited values were reported at their source.
        let own = |same: bool| settings_agree || !same;
        let inherits = settings
            .is_some_and(|s| s.limits == agent.limits && s.context == agent.context && s.sandbox == agent.sandbox);
        if own(inherits) {
            let mut seen = |path: &[&str], message: &str| report(SubjectKind::Agents, name, path, message);
            check_limits(&agent.limits, is_whole(SubjectKind::Agents, name, "limits"), &mut seen);
            check_context(&agent.context, is_whole(SubjectKind::Agents, name, "context"), &mut seen);
            check_sandbox(&agent.sandbox, &mut seen);
        }
        check_permissions(&agent.permissions, &mut |path, message| {
            report(SubjectKind::Agents, name, path, message);
        });
    }
    for (name, config) in models {
        let is_absent = |key: &str| {
            merged
                .get(SubjectKind::Models, name)
                .and_then(|node| node.get(key))
                .is_none_or(|node| node.fits("null"))
        };
        check_model(config, &is_absent, &mut |path, message| report(SubjectKind::Models, name, path, message));
    }
}

fn check_limits(limits: &Limits, is_whole: bool, report: &mut dyn FnMut(&[&str], &str)) {
    let rules: [(&str, bool, &str); 11] = [
        ("max_requests", limits.max_requests != Some(0), "at least 1, or null for ten times max_turns"),
        ("max_turns", limits.max_turns != Some(0), "at least 1, or null for no limit"),
        ("max_tokens", limits.max_tokens != Some(0), "at least 1, or null for no limit"),
        (
            "max_time",
            limits.max_time.is_none_or(|time| !time.is_zero()),
            "more than nothing, or null for no limit",
        ),
        ("max_cost", limits.max_cost.is_none_or(|cost| cost > 0.0), "more than 0, or null for no limit"),
        ("max_parallel", limits.max_parallel >= 1, "at least 1"),
        ("tool_timeout", !limits.tool_timeout.is_zero(), "more than nothing"),
        ("max_tool_timeout", !is_whole || limits.max_tool_timeout >= limits.tool_timeout, "at least tool_timeout"),
        (
            "tool_idle_timeout",
            limits.tool_idle_timeout.is_none_or(|time| !time.is_zero()),
            "more than nothing, or null for no limit",
        ),
        ("loop_window", limits.loop_window >= 2, "at least 2: one call is no loop"),
        ("loop_threshold", limits.loop_threshold >= 2, "at least 2: one call is no loop"),
    ];
    report_rules("limits", &rules, report);
}

fn check_context(context: &ContextSettings, is_whole: bool, report: &mut dyn FnMut(&[&str], &str)) {
    let (at, to) = (context.compress_at, context.compress_to);
    let rules: [(&str, bool, &str); 5] = [
        ("compress_at", at.is_sound(), "a share of the budget: more than 0, at most 1"),
        (
            "compress_to",
            to.is_sound() && (!is_whole || to.value() < at.value()),
            "a share of the budget, smaller than compress_at",
        ),
        ("keep_recent", (0.0..=1.0).contains(&context.keep_recent.value()), "a share of the budget: from 0 to 1"),
        ("budget", context.budget != Some(0), "at least 1, or null for the model's window"),
        ("tool_result_max_tokens", context.tool_result_max_tokens >= 1, "at least 1"),
    ];
    report_rules("context", &rules, report);
    let layers = &context.layers;
    for (key, share) in [
        ("system", layers.system),
        ("context", layers.context),
        ("input", layers.input),
        ("reminders", layers.reminders),
    ] {
        if !share.is_sound() {
            let message = format!("`{key}` must be a share of the budget: more than 0, at most 1");
            report(&["context", "layers", key], &message);
        }
    }
}

/// A name or an address, with `*.` before it for all names below, and a port after it.
fn is_host(host: &str) -> bool {
    let host = host.strip_prefix("*.").unwrap_or(host);
    let of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '[' | ']' | '_');
    host.chars().any(|c| c.is_ascii_alphanumeric()) && host.chars().all(of_host)
}

fn check_sandbox(sandbox: &SandboxSettings, report: &mut dyn FnMut(&[&str], &str)) {
    if let Some(host) = sandbox.network.iter().find(|host| *host != SandboxSettings::ANY_HOST && !is_host(host)) {
        let message = format!(
            "`{host}` is not a host: `network` names hosts (crates.io, *.example.com, localhost:8080), or is [\"*\"] for any"
        );
        report(&["sandbox", "network"], &message);
    }
    if sandbox.write.iter().any(|dir| dir.trim().is_empty()) {
        report(&["sandbox", "write"], "`write` names directories, and one of them is empty");
    }
    if let Some(why) = sandbox.env.iter().find_map(|name| env_mistake(name)) {
        report(&["sandbox", "env"], &why);
    }
}

/// The reason that `sandbox.env` cannot name this; `None` if it can.
fn env_mistake(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("`env` names variables, and one of them is empty".to_owned());
    }
    if name.contains('=') {
        return Some(format!(
            "`env` names variables of the environment, and `{}` sets one: name it, and set it where the program starts",
            name.split('=').next().unwrap_or_default()
        ));
    }
    let wrong = GlobPattern::word(name).err().filter(|_| is_pattern(name))?;
    Some(format!("`env` holds `{name}`, which is not a pattern: {wrong}"))
}

/// Checks the rules. A mistake that several agents inherit is reported once.
fn check_permissions(permissions: &PermissionSettings, report: &mut dyn FnMut(&[&str], &str)) {
    for (at, rule) in permissions.rules.iter().enumerate() {
        let at = at.to_string();
        let path = |key: &'static str| ["permissions", "rules", &at, key];
        if rule.subject().is_none() {
            report(&path("")[..3], "a rule has one of `deny`, `ask` and `allow`: the name of a tool, or a glob");
        }
        if rule.path.is_some() && rule.command.is_some() {
            report(&path("command"), "a rule has a `path` or a `command`, not both: write two rules");
        }
        for (key, tool) in [("deny", &rule.deny), ("ask", &rule.ask), ("allow", &rule.allow)] {
            match tool.as_deref().map(GlobPattern::word) {
                Some(_) if tool.as_deref() == Some("") => report(&path(key), "the name of a tool is missing"),
                Some(Err(why)) => report(&path(key), &format!("the pattern is broken: {why}")),
                _ => {}
            }
        }
        match rule.path.as_deref().map(|pattern| (pattern, GlobPattern::path(pattern))) {
            Some((_, Err(why))) => report(&path("path"), &format!("the pattern is broken: {why}")),
            Some(("", _)) => report(&path("path"), "the pattern is empty; `**` is every path of the workspace"),
            Some((pattern, _)) if pattern.split('/').any(|part| part == "..") || pattern.starts_with('~') => {
                report(&path("path"), "a path is relative to the workspace, or absolute: without `..` and `~`");
            }
            _ => {}
        }
        let words = rule.command.as_deref();
        if words == Some(&[]) {
            report(&path("command"), "the pattern is empty; [\"*\"] is every command");
        }
        for (word, pattern) in words.unwrap_or_default().iter().enumerate() {
            if let Err(why) = GlobPattern::word(pattern) {
                let word = word.to_string();
                let path = [path("command").as_slice(), &[&word]].concat();
                report(&path, &format!("the pattern is broken: {why}"));
            }
        }
    }
}

fn measure_settled(telemetry: &TelemetrySettings, report: &mut dyn FnMut(&[&str], &str)) {
    if cfg!(not(feature = "otlp")) && telemetry.otlp_endpoint.is_some() {
        report(
            &["telemetry", "otlp_endpoint"],
            "this program was built without OTLP: take the key out, or build with `--features otlp`",
        );
    } else if !telemetry.otlp_endpoint.as_deref().is_none_or(is_http) {
        report(&["telemetry", "otlp_endpoint"], "an endpoint begins with http:// or https://");
    }
    for name in find_unsendable(&telemetry.otlp_headers) {
        report(&["telemetry", "otlp_headers", name], UNSENDABLE);
    }
}

/// Checks that directories are absolute: a relative one would depend on the current workspace.
fn check_skills(skills: &SkillSettings, report: &mut dyn FnMut(&[&str], &str)) {
    for (at, dir) in skills.dirs.iter().enumerate() {
        if !dir.starts_with('/') && !dir.starts_with("~/") && !std::path::Path::new(dir).is_absolute() {
            let at = at.to_string();
            report(&["skills", "dirs", &at], &format!("`{dir}` must be an absolute path, or begin with ~/"));
        }
    }
}

/// True for an http address, or an empty text, which a template gives for an unset variable.
fn is_http(url: &str) -> bool {
    url.is_empty() || url.starts_with("http://") || url.starts_with("https://")
}

const PRICE: &str = "a price must not be below 0";
const UNSENDABLE: &str = "the header has characters that no request can carry";

fn find_unsendable(headers: &BTreeMap<String, Secret>) -> impl Iterator<Item = &str> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let carried = move |name: &str, value: &Secret| {
        !name.is_empty() && name.bytes().all(token) && is_sendable(value.reveal())
    };
    headers.iter().filter(move |(name, value)| !carried(name, value)).map(|(name, _)| name.as_str())
}

fn is_sendable(text: &str) -> bool {
    text.trim().bytes().all(|b| (0x20..0x7f).contains(&b))
}

fn report_rules(section: &str, rules: &[(&str, bool, &str)], report: &mut dyn FnMut(&[&str], &str)) {
    for (key, _, wanted) in rules.iter().filter(|(_, holds, _)| !holds) {
        report(&[section, key], &format!("`{key}` must be {wanted}"));
    }
}

fn check_model(model: &ModelConfig, is_absent: &dyn Fn(&str) -> bool, report: &mut dyn FnMut(&[&str], &str)) {
    let is_set = |value: &Option<String>| value.as_deref().is_some_and(|text| !text.trim().is_empty());
    match model.provider {
        ModelProvider::Openai if model.script.is_some() => {
            report(&["script"], "only a model with `provider: scripted` has a script");
        }
        ModelProvider::Replay if model.recording.is_none() && is_absent("recording") => {
            report(&[], "the key `recording` is missing: the file whose replies are given back");
        }
        ModelProvider::Openai if !is_set(&model.model) && (model.model.is_some() || is_absent("model")) => {
            report(&["model"], "the key `model` is missing: the provider's name for the model");
        }
        ModelProvider::Scripted if model.script.is_none() && is_absent("script") => {
            report(&[], "the key `script` is missing: the replies of a scripted model");
        }
        _ => {}
    }
    if !model.base_url.as_deref().is_none_or(is_http) {
        report(&["base_url"], "a base URL begins with http:// or https://");
    }
    match &model.api_key {
        Some(ApiKey::Given(key)) if !is_sendable(key.reveal()) => {
            report(&["api_key"], "the key has characters that no request can carry");
        }
        key => key.iter().filter_map(ApiKey::find_mistake).for_each(|why| report(&["api_key"], why)),
    }
    for name in find_unsendable(&model.headers) {
        report(&["headers", name], UNSENDABLE);
    }
    let prices = model.prices.as_ref();
    let no_price_is_below_0 = |of: fn(&PriceTier) -> Option<f64>| {
        let rows = prices.into_iter().flat_map(|prices| prices.tiers.iter().copied().chain([prices.base()]));
        rows.filter_map(|row| of(&row)).all(|price| price >= 0.0)
    };
    let rules: [(&[&str], bool, &str); 8] = [
        (&["retry", "attempts"], model.retry.attempts >= 1, "`attempts` counts the first one: at least 1"),
        (&["context_window"], model.context_window != Some(0), "`context_window` must be at least 1"),
        (&["max_output_tokens"], model.max_output_tokens != Some(0), "`max_output_tokens` must be at least 1"),
        (&["temperature"], model.temperature.is_none_or(|t| t >= 0.0), "`temperature` must not be below 0"),
        (&["prices", "input"], no_price_is_below_0(|p| Some(p.input)), PRICE),
        (&["prices", "cached_input"], no_price_is_below_0(|p| p.cached_input), PRICE),
        (&["prices", "cache_write"], no_price_is_below_0(|p| p.cache_write), PRICE),
        (&["prices", "output"], no_price_is_below_0(|p| Some(p.output)), PRICE),
    ];
    for (path, _, message) in rules.iter().filter(|(_, holds, _)| !holds) {
        report(path, message);
    }
}
