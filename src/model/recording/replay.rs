//! Gives recorded replies back: the one to the same request, else the next, with a word about how the request differs.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::session::ToolRename;
use super::words::{RunFacts, describe_difference, summarise_difference, write_request};
use super::{ExchangeEnd, PieceKind, RecordLine, RecordedExchange, RecordedRun, Recording, VERSION};
use crate::base::tokens;
use crate::conversation::import::read_conversation;
use crate::files::regular::{Links, read_bytes};
use crate::model::neutral::write_neutral;
use crate::model::{
    ChatModel, Delta, ModelError, ModelErrorKind, ModelInfo, ModelRequest, ReplyStream, TakenTokens,
};

/// The largest recording, in bytes.
const LARGEST: u64 = 512 << 20;

/// How a recording of ours begins.
const OWN_BEGINNING: &str = r#"{"type":"recording","#;

/// Reads the lines of a recording of ours. The error has the number of its line.
fn read_own(text: &str) -> Result<(RunFacts, RecordedRun), (usize, String)> {
    let (mut recorded, mut run) = (RunFacts::default(), RecordedRun::default());
    for (number, line) in (1..).zip(text.lines()) {
        let no_line = |error: serde_json::Error| (number, format!("this is no line of a recording: {error}"));
        match serde_json::from_str(line).map_err(no_line)? {
            RecordLine::Recording { v, facts } if v == VERSION => recorded = facts,
            RecordLine::Recording { v, .. } => {
                return Err((number, format!("version {v} of recordings is not known here, only {VERSION}")));
            }
            // What was tried again has another reply.
            RecordLine::Request(RecordedExchange {
                end:
                    ExchangeEnd::Failed {
                        kind: ModelErrorKind::RateLimit | ModelErrorKind::Transient | ModelErrorKind::Incomplete,
                        ..
                    },
                ..
            }) => {}
            RecordLine::Request(exchange) => run.exchanges.push(exchange),
            RecordLine::Call(call) => run.calls.push(call),
        }
    }
    Ok((recorded, run))
}

impl Recording {
    /// Opens a recording for a run in `workspace`; a conversation that another program recorded is one too, in which
    /// `renames` names our tools. With `is_strict` a request that differs is an error.
    ///
    /// # Errors
    /// A sentence with the file and the line: it cannot be read, or is no recording.
    pub fn open(path: &Path, workspace: &Path, renames: &[ToolRename], is_strict: bool) -> Result<Self, String> {
        let name = path.display();
        let bytes = read_bytes(path, Links::Follow, LARGEST).map_err(|why| format!("{name} {why}"))?;
        let bytes = bytes.ok_or_else(|| format!("{name} does not exist"))?;
        let text = String::from_utf8_lossy(&bytes);
        let (facts, run) = if text.starts_with(OWN_BEGINNING) {
            read_own(&text).map_err(|(line, why)| format!("{name}:{line}: {why}"))?
        } else {
            let imported = read_conversation(&text).map_err(|why| format!("{name} is no recording: {why}"))?;
            (RunFacts::default(), RecordedRun::of_foreign(imported, renames))
        };
        let facts = [facts, RunFacts::now(workspace)];
        Ok(Self { path: path.to_path_buf(), is_strict, facts, left: Mutex::new(run) })
    }

    /// The reply to a request, and how the request differs from the recorded one.
    fn take(&self, request: &Value, model: &str) -> Result<(RecordedExchange, Option<String>), ModelError> {
        let refuse = |why: String| ModelError::new(ModelErrorKind::NotRecorded, model, why);
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = |exchange: &RecordedExchange| {
            let with_tools = exchange.request.get("tools").is_some();
            let [recorded, own] = &self.facts;
            [write_request(&exchange.request, recorded, with_tools), write_request(request, own, with_tools)]
        };
        let same = left.exchanges.iter().position(|exchange| {
            let [recorded, asked] = texts(exchange);
            recorded == asked
        });
        if same.is_none() && left.exchanges.is_empty() {
            return Err(refuse(format!("{} has no further reply", self.path.display())));
        }
        let taken = left.exchanges.remove(same.unwrap_or(0));
        if same.is_some() || taken.request.is_null() {
            return Ok((taken, None));
        }
        let [recorded, asked] = texts(&taken);
        let differs = "this request differs from the recorded one";
        if self.is_strict {
            return Err(refuse(format!("{differs}:\n{}", describe_difference(&recorded, &asked))));
        }
        Ok((taken, Some(format!("{differs}: {}", summarise_difference(&recorded, &asked)))))
    }
}

/// A model whose replies are those of a recording. Nothing is sent.
pub(in crate::model) struct ReplayedModel {
    info: ModelInfo,
    recording: Arc<Recording>,
}

impl ReplayedModel {
    pub fn new(info: ModelInfo, recording: Arc<Recording>) -> Self {
        Self { info: ModelInfo { configured: true, ..info }, recording }
    }
}

struct ReplayedStream {
    deltas: VecDeque<Delta>,
    end: Option<Result<Delta, ModelError>>,
    taken: Option<TakenTokens>,
}

impl ChatModel for ReplayedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<Box<dyn ReplyStream>, ModelError>> {
        Box::pin(async move {
            let (exchange, how) = self.recording.take(&self.preview(request), &self.info.id)?;
            let pieces = exchange.pieces.into_iter().map(|piece| match piece.what {
                PieceKind::Text(text) => Delta::Text(text),
                PieceKind::Reasoning(text) => Delta::Reasoning(text),
                PieceKind::Call(name) => Delta::CallBegun(name),
            });
            let deltas: VecDeque<Delta> = how.map(Delta::Notice).into_iter().chain(pieces).collect();
            let (end, taken) = match exchange.end {
                ExchangeEnd::Reply(reply) => (Ok(Delta::Finished(reply.into_end())), None),
                ExchangeEnd::Failed { kind, status, message, taken } => {
                    (Err(ModelError { status, ..ModelError::new(kind, &self.info.id, message) }), taken)
                }
            };
            match end {
                Err(error) if deltas.is_empty() && taken.is_none() => Err(error),
                end => Ok(Box::new(ReplayedStream { deltas, end: Some(end), taken }) as Box<dyn ReplyStream>),
            }
        })
    }

    fn preview(&self, request: ModelRequest<'_>) -> Value {
        write_neutral(&self.info.id, &request)
    }

    fn measured(&self, request: ModelRequest<'_>) -> Option<u64> {
        self.info.scripted.then(|| tokens::estimate_bytes(self.preview(request).to_string().as_bytes()))
    }
}

impl ReplyStream for ReplayedStream {
    fn count_taken(&self) -> Option<TakenTokens> {
        self.taken
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Delta, ModelError>> {
        let next = match self.deltas.pop_front() {
            Some(delta) => Ok(delta),
            None => self.end.take().unwrap_or_else(|| Ok(Delta::Finished(crate::model::ReplyEnd::default()))),
        };
        Box::pin(std::future::ready(next))
    }
}
