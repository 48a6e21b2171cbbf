//! The usage that servers report, in their many forms.

use serde_json::Value;
use serde_json::value::RawValue;

use super::chunk::read_number;
use crate::conversation::message::Usage;

/// Ticks of xAI's cost in one USD.
const TICKS: f64 = 1e10;

/// The figures of one report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReportedUsage {
    pub usage: Usage,
    /// The cost in USD, if the server states it.
    pub cost_usd: Option<f64>,
}

/// Reads a report; `None` if it says nothing that can be used. `reasoning_in_total` as in [`super::ChatFlags`].
pub(super) fn read_report(raw: &RawValue, reasoning_in_total: bool) -> Option<ReportedUsage> {
    let usage: Value = serde_json::from_str(raw.get()).ok()?;
    let at = |path: &[&str]| path.iter().try_fold(&usage, |value, key| value.get(key)).and_then(read_number);
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| at(path));
    let input = first(&[&["prompt_tokens"], &["input_tokens"]]);
    let output = first(&[&["completion_tokens"], &["output_tokens"]]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let total = at(&["total_tokens"]).unwrap_or(0);
    let rest = |known: Option<u64>| total.saturating_sub(known.unwrap_or(0));
    let reasoning_tokens = first(&[
        &["completion_tokens_details", "reasoning_tokens"],
        &["output_tokens_details", "reasoning_tokens"],
        &["reasoning_tokens"],
    ])
    .unwrap_or(0);
    let input_tokens = input.unwrap_or_else(|| rest(output));
    let mut output_tokens = output.unwrap_or_else(|| rest(input));
    let beyond = total.saturating_sub(input_tokens + output_tokens);
    // xAI counts reasoning separately from the output; others include it.
    if beyond > 0 && (beyond == reasoning_tokens || reasoning_in_total) {
        output_tokens += beyond;
    }
    let tokens = Usage {
        input_tokens,
        output_tokens,
        cached_input_tokens: first(&[
            &["prompt_tokens_details", "cached_tokens"],
            &["input_tokens_details", "cached_tokens"],
            &["prompt_cache_hit_tokens"],
            &["cached_tokens"],
            &["num_cached_tokens"],
            &["cache_read_input_tokens"],
        ])
        .unwrap_or(0)
        .min(input_tokens),
        cache_write_tokens: first(&[
            &["prompt_tokens_details", "cache_write_tokens"],
            &["cache_creation_input_tokens"],
        ])
        .unwrap_or(0),
        reasoning_tokens: reasoning_tokens.max(if reasoning_in_total { beyond } else { 0 }),
        estimated: false,
        ..Usage::default()
    };
    // Some servers report zeros when they did not count.
    (tokens.total() > 0).then(|| ReportedUsage { usage: tokens, cost_usd: read_cost(&usage) })
}

fn read_cost(usage: &Value) -> Option<f64> {
    let usd = usage.get("cost").and_then(Value::as_f64);
    usd.or_else(|| Some(usage.get("cost_in_usd_ticks")?.as_f64()? / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_as_servers_write_it() {
        for (json, expected) in [
            (r#"{"prompt_tokens":10,"completion_tokens":5}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":10.0,"completion_tokens":5.0}"#, Some((10, 0, 5, 0))),
            (r#"{"input_tokens":10,"output_tokens":5}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":10,"total_tokens":15}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8}"#, Some((10, 8, 5, 0))),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},
                    "completion_tokens_details":{"reasoning_tokens":3}}"#,
                Some((10, 4, 5, 3)),
            ),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null}"#, Some((10, 0, 5, 0))),
            (r#"{"prompt_tokens":0,"completion_tokens":0}"#, None),
            (r#"{"queue_time":0.1}"#, None),
            ("3", None),
        ] {
            let raw: &RawValue = serde_json::from_str(json).expect("JSON");
            let read = read_report(raw, false).map(|ReportedUsage { usage: u, .. }| {
                (u.input_tokens, u.cached_input_tokens, u.output_tokens, u.reasoning_tokens)
            });
            assert_eq!(read, expected, "{json}");
        }
    }
}
