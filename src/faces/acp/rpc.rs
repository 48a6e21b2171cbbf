//! JSON-RPC 2.0 between two programs, a message a line: what is sent, and who waits for an answer.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::conversation::OutputQueue;

/// The most lines that wait to be read before work waits too.
const MOST_WAITING: usize = 1000;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

impl RpcError {
    pub const PARSE: i64 = -32700;
    pub const REQUEST: i64 = -32600;
    pub const METHOD: i64 = -32601;
    pub const PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    /// Of the Agent Client Protocol.
    pub const AUTHENTICATION: i64 = -32000;
    pub const NOT_FOUND: i64 = -32002;

    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The parameters of a request are wrong.
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(Self::PARAMS, message)
    }
}

/// This side of a connection.
pub struct RpcPeer {
    lines: mpsc::Sender<String>,
    backlog: Arc<Backlog>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>>,
    next: AtomicU64,
}

/// The lines that are not written yet.
#[derive(Default)]
struct Backlog {
    count: AtomicUsize,
    is_closed: AtomicBool,
    changed: Notify,
}

/// A request that nobody waits for any more is taken back when this is dropped.
struct PendingRequest<'p> {
    peer: &'p RpcPeer,
    id: u64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.peer.waiting().remove(&self.id).is_some() {
            self.peer.notify("$/cancel_request", &json!({ "requestId": self.id }));
        }
    }
}

impl RpcPeer {
    /// Writes to `out` on a thread of its own: a reader that does not read stops nothing.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(mut out: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let (lines, written) = mpsc::channel::<String>();
        let backlog = Arc::new(Backlog::default());
        let shared = Arc::clone(&backlog);
        let write = move || {
            for line in written {
                let ended = writeln!(out, "{line}").and_then(|()| out.flush());
                shared.count.fetch_sub(1, Ordering::Relaxed);
                if ended.is_err() {
                    shared.is_closed.store(true, Ordering::Relaxed);
                }
                shared.changed.notify_waiters();
            }
        };
        std::thread::Builder::new().name("editor".to_owned()).spawn(write)?;
        Ok(Arc::new(Self { lines, backlog, waiting: Mutex::default(), next: AtomicU64::new(0) }))
    }

    fn send(&self, message: &Value) {
        self.backlog.count.fetch_add(1, Ordering::Relaxed);
        // The thread ends with this side alone.
        let _ = self.lines.send(message.to_string());
    }

    /// Says something that has no answer.
    pub fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers a request of the other side.
    pub fn respond(&self, id: &Value, answer: Result<Value, RpcError>) {
        self.send(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(RpcError { code, message }) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            }
        });
    }

    /// Asks the other side, and waits for its answer. Dropping the future takes the request back.
    ///
    /// # Errors
    /// The other side refuses it, or is gone.
    pub async fn request(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.waiting().insert(id, sender);
        let _pending = PendingRequest { peer: self, id };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        receiver.await.unwrap_or_else(|_| Err(RpcError::new(RpcError::INTERNAL, "the editor is gone")))
    }

    /// Takes the other side's answer to a request.
    pub fn take_answer(&self, message: &mut Value) {
        let waiting = message["id"].as_u64().and_then(|id| self.waiting().remove(&id));
        // Nobody waits for the answer to a request that was taken back.
        let Some(waiting) = waiting else { return };
        let error = &message["error"];
        let answer = if error.is_object() {
            let code = error["code"].as_i64().unwrap_or(RpcError::INTERNAL);
            Err(RpcError::new(code, error["message"].as_str().unwrap_or_default()))
        } else {
            Ok(message["result"].take())
        };
        let _ = waiting.send(answer);
    }

    /// Ends every wait: the other side is gone.
    pub fn close(&self) {
        self.backlog.is_closed.store(true, Ordering::Relaxed);
        self.backlog.changed.notify_waiters();
        self.waiting().clear();
    }

    /// The queue of what is sent.
    pub fn queue(&self) -> Box<dyn OutputQueue> {
        Box::new(LineQueue(Arc::clone(&self.backlog)))
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>> {
        self.waiting.lock().expect("no holder of the requests panics")
    }
}

struct LineQueue(Arc<Backlog>);

impl LineQueue {
    async fn wait_for(&self, is_so: impl Fn(&Backlog) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            if is_so(&self.0) {
                return;
            }
            changed.await;
        }
    }
}

impl OutputQueue for LineQueue {
    fn has_room(&self) -> bool {
        self.0.count.load(Ordering::Relaxed) < MOST_WAITING
    }

    fn wait_for_room(&self) -> BoxFuture<'_, ()> {
        self.wait_for(|backlog| backlog.count.load(Ordering::Relaxed) < MOST_WAITING).boxed()
    }

    fn wait_until_closed(&self) -> BoxFuture<'_, ()> {
        self.wait_for(|backlog| backlog.is_closed.load(Ordering::Relaxed)).boxed()
    }

    fn failure(&self) -> Option<io::Error> {
        self.0.is_closed.load(Ordering::Relaxed).then(|| io::ErrorKind::BrokenPipe.into())
    }
}
