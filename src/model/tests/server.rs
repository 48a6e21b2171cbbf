//! Models behind a server on this machine: what a body cannot show (status, silence, broken connections), and the
//! errors before anything is sent.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::super::assembly::Assembly;
use super::super::decode::ReplyReading;
use super::super::reply::HttpReply;
use super::super::server::ModelServer as Model;
use super::super::wire_log::Exchange;
use super::super::{Surroundings, chat, connect_model, gather_facts};
use crate::base::yaml;
use crate::config::ModelConfig;
use crate::conversation::message::{Item, Opaque, Origin, ReplyPart, UserText};
use crate::model::{ChatModel, Delta, ModelError, ModelRequest, ReplyStream, ToolChoice};

/// The data that a provider wants back with the parts of a reply.
fn kept(parts: &[ReplyPart]) -> String {
    let mut out = String::new();
    for part in parts {
        let (what, opaque) = match part {
            ReplyPart::Text { opaque, .. } => ("text", opaque),
            ReplyPart::Reasoning { opaque, .. } => ("reasoning", opaque),
            ReplyPart::Call(call) => ("call", &call.opaque),
        };
        if let Some(Opaque { data, bound, .. }) = opaque {
            let _ = writeln!(out, "keeps {what} {data}{}", if *bound { " (bound)" } else { "" });
        }
    }
    out
}

/// A reply in words.
pub(super) fn describe(deltas: &[Delta], end: Result<Delta, ModelError>) -> String {
    let mut out = String::new();
    for delta in deltas {
        let _ = match delta {
            Delta::Text(text) => writeln!(out, "text {text:?}"),
            Delta::Reasoning(text) => writeln!(out, "reasoning {text:?}"),
            Delta::CallBegun(name) => writeln!(out, "begun {name}"),
            Delta::Notice(words) => writeln!(out, "notice {words:?}"),
            Delta::Searched(words) => writeln!(out, "searched {words:?}"),
            Delta::Finished(_) => Ok(()),
        };
    }
    match end {
        Ok(Delta::Finished(end)) => {
            out.push_str(&kept(&end.parts));
            for call in end.calls() {
                let _ = writeln!(out, "call {} {} {}", call.id, call.name, call.arguments);
            }
            let usage = end.usage;
            let (input, cached) = (usage.input_tokens, usage.cached_input_tokens);
            let (output, reasoning) = (usage.output_tokens, usage.reasoning_tokens);
            let _ = writeln!(
                out,
                "finished {:?}, input {input} (cached {cached}), output {output} (reasoning {reasoning}){}",
                end.finish,
                if usage.estimated { ", estimated" } else { "" }
            );
        }
        Ok(_) => {}
        Err(error) => {
            let _ = writeln!(out, "error {:?} {:?}: {}", error.kind, error.status, error.message);
        }
    }
    out
}

/// All deltas, neighbouring texts joined, and how it ended.
pub(super) async fn read_all(reply: &mut dyn ReplyStream) -> (Vec<Delta>, Result<Delta, ModelError>) {
    let mut deltas: Vec<Delta> = Vec::new();
    loop {
        match reply.next().await {
            Ok(end @ Delta::Finished(_)) => return (deltas, Ok(end)),
            Ok(delta) => match (deltas.last_mut(), &delta) {
                (Some(Delta::Text(last)), Delta::Text(text))
                | (Some(Delta::Reasoning(last)), Delta::Reasoning(text)) => last.push_str(text),
                _ => deltas.push(delta),
            },
            Err(error) => return (deltas, Err(error)),
        }
    }
}

/// A server that answers the requests of each connection with these bytes, in order, then closes it.
struct Server {
    base: String,
    thread: JoinHandle<Vec<Vec<String>>>,
}

/// The bytes that a connection answers with, one entry per request.
type Connection = &'static [&'static str];

impl Server {
    /// Serves these connections, one after the other.
    fn start(connections: &'static [Connection]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let serve = move || {
            let serve_one = |answers: &Connection| {
                let (mut stream, _) = listener.accept().expect("a connection");
                answers.iter().map_while(|answer| serve_request(&mut stream, answer)).collect()
            };
            connections.iter().map(serve_one).collect()
        };
        Self { base, thread: std::thread::spawn(serve) }
    }

    /// The requests that came, by connection.
    fn requests(self) -> Vec<Vec<String>> {
        self.thread.join().expect("the server")
    }
}

/// Reads one request and answers it; after `HANG` it sends nothing more until the client disconnects.
fn serve_request(stream: &mut TcpStream, answer: &str) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let start = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if let Some(value) = head[start..].to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (answer, hangs) = answer.strip_suffix("HANG").map_or((answer, false), |answer| (answer, true));
    stream.write_all(answer.as_bytes()).ok()?;
    if hangs {
        let _ = reader.read(&mut [0]);
    }
    Some(head + &String::from_utf8_lossy(&body))
}

#[test]
fn one_connection_serves_a_whole_loop() {
    const SSE: &str = concat!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        "47\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n\r\n",
        "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    );
    let server = Server::start(&[&[SSE, SSE, SSE]]);
    let model = openai(&server.base);
    block_on(async {
        for _ in 0..3 {
            let (deltas, end) = ask(&model).await.expect("an answer");
            assert_eq!(deltas, [Delta::Text("hi".to_owned())]);
            assert!(end.is_ok(), "{end:?}");
        }
    });
    drop(model);
    let requests = server.requests();
    assert_eq!(requests[0].len(), 3);
    let first = requests[0][0].to_ascii_lowercase();
    assert!(first.starts_with("post /v1/chat/completions http/1.1\r\n"), "{first}");
    assert!(first.contains("\r\nauthorization: bearer sk-secret-key\r\n"), "{first}");
    assert!(first.contains("\r\nx-team: blue-team-token\r\n"), "{first}");
}

#[test]
fn failures_of_a_connection() {
    for (name, connection, description) in [
        (
            "status, words, Retry-After",
            &[
                "HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 29\r\n\r\n{\"error\":{\"message\":\"slow\"} }",
            ][..],
            "error RateLimit Some(429): slow; wait 7s",
        ),
        (
            "no words",
            &["HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"],
            "error Transient Some(503): Service Unavailable",
        ),
        (
            "the key is not repeated",
            &["HTTP/1.1 401 No\r\ncontent-length: 22\r\n\r\nbad key: sk-secret-key"],
            "error Authentication Some(401): bad key: ***. Check the key (`api_key` in the model file, or its variable) and whether it may use this model.",
        ),
        (
            "a redirect is not followed",
            &["HTTP/1.1 307 Over There\r\nlocation: https://example.com/\r\ncontent-length: 0\r\n\r\n"],
            "error BadRequest Some(307): the server redirects to https://example.com/. Set base_url to that address.",
        ),
        (
            "no first byte",
            &["HANG"],
            "error Transient None: no answer from HOST within 100ms (timeouts.first_byte)",
        ),
        (
            "headers, then nothing",
            &["HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nHANG"],
            "error Transient None: no answer from HOST within 100ms (timeouts.first_byte)",
        ),
        (
            "silence in the middle",
            &[
                "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\nHANG",
            ],
            "text \"a\"\nerror Incomplete None: the server sent nothing for 100ms (timeouts.idle)",
        ),
        (
            "broken in the middle",
            &[
                "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            ],
            "text \"a\"\nerror Incomplete None: the connection broke after 47 bytes: error reading a body from connection: end of file before message length reached",
        ),
        (
            "broken after the end",
            &[
                "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n",
            ],
            "text \"a\"\nfinished Stop, input 1 (cached 0), output 1 (reasoning 0)",
        ),
    ] {
        let connections: &'static [Connection] =
            Box::leak(Box::new([&*Box::leak(connection.to_vec().into_boxed_slice())]));
        let server = Server::start(connections);
        let model = openai(&server.base);
        let read = block_on(async {
            match ask(&model).await {
                Ok((deltas, end)) => describe(&deltas, end),
                Err(error) => {
                    let wait = error.retry_after.map(|wait| format!("; wait {wait:?}")).unwrap_or_default();
                    format!("{}{wait}", describe(&[], Err(error)).trim_end())
                }
            }
        });
        let host = server.base.trim_start_matches("http://").trim_end_matches("/v1");
        assert_eq!(read.trim_end().replace(host, "HOST"), description, "{name}");
    }
}

#[test]
fn what_only_keeps_a_connection_alive_hides_no_stall() {
    let empty = b"data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n";
    for beat in [&b": ping\n\n"[..], b"event: ping\ndata: {\"type\":\"ping\"}\n\n", empty] {
        stalls_behind(beat);
    }
}

/// A reply that begins, and then goes on with nothing but this.
fn stalls_behind(kept_alive: &'static [u8]) {
    let model = openai("http://127.0.0.1:1/v1");
    let origin = Origin { wire: "chat".to_owned(), host: "h".to_owned(), model: "m".to_owned() };
    let reply = Assembly::new(origin, HashSet::new());
    let reading = ReplyReading::new(Box::new(chat::ChatDecoder::new(&chat::ChatFlags::default(), &[])), reply);
    let begun = Bytes::from_static(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
    let read = block_on(async {
        // One each twentieth of the longest silence.
        let beat = tokio::time::interval(Duration::from_millis(5));
        let comments = stream::unfold(beat, move |mut beat| async move {
            beat.tick().await;
            Some((Ok(Bytes::from_static(kept_alive)), beat))
        });
        let body = Box::pin(stream::iter([Ok(begun)]).chain(comments));
        let (endpoint, sent) = (model.endpoint(), Bytes::new());
        let mut reply = HttpReply::new(body, reading, endpoint, sent, Exchange::default(), Instant::now());
        let (deltas, end) = read_all(&mut reply).await;
        describe(&deltas, end)
    });
    let why =
        "the server only kept the connection alive and wrote nothing for 800ms (8 times timeouts.idle, 100ms)";
    assert_eq!(read, format!("text \"a\"\nerror Incomplete None: {why}\n"));
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}/v1", listener.local_addr().expect("an address"));
    drop(listener);
    let error = block_on(ask(&openai(&base))).expect_err("nobody listens");
    assert!(error.is_transient());
    assert!(error.message.starts_with("cannot connect to 127.0.0.1:"), "{}", error.message);
}

#[test]
fn what_cannot_work_is_said_before_a_request() {
    for (yaml, message) in [
        (
            "{ base_url: \"localhost:80\" }",
            "models.m.base_url: `localhost:80` is not an http:// or https:// address: the scheme is `localhost`",
        ),
        (
            r#"{ base_url: "http://x/v1", api_key: "a\nb" }"#,
            "models.m.api_key: it contains a line break or another character that a header cannot carry",
        ),
        (
            r#"{ base_url: "http://x/v1", headers: { "bad name": x } }"#,
            "models.m.headers.bad name: invalid HTTP header name",
        ),
        (r#"{ base_url: "http://x/v1", model: "" }"#, "models.m.model: the provider's model is not named"),
        ("provider: scripted", "models.m.script: a scripted model needs at least one reply"),
    ] {
        let error = connect_model(&config(yaml), &Surroundings::default()).map(|_| ()).expect_err(yaml);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_model_with_neither_key_nor_server_is_not_configured() {
    for (yaml, configured) in [
        ("", false),
        ("base_url: https://api.openai.com/v1", false),
        ("api_key: k", true),
        ("base_url: http://localhost:8080/v1", true),
        ("headers: { Authorization: Bearer x }", true),
    ] {
        let model = connect_model(&config(yaml), &Surroundings::default()).expect(yaml);
        assert_eq!(model.info().configured, configured, "{yaml}");
    }
}

#[test]
fn only_what_is_declared_is_sent() {
    let hello = [Item::Said(UserText::by_person("hello"))];
    let schema = serde_json::json!({"type": "object"});
    for (yaml, body) in [
        (
            r#"base_url: "http://x/v1""#,
            r#"{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"}}},"messages":[{"role":"user","content":"hello"}]}"#,
        ),
        (
            r#"{ base_url: "http://x/v1", max_output_tokens: 9, temperature: 0.5, reasoning_effort: low, capabilities: { streaming: false, structured_output: false, prompt_cache_key: true } }"#,
            r#"{"model":"gpt-4o","stream":false,"max_tokens":9,"temperature":0.5,"prompt_cache_key":"s","messages":[{"role":"user","content":"hello"}]}"#,
        ),
        (
            "{ api_key: k, wire: chat, max_output_tokens: 9, capabilities: { structured_output: false, stream_usage: false } }",
            r#"{"model":"gpt-4o","stream":true,"max_completion_tokens":9,"prompt_cache_key":"s","messages":[{"role":"user","content":"hello"}]}"#,
        ),
        (
            "{ api_key: k, max_output_tokens: 9 }",
            r#"{"model":"gpt-4o","stream":true,"stream_options":{"include_obfuscation":false},"store":false,"max_output_tokens":16,"prompt_cache_key":"s","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],"text":{"format":{"type":"json_schema","name":"answer","schema":{"type":"object"},"strict":false}}}"#,
        ),
    ] {
        let model = connect_model(&config(yaml), &Surroundings::default()).expect(yaml);
        let preview = model.preview(ModelRequest { schema: Some(&schema), ..request(&hello) });
        assert_eq!(preview.to_string(), body);
    }
}

pub(super) fn config(fields: &str) -> ModelConfig {
    let mut config: serde_json::Map<String, serde_json::Value> =
        yaml::parse_document("{ name: m, provider: openai, model: gpt-4o }").expect("YAML");
    if !fields.is_empty() {
        config.extend(yaml::parse_document::<serde_json::Map<_, _>>(fields).expect("YAML"));
    }
    serde_json::from_value(config.into()).expect("a model")
}

pub(super) fn openai(base: &str) -> Model {
    let timeouts = "timeouts: { first_byte: 100ms, idle: 100ms }";
    let config = config(&format!(
        "{{ base_url: '{base}', api_key: sk-secret-key, headers: {{ X-Team: blue-team-token }}, {timeouts} }}"
    ));
    let around = Surroundings::default();
    let (info, known) = gather_facts(&config, "m", &around);
    Model::new(&config, info, known, &around).expect("a model")
}

fn request(items: &[Item]) -> ModelRequest<'_> {
    ModelRequest { tool_choice: ToolChoice::Auto, ..ModelRequest::from_items(items, "s") }
}

async fn ask(model: &Model) -> Result<(Vec<Delta>, Result<Delta, ModelError>), ModelError> {
    let hello = [Item::Said(UserText::by_person("hello"))];
    let mut reply = model.ask(request(&hello)).await?;
    Ok(read_all(reply.as_mut()).await)
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
