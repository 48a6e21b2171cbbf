//! A scripted server of the OpenAI protocol on its own port: it keeps every request and plays replies.
//!
//! A thread per connection, keep-alive as real servers do it; what is answered depends on the number of the request
//! alone, so a test reads as a conversation. Nothing here sleeps: order comes from gates.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::socket::{setsockopt, sockopt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::reply::{Act, Framing, Reply};

/// The server. It stops taking connections when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// The paths by which servers are asked which program they are.
const QUESTIONS: [&str; 7] =
    ["/props", "/api/ps", "/api/show", "/api/v1/models", "/api/v0/models", "/model/info", "/v1/models"];

/// The reply to a request, by its number.
type Answer = dyn Fn(&Request, usize) -> Reply + Send + Sync;

struct Shared {
    answer: Box<Answer>,
    requests: Mutex<Vec<Request>>,
    /// Its statements about itself: paths, and the bodies of the answers.
    about: Mutex<Vec<(&'static str, String)>>,
    /// The number of times that it was asked which program it is.
    questions: AtomicUsize,
    over: AtomicBool,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: Vec<(String, String)>,
    /// The body byte for byte.
    pub raw: String,
    pub body: Value,
    /// Counts connections from 0.
    pub connection: usize,
}

impl Server {
    /// Plays these replies, one a request; more requests than replies are refused with a 400 that says so.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        Self::answering(move |_, index| {
            replies.get(index).cloned().unwrap_or_else(|| {
                Reply::error(400, &format!("the test has {} replies, this is request {index}", replies.len()))
            })
        })
    }

    /// The same reply to every request.
    pub fn always(reply: Reply) -> Self {
        Self::answering(move |_, _| reply.clone())
    }

    /// Replies made from the request and its number.
    pub fn answering(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            requests: Mutex::new(Vec::new()),
            about: Mutex::new(Vec::new()),
            questions: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                if accepting.over.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&accepting);
                thread::spawn(move || serve(stream, connection, &shared));
            }
        });
        Self { address, shared }
    }

    /// Answers the question that is asked at `path` of what it is. Such questions count as no requests.
    pub fn about(self, path: &'static str, body: &Value) -> Self {
        self.shared.about.lock().expect("no connection panics").push((path, body.to_string()));
        self
    }

    /// The number of questions which program it is.
    pub fn questions(&self) -> usize {
        self.shared.questions.load(Ordering::SeqCst)
    }

    /// The base URL, version path included.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().expect("no connection panics").clone()
    }

    /// The one request that was made.
    #[track_caller]
    pub fn only_request(&self) -> Request {
        let mut requests = self.requests();
        assert!(requests.len() == 1, "expected one request, got {}", requests.len());
        requests.remove(0)
    }

    /// The number of connections that the requests used.
    pub fn connections(&self) -> usize {
        self.requests().iter().map(|request| request.connection).collect::<BTreeSet<_>>().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The text of the system prompt.
    pub fn system(&self) -> &str {
        self.messages().first().and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    /// The text of the last user message.
    pub fn user(&self) -> &str {
        let user = self.messages().iter().rfind(|message| message["role"] == "user");
        user.and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    /// Ids and texts of all tool messages, in order.
    pub fn tool_results(&self) -> Vec<(&str, &str)> {
        self.messages()
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| {
                (
                    message["tool_call_id"].as_str().unwrap_or_default(),
                    message["content"].as_str().unwrap_or_default(),
                )
            })
            .collect()
    }

    /// The text of the last tool message.
    #[track_caller]
    pub fn last_result(&self) -> &str {
        self.tool_results().last().map(|(_, text)| *text).expect("the request holds a result of a tool")
    }

    /// The text between the tags of the last tool message.
    #[track_caller]
    pub fn last_output(&self) -> &str {
        between_tags(self.last_result())
    }

    /// All calls in the history.
    pub fn calls(&self) -> Vec<&Value> {
        self.messages().iter().filter_map(|message| message["tool_calls"].as_array()).flatten().collect()
    }

    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }

    /// `messages` and `tools` byte for byte as they were sent, the closing bracket of `messages` left off: what a
    /// later request has to begin with.
    #[track_caller]
    pub fn prefix(&self) -> (&str, &str) {
        #[derive(Deserialize)]
        struct Parts<'a> {
            #[serde(borrow)]
            messages: &'a RawValue,
            #[serde(borrow)]
            tools: Option<&'a RawValue>,
        }
        let parts: Parts<'_> = serde_json::from_str(&self.raw).expect("a request is JSON with messages");
        let messages = parts.messages.get().strip_suffix(']').expect("messages is an array");
        (messages, parts.tools.map(RawValue::get).unwrap_or_default())
    }
}

/// Each request extends the one before it byte for byte.
#[track_caller]
pub fn assert_append_only(requests: &[Request]) {
    for (index, pair) in requests.windows(2).enumerate() {
        let ((before, tools_before), (after, tools_after)) = (pair[0].prefix(), pair[1].prefix());
        assert!(tools_before == tools_after, "the tools of request {} differ from those before", index + 1);
        if !after.starts_with(before) {
            let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
            let from = before.floor_char_boundary(same.saturating_sub(80));
            panic!(
                "request {} rewrites its past at byte {same} of {}:\n  before …{}\n  after  …{}",
                index + 1,
                before.len(),
                &before[from..before.floor_char_boundary(same + 80)],
                &after[from..after.floor_char_boundary(same + 80)],
            );
        }
    }
}

/// Every call in the history has exactly one answer, right after the message that made it.
#[track_caller]
pub fn assert_answered_once(request: &Request) {
    let mut open: Vec<String> = Vec::new();
    for message in request.messages() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let place = open.iter().position(|known| known == id);
            open.remove(
                place.unwrap_or_else(|| panic!("an answer to `{id}`, which nobody asked: {}", request.raw)),
            );
            continue;
        }
        assert!(open.is_empty(), "calls without an answer: {open:?} in {}", request.raw);
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        open.extend(calls.iter().filter_map(|call| call["id"].as_str().map(str::to_owned)));
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            assert!(
                serde_json::from_str::<Value>(arguments).is_ok(),
                "history holds a malformed call, which servers answer with 500 for ever: {call}"
            );
        }
    }
    assert!(open.is_empty(), "calls without an answer: {open:?} in {}", request.raw);
}

/// Requests of one connection, until either side has enough. Errors are the client's going away.
fn serve(stream: TcpStream, connection: usize, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let Ok(writing) = stream.try_clone() else { return };
    let mut reading = BufReader::new(stream);
    while let Some(request) = read_request(&mut reading, connection) {
        let path = request.path.split('?').next().unwrap_or_default();
        if QUESTIONS.contains(&path) {
            shared.questions.fetch_add(1, Ordering::SeqCst);
            let about = shared.about.lock().expect("no connection panics").clone();
            let (status, body) = match about.into_iter().find(|(known, _)| *known == path) {
                Some((_, body)) => ("200 OK", body),
                None => ("404 Not Found", String::new()),
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let mut writing = &writing;
            let _ = writing.write_all((head + &body).as_bytes());
            return;
        }
        let index = {
            let mut requests = shared.requests.lock().expect("no connection panics");
            requests.push(request.clone());
            requests.len() - 1
        };
        let reply = (shared.answer)(&request, index).counted(request.raw.len() as u64 / 4);
        if !matches!(play(&reply, &writing), Ok(true)) {
            return;
        }
    }
}

fn read_request(reading: &mut BufReader<TcpStream>, connection: usize) -> Option<Request> {
    let mut line = String::new();
    reading.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut request = Request { path, headers, raw: String::new(), body: Value::Null, connection };
    let mut body = Vec::new();
    match request.header("content-length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reading.read_exact(&mut body).ok()?;
        }
        None if request.header("transfer-encoding").is_some() => body = read_chunks(reading)?,
        None => {}
    }
    request.raw = String::from_utf8_lossy(&body).into_owned();
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(request)
}

fn read_chunks(reading: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let start = body.len();
        body.resize(start + length, 0);
        reading.read_exact(&mut body[start..]).ok()?;
        reading.read_line(&mut String::new()).ok()?;
        if length == 0 {
            return Some(body);
        }
    }
}

/// Plays one reply; whether the connection can take another request.
fn play(reply: &Reply, mut socket: &TcpStream) -> std::io::Result<bool> {
    if reply.framing != Framing::Raw {
        socket.write_all(head(reply).as_bytes())?;
    }
    for act in &reply.acts {
        match act {
            Act::Send(bytes) if reply.framing == Framing::Chunked => {
                let mut packet = format!("{:x}\r\n", bytes.len()).into_bytes();
                packet.extend_from_slice(bytes);
                packet.extend_from_slice(b"\r\n");
                socket.write_all(&packet)?;
            }
            Act::Send(bytes) => socket.write_all(bytes)?,
            Act::Gate(gate) => gate.pass(),
            // Comes last: what ends the body stands below.
            Act::Close => {}
            Act::Cut => return Ok(false),
            Act::Reset => {
                // Closing with a zero linger sends RST in place of FIN.
                let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
                setsockopt(&socket, sockopt::Linger, &linger)?;
                return Ok(false);
            }
            Act::Hang => {
                // Ends when the client does.
                let _ = socket.read(&mut [0; 64]);
                return Ok(false);
            }
        }
    }
    if reply.framing == Framing::Chunked {
        socket.write_all(b"0\r\n\r\n")?;
    }
    Ok(reply.framing != Framing::Raw && !matches!(reply.acts.last(), Some(Act::Close)))
}

fn head(reply: &Reply) -> String {
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let delimited = if reply.framing == Framing::Chunked {
        "transfer-encoding: chunked".to_owned()
    } else {
        let sent = reply.acts.iter().map(|act| if let Act::Send(bytes) = act { bytes.len() } else { 0 });
        format!("content-length: {}", sent.sum::<usize>())
    };
    format!("HTTP/1.1 {} Scripted\r\n{headers}{delimited}\r\n\r\n", reply.status)
}

/// The text of a result, without the tags around it.
#[track_caller]
pub fn between_tags(result: &str) -> &str {
    let inside = result.split_once(">\n").and_then(|(_, rest)| rest.strip_suffix("\n</result>"));
    inside.expect("a result stands between its tags")
}
