//! The replies of the scripted server: a list of actions on the socket, made from the content of a reply.
//!
//! A reply is data. Faults are edits of that list: a cut, a gate, other framing. `chunk` and its neighbours are the
//! protocol's own shapes, so that a test of a quirk shows only the quirk.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::run::GUARD;

/// One answer of the server.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub framing: Framing,
    pub acts: Vec<Act>,
}

/// The way in which the body is delimited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Chunked,
    /// `Content-Length`, in one write.
    Length,
    /// The acts are the whole answer, head included; then the connection is closed.
    Raw,
}

/// One thing done on the socket.
#[derive(Clone)]
pub enum Act {
    /// One write, and where the body is chunked one chunk.
    Send(Vec<u8>),
    /// Waits until the test opens it.
    Gate(Gate),
    /// Ends the connection in order, without ending the body.
    Cut,
    /// Ends the body, then the connection, in order.
    Close,
    /// Ends the connection with a reset.
    Reset,
    /// Says nothing more until the client goes.
    Hang,
}

/// A place in a reply at which the server waits, and at which a test can wait for the server.
#[derive(Clone, Default)]
pub struct Gate {
    state: Arc<(Mutex<(bool, bool)>, Condvar)>,
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the server go on.
    pub fn open(&self) {
        self.state.0.lock().expect("no holder of a gate panics").1 = true;
        self.state.1.notify_all();
    }

    /// Returns once everything before the gate has been sent.
    #[track_caller]
    pub fn reached(&self) {
        let state = self.state.0.lock().expect("no holder of a gate panics");
        let (_state, guard) =
            self.state.1.wait_timeout_while(state, GUARD, |state| !state.0).expect("no holder of a gate panics");
        assert!(!guard.timed_out(), "the server never came to the gate: the request was not made, or not read on");
    }

    /// The server's side.
    pub fn pass(&self) {
        let mut state = self.state.0.lock().expect("no holder of a gate panics");
        state.0 = true;
        self.state.1.notify_all();
        let _passed = self.state.1.wait_timeout_while(state, GUARD, |state| !state.1);
    }
}

/// The place in which a stream reports its cost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UsageAt {
    /// A last chunk with empty `choices`, as the protocol says.
    Last,
    /// A last chunk that still has a choice.
    LastWithChoice,
    /// The chunk that carries `finish_reason`.
    Finish,
    Never,
}

/// Tokens that a reply reports, input and output, unless it says otherwise. The server puts its own count of the
/// request in the place of the input: a fourth of the bytes.
pub const USAGE: (u64, u64) = (COUNTED, OUTPUT);

/// Stands for the input until the request is known.
const COUNTED: u64 = 4_000_000_000;
const OUTPUT: u64 = 20;

impl Reply {
    /// A streamed answer in words.
    pub fn text(text: &str) -> Self {
        Self::said(text, &[], "stop", UsageAt::Last)
    }

    /// A streamed answer with its usage in another place.
    pub fn text_with_usage(text: &str, usage: UsageAt) -> Self {
        Self::said(text, &[], "stop", usage)
    }

    /// One call, without words.
    pub fn call(name: &str, arguments: &Value) -> Self {
        Self::calls(&[(name, arguments.to_string())])
    }

    /// Calls with their arguments as text, well-formed or not; ids `call_0`, `call_1`, ….
    pub fn calls(calls: &[(&str, String)]) -> Self {
        Self::text_and_calls("", calls)
    }

    pub fn text_and_calls(text: &str, calls: &[(&str, String)]) -> Self {
        Self::said(text, calls, "tool_calls", UsageAt::Last)
    }

    /// A long text in pieces of `bytes` (ASCII text only).
    pub fn text_in_pieces(text: &str, bytes: usize) -> Self {
        let pieces: Vec<Value> = text
            .as_bytes()
            .chunks(bytes)
            .map(|piece| chunk(&json!({"content": String::from_utf8_lossy(piece)})))
            .collect();
        Self::events(pieces.iter().chain([&finish("stop"), &usage_last(USAGE)]))
    }

    /// These events, and `[DONE]`.
    pub fn events<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut acts: Vec<Act> = events.into_iter().map(|event| Act::Send(data(event))).collect();
        acts.push(Act::Send(DONE.into()));
        Self::stream(acts)
    }

    /// An event stream as it stands, in one write.
    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::stream(vec![Act::Send(body.into())])
    }

    /// A whole reply, as a server without streaming gives it.
    pub fn whole(message: &Value, finish_reason: &str) -> Self {
        let body = json!({
            "id": "reply", "object": "chat.completion", "created": 1, "model": "scripted-model",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": usage(USAGE),
        });
        Self::json(200, &body)
    }

    /// A JSON body with this status.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::body(status, "application/json", body.to_string())
    }

    /// A stream of JSON objects, one in each line.
    pub fn lines(lines: &[Value]) -> Self {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Self::body(200, "application/x-ndjson", body)
    }

    /// A text, as Ollama's own interface gives it.
    pub fn ollama(text: &str) -> Self {
        let message = json!({"role": "assistant", "content": text});
        let counts = json!({"message": {"content": ""}, "done": true, "done_reason": "stop",
            "prompt_eval_count": USAGE.0, "eval_count": USAGE.1});
        Self::lines(&[json!({"message": message, "done": false}), counts])
    }

    /// A provider's refusal in the usual shape.
    pub fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"message": message, "type": "error", "code": null}}))
    }

    /// Any body.
    pub fn body(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            framing: Framing::Length,
            acts: vec![Act::Send(body.into())],
        }
    }

    /// Bytes on the socket, status line and all; then it is closed.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: Vec::new(), framing: Framing::Raw, acts: vec![Act::Send(bytes.into())] }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Closes the connection once everything is sent.
    pub fn closing(mut self) -> Self {
        self.acts.push(Act::Close);
        self
    }

    /// Ends the connection as soon as the request has come, with no byte of an answer.
    pub fn nothing(end: Act) -> Self {
        Self::raw("").then(0, end)
    }

    /// Waits at `gate` after this many writes.
    pub fn gate(mut self, gate: &Gate, after: usize) -> Self {
        self.acts.insert(after, Act::Gate(gate.clone()));
        self
    }

    /// After this many writes only `act` follows.
    pub fn then(mut self, after: usize, act: Act) -> Self {
        self.acts.truncate(after);
        self.acts.push(act);
        self
    }

    /// Reports this many tokens of input, where it does not yet report a number.
    pub fn counted(mut self, input: u64) -> Self {
        let numbers = [(COUNTED + OUTPUT, input + OUTPUT), (COUNTED, input)];
        let numbers = numbers.map(|(from, to)| (from.to_string(), to.to_string()));
        for act in &mut self.acts {
            if let Act::Send(bytes) = act
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                *bytes =
                    numbers.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)).into_bytes();
            }
        }
        self
    }

    /// Every write holds at most this many bytes, wherever that falls. A number may be cut as well, so the reply
    /// reports a fixed one.
    pub fn split(self, bytes: usize) -> Self {
        let mut reply = self.counted(5000);
        let whole: Vec<u8> = reply
            .acts
            .iter()
            .flat_map(|act| match act {
                Act::Send(bytes) => bytes.as_slice(),
                _ => &[],
            })
            .copied()
            .collect();
        reply.acts = whole.chunks(bytes).map(|piece| Act::Send(piece.to_vec())).collect();
        reply
    }

    fn stream(acts: Vec<Act>) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            framing: Framing::Chunked,
            acts,
        }
    }

    fn said(text: &str, calls: &[(&str, String)], reason: &str, at: UsageAt) -> Self {
        let mut events = vec![chunk(&json!({"role": "assistant", "content": ""}))];
        // Two pieces, so that a test which cuts between them has something on each side.
        let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
        events.extend([head, tail].iter().filter(|t| !t.is_empty()).map(|t| chunk(&json!({"content": t}))));
        events.extend(calls.iter().enumerate().map(|(index, (name, arguments))| {
            chunk(&json!({"tool_calls": [{
                "index": index, "id": format!("call_{index}"), "type": "function",
                "function": {"name": name, "arguments": arguments},
            }]}))
        }));
        events.push(finish(reason));
        match at {
            UsageAt::Last => events.push(usage_last(USAGE)),
            UsageAt::LastWithChoice => {
                let mut last = chunk(&json!({}));
                last["usage"] = usage(USAGE);
                events.push(last);
            }
            UsageAt::Finish => {
                if let Some(last) = events.last_mut() {
                    last["usage"] = usage(USAGE);
                }
            }
            UsageAt::Never => {}
        }
        Self::events(&events)
    }
}

/// The end of a stream.
pub const DONE: &str = "data: [DONE]\n\n";

/// One event on the wire.
pub fn data(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

/// A chunk whose one choice brings `delta`.
pub fn chunk(delta: &Value) -> Value {
    json!({
        "id": "reply", "object": "chat.completion.chunk", "created": 1, "model": "scripted-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    })
}

/// A chunk that ends the choice.
pub fn finish(reason: &str) -> Value {
    let mut event = chunk(&json!({}));
    event["choices"][0]["finish_reason"] = reason.into();
    event
}

/// The chunk with empty `choices` that reports usage.
pub fn usage_last(tokens: (u64, u64)) -> Value {
    let mut event = chunk(&json!({}));
    event["choices"] = json!([]);
    event["usage"] = usage(tokens);
    event
}

/// The usage of a reply, as servers write it.
pub fn usage((input, output): (u64, u64)) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
