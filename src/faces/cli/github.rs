//! The two ways in which a step of a GitHub workflow speaks: annotations on stdout, and a summary in Markdown.

use std::fs::OpenOptions;
use std::io::Write;

use crate::config::Env;

use super::{CommandFailure, exit};

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

/// Adds Markdown to the summary of the step, where there is one.
///
/// # Errors
/// The file cannot be written.
pub(super) fn add_summary(env: &Env, markdown: &str) -> Result<(), CommandFailure> {
    let Some(path) = env.get(SUMMARY).filter(|path| !path.is_empty()) else { return Ok(()) };
    let failed = |error| CommandFailure::word(exit::FAILED, format!("{path}: {error}"));
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(failed)?;
    file.write_all(format!("{}\n", markdown.trim_end()).as_bytes()).map_err(failed)
}

/// A text after `::`, as workflows read it.
fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
