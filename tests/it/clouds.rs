//! Claude in the clouds of others: how requests are addressed and signed, and binary replies. `.ci/clouds` holds signatures,
//! frames and tokens against the clouds' own libraries.

use base64::Engine;

use crate::reply::Reply;
use crate::run::Run;
use crate::server::Server;

/// CRC-32 (ISO 3309).
fn sum(bytes: &[u8]) -> [u8; 4] {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    (!crc).to_be_bytes()
}

/// A frame of Amazon's event stream.
fn frame(kind: &str, name: &str, payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (key, value) in [(":message-type", kind), (&format!(":{kind}-type"), name)] {
        head.push(u8::try_from(key.len()).expect("short"));
        head.extend_from_slice(key.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).expect("short").to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).expect("short").to_be_bytes();
    let mut frame = [length(16 + head.len() + payload.len()), length(head.len())].concat();
    frame.extend_from_slice(&sum(&frame));
    frame.extend_from_slice(&[&head, payload.as_bytes()].concat());
    frame.extend_from_slice(&sum(&frame));
    frame
}

fn chunk(event: &str) -> Vec<u8> {
    let bytes = base64::engine::general_purpose::STANDARD.encode(event);
    frame("event", "chunk", &format!(r#"{{"bytes":"{bytes}"}}"#))
}

/// The frames of a reply of this text.
fn hello() -> Vec<Vec<u8>> {
    [
        r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ]
    .map(chunk)
    .to_vec()
}

fn binary(frames: &[Vec<u8>]) -> Reply {
    Reply::body(200, "application/vnd.amazon.eventstream", frames.concat())
}

fn bedrock(server: &Server) -> Run {
    let base = server.url().trim_end_matches("/v1").to_owned();
    let model = format!(
        "provider: openai\nbase_url: {base}\ndialect: bedrock\nmodel: eu.anthropic.claude-opus-5-v1:0\n\
         api_key: {{ aws: default }}\nretry: {{ base_delay: 1ms }}\n"
    );
    let run = Run::new().config("models/cloud.yaml", &model).args(["run", "-m", "cloud", "hi"]);
    run.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "a-secret-of-amazon")
}

#[test]
fn bedrock_is_asked_by_signed_requests_and_answers_in_frames() {
    let server = Server::start([
        binary(&[frame("exception", "throttlingException", r#"{"message":"Too many requests"}"#)]),
        binary(&hello()[..3]),
        binary(&hello()),
    ]);
    let run = bedrock(&server).run().success().stdout_has("hello");
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "what was throttled or broke off is asked again: {}", run.shown());
    for request in &requests {
        assert_eq!(request.path, "/model/eu.anthropic.claude-opus-5-v1%3A0/invoke-with-response-stream");
        let authorization = request.header("authorization").unwrap_or_default();
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{authorization}");
        assert!(request.body.get("model").is_none() && request.body["anthropic_version"] == "bedrock-2023-05-31");
    }
    assert!(!run.place.kept().iter().any(|(_, text)| text.contains("a-secret-of-amazon")));
}

#[test]
fn keys_that_cannot_be_found_are_an_error_that_says_where_they_were_looked_for() {
    let server = Server::start([]);
    let run = bedrock(&server).env("AWS_ACCESS_KEY_ID", "").run().exits(4);
    assert!(run.stderr.contains("AWS_ACCESS_KEY_ID") && run.stderr.contains("~/.aws"), "{}", run.shown());
    let missing =
        bedrock(&server).config("models/cloud.yaml", "provider: openai\nmodel: m\napi_key: { aws: gone }\n");
    missing.run().exits(4).stderr_has("profile `gone`");
    let google = bedrock(&server)
        .config("models/cloud.yaml", "provider: openai\nmodel: m\napi_key: { google: /gone.json }\n");
    google.run().exits(4).stderr_has("/gone.json does not exist");
    assert!(server.requests().is_empty());
}
