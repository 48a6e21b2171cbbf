//! The two ways in which a step of a GitHub workflow speaks: annotations on stdout, and a summary in Markdown.

use std::fs::OpenOptions;
use std::io::Write;

use crate::agent::assembly;
use crate::config::Env;

use super::{CommandFailure, CommandOutcome, exit, print_text};

/// The file that takes the summary of a step.
const SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// A line that a workflow shows as an annotation: `error`, `warning` or `notice`, with its properties.
pub(super) fn annotate(command: &str, properties: &[(&str, &str)], message: &str) -> String {
    let properties: Vec<String> = properties
        .iter()
        .map(|(name, value)| format!("{name}={}", escape_data(value).replace(':', "%3A").replace(',', "%2C")))
        .collect();
    format!("::{command} {}::{}\n", properties.join(","), escape_data(message))
}

/// A step that takes no line of the program for a command but those of [`WorkflowStep::speak`]: models, and files of a change,
/// write some of the others.
#[derive(Clone)]
pub(super) struct WorkflowStep {
    env: Env,
    /// What makes it listen again. Nobody who writes such lines knows it.
    token: String,
}

impl WorkflowStep {
    /// # Errors
    /// stdout is closed.
    pub(super) fn begin(env: &Env) -> Result<Self, CommandFailure> {
        let token = assembly::new_run_id() + &assembly::new_run_id();
        print_text(format!("::stop-commands::{token}\n"))?;
        Ok(Self { env: env.clone(), token })
    }

    /// Makes the step obey these commands.
    pub(super) fn speak(&self, commands: &str) -> CommandOutcome {
        let token = &self.token;
        print_text(format!("::{token}::\n{commands}::stop-commands::{token}\n"))
    }

    /// Reports a failure, and ends.
    pub(super) fn end(self, outcome: CommandOutcome) -> CommandOutcome {
        let code = outcome.unwrap_or_else(CommandFailure::report);
        print_text(format!("::{}::\n", self.token))?;
        Ok(code)
    }

    /// Adds Markdown to the summary of the step, where there is one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn add_summary(&self, markdown: &str) -> Result<(), CommandFailure> {
        let Some(path) = self.env.get(SUMMARY).filter(|path| !path.is_empty()) else { return Ok(()) };
        let failed = |error| CommandFailure::word(exit::FAILED, format!("{path}: {error}"));
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
        file.write_all(format!("{}\n", markdown.trim_end()).as_bytes()).map_err(failed)
    }
}

/// A text after `::`, as workflows read it.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
