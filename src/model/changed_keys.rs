//! What the refusals of a server changed, as the keys of a model file that say so from the start.

use serde_json::{Map, Value, json};

use super::effort::Effort;
use super::plan::RequestPlan;
use super::wires;

/// The keys of a model file that turn the first plan into the later one, as far as there are such keys.
pub fn list_changed_keys(first: &RequestPlan, now: &RequestPlan) -> Map<String, Value> {
    let mut keys = Map::new();
    let mut capabilities = Map::new();
    if first.wire != now.wire {
        keys.insert("wire".to_owned(), now.wire.name().into());
    }
    if first.settings.temperature != now.settings.temperature {
        keys.insert("temperature".to_owned(), json!(now.settings.temperature));
    }
    if first.settings.effort != now.settings.effort {
        keys.insert("reasoning_effort".to_owned(), json!(now.settings.effort.map(Effort::word)));
    }
    let enforces = |plan: &RequestPlan| wires::enforces_schemas(plan.wire, &plan.dialect);
    let has_cache_key = |plan: &RequestPlan| plan.dialect.chat.cache_key || plan.dialect.responses.cache_key;
    let has_cache_marks = |plan: &RequestPlan| plan.dialect.chat.cache_marks || plan.dialect.anthropic.cache_marks;
    let left_out = first.settings.extra.keys().filter(|name| !now.settings.extra.contains_key(*name));
    let left_out: Map<String, Value> = left_out.map(|name| (name.clone(), Value::Null)).collect();
    if !left_out.is_empty() {
        keys.insert("extra_body".to_owned(), left_out.into());
    }
    for (name, had, has) in [
        ("stream_usage", first.dialect.chat.stream_options, now.dialect.chat.stream_options),
        ("structured_output", enforces(first), enforces(now)),
        ("strict_tools", first.settings.strict_tools, now.settings.strict_tools),
        ("vision", first.sees, now.sees),
        ("prompt_cache_key", has_cache_key(first), has_cache_key(now)),
        ("cache_breakpoints", has_cache_marks(first), has_cache_marks(now)),
    ] {
        if had != has {
            capabilities.insert(name.to_owned(), has.into());
        }
    }
    if !capabilities.is_empty() {
        keys.insert("capabilities".to_owned(), capabilities.into());
    }
    keys
}
