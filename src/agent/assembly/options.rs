//! The choices about one run.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::AnswerSchema;
use crate::model::Tape;
use crate::prompt::AnswerReader;
use crate::safety::sandbox::Sandbox;
use crate::tools::McpServers;

use super::SetupError;
use super::flow_choice::FlowChoice;

/// Choices of the user about one run. Flags that name a setting are a layer of the configuration.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    pub agent: Option<String>,
    pub model: Option<String>,
    /// The system prompt, `NAME[@VERSION]`.
    pub prompt: Option<String>,
    /// The values that prompts read as `vars.NAME`.
    pub vars: Vec<(String, Value)>,
    /// The flow that carries out every input.
    pub flow: Option<FlowChoice>,
    pub schema: Option<Value>,
    /// The reasoning effort of the model, in place of the one in its file.
    pub effort: Option<String>,
    /// The file that logs requests and answers.
    pub log_wire: Option<PathBuf>,
    /// Records replies and results, or gives recorded ones back.
    pub tape: Option<Tape>,
    /// True if the person can reply to an answer.
    pub chat: bool,
    /// True in a person's chat that is kept, and in its helpers: what they change in files can be undone.
    pub is_undoable: bool,
    /// The reader of the answer.
    pub output: AnswerReader,
    /// The sandbox that the run is to have, if it was created before.
    pub walls: Option<Arc<Sandbox>>,
    /// The servers of tools of the agent before this one, which go on if the configuration names the same.
    pub servers: Option<Arc<McpServers>>,
}

impl RunOptions {
    /// The schema of the answer, if one is given.
    pub(super) fn compile_schema(&self) -> Result<Option<AnswerSchema>, SetupError> {
        let wrong = |why| SetupError::usage(format!("--schema is not a valid JSON Schema: {why}"));
        self.schema.clone().map(AnswerSchema::new).transpose().map_err(wrong)
    }
}
