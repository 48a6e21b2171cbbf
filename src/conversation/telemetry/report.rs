//! The figures of a session: by tool and in total. Pure.
//!
//! The JSON form has OpenTelemetry's names for generative AI (`gen_ai.*`) if there are any; its keys are stable,
//! and what is not known is `null`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::conversation::event::CallTelemetry;
use crate::conversation::message::Usage;

/// Requests of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Steps {
    pub count: u64,
    pub usage: Usage,
    /// USD; `None` when no price is known.
    pub cost_usd: Option<f64>,
}

/// The cost of several calls together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    pub calls: u64,
    /// Calls that failed: the tool's errors, time-outs, and calls that could not be understood.
    pub errors: u64,
    pub denied: u64,
    pub cancelled: u64,
    pub retries: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The processor time of the calls whose processes could be measured.
    pub cpu_ms: Option<f64>,
    pub peak_memory_bytes: Option<u64>,
    /// The latencies of the calls that ran, in milliseconds; ascending in a report.
    latencies: Vec<f64>,
}

/// The figures of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionReport {
    pub steps: Steps,
    pub total: Figures,
    pub tools: BTreeMap<String, Figures>,
}

/// The costs of calls, by tool: the part of their telemetry that is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally(BTreeMap<String, Figures>);

impl Tally {
    /// Adds a call.
    pub fn add(&mut self, call: &CallTelemetry) {
        match self.0.get_mut(&call.tool_name) {
            Some(figures) => figures.add(call),
            None => self.0.entry(call.tool_name.clone()).or_default().add(call),
        }
    }
}

impl<'a> FromIterator<&'a CallTelemetry> for Tally {
    fn from_iter<I: IntoIterator<Item = &'a CallTelemetry>>(calls: I) -> Self {
        let mut tally = Self::default();
        calls.into_iter().for_each(|call| tally.add(call));
        tally
    }
}

impl SessionReport {
    /// Adds up.
    pub fn new(steps: Steps, calls: &Tally) -> Self {
        let mut report = Self { steps, total: Figures::default(), tools: calls.0.clone() };
        report.tools.values().for_each(|figures| report.total.join(figures));
        let all = report.tools.values_mut().chain([&mut report.total]);
        all.for_each(|figures| figures.latencies.sort_by(f64::total_cmp));
        report
    }

    /// The report as data, for the session of this id and model.
    pub fn json(&self, session_id: &str, model: &str) -> Value {
        let Steps { count, usage, cost_usd } = &self.steps;
        let tools: Vec<Value> = self
            .tools
            .iter()
            .map(|(name, figures)| {
                let mut tool = json!({ "gen_ai.tool.name": name });
                merge_values(&mut tool, figures.json());
                tool
            })
            .collect();
        json!({
            "gen_ai.conversation.id": session_id,
            "gen_ai.request.model": model,
            "model": {
                "steps": count,
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "tokens_estimated": usage.estimated,
                "cost_usd": cost_usd,
                "cost_about": usage.cost_about,
            },
            "total": self.total.json(),
            "tools": tools,
        })
    }
}

impl Figures {
    fn add(&mut self, call: &CallTelemetry) {
        self.calls += 1;
        match call.error_code.as_deref() {
            _ if call.success => {}
            Some("denied") => self.denied += 1,
            Some("cancelled") => self.cancelled += 1,
            _ => self.errors += 1,
        }
        self.retries += u64::from(call.retries);
        self.input_tokens += call.input_tokens;
        self.output_tokens += call.output_tokens;
        self.latencies.extend(call.latency_ms);
        self.cpu_ms = call.cpu_ms.map(|cpu| cpu + self.cpu_ms.unwrap_or(0.0)).or(self.cpu_ms);
        self.peak_memory_bytes = self.peak_memory_bytes.max(call.peak_memory_bytes);
    }

    /// Adds the calls of another tool.
    fn join(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.denied += other.denied;
        self.cancelled += other.cancelled;
        self.retries += other.retries;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.latencies.extend(&other.latencies);
        self.cpu_ms = other.cpu_ms.map(|cpu| cpu + self.cpu_ms.unwrap_or(0.0)).or(self.cpu_ms);
        self.peak_memory_bytes = self.peak_memory_bytes.max(other.peak_memory_bytes);
    }

    /// Mean latency in milliseconds; `None` if nothing ran.
    pub fn mean_ms(&self) -> Option<f64> {
        let count = f64::from(u32::try_from(self.latencies.len()).ok().filter(|count| *count > 0)?);
        Some(round_value(self.latencies.iter().sum::<f64>() / count))
    }

    /// The latency in milliseconds that 95 of 100 calls did not exceed: the nearest rank, which is always a measured
    /// value.
    pub fn p95_ms(&self) -> Option<f64> {
        let rank = (self.latencies.len() * 95).div_ceil(100);
        self.latencies.get(rank.checked_sub(1)?).copied()
    }

    /// The share of calls that failed, 0 to 1.
    pub fn error_rate(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.errors as f64 / self.calls as f64 }
    }

    fn json(&self) -> Value {
        json!({
            "calls": self.calls,
            "errors": self.errors,
            "error_rate": round_value(self.error_rate()),
            "denied": self.denied,
            "cancelled": self.cancelled,
            "retries": self.retries,
            "latency_ms": { "mean": self.mean_ms(), "p95": self.p95_ms() },
            "gen_ai.usage.input_tokens": self.input_tokens,
            "gen_ai.usage.output_tokens": self.output_tokens,
            "tokens_estimated": true,
            "cpu_ms": self.cpu_ms.map(round_value),
            "peak_memory_bytes": self.peak_memory_bytes,
        })
    }
}

/// A duration in milliseconds, to the microsecond.
pub fn to_milliseconds(duration: Duration) -> f64 {
    round_value(duration.as_secs_f64() * 1000.0)
}

fn round_value(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn merge_values(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, latency: Option<f64>, error: Option<&str>) -> CallTelemetry {
        CallTelemetry {
            tool_name: tool.to_owned(),
            latency_ms: latency,
            success: error.is_none(),
            error_code: error.map(str::to_owned),
            output_tokens: 10,
            ..CallTelemetry::default()
        }
    }

    #[test]
    fn what_was_refused_is_no_error_and_has_no_latency() {
        let calls = [
            call("grep", Some(1.0), None),
            call("grep", Some(3.0), Some("permanent")),
            call("run_command", None, Some("denied")),
            call("run_command", None, Some("cancelled")),
            call("nonsense", None, Some("invalid_call")),
        ];
        let report = SessionReport::new(Steps::default(), &calls.iter().collect());
        let total = &report.total;
        assert_eq!((total.calls, total.errors, total.denied, total.cancelled), (5, 2, 1, 1));
        assert_eq!((total.mean_ms(), total.p95_ms(), total.output_tokens), (Some(2.0), Some(3.0), 50));
        assert!((report.tools["grep"].error_rate() - 0.5).abs() < f64::EPSILON);
        assert_eq!(report.tools["run_command"].mean_ms(), None);
    }

    #[test]
    fn the_95th_of_a_hundred_is_p95() {
        for (count, expected) in
            [(0_u32, None), (1, Some(1.0)), (19, Some(19.0)), (20, Some(19.0)), (100, Some(95.0))]
        {
            let calls: Vec<_> = (1..=count).rev().map(|ms| call("a", Some(f64::from(ms)), None)).collect();
            assert_eq!(
                SessionReport::new(Steps::default(), &calls.iter().collect()).total.p95_ms(),
                expected,
                "{count}"
            );
        }
    }
}
