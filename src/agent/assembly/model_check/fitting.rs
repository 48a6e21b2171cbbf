//! Makes the model file that fits a server: its address, and everything that differs from the automatic choices. Pure
//! functions.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::judgement::{Feature, FeatureOutcome, Finding};
use crate::config::{ApiKey, ModelConfig};
use crate::model::Learnt;

/// The automatic choices, for a model file that declares nothing.
#[derive(Debug, Clone, Copy)]
pub struct Auto {
    pub window: u64,
    /// True if the window is known at all.
    pub knows_window: bool,
    pub sees: bool,
    /// True if a schema is sent to the server.
    pub sends_schema: bool,
}

/// The keys that differ from the automatic choices. `window` is the server's, or the declared one.
pub fn collect_differences(
    findings: &[Finding],
    learnt: Learnt,
    auto: Auto,
    window: Option<u64>,
) -> Map<String, Value> {
    let mut keys = learnt.keys;
    let mut capabilities = match keys.shift_remove("capabilities") {
        Some(Value::Object(capabilities)) => capabilities,
        _ => Map::new(),
    };
    // These were switched on for the check, so only the findings decide.
    for asked in ["vision", "structured_output"] {
        capabilities.shift_remove(asked);
    }
    for (feature, key, auto) in [
        (Feature::Streaming, "streaming", true),
        (Feature::ToolCalls, "tools", true),
        (Feature::ParallelCalls, "parallel_tool_calls", true),
        (Feature::Schema, "structured_output", auto.sends_schema),
        (Feature::Vision, "vision", auto.sees),
    ] {
        let outcome = findings.iter().find(|finding| finding.feature == feature).map(|finding| finding.outcome);
        match outcome {
            Some(FeatureOutcome::Works) if !auto => capabilities.insert(key.to_owned(), true.into()),
            Some(FeatureOutcome::DoesNot) if auto => capabilities.insert(key.to_owned(), false.into()),
            _ => None,
        };
    }
    if let Some(window) = window.filter(|window| !auto.knows_window || *window != auto.window) {
        keys.insert("context_window".to_owned(), window.into());
    }
    if !capabilities.is_empty() {
        keys.insert("capabilities".to_owned(), capabilities.into());
    }
    keys
}

/// Makes the file: how the model is reached, then `differing`. `base_url` has no secrets; the key is in the variable
/// `key_variable`, or where the model's own file says.
pub fn make_model_file(
    model: &ModelConfig,
    base_url: Option<String>,
    key_variable: Option<&str>,
    differing: Map<String, Value>,
) -> Map<String, Value> {
    let key = key_variable.map(|name| format!("{{{{ env.{name} }}}}"));
    let reached = [
        ("provider", Some("openai".to_owned())),
        ("wire", model.wire.map(|wire| wire.name().to_owned())),
        ("dialect", model.dialect.clone().filter(|name| !matches!(name.trim(), "" | "auto"))),
        ("base_url", base_url),
        ("api_key", key),
        ("model", model.model.clone()),
    ];
    let mut keys: Map<String, Value> =
        reached.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))).collect();
    if let Some(source @ ApiKey::Source(_)) = &model.api_key {
        keys.insert("api_key".to_owned(), serde_json::to_value(source).unwrap_or_default());
    }
    keys.extend(differing);
    keys
}

/// Formats the keys as YAML, one per line.
pub fn format_yaml(keys: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in keys {
        let _ = match value {
            Value::Object(fields) => {
                let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                writeln!(text, "{key}: {{ {} }}", fields.join(", "))
            }
            Value::String(word) if is_plain(word) => writeln!(text, "{key}: {word}"),
            // JSON is YAML.
            other => writeln!(text, "{key}: {other}"),
        };
    }
    text
}

/// True if a word needs no quotes in YAML.
fn is_plain(word: &str) -> bool {
    let begins = word.starts_with(|c: char| c.is_ascii_alphabetic());
    let holds = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:".contains(c)) && !word.ends_with(':');
    begins && holds && !["true", "false", "null", "yes", "no", "on", "off"].contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AUTO: Auto = Auto { window: 128_000, knows_window: false, sees: false, sends_schema: true };

    #[test]
    fn only_what_differs_stands_in_the_file() {
        let learnt = |keys: Value| Learnt { refusals: Vec::new(), keys: keys.as_object().cloned().expect("keys") };
        let none = || learnt(json!({}));
        let is = |feature: Feature, outcome| vec![feature.is(outcome, "")];
        for (findings, learnt, auto, window, keys) in [
            (vec![], none(), AUTO, None, json!({})),
            (vec![], none(), AUTO, Some(8192), json!({ "context_window": 8192 })),
            (vec![], none(), Auto { knows_window: true, ..AUTO }, Some(128_000), json!({})),
            (is(Feature::ToolCalls, FeatureOutcome::Works), none(), AUTO, None, json!({})),
            (is(Feature::ToolCalls, FeatureOutcome::Unknown), none(), AUTO, None, json!({})),
            (
                is(Feature::ToolCalls, FeatureOutcome::DoesNot),
                none(),
                AUTO,
                None,
                json!({ "capabilities": { "tools": false } }),
            ),
            (
                is(Feature::Vision, FeatureOutcome::Works),
                none(),
                AUTO,
                None,
                json!({ "capabilities": { "vision": true } }),
            ),
            (
                is(Feature::Vision, FeatureOutcome::DoesNot),
                learnt(json!({ "capabilities": { "vision": false, "stream_usage": false } })),
                AUTO,
                None,
                json!({ "capabilities": { "stream_usage": false } }),
            ),
            (
                is(Feature::Schema, FeatureOutcome::DoesNot),
                learnt(json!({ "wire": "responses" })),
                Auto { sends_schema: true, ..AUTO },
                None,
                json!({ "wire": "responses", "capabilities": { "structured_output": false } }),
            ),
        ] {
            assert_eq!(Value::Object(collect_differences(&findings, learnt, auto, window)), keys, "{findings:?}");
        }
    }

    #[test]
    fn the_yaml_reads_back_as_the_keys() {
        let keys = json!({
            "provider": "openai",
            "base_url": "http://127.0.0.1:8080/v1",
            "api_key": "{{ env.KEY }}",
            "model": "qwen3:8b",
            "context_window": 8192,
            "temperature": null,
            "capabilities": { "tools": false, "vision": true },
        });
        for model in ["a: b", "no", "7", "a #b", "x:", "meta-llama/Llama-3.3"] {
            let mut keys = keys.as_object().cloned().expect("keys");
            keys.insert("model".to_owned(), model.into());
            let text = format_yaml(&keys);
            assert_eq!(
                crate::base::yaml::parse_document::<Map<String, Value>>(&text).expect("YAML"),
                keys,
                "{text}"
            );
        }
    }
}
