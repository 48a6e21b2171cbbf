//! The usage that servers of chat completions and of Responses report, in their many forms.

use serde_json::Value;

use super::assembly::Assembly;
use super::lenient::read_count;
use crate::conversation::message::Usage;

/// Ticks of xAI's cost in one USD.
const TICKS: f64 = 1e10;

/// Enters a report, unless it says nothing that can be used. `reasoning_in_total` as in [`super::chat::ChatFlags`].
pub(super) fn enter_report(report: &Value, reasoning_in_total: bool, reply: &mut Assembly) {
    if let Some(usage) = read_usage(report, reasoning_in_total) {
        reply.report(usage);
        if let Some(usd) = read_cost(report) {
            reply.cost(usd);
        }
    }
}

fn read_usage(report: &Value, reasoning_in_total: bool) -> Option<Usage> {
    let first = |paths: &[&str]| paths.iter().find_map(|path| read_count(report.pointer(path)?));
    let input = first(&["/prompt_tokens", "/input_tokens"]);
    let output = first(&["/completion_tokens", "/output_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let total = first(&["/total_tokens"]).unwrap_or(0);
    let rest = |known: Option<u64>| total.saturating_sub(known.unwrap_or(0));
    let reasoning_tokens = first(&[
        "/completion_tokens_details/reasoning_tokens",
        "/output_tokens_details/reasoning_tokens",
        "/reasoning_tokens",
    ])
    .unwrap_or(0);
    let input_tokens = input.unwrap_or_else(|| rest(output));
    let mut output_tokens = output.unwrap_or_else(|| rest(input));
    let beyond = total.saturating_sub(input_tokens + output_tokens);
    // xAI counts reasoning separately from the output; others include it.
    if beyond > 0 && (beyond == reasoning_tokens || reasoning_in_total) {
        output_tokens += beyond;
    }
    let cached = first(&[
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cached_tokens",
        "/num_cached_tokens",
        "/cache_read_input_tokens",
    ]);
    let written = first(&[
        "/prompt_tokens_details/cache_write_tokens",
        "/input_tokens_details/cache_write_tokens",
        "/cache_creation_input_tokens",
    ]);
    let usage = Usage {
        input_tokens,
        output_tokens,
        cached_input_tokens: cached.unwrap_or(0).min(input_tokens),
        cache_write_tokens: written.unwrap_or(0),
        reasoning_tokens: reasoning_tokens.max(if reasoning_in_total { beyond } else { 0 }).min(output_tokens),
        ..Usage::default()
    };
    // Some servers report zeros when they did not count.
    (usage.total() > 0).then_some(usage)
}

fn read_cost(report: &Value) -> Option<f64> {
    let usd = report.get("cost").and_then(Value::as_f64);
    usd.or_else(|| Some(report.get("cost_in_usd_ticks")?.as_f64()? / TICKS))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_as_servers_write_it() {
        for (report, expected) in [
            (json!({"prompt_tokens": 10, "completion_tokens": 5}), Some([10, 0, 0, 5, 0])),
            (json!({"prompt_tokens": 10.0, "completion_tokens": 5.0}), Some([10, 0, 0, 5, 0])),
            (json!({"input_tokens": 10, "output_tokens": 5}), Some([10, 0, 0, 5, 0])),
            (json!({"input_tokens": 10.0, "output_tokens": "5"}), Some([10, 0, 0, 5, 0])),
            (json!({"input_tokens": 10, "total_tokens": 15}), Some([10, 0, 0, 5, 0])),
            (json!({"prompt_tokens": 10, "total_tokens": 15}), Some([10, 0, 0, 5, 0])),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8}),
                Some([10, 8, 0, 5, 0]),
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 3}}),
                Some([10, 4, 0, 5, 3]),
            ),
            (
                json!({"input_tokens": 10, "output_tokens": 5,
                    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
                    "output_tokens_details": {"reasoning_tokens": 2}}),
                Some([10, 4, 3, 5, 2]),
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": null}),
                Some([10, 0, 0, 5, 0]),
            ),
            (
                json!({"input_tokens": 10, "output_tokens": 5, "input_tokens_details": null}),
                Some([10, 0, 0, 5, 0]),
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 100,
                    "completion_tokens_details": {"reasoning_tokens": 99_999}}),
                Some([10, 0, 0, 100, 100]),
            ),
            (json!({"prompt_tokens": 0, "completion_tokens": 0}), None),
            (json!({"input_tokens": 0, "output_tokens": 0}), None),
            (json!({"queue_time": 0.1}), None),
            (json!({}), None),
            (json!(null), None),
            (json!(3), None),
        ] {
            let read = read_usage(&report, false).map(|u| {
                let input = [u.input_tokens, u.cached_input_tokens, u.cache_write_tokens];
                [input[0], input[1], input[2], u.output_tokens, u.reasoning_tokens]
            });
            assert_eq!(read, expected, "{report}");
        }
    }

    #[test]
    fn the_cost_as_providers_state_it() {
        for (report, usd) in [
            (json!({"cost": 0.0125}), Some(0.0125)),
            (json!({"cost_in_usd_ticks": 1_497_500}), Some(0.000_149_75)),
            (json!({"cost": "free"}), None),
            (json!(null), None),
        ] {
            assert_eq!(read_cost(&report), usd, "{report}");
        }
    }
}
