//! The results of calls in a recording. What is given back did not run again.

use std::sync::PoisonError;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{RecordLine, Recording, Tape};
use crate::base::output::{Exit, ToolError, ToolErrorKind, ToolOutput};

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
    Output(Box<RecordedOutput>),
    Failed { kind: ToolErrorKind, message: String },
}

/// A result without its pictures.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedOutput {
    result: Value,
    observation: String,
    summary: String,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    state_update: Map<String, Value>,
    #[serde(default)]
    checkpoint: Option<String>,
    #[serde(default)]
    skill: Option<String>,
    #[serde(default)]
    exit: Option<Exit>,
    #[serde(default)]
    unfinished: bool,
}

impl Tape {
    /// The recorded end of a call; `None` if it is to run. The first recorded one with this name and these arguments
    /// counts.
    pub fn give_call(&self, name: &str, arguments: &Value) -> Option<Result<ToolOutput, ToolError>> {
        let Self::Replay(recording) = self else { return None };
        Some(match recording.take_call(name, arguments)?.end {
            CallEndRecord::Failed { kind, message } => Err(ToolError::new(kind, message)),
            CallEndRecord::Output(output) => Ok(ToolOutput {
                result: output.result,
                observation: output.observation,
                summary: output.summary,
                truncated: output.truncated,
                state_update: output.state_update,
                checkpoint: output.checkpoint,
                skill: output.skill,
                exit: output.exit,
                unfinished: output.unfinished,
                ..ToolOutput::default()
            }),
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
            Ok(output) => CallEndRecord::Output(Box::new(RecordedOutput {
                result: output.result.clone(),
                observation: output.observation.clone(),
                summary: output.summary.clone(),
                truncated: output.truncated,
                state_update: output.state_update.clone(),
                checkpoint: output.checkpoint.clone(),
                skill: output.skill.clone(),
                exit: output.exit.clone(),
                unfinished: output.unfinished,
            })),
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
