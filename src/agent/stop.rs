//! The reasons that a turn ends.

use serde_json::Value;

use crate::model::{ModelError, ModelErrorKind};

use super::emitter::SinkClosed;
use super::limits::ReachedLimit;

/// The reason that a turn ended.
#[derive(Debug)]
pub enum TurnStop {
    /// The model gave its answer.
    Answered,
    Limit(ReachedLimit),
    /// The request cannot be made to fit.
    ContextFull(String),
    Model(ModelError),
    /// The answer does not match the schema; the text says where.
    SchemaMismatch(String),
    /// The sandbox that the configuration asks for is unavailable; the text says what is missing.
    Unavailable(String),
    /// The roles of an orchestrated task gave it back: the reason, or a question to the person.
    Escalated(String),
    /// A flow ended at a step that nobody could be asked about; the text says which.
    Unasked(String),
    /// A dry run: the body of the request that was not sent.
    Shown(Value),
    /// Cancelled from outside.
    Interrupted,
    /// Nobody can read the output any more.
    SinkClosed,
    /// The program itself failed: the disk, a template.
    Failed(anyhow::Error),
}

impl From<SinkClosed> for TurnStop {
    fn from(_: SinkClosed) -> Self {
        Self::SinkClosed
    }
}

impl From<anyhow::Error> for TurnStop {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ModelError> for TurnStop {
    fn from(error: ModelError) -> Self {
        if error.kind == ModelErrorKind::ContextTooLong {
            return Self::ContextFull(format!(
                "the request does not fit the model's context: {error} (start a new session, attach less, or use a \
                 model with a larger window: -m)"
            ));
        }
        Self::Model(error)
    }
}
