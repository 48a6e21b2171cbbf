//! Commands inside the sandbox: what every tool that starts one shares.
//!
//! What the sandbox refused, or undid, is said in words of its own at the end of what the model reads, so that it does
//! not look for the fault in the command; and whoever watches may offer to run it outside.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::contract::CallContext;
use crate::output::{ToolError, ToolErrorKind};
use crate::process::{self, Ended, Exit, Launch};
use crate::sandbox::{Denial, MOST_PROCESSES, Protection, Sandbox, Undone};

/// Where commands run.
pub struct Confined {
    /// The whole environment of commands.
    env: Vec<(String, String)>,
    /// None where it was switched off.
    sandbox: Option<Arc<Sandbox>>,
}

/// What to run.
pub struct Order<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub dir: &'a Path,
    pub timeout: Duration,
}

/// A command that ended, and what it had changed that it may not.
pub struct Outcome {
    pub ended: Ended,
    undone: Undone,
}

impl Confined {
    pub fn new(env: Vec<(String, String)>, sandbox: Option<Arc<Sandbox>>) -> Self {
        Self { env, sandbox }
    }

    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Whether commands reach the network: an open one, or no boundary at all.
    pub fn has_network(&self) -> bool {
        self.sandbox.as_ref().is_none_or(|sandbox| sandbox.plan().network)
    }

    /// What the model is told of the boundary before it calls; a sentence with a blank before it, or nothing.
    pub fn described(&self) -> &'static str {
        match self.sandbox.as_ref().map(|sandbox| sandbox.plan()) {
            None => "",
            Some(plan) if plan.network => " Writes only in workspace and $TMPDIR.",
            Some(_) => " Writes only in workspace and $TMPDIR, no network.",
        }
    }

    /// Runs a command to its end: inside the sandbox, unless this very call may leave it.
    ///
    /// # Errors
    /// When it cannot be started; of the kind `Unavailable` when there is no sandbox to start it in.
    pub async fn run(
        &self,
        order: Order<'_>,
        context: &CallContext<'_>,
        seen: impl FnMut(&[u8]) + Send,
    ) -> Result<Outcome, ToolError> {
        let Order { program, arguments, dir, timeout } = order;
        let walls = self.sandbox.as_ref().filter(|_| !context.unconfined).map(|sandbox| sandbox.walls());
        let walls =
            walls.transpose().map_err(|error| ToolError::new(ToolErrorKind::Unavailable, error.to_string()))?;
        let mut env = self.env.clone();
        if let Some(walls) = &walls {
            env.retain(|(name, _)| name != "TMPDIR");
            env.push(("TMPDIR".to_owned(), walls.temp_dir().to_string_lossy().into_owned()));
        }
        let protection = walls.as_ref().map(|walls| Protection::begin(walls, context.workspace.root()));
        let launch = Launch { program, arguments, dir, env: &env, timeout, walls: walls.as_ref() };
        let ended = process::run(launch, seen)
            .await
            .map_err(|error| ToolError::permanent(format!("the command could not be run: {error}")))?;
        let undone = protection.map(Protection::end).unwrap_or_default();
        Ok(Outcome { ended, undone })
    }

    /// What the sandbox had to do with the outcome, as lines for the model; whoever watches is told as well. `output`
    /// is what the command wrote.
    pub fn remarks(&self, outcome: &Outcome, output: &str, context: &CallContext<'_>) -> String {
        let mut remarks = String::new();
        let Some(sandbox) = self.sandbox.as_ref().filter(|_| !context.unconfined) else { return remarks };
        let mut remark = |text: String| {
            (context.refused)();
            let _ = write!(remarks, "\n[{text}]");
        };
        let Outcome { ended, undone } = outcome;
        if ended.flooded {
            remark(format!("the command was ended: it had started more than {MOST_PROCESSES} processes"));
        } else if ended.exit != Exit::Code(0) {
            let signal = match &ended.exit {
                Exit::Signal(name) => Some(name.as_str()),
                Exit::Code(_) => None,
            };
            if let Some(denial) = Denial::of(output, signal, sandbox.plan()) {
                remark(denial.to_string());
            }
        }
        if !undone.put_back.is_empty() {
            remark(format!(
                "put back as before: {}. Commands may not change files that decide what runs later",
                undone.put_back.join(", ")
            ));
        }
        if !undone.left.is_empty() {
            remark(format!(
                "changed by the command, though commands may not, and it could not be put back: {}",
                undone.left.join(", ")
            ));
        }
        remarks
    }
}
