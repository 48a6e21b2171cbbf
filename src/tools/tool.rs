//! A tool, and the parts of the run and the conversation that its calls may use.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::base::output::{ToolError, ToolOutput};
use crate::base::{json, secrets::Redactor};
use crate::config::{Permission, ToolEffect};
use crate::conversation::knowledge::{Ledger, Loaded};
use crate::conversation::{event::EventKind, spill::Spill};
use crate::files::workspace::Workspace;

use crate::conversation::Archive;
use crate::model::ToolDefinition;
use crate::safety::{Enclosure, Hold, Reach, Refused};

use super::superior::Superior;
use super::text_of;

/// A tool: its definition and its code in one file.
pub trait Tool: Send + Sync {
    /// The description for the model and the policy. Never changes.
    fn definition(&self) -> &ToolDefinition;

    /// The paths that this call would read, as the model wrote them; none if it reads the workspace in general.
    fn reads<'a>(&self, arguments: &'a Value) -> Vec<&'a str> {
        self.definition().reads.and_then(|name| text_of(arguments, name)).into_iter().collect()
    }

    /// The paths that this call would write, as the model wrote them.
    fn writes<'a>(&self, arguments: &'a Value) -> Vec<&'a str> {
        self.definition().writes.and_then(|name| text_of(arguments, name)).into_iter().collect()
    }

    /// The address that the call would send a request to, as the model wrote it.
    fn address<'a>(&self, _arguments: &'a Value) -> Option<&'a str> {
        None
    }

    /// The level of this call, for the policy. The default is that of the definition.
    fn permission(&self, _arguments: &Value) -> Permission {
        self.definition().permission
    }

    /// The command that the call would run, if any, as a shell line.
    fn shell_line<'a>(&'a self, _arguments: &'a Value) -> Option<ShellLine<'a>> {
        None
    }

    /// Why a person is asked about every call as things are now, whatever permits it.
    fn asks_always(&self) -> Option<&'static str> {
        None
    }

    /// Called when the model begins to write a call: slow preparations may begin too. Does not wait.
    fn prepare(&self) {}

    /// The walls around a command of this tool if `wanted` ones are asked for: none without a sandbox.
    /// `None` for a tool that runs no command.
    fn enclosure(&self, _wanted: Enclosure) -> Option<Enclosure> {
        None
    }

    /// True if the result of this call may come from the network. The default is that of the definition.
    fn has_network(&self, _arguments: &Value) -> bool {
        self.definition().effects.contains(&ToolEffect::Network)
    }

    /// True if the call waits for time to pass, or for something that takes time.
    fn waits_for_time(&self, _arguments: &Value) -> bool {
        false
    }

    /// True if a repeated call has no further effect: only such calls are retried automatically.
    fn idempotent(&self) -> bool {
        self.definition().permission == Permission::Read
    }

    /// True if the call changes nothing that another call of its kind could meet: such calls run side by side.
    fn runs_beside(&self, _arguments: &Value) -> bool {
        self.definition().permission == Permission::Read
    }

    /// The timeout that the arguments ask for, if any.
    fn time_asked(&self, _arguments: &Value) -> Option<Duration> {
        None
    }

    /// One short line for a person: what the call is about, without the tool's name (`src/main.rs`, `cargo test`).
    fn subject(&self, arguments: &Value) -> String {
        let first = self.definition().parameters["required"][0].as_str();
        first.and_then(|name| text_of(arguments, name)).unwrap_or_default().to_owned()
    }

    /// The preview that a person reads before allowing the call: the exact command, or the diff; the arguments if a
    /// tool has neither. Never shortened.
    ///
    /// # Errors
    /// The call would fail, so that there is nothing to ask about.
    fn preview(&self, arguments: &Value, _reach: &Reach, _files: &Ledger) -> Result<String, ToolError> {
        Ok(json::list_keys(arguments))
    }

    /// Runs the call. `arguments` have passed the schema. Dropping the future cancels the call.
    fn call<'a>(&'a self, arguments: Value, context: CallContext<'a>) -> ToolFuture<'a>;
}

/// Asks the person something.
pub trait AskPerson: Send + Sync {
    /// The answer to a question with suggestions; `None` if nobody answers. The wait counts against no limit.
    fn ask(&self, question: String, choices: Vec<String>) -> BoxFuture<'_, Option<String>>;
}

/// A call that runs.
pub type ToolFuture<'a> = BoxFuture<'a, Result<ToolOutput, ToolError>>;

/// A command line, the directory in which it would run, and the walls that can confine it.
#[derive(Debug, Clone)]
pub struct ShellLine<'a> {
    /// The line as a shell would receive it.
    pub line: Cow<'a, str>,
    /// The directory as the model wrote it; the workspace if it named none.
    pub workdir: Option<Cow<'a, str>>,
    /// The walls that there are.
    pub hold: Hold,
    /// The command for display to a person, if the configuration defines it and the model gives only the arguments.
    pub configured: Option<String>,
}

/// The spill store, for text that has not been redacted yet.
#[derive(Clone, Copy)]
pub struct Keep<'a> {
    pub spill: &'a Arc<Spill>,
    pub redactor: &'a Arc<Redactor>,
}

/// The other limits that may end a long call.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The longest time that a call may ask for.
    pub most: Duration,
    /// The longest time that a command may produce no output.
    pub idle: Option<Duration>,
    /// The time left in the run's own limit for calls; a call that takes longer is dropped and reports nothing.
    pub run: Option<Duration>,
}

/// The parts of the run and the conversation that a call may use.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    pub workspace: &'a Workspace,
    /// The files that the call may open.
    pub reach: &'a Arc<Reach>,
    /// The files that the conversation has seen.
    pub files: &'a Arc<Ledger>,
    /// The skills that the conversation has loaded.
    pub skills: &'a Loaded,
    /// Texts that were cut out of the conversation's results.
    pub spill: &'a Arc<Spill>,
    /// The text of the conversation that is no longer sent.
    pub archive: &'a dyn Archive,
    /// The time limit of this call.
    pub timeout: Duration,
    /// The other time limits.
    pub clocks: Clocks,
    /// The most tokens that the observation may have; a tool that shapes its own output stays below it.
    pub max_tokens: usize,
    /// Receives live output of a running command, for observers.
    pub live: &'a (dyn Fn(&str) + Send + Sync),
    /// True if a step of a plan or a flow reads the result as data: nothing is left out that was not asked to be.
    pub whole: bool,
    /// The store for text that a tool's observation leaves out; `None` if nothing could read it again.
    pub keep: Option<Keep<'a>>,
    /// The walls around a command that the call runs.
    pub enclosure: Enclosure,
    /// Variables that a command of the call gets besides its environment: values that must not be part of its text.
    pub variables: &'a [(String, String)],
    /// Reports that its walls may have stopped the call: a person may then let it run again in wider ones.
    pub refused: &'a (dyn Fn(Refused) + Send + Sync),
    /// The person, for questions that arise while the call runs.
    pub person: &'a dyn AskPerson,
    /// Reports a fact to observers (a skill was loaded).
    pub notify: &'a (dyn Fn(EventKind) + Send + Sync),
    /// The run, for a tool that begins one within it.
    pub superior: &'a (dyn Fn() -> Arc<dyn Superior> + Send + Sync),
}
