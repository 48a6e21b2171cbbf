//! Recordings of what a model answered, and of what its calls brought: written as they happen, given back later.
//!
//! One JSON object per line:
//!
//! ```text
//! {"type":"recording","v":1,"workspace":"/w","date":"2026-02-03"}     what differs from run to run
//! {"type":"request","request":{…},"pieces":[{"ms":12,"text":"…"}],"end":{"reply":{…}}}
//! {"type":"call","name":"grep","arguments":{…},"end":{"output":{…}}}  with --record-tools
//! ```
//!
//! A request stands there as one of chat completions, whatever the model's own wire is. A reply that was not awaited to
//! its end is not written.

mod calls;
mod recorder;
mod replay;
mod session;
mod words;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::secrets::Redactor;
use crate::conversation::message::{FinishReason, ReplyPart, Usage};
use crate::files::private::private_file;
use crate::model::{ChatModel, ModelErrorKind, ReplyEnd, TakenTokens};

use calls::RecordedCall;
pub(super) use replay::ReplayedModel;
pub use session::{ToolRename, record_session};
use words::RunFacts;

/// The version that is written and read.
const VERSION: u32 = 1;

/// A line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RecordLine {
    Recording {
        v: u32,
        #[serde(flatten)]
        facts: RunFacts,
    },
    Request(RecordedExchange),
    Call(RecordedCall),
}

/// A request and its reply.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedExchange {
    request: Value,
    /// What came before the end.
    #[serde(default)]
    pieces: Vec<ReplyPiece>,
    end: ExchangeEnd,
}

/// A piece of a reply, and when it came: milliseconds since the request.
#[derive(Debug, Serialize, Deserialize)]
struct ReplyPiece {
    ms: u64,
    #[serde(flatten)]
    what: PieceKind,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PieceKind {
    Text(String),
    Reasoning(String),
    Call(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExchangeEnd {
    Reply(RecordedReply),
    Failed {
        kind: ModelErrorKind,
        status: Option<u16>,
        message: String,
        /// What it took before it failed.
        taken: Option<TakenTokens>,
    },
}

/// A whole reply.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedReply {
    #[serde(default)]
    ms: u64,
    parts: Vec<ReplyPart>,
    finish: FinishReason,
    usage: Usage,
    cost_usd: Option<f64>,
    #[serde(default)]
    streamed: bool,
}

impl RecordedReply {
    fn into_end(self) -> ReplyEnd {
        let Self { parts, finish, usage, cost_usd, streamed, .. } = self;
        ReplyEnd { parts, finish, usage, cost_usd, streamed }
    }
}

/// A recording that is written, or one that is given back.
#[derive(Debug, Clone)]
pub enum Tape {
    Record(Arc<Recorder>),
    Replay(Arc<Recording>),
}

impl Tape {
    /// The model with its replies recorded, or given back.
    pub(super) fn attach_model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match self {
            Self::Record(recorder) => Arc::new(recorder::RecordedModel::new(model, Arc::clone(recorder))),
            Self::Replay(recording) => Arc::new(ReplayedModel::new(model.info().clone(), Arc::clone(recording))),
        }
    }
}

/// A recording that is written.
pub struct Recorder {
    path: PathBuf,
    file: Mutex<File>,
    keeps_calls: bool,
    redactor: Redactor,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder({})", self.path.display())
    }
}

impl Recorder {
    /// Begins a recording of a run in `workspace`; with `keeps_calls` also of the results of its calls. A file that is
    /// there is not overwritten.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, workspace: &Path, keeps_calls: bool, redactor: Redactor) -> io::Result<Self> {
        let file = private_file().write(true).create_new(true).open(path)?;
        let recorder = Self { path: path.to_path_buf(), file: Mutex::new(file), keeps_calls, redactor };
        recorder.write(&RecordLine::Recording { v: VERSION, facts: RunFacts::now(workspace) })?;
        Ok(recorder)
    }

    /// Writes a line, with secrets masked.
    fn write(&self, line: &RecordLine) -> io::Result<()> {
        let mut value = serde_json::to_value(line)?;
        let end = value.get("end").cloned();
        self.redactor.redact_value(&mut value);
        if value.get("end") != end.as_ref() && value.get("pieces").is_some() {
            // The pieces may hold it in parts.
            value["pieces"] = Value::Array(Vec::new());
        }
        let mut text = serde_json::to_vec(&value)?;
        text.push(b'\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text)
    }
}

/// What is left of a recording to give back.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    is_strict: bool,
    /// Of the run that was recorded, and of this one.
    facts: [RunFacts; 2],
    left: Mutex<RecordedRun>,
}

/// What was not given back yet, in order.
#[derive(Debug, Default)]
struct RecordedRun {
    exchanges: Vec<RecordedExchange>,
    calls: Vec<RecordedCall>,
}
