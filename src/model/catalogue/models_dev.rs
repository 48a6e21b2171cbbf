//! Reads facts from the `api.json` of models.dev: windows, prices, pictures. Its addresses and variables are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::providers::PROVIDERS;
use super::row::{ModelFacts, is_id, parse_price, without_date};
use super::table::open_embedded;
use crate::config::{PriceTier, Prices};

/// The providers that have another name there.
const NAMES: [(&str, &str); 3] =
    [("togetherai", "together"), ("fireworks-ai", "fireworks"), ("alibaba", "dashscope")];

#[derive(Deserialize)]
struct Model {
    limit: Limit,
    cost: Option<Cost>,
    modalities: Option<Modalities>,
    #[serde(default = "yes")]
    tool_call: bool,
}

#[derive(Deserialize)]
struct Limit {
    context: u64,
    input: Option<u64>,
    output: Option<u64>,
}

#[derive(Deserialize)]
struct Cost {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    context_over_200k: Option<Box<Cost>>,
}

#[derive(Deserialize)]
struct Modalities {
    #[serde(default)]
    input: Vec<String>,
}

fn yes() -> bool {
    true
}

/// The rows by provider. Models that cannot be read, cannot call tools or are of unknown providers are left out; `None`
/// if the text is something else.
pub(super) fn read_sections(text: &str) -> Option<Vec<(&'static str, Vec<ModelFacts>)>> {
    let listed: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
    let mut sections: Vec<(&str, Vec<ModelFacts>)> =
        PROVIDERS.iter().map(|provider| (provider.id, Vec::new())).collect();
    for (name, value) in &listed {
        let id = NAMES.iter().find(|(theirs, _)| theirs == name).map_or(name.as_str(), |(_, ours)| ours);
        let Some(section) = sections.iter_mut().find(|(known, _)| *known == id) else { continue };
        let models = value.get("models").and_then(Value::as_object).into_iter().flatten();
        section.1.extend(models.filter_map(|(model, value)| read_facts(section.0, model, value)));
    }
    let rows: usize = sections.iter().map(|(_, rows)| rows.len()).sum();
    (rows > 0).then_some(sections)
}

fn read_facts(provider: &str, id: &str, value: &Value) -> Option<ModelFacts> {
    let model: Model = serde_json::from_value(value.clone()).ok()?;
    if !is_id(id) || !model.tool_call || id.starts_with('@') {
        return None;
    }
    let window = model.limit.context;
    let prices = model.cost.as_ref().and_then(read_prices);
    let known = open_embedded().find(provider, id).or_else(|| open_embedded().find(provider, without_date(id)?));
    let facts = ModelFacts {
        window,
        input: model.limit.input.filter(|input| *input < window),
        output: model.limit.output.filter(|output| (1..=window).contains(output)),
        // A value on which three sources agree is more reliable than that of one of them.
        prices: prices.map(|prices| match known.and_then(|known| known.prices) {
            Some(known) if Prices { about: false, ..known.clone() } == prices => known,
            _ => Prices { about: true, ..prices },
        }),
        sees: model.modalities.is_some_and(|kinds| kinds.input.iter().any(|kind| kind == "image")),
        ..ModelFacts::new(id)
    };
    // Facts that do not survive writing and reading are dropped.
    ModelFacts::read(&facts.line()).ok()
}

/// A price of 0 stands for a subscription or a missing entry: unknown.
fn read_prices(cost: &Cost) -> Option<Prices> {
    let base = read_tier(0, cost)?;
    let tiers = cost.context_over_200k.iter().filter_map(|cost| read_tier(200_000, cost)).collect();
    Some(Prices::new(base, tiers, false))
}

fn read_tier(above: u64, cost: &Cost) -> Option<PriceTier> {
    let input = parse_price(cost.input)?;
    let own =
        |price: Option<f64>| price.and_then(parse_price).filter(|price| (price - input).abs() > f64::EPSILON);
    Some(PriceTier {
        above,
        input,
        cached_input: own(cost.cache_read),
        cache_write: own(cost.cache_write),
        output: parse_price(cost.output)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::providers;
    use super::*;

    #[test]
    fn only_facts_are_taken() {
        let text = r#"{
            "openai": { "id": "openai", "env": ["STOLEN_KEY"], "api": "https://evil.example", "npm": "x", "models": {
                "gpt-5": { "id": "gpt-5", "tool_call": true, "modalities": { "input": ["text", "image"] },
                    "cost": { "input": 1.25, "output": 10, "cache_read": 0.125 },
                    "limit": { "context": 400000, "input": 272000, "output": 128000 } },
                "gpt-9": { "cost": { "input": 3, "output": 9, "context_over_200k": { "input": 6, "output": 18 } },
                    "limit": { "context": 2000000, "output": 64000 } },
                "whisper": { "tool_call": false, "limit": { "context": 1000, "output": 1 } },
                "a b": { "limit": { "context": 1000 } },
                "broken": { "limit": "none" } } },
            "fireworks-ai": { "models": { "m": { "cost": { "input": 0, "output": 0 }, "limit": { "context": 9 } } } },
            "unheard-of": { "models": { "m": { "limit": { "context": 9 } } } }
        }"#;
        let sections = read_sections(text).expect("it has rows");
        let rows: Vec<String> = sections
            .iter()
            .flat_map(|(provider, rows)| rows.iter().map(move |row| format!("{provider}: {}", row.line())))
            .collect();
        assert_eq!(
            rows,
            [
                "openai: gpt-5 w=400000 i=272000 o=128000 s p=1.25/0.125//10 c=2",
                "openai: gpt-9 w=2000000 o=64000 p=3///9 t=200000:6///18 c=1",
                "fireworks: m w=9",
            ]
        );
    }

    #[test]
    fn anything_else_is_no_list_of_models() {
        for text in ["", "[]", "{}", "{\"openai\": 3}", "<html>", "{\"openai\": {\"models\": {}}}"] {
            assert!(read_sections(text).is_none(), "{text}");
        }
        assert!(NAMES.iter().all(|(_, ours)| providers::by_id(ours).is_some()));
    }
}
