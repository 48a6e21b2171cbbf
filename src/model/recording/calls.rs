//! The results of calls in a recording. What is given back did not run again.

use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{RecordLine, Recording, Tape};
use crate::base::image::Image;
use crate::base::output::{Exit, Kept, ToolError, ToolErrorKind, ToolOutput};

/// A call and its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecordedCall {
    name: String,
    arguments: Value,
    end: CallEndRecord,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallEndRecord {
    Output(Box<OutputRecord>),
    Failed { kind: ToolErrorKind, message: String },
}

#[derive(Debug, Serialize, Deserialize)]
struct OutputRecord(#[serde(with = "RecordedOutput")] ToolOutput);

/// What is written of a result: all but its pictures, and what only this run can read.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolOutput")]
struct RecordedOutput {
    result: Value,
    observation: String,
    summary: String,
    #[serde(default)]
    truncated: bool,
    #[serde(skip)]
    kept: Option<Kept>,
    #[serde(skip)]
    images: Vec<Image>,
    #[serde(default)]
    state_update: Map<String, Value>,
    checkpoint: Option<String>,
    skill: Option<String>,
    exit: Option<Exit>,
    #[serde(default)]
    unfinished: bool,
    #[serde(skip)]
    metadata: Map<String, Value>,
}

impl Tape {
    /// The recorded end of a call; `None` if it is to run. The first recorded one with this name and these arguments
    /// counts.
    pub fn give_call(&self, name: &str, arguments: &Value) -> Option<Result<ToolOutput, ToolError>> {
        let Self::Replay(recording) = self else { return None };
        Some(match recording.take_call(name, arguments)?.end {
            CallEndRecord::Failed { kind, message } => Err(ToolError::new(kind, message)),
            CallEndRecord::Output(output) => Ok(output.0),
        })
    }

    /// Records the end of a call. Returns a sentence if that fails.
    pub fn keep_call(&self, name: &str, arguments: &Value, end: &Result<ToolOutput, ToolError>) -> Option<String> {
        let Self::Record(recorder) = self else { return None };
        if !recorder.keeps_calls {
            return None;
        }
        let end = match end {
            Err(error) => CallEndRecord::Failed { kind: error.kind, message: error.message.clone() },
            Ok(output) => CallEndRecord::Output(Box::new(OutputRecord(output.clone()))),
        };
        let call = RecordedCall { name: name.to_owned(), arguments: arguments.clone(), end };
        let written = recorder.write(&RecordLine::Call(call));
        written.err().map(|error| format!("--record {}: {error}", recorder.path.display()))
    }
}

impl Recording {
    fn take_call(&self, name: &str, arguments: &Value) -> Option<RecordedCall> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let at = left.calls.iter().position(|call| call.name == name && call.arguments == *arguments)?;
        Some(left.calls.remove(at))
    }
}
