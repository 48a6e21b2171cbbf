//! A server of the OpenAI protocol that answers as fast as its client reads and notes when each request came.
//!
//! It keeps no state of a conversation: how far a loop has come is read from the request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::measure::now;

/// The workload of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A reply of 20 tokens.
    OneShot,
    /// A reply of 50,000 tokens in pieces of 4 bytes.
    Stream,
    /// 20 shell calls, then an answer.
    Loop,
}

pub const STREAM_TOKENS: usize = 50_000;
pub const LOOP_STEPS: usize = 20;

/// One request: when it was read to its end, when its answer was written, over which connection.
#[derive(Clone)]
pub struct Seen {
    pub arrived: u128,
    pub answered: u128,
    pub connection: usize,
    pub body: String,
}

pub struct Server {
    pub address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    phase: Phase,
    seen: Vec<Seen>,
    /// The long reply, made once.
    stream: Arc<Vec<u8>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        let stream = Arc::new(reply(&text_events(STREAM_TOKENS)));
        let state = Arc::new(Mutex::new(State { phase: Phase::OneShot, seen: Vec::new(), stream }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, connection, &shared));
            }
        });
        Self { address, state }
    }

    pub fn begin(&self, phase: Phase) {
        let mut state = self.state.lock().expect("no connection panics");
        state.phase = phase;
        state.seen.clear();
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().expect("no connection panics").seen.clone()
    }
}

fn serve(stream: &TcpStream, connection: usize, state: &Mutex<State>) {
    let _ = stream.set_nodelay(true);
    let mut reading = BufReader::new(stream);
    let mut writing = stream;
    while let Some((path, body)) = read_request(&mut reading) {
        let arrived = now();
        let (phase, long) = {
            let state = state.lock().expect("no connection panics");
            (state.phase, Arc::clone(&state.stream))
        };
        let answer = match phase {
            Phase::OneShot => Arc::new(reply(&text_events(20))),
            Phase::Stream => long,
            Phase::Loop => Arc::new(reply(&loop_events(&path, body.matches("\"role\":\"tool\"").count()))),
        };
        let sent = writing.write_all(&answer).is_ok();
        let seen = Seen { arrived, answered: now(), connection, body };
        state.lock().expect("no connection panics").seen.push(seen);
        if !sent {
            return;
        }
    }
}

fn read_request(reading: &mut BufReader<&TcpStream>) -> Option<(String, String)> {
    let mut line = String::new();
    reading.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reading.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reading.read_exact(&mut body).ok()?;
    Some((path, String::from_utf8(body).ok()?))
}

fn text_events(tokens: usize) -> Vec<String> {
    let mut events: Vec<String> =
        (0..tokens).map(|n| event(&format!("{{\"content\":\"{:03} \"}}", n % 1000), "null")).collect();
    events.push(event("{}", "\"stop\""));
    events.push(usage(tokens));
    events
}

fn loop_events(path: &str, step: usize) -> Vec<String> {
    if step >= LOOP_STEPS {
        return vec![event("{\"content\":\"All done.\"}", "null"), event("{}", "\"stop\""), usage(3)];
    }
    let tool = if path.starts_with("/s/agent/") { "run_command" } else { "shell" };
    let call = format!(
        "{{\"tool_calls\":[{{\"index\":0,\"id\":\"call_{step}\",\"type\":\"function\",\"function\":{{\"name\":\"{tool}\",\
         \"arguments\":\"{{\\\"command\\\":\\\"cat f{step}.txt\\\"}}\"}}}}]}}"
    );
    vec![event(&call, "null"), event("{}", "\"tool_calls\""), usage(20)]
}

fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"reply\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"scripted\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn usage(tokens: usize) -> String {
    format!(
        "data: {{\"id\":\"reply\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"scripted\",\"choices\":[],\
         \"usage\":{{\"prompt_tokens\":100,\"completion_tokens\":{tokens},\"total_tokens\":{}}}}}\n\n",
        100 + tokens
    )
}

/// Head and body, one HTTP chunk an event, as servers that flush each event write it.
fn reply(events: &[String]) -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for event in events.iter().map(String::as_str).chain(["data: [DONE]\n\n"]) {
        bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}
