//! The wires: what it costs to write a request and to read a stream, with the whole way of each: normalising a
//! conversation, encoding it; splitting bytes into events, decoding and assembling them.
//!
//! Bars: a request of 200,000 tokens takes less than 5 ms on each wire; a stream of 50,000 events takes at most 1.3
//! times as long as on chat completions.

use std::collections::HashSet;

use agent::facade::config::{ModelConfig, Wire};
use agent::facade::conversation::message::{Item, Opaque, ReplyPart};
use agent::facade::model::Assembly;
use agent::facade::model::SseDecoder;
use agent::facade::model::WrittenResults;
use agent::facade::model::{Delta, ModelRequest, ReplyEnd};
use agent::facade::model::{KnownFacts, RequestPlan};
use agent::facade::model::{ReplyReading, create_decoder};
use divan::Bencher;
use divan::counter::BytesCount;
use serde_json::{Value, json};

use super::{CONVERSATIONS, conversation, definitions};

/// The most bytes of one read from the network.
const READ: usize = 16 * 1024;

// ------------------------------------------------------------------------------------------------ a request

/// A wire, and thousands of tokens in the conversation.
fn requests() -> impl Iterator<Item = (Wire, usize)> {
    Wire::ALL.into_iter().flat_map(|wire| CONVERSATIONS.map(|thousands| (wire, thousands)))
}

#[divan::bench(args = requests())]
fn request_body(bencher: Bencher<'_, '_>, (wire, thousands): (Wire, usize)) {
    let plan = plan(wire);
    let (items, tools) = (thinking(&plan, thousands * 1000), definitions());
    let request = ModelRequest {
        tools: &tools,
        system: "You mend programs.",
        ..ModelRequest::from_items(&items, "session")
    };
    let body = || plan.encode(&request, &WrittenResults::default()).0;
    bencher.counter(BytesCount::new(body().len())).bench(body);
}

/// The same where only the last step is new: what a step of a loop costs.
#[divan::bench(args = requests())]
fn request_body_extended(bencher: Bencher<'_, '_>, (wire, thousands): (Wire, usize)) {
    let plan = plan(wire);
    let (items, tools) = (thinking(&plan, thousands * 1000), definitions());
    let whole = ModelRequest {
        tools: &tools,
        system: "You mend programs.",
        ..ModelRequest::from_items(&items, "session")
    };
    let before = ModelRequest { items: &items[..items.len() - 1], ..whole };
    let extend = |written: WrittenResults| plan.encode(&whole, &written).0;
    let knowing = || {
        let written = WrittenResults::default();
        let _ = plan.encode(&before, &written);
        written
    };
    bencher.counter(BytesCount::new(extend(knowing()).len())).with_inputs(knowing).bench_values(extend);
}

/// A plan for requests to a private server.
fn plan(wire: Wire) -> RequestPlan {
    let config = json!({"name": "m", "provider": "openai", "model": "m", "wire": wire.name()});
    let config: ModelConfig = serde_json::from_value(config).expect("a model");
    RequestPlan::new(&config, "m", "models.example/v1", KnownFacts::default()).expect("a plan").0
}

/// A conversation whose every reply holds reasoning that goes back to its server.
fn thinking(plan: &RequestPlan, tokens: usize) -> Vec<Item> {
    let mut items = conversation(tokens);
    for item in &mut items {
        if let Item::Step(step) = item {
            let opaque = Some(Opaque { origin: plan.origin(), data: kept(plan.wire), bound: false });
            step.parts.insert(0, ReplyPart::Reasoning { text: "Look at the file first.".to_owned(), opaque });
        }
    }
    items
}

/// What a server wants back with its reasoning.
fn kept(wire: Wire) -> Value {
    let sealed = "c2VhbGVk".repeat(64);
    match wire {
        Wire::Chat => json!({"field": "reasoning_content"}),
        Wire::Responses => json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed}),
        Wire::Anthropic => {
            json!({"type": "thinking", "thinking": "Look at the file first.", "signature": sealed})
        }
        Wire::Ollama => json!({"field": "thinking"}),
        Wire::Gemini => json!({"thoughtSignature": sealed}),
    }
}

// ------------------------------------------------------------------------------------------------ a stream

#[divan::bench(args = [5_000, 50_000, 500_000])]
fn stream_split(bencher: Bencher<'_, '_>, events: usize) {
    let stream = stream(Wire::Chat, events);
    bencher.counter(BytesCount::of_slice(&stream)).bench(|| {
        let (mut decoder, mut data) = (SseDecoder::default(), 0);
        for read in stream.chunks(READ) {
            let add = |event: agent::facade::model::SseEvent<'_>| {
                data += event.data.len();
                true
            };
            decoder.feed(read, add).expect("short events");
        }
        data
    });
}

/// A wire, and events of a stream.
fn streams() -> impl Iterator<Item = (Wire, usize)> {
    Wire::ALL.into_iter().flat_map(|wire| [5_000, 50_000, 500_000].map(|events| (wire, events)))
}

#[divan::bench(args = streams())]
fn stream_to_reply(bencher: Bencher<'_, '_>, (wire, events): (Wire, usize)) {
    let stream = stream(wire, events);
    bencher.counter(BytesCount::of_slice(&stream)).bench(|| {
        let mut reading = reading(wire);
        let mut decoder = reading.find_events();
        let mut text = String::new();
        for read in stream.chunks(READ) {
            decoder.feed(read, |event| reading.event(event.name, event.data).is_ok()).expect("short events");
            while let Some(delta) = reading.reply.take() {
                if let Delta::Text(piece) = delta {
                    text.push_str(&piece);
                }
            }
        }
        assert!(reading.reply.is_finished() && text.len() == events * 4, "the stream is read to its end");
        (text, reading.reply.end(|| 0))
    });
}

/// A wire, and pieces of a call's arguments.
fn calls() -> impl Iterator<Item = (Wire, usize)> {
    // On the others a call comes whole.
    let wires = [Wire::Chat, Wire::Responses, Wire::Anthropic];
    wires.into_iter().flat_map(|wire| [1_000, 10_000, 100_000].map(|pieces| (wire, pieces)))
}

/// One call whose arguments come in pieces: a file that is written.
#[divan::bench(args = calls())]
fn stream_of_arguments(bencher: Bencher<'_, '_>, (wire, pieces): (Wire, usize)) {
    let (first, piece) = match wire {
        Wire::Chat => (
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"write_file","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"fn f"}}]}}]}"#,
        ),
        Wire::Responses => (
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"write_file","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"fn f"}"#,
        ),
        _ => (
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"write_file","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"fn f"}}"#,
        ),
    };
    bencher.bench(|| -> ReplyEnd {
        let mut reading = reading(wire);
        for event in [first].into_iter().chain(std::iter::repeat_n(piece, pieces)) {
            reading.event(b"", event.as_bytes()).expect("an event");
        }
        reading.reply.end(|| 0)
    });
}

fn reading(wire: Wire) -> ReplyReading {
    let decoder = create_decoder(wire, &plan(wire).dialect, &[]);
    ReplyReading::new(decoder, Assembly::new(plan(wire).origin(), HashSet::new()))
}

/// A reply as servers stream it, one token per event. The text is among the fields that servers send around it.
fn stream(wire: Wire, events: usize) -> Vec<u8> {
    let (start, end) = around(wire);
    let delta = |n: usize| {
        let text = format!("{:03} ", n % 1000);
        match wire {
            Wire::Chat => format!(
                "data: {{\"id\":\"reply\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
                 \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
            ),
            Wire::Responses => format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
                 \"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"{text}\",\"logprobs\":[],\
                 \"sequence_number\":{n}}}\n\n"
            ),
            Wire::Anthropic => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\
                 \"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
            ),
            Wire::Ollama => format!(
                "{{\"model\":\"m\",\"created_at\":\"2026-11-27T00:00:00Z\",\
                 \"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"done\":false}}\n"
            ),
            Wire::Gemini => format!(
                "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}],\"role\":\"model\"}},\
                 \"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":91}},\"modelVersion\":\"m\"}}\n\n"
            ),
        }
    };
    [start]
        .into_iter()
        .map(str::to_owned)
        .chain((0..events).map(delta))
        .chain([end.to_owned()])
        .collect::<String>()
        .into()
}

/// What comes before the text and after it.
fn around(wire: Wire) -> (&'static str, &'static str) {
    match wire {
        Wire::Chat => ("", "data: [DONE]\n\n"),
        Wire::Responses => (
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\"}}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
        ),
        Wire::Anthropic => (
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        ),
        Wire::Ollama => ("", "{\"message\":{\"content\":\"\"},\"done\":true}\n"),
        Wire::Gemini => ("", "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"),
    }
}
