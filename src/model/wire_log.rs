//! The wire log (`--log-wire FILE`): requests and answers as they went over the wire, so that a bug report can be
//! copied into a case of `tests/wire_cases`.
//!
//! A line `=== 3 …` heads each part of the third exchange. The text between the blank line after the headers and the
//! next such line is a body, byte for byte except for secrets and one line break at its end. An answer is written in
//! one piece when it has ended, so that parallel exchanges do not mix. Headers with keys or names of accounts are left
//! out.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use reqwest::header::HeaderMap;
use reqwest::{Response, Url};

use crate::base::secrets::Redactor;
use crate::files::regular::append_to;

/// The most bytes of an answer that are logged.
const LONGEST: usize = 64 * 1024 * 1024;

/// Parts of the names of headers that are left out.
const HIDDEN: [&str; 8] = ["auth", "key", "cookie", "secret", "organization", "project", "account", "workspace"];

/// The file to which exchanges with servers are written.
#[derive(Debug)]
pub struct WireLog {
    redactor: Redactor,
    state: Mutex<WireLogState>,
}

#[derive(Debug)]
struct WireLogState {
    file: File,
    exchanges: u64,
    /// The reason that the log ended early, until it is reported.
    failure: Option<String>,
    ended: bool,
}

/// A request and its answer. What has come of the answer is written when this is dropped.
#[derive(Default)]
pub(super) struct Exchange(Option<Logged>);

struct Logged {
    log: Arc<WireLog>,
    number: u64,
    /// The status line and the headers; empty while there are none.
    head: String,
    body: Vec<u8>,
    /// The bytes of the body, including those that are not logged.
    length: usize,
    /// The reason that there is no answer.
    failure: Option<String>,
}

impl WireLog {
    /// Opens a file for appending, which only this user can read from then on.
    ///
    /// # Errors
    /// The file cannot be written, or is a pipe that nobody reads.
    pub fn open(path: &Path, redactor: Redactor) -> io::Result<Self> {
        let file = append_to(path)?;
        #[cfg(unix)]
        if file.metadata()?.is_file() {
            // One that was there may be open to others.
            file.set_permissions(PermissionsExt::from_mode(0o600))?;
        }
        let state = WireLogState { file, exchanges: 0, failure: None, ended: false };
        Ok(Self { redactor, state: Mutex::new(state) })
    }

    /// The reason that the log cannot be written, returned once.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.state.lock().expect("no holder of the log panics").failure.take()
    }

    fn write(&self, text: &str) {
        let mut state = self.state.lock().expect("no holder of the log panics");
        if state.ended {
            return;
        }
        if let Err(error) = state.file.write_all(self.redactor.redact(text).as_bytes()) {
            state.ended = true;
            state.failure = Some(format!("the wire log cannot be written and ends here: {error}"));
        }
    }
}

impl Exchange {
    /// Writes a request, or nothing if there is no log.
    pub fn begin(log: Option<&Arc<WireLog>>, url: &Url, headers: &HeaderMap, body: &[u8]) -> Self {
        let Some(log) = log else { return Self::default() };
        let number = {
            let mut state = log.state.lock().expect("no holder of the log panics");
            state.exchanges += 1;
            state.exchanges
        };
        let mut shown = url.clone();
        // The login is left out; neither call fails for an http address.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        let head = format!("POST {shown}\n{}", shown_headers(headers));
        log.write(&format!("=== {number} {head}\n{}\n", String::from_utf8_lossy(body)));
        let log = Arc::clone(log);
        Self(Some(Logged { log, number, head: String::new(), body: Vec::new(), length: 0, failure: None }))
    }

    /// Records the beginning of an answer.
    pub fn record_answer(&mut self, response: &Response) {
        if let Some(logged) = &mut self.0 {
            logged.head = format!("HTTP {}\n{}", response.status().as_u16(), shown_headers(response.headers()));
        }
    }

    /// Records a piece of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        if let Some(logged) = &mut self.0 {
            logged.length += bytes.len();
            let room = LONGEST - logged.body.len();
            logged.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Records the reason that there is no answer, or an incomplete one.
    pub fn record_failure(&mut self, why: &str) {
        if let Some(logged) = &mut self.0 {
            logged.failure = Some(why.to_owned());
        }
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let Self { log, number, head, body, length, failure } = self;
        let failure = failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        if head.is_empty() {
            log.write(&format!("=== {number} no answer{failure}\n"));
            return;
        }
        let left_out = *length - body.len();
        let cut =
            if left_out > 0 { format!(", of which the last {left_out} are left out") } else { String::new() };
        let body = String::from_utf8_lossy(body);
        log.write(&format!("=== {number} {head}\n{body}\n=== {number} ends after {length} bytes{cut}{failure}\n"));
    }
}

/// The headers that may be shown, one per line.
fn shown_headers(headers: &HeaderMap) -> String {
    let shown = headers.iter().filter(|(name, _)| !HIDDEN.iter().any(|part| name.as_str().contains(part)));
    shown.fold(String::new(), |mut lines, (name, value)| {
        let _ = writeln!(lines, "{name}: {}", String::from_utf8_lossy(value.as_bytes()));
        lines
    })
}
