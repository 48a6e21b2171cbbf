//! Exports runs, requests and calls to OpenTelemetry: one span each, and the standard metrics, named by the semantic
//! conventions for generative AI (`gen_ai.*`). Everything else is named `agent.*`.
//!
//! It sends figures and names only: no text of the conversation, no arguments, no results. A run is the parent of its
//! requests, those of helpers included, of its calls and of the hooks that ran for it. The sink never fails and never
//! blocks; [`export`] sends the spans.

mod export;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::metrics::{Histogram, MeterProvider};
use opentelemetry::trace::{Span, SpanBuilder, SpanKind, Status, TraceContextExt, TracerProvider};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};
use serde::Serialize;

use crate::conversation::event::{
    CallTelemetry, Event, EventKind, RequestFinished, RequestStatus, RunCompleted, RunStarted, RunStatus,
};
use crate::conversation::message::Usage;
use crate::conversation::{EventSink, HookRun};

pub use export::{Collector, OtlpExport};

const SCOPE: &str = "agent";
const OPERATION: &str = "gen_ai.operation.name";

/// Sends events to a collector as spans and metrics.
pub struct Otlp {
    tracer: SdkTracer,
    instruments: Arc<Instruments>,
    run: Option<RunSpan>,
    calls: HashMap<String, OpenSpan>,
    /// The hooks that ran before their run began.
    early: Vec<HookRun>,
    /// The span of the run that ended.
    ended: Context,
}

struct Instruments {
    tokens: Histogram<u64>,
    request: Histogram<f64>,
    call: Histogram<f64>,
    run: Histogram<f64>,
}

struct RunSpan {
    context: Context,
    start: Instant,
    /// The attributes of every span in the run.
    about: Vec<KeyValue>,
    session_id: String,
}

struct OpenSpan {
    span: SdkSpan,
    began: SystemTime,
}

impl OtlpExport {
    /// What opens a sink: one for runs that follow each other.
    pub fn opener(&self) -> impl Fn() -> Otlp + Send + Sync + 'static {
        let (tracer, instruments) = (self.spans.tracer(SCOPE), Arc::new(Instruments::new(self)));
        move || Otlp {
            tracer: tracer.clone(),
            instruments: Arc::clone(&instruments),
            run: None,
            calls: HashMap::new(),
            early: Vec::new(),
            ended: Context::new(),
        }
    }

    /// Records a figure as it is now.
    pub fn record_gauge(&self, name: &'static str, value: u64) {
        self.metrics.meter(SCOPE).u64_gauge(name).build().record(value, &[]);
    }
}

impl Otlp {
    fn run_started(&mut self, event: &Event, started: &RunStarted) {
        let about = vec![
            KeyValue::new("gen_ai.provider.name", started.provider.clone()),
            KeyValue::new("gen_ai.request.model", started.model.clone()),
            KeyValue::new("gen_ai.agent.name", started.agent.clone()),
            KeyValue::new("gen_ai.conversation.id", event.session_id.clone()),
        ];
        let mut attributes = about.clone();
        attributes.push(KeyValue::new(OPERATION, "invoke_agent"));
        attributes.push(KeyValue::new("agent.run_id", event.run_id.clone()));
        attributes.extend(started.prompts.first().map(|prompt| KeyValue::new("agent.prompt", prompt.to_string())));
        let span = SpanBuilder::from_name(format!("invoke_agent {}", started.agent))
            .with_kind(SpanKind::Internal)
            .with_start_time(self.early.iter().map(|hook| hook.began).min().unwrap_or_else(SystemTime::now))
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &Context::new());
        let context = Context::new().with_span(span);
        for hook in std::mem::take(&mut self.early) {
            self.write_hook(&hook, &context);
        }
        self.run = Some(RunSpan { context, start: Instant::now(), about, session_id: event.session_id.clone() });
    }

    /// A request is one span, whoever sent it; it is known when it has ended.
    fn request_finished(&mut self, request: &RequestFinished) {
        let Some(run) = &self.run else { return };
        let (duration, end) = (Duration::from_millis(request.duration_ms), SystemTime::now());
        let about = vec![
            KeyValue::new(OPERATION, "chat"),
            KeyValue::new("gen_ai.provider.name", request.provider.clone()),
            KeyValue::new("gen_ai.request.model", request.model.clone()),
        ];
        let mut attributes = about.clone();
        attributes.extend([
            KeyValue::new("gen_ai.conversation.id", run.session_id.clone()),
            KeyValue::new("agent.step", to_signed(request.step)),
            KeyValue::new("agent.attempt", i64::from(request.attempt)),
            KeyValue::new("agent.role", request.role.clone()),
        ]);
        attributes.extend(request.helper.clone().map(|helper| KeyValue::new("agent.helper", helper)));
        attributes.extend(list_usage(request.usage));
        attributes.extend(request.cost_usd.map(|cost| KeyValue::new("agent.cost_usd", cost)));
        attributes.extend(request.finish_reason.map(|reason| {
            let reason = StringValue::from(name_in_json(reason));
            KeyValue::new("gen_ai.response.finish_reasons", Value::Array(Array::String(vec![reason])))
        }));
        let mut span = SpanBuilder::from_name(format!("chat {}", request.model))
            .with_kind(SpanKind::Client)
            .with_start_time(end.checked_sub(duration).unwrap_or(end))
            .with_attributes(attributes)
            .start_with_context(&self.tracer, &run.context);
        let mut about_duration = about.clone();
        if request.status != RequestStatus::Ok {
            let status = name_in_json(request.status);
            fail_span(&mut span, status.clone());
            about_duration.push(KeyValue::new("error.type", status));
        }
        span.end_with_timestamp(end);
        self.instruments.request.record(duration.as_secs_f64(), &about_duration);
        // Estimates are not recorded as measurements.
        if !request.usage.estimated && request.usage.total() > 0 {
            for (kind, tokens) in [("input", request.usage.input_tokens), ("output", request.usage.output_tokens)]
            {
                let mut about = about.clone();
                about.push(KeyValue::new("gen_ai.token.type", kind));
                self.instruments.tokens.record(tokens, &about);
            }
        }
    }

    fn call_started(&mut self, call_id: &str, name: &str) {
        let Some(run) = &self.run else { return };
        let attributes = [
            KeyValue::new(OPERATION, "execute_tool"),
            KeyValue::new("gen_ai.tool.name", name.to_owned()),
            KeyValue::new("gen_ai.tool.call.id", call_id.to_owned()),
            KeyValue::new("gen_ai.tool.type", "function"),
        ];
        let began = SystemTime::now();
        let span = SpanBuilder::from_name(format!("execute_tool {name}"))
            .with_kind(SpanKind::Internal)
            .with_start_time(began)
            .with_attributes(run.about.iter().cloned().chain(attributes))
            .start_with_context(&self.tracer, &run.context);
        self.calls.insert(call_id.to_owned(), OpenSpan { span, began });
    }

    fn call_finished(&mut self, call_id: &str, name: &str, telemetry: &CallTelemetry) {
        if !self.calls.contains_key(call_id) {
            self.call_started(call_id, name);
        }
        let Some(OpenSpan { mut span, began, .. }) = self.calls.remove(call_id) else { return };
        let latency = telemetry.latency_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        span.set_attributes(of_call(telemetry));
        if let Some(code) = &telemetry.error_code {
            fail_span(&mut span, code.clone());
        }
        // Events of parallel calls come in the order of the calls, so this one may have waited for those before it.
        span.end_with_timestamp(latency.map_or_else(SystemTime::now, |latency| began + latency));
        if let Some(latency) = latency {
            // A model can invent any number of names.
            let known = if telemetry.tool_version.is_empty() { "_OTHER" } else { name };
            let mut about = vec![KeyValue::new("gen_ai.tool.name", known.to_owned())];
            about.extend(telemetry.error_code.clone().map(|code| KeyValue::new("error.type", code)));
            self.instruments.call.record(latency.as_secs_f64(), &about);
        }
    }

    fn write_hook(&self, hook: &HookRun, parent: &Context) {
        let HookRun { name, event, began, duration, error } = hook;
        let mut span = SpanBuilder::from_name(format!("hook {name}"))
            .with_kind(SpanKind::Internal)
            .with_start_time(*began)
            .with_attributes([
                KeyValue::new("agent.hook.name", name.clone()),
                KeyValue::new("agent.hook.event", *event),
            ])
            .start_with_context(&self.tracer, parent);
        if let Some(error) = error {
            fail_span(&mut span, (*error).to_owned());
        }
        span.end_with_timestamp(*began + *duration);
    }

    fn run_completed(&mut self, end: &RunCompleted) {
        let code = (end.status != RunStatus::Completed).then(|| name_in_json(end.status));
        let Some(run) = self.run.take() else { return };
        for mut left in self.calls.drain().map(|(_, open)| open) {
            fail_span(&mut left.span, code.clone().unwrap_or_else(|| "interrupted".to_owned()));
            left.span.end();
        }
        let span = run.context.span();
        span.set_attributes(list_usage(end.usage));
        span.set_attribute(KeyValue::new("agent.steps", to_signed(end.steps)));
        span.set_attribute(KeyValue::new("agent.tool_calls", to_signed(end.tool_calls)));
        span.set_attribute(KeyValue::new("agent.exit_code", i64::from(end.exit_code)));
        span.set_attributes(end.cost_usd.map(|cost| KeyValue::new("agent.cost_usd", cost)));
        // The attributes of a run's metrics: never a conversation id.
        let mut about = run.about;
        about.retain(|pair| pair.key.as_str() != "gen_ai.conversation.id");
        if let Some(code) = code {
            span.set_attribute(KeyValue::new("error.type", code.clone()));
            span.set_status(Status::error(code.clone()));
            about.push(KeyValue::new("error.type", code));
        }
        span.end();
        self.ended = run.context;
        self.instruments.run.record(run.start.elapsed().as_secs_f64(), &about);
    }
}

impl EventSink for Otlp {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        if let EventKind::RequestFinished(request) = &event.kind {
            self.request_finished(request);
        }
        if !event.path.is_empty() {
            // The call that runs a helper is one span, beside those of its requests.
            return Ok(());
        }
        match &event.kind {
            EventKind::RunStarted(started) => self.run_started(event, started),
            EventKind::ToolStarted { call_id, name, .. } => self.call_started(call_id, name),
            EventKind::ToolFinished { call_id, name, telemetry, .. } => {
                self.call_finished(call_id, name, telemetry);
            }
            EventKind::RunCompleted(end) => self.run_completed(end),
            _ => {}
        }
        Ok(())
    }

    fn note_hook(&mut self, run: &HookRun) {
        match &self.run {
            Some(RunSpan { context, .. }) => self.write_hook(run, context),
            None if run.event == "session_end" => self.write_hook(run, &self.ended),
            None => {
                self.early.push(HookRun { name: run.name.clone(), ..*run });
                // No run follows a message that is refused.
                if run.error == Some("denied") {
                    for hook in std::mem::take(&mut self.early) {
                        self.write_hook(&hook, &Context::new());
                    }
                }
            }
        }
    }
}

impl Instruments {
    fn new(export: &OtlpExport) -> Self {
        // The boundaries that the conventions recommend: 1 to 67,108,864 tokens, 0.01 to 81.92 seconds.
        let boundaries = |least: f64, factor: f64| (0..14).map(|power| least * factor.powi(power)).collect();
        let meter = export.metrics.meter(SCOPE);
        let duration = |name: &'static str| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(boundaries(0.01, 2.0)).build()
        };
        let tokens = meter.u64_histogram("gen_ai.client.token.usage").with_unit("{token}");
        Self {
            tokens: tokens.with_boundaries(boundaries(1.0, 4.0)).build(),
            request: duration("gen_ai.client.operation.duration"),
            call: duration("gen_ai.execute_tool.duration"),
            run: duration("gen_ai.invoke_agent.duration"),
        }
    }
}

fn of_call(telemetry: &CallTelemetry) -> Vec<KeyValue> {
    let CallTelemetry { execution_id, tool_version, retries, input_tokens, output_tokens, .. } = telemetry;
    let mut attributes = vec![
        KeyValue::new("agent.execution_id", execution_id.clone()),
        KeyValue::new("agent.tool.version", tool_version.clone()),
        KeyValue::new("agent.tool.retries", i64::from(*retries)),
        KeyValue::new("agent.tool.input_tokens", to_signed(*input_tokens)),
        KeyValue::new("agent.tool.output_tokens", to_signed(*output_tokens)),
        KeyValue::new("agent.tool.duration_ms", telemetry.duration_ms),
    ];
    attributes.extend(telemetry.cpu_ms.map(|cpu| KeyValue::new("agent.tool.cpu_ms", cpu)));
    let memory = telemetry.peak_memory_bytes;
    attributes.extend(memory.map(|bytes| KeyValue::new("agent.tool.peak_memory_bytes", to_signed(bytes))));
    let metrics = telemetry.metrics.iter();
    attributes.extend(metrics.map(|(name, value)| KeyValue::new(format!("agent.tool.metrics.{name}"), *value)));
    attributes
}

fn list_usage(usage: Usage) -> Vec<KeyValue> {
    [
        ("gen_ai.usage.input_tokens", usage.input_tokens),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens),
        ("gen_ai.usage.output_tokens", usage.output_tokens),
    ]
    .map(|(name, tokens)| KeyValue::new(name, to_signed(tokens)))
    .to_vec()
}

fn fail_span(span: &mut SdkSpan, code: String) {
    span.set_attribute(KeyValue::new("error.type", code.clone()));
    span.set_status(Status::error(code));
}

/// The name of a variant in events.
fn name_in_json(variant: impl Serialize) -> String {
    let name = serde_json::to_value(variant).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
