//! A server of OpenAI's two protocols, chat completions and responses, that answers as fast as its client reads and
//! notes when each request came.
//!
//! It keeps no state of a conversation: how far a loop has come is read from the request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The workload of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A reply of 20 tokens.
    OneShot,
    /// A reply of 50,000 tokens in pieces of 4 bytes.
    Stream,
    /// A reply of 500 tokens per second, until its reader leaves.
    Paced,
    /// 20 shell calls, then an answer.
    Loop,
    /// 20 shell calls, then an answer, while another process keeps each core busy.
    BusyLoop,
}

impl Phase {
    pub fn calls_tools(self) -> bool {
        matches!(self, Self::Loop | Self::BusyLoop)
    }
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

/// Nanoseconds of the system's clock, which parent, child and server share.
pub fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos()
}

pub struct Server {
    pub address: String,
    state: Arc<Mutex<State>>,
}

struct State {
    phase: Phase,
    seen: Vec<Seen>,
    /// The long reply, made once for each wire.
    stream: [Arc<Vec<u8>>; 2],
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        let stream =
            [Wire::Chat, Wire::Responses].map(|wire| Arc::new(wire.reply(&Answer::Text(STREAM_TOKENS), 0)));
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
        let wire = match path.rsplit_once('/') {
            Some((_, "completions")) => Wire::Chat,
            Some((_, "responses")) => Wire::Responses,
            // A question which server this is.
            _ if writing.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").is_ok() => continue,
            _ => return,
        };
        let (phase, long) = {
            let state = state.lock().expect("no connection panics");
            (state.phase, Arc::clone(&state.stream[wire as usize]))
        };
        let answer = match phase {
            Phase::OneShot => Arc::new(wire.reply(&Answer::Text(20), body.len())),
            Phase::Stream | Phase::Paced => long,
            Phase::Loop | Phase::BusyLoop => Arc::new(wire.reply(&wire.next_of_loop(&path, &body), body.len())),
        };
        let sent = match phase {
            Phase::Paced => write_paced(writing, &answer).is_ok(),
            _ => writing.write_all(&answer).is_ok(),
        };
        let seen = Seen { arrived, answered: now(), connection, body };
        state.lock().expect("no connection panics").seen.push(seen);
        if !sent {
            return;
        }
    }
}

/// Writes one event every 2 ms on average, as a thread may sleep longer than requested.
fn write_paced(mut writing: &TcpStream, answer: &[u8]) -> std::io::Result<()> {
    const EVENT: Duration = Duration::from_millis(2);
    let began = Instant::now();
    let mut due = Duration::ZERO;
    for line in answer.split_inclusive(|byte| *byte == b'\n') {
        writing.write_all(line)?;
        if line.starts_with(b"data:") {
            due += EVENT;
            thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
    Ok(())
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

/// The content of the model's reply.
enum Answer {
    /// This many tokens of four bytes.
    Text(usize),
    Call {
        step: usize,
        tool: &'static str,
        argument: &'static str,
    },
    Done,
}

#[derive(Clone, Copy)]
enum Wire {
    Chat,
    Responses,
}

impl Wire {
    fn next_of_loop(self, path: &str, body: &str) -> Answer {
        let result = match self {
            Self::Chat => "\"role\":\"tool\"",
            Self::Responses => "\"type\":\"function_call_output\"",
        };
        let step = body.matches(result).count();
        let (tool, argument) = match (self, path.starts_with("/s/agent/")) {
            (_, true) => ("run_command", "command"),
            (Self::Chat, false) => ("shell", "command"),
            (Self::Responses, false) => ("exec_command", "cmd"),
        };
        if step < LOOP_STEPS { Answer::Call { step, tool, argument } } else { Answer::Done }
    }

    /// Head and body, one HTTP chunk per event, like servers that flush each event. Four bytes of the request count as
    /// a token.
    fn reply(self, answer: &Answer, request: usize) -> Vec<u8> {
        let events = match self {
            Self::Chat => chat::events(answer, request / 4),
            Self::Responses => responses::events(answer, request / 4),
        };
        let mut bytes =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for event in events {
            bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        bytes
    }
}

fn tokens(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("{:03} ", n % 1000))
}

/// `https://platform.openai.com/docs/api-reference/chat-streaming`
mod chat {
    use super::Answer;

    pub fn events(answer: &Answer, asked: usize) -> Vec<String> {
        let content = |text: &str| event(&format!("{{\"content\":\"{text}\"}}"), "null");
        let (mut events, finish, used) = match answer {
            Answer::Text(count) => (super::tokens(*count).map(|text| content(&text)).collect(), "stop", *count),
            Answer::Done => (vec![content("All done.")], "stop", 3),
            Answer::Call { step, tool, argument } => {
                let call = format!(
                    "{{\"tool_calls\":[{{\"index\":0,\"id\":\"call_{step}\",\"type\":\"function\",\"function\":\
                     {{\"name\":\"{tool}\",\"arguments\":\"{{\\\"{argument}\\\":\\\"cat f{step}.txt\\\"}}\"}}}}]}}"
                );
                (vec![event(&call, "null")], "tool_calls", 20)
            }
        };
        events.extend([event("{}", &format!("\"{finish}\"")), usage(asked, used), "data: [DONE]\n\n".to_owned()]);
        events
    }

    fn event(delta: &str, finish: &str) -> String {
        format!(
            "data: {{\"id\":\"reply\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"scripted\",\
             \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    }

    fn usage(asked: usize, used: usize) -> String {
        format!(
            "data: {{\"id\":\"reply\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"scripted\",\
             \"choices\":[],\"usage\":{{\"prompt_tokens\":{asked},\"completion_tokens\":{used},\"total_tokens\":{}}}}}\n\n",
            asked + used
        )
    }
}

/// `https://platform.openai.com/docs/api-reference/responses-streaming`
mod responses {
    use super::Answer;

    pub fn events(answer: &Answer, asked: usize) -> Vec<String> {
        let mut events =
            vec![event("response.created", &format!("\"response\":{}", response("in_progress", "", asked, 0)))];
        let (item, used) = match answer {
            Answer::Text(count) => message(super::tokens(*count).collect(), &mut events),
            Answer::Done => message(vec!["All done.".to_owned()], &mut events),
            Answer::Call { step, tool, argument } => {
                let item = format!(
                    "{{\"type\":\"function_call\",\"id\":\"fc_{step}\",\"call_id\":\"call_{step}\",\"name\":\"{tool}\",\
                     \"arguments\":\"{{\\\"{argument}\\\":\\\"cat f{step}.txt\\\"}}\",\"status\":\"completed\"}}"
                );
                events.push(event("response.output_item.added", &at(&item)));
                (item, 20)
            }
        };
        events.push(event("response.output_item.done", &at(&item)));
        events.push(event(
            "response.completed",
            &format!("\"response\":{}", response("completed", &item, asked, used)),
        ));
        events
    }

    /// Adds the events of a message; returns the item, and its tokens.
    fn message(texts: Vec<String>, events: &mut Vec<String>) -> (String, usize) {
        let item = |content: &str, status: &str| {
            format!(
                "{{\"type\":\"message\",\"id\":\"msg\",\"role\":\"assistant\",\"status\":\"{status}\",\
                 \"content\":[{content}]}}"
            )
        };
        let part = |text: &str| format!("{{\"type\":\"output_text\",\"annotations\":[],\"text\":\"{text}\"}}");
        let place = "\"item_id\":\"msg\",\"output_index\":0,\"content_index\":0";
        events.push(event("response.output_item.added", &at(&item("", "in_progress"))));
        events.push(event("response.content_part.added", &format!("{place},\"part\":{}", part(""))));
        let delta = |text: &String| event("response.output_text.delta", &format!("{place},\"delta\":\"{text}\""));
        events.extend(texts.iter().map(delta));
        let whole = texts.concat();
        events.push(event("response.output_text.done", &format!("{place},\"text\":\"{whole}\"")));
        events.push(event("response.content_part.done", &format!("{place},\"part\":{}", part(&whole))));
        (item(&part(&whole), "completed"), texts.len())
    }

    fn at(item: &str) -> String {
        format!("\"output_index\":0,\"item\":{item}")
    }

    fn event(kind: &str, rest: &str) -> String {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n")
    }

    fn response(status: &str, item: &str, asked: usize, used: usize) -> String {
        format!(
            "{{\"id\":\"resp\",\"object\":\"response\",\"created_at\":1,\"model\":\"scripted\",\"status\":\"{status}\",\
             \"output\":[{item}],\"usage\":{{\"input_tokens\":{asked},\"input_tokens_details\":{{\"cached_tokens\":0}},\
             \"output_tokens\":{used},\"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":{}}}}}",
            asked + used
        )
    }
}
