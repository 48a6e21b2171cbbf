//! `agent prompt check`: reports errors and likely mistakes in prompts, and the tokens of their parts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use crate::prompt::{Prompt, PromptContext, Registry};

use super::super::{CommandFailure, CommandOutcome, exit, print_text};

pub(super) fn check_prompts(registry: &Registry, references: &[String]) -> CommandOutcome {
    let (prompts, mut told) = asked_for(registry, references)?;
    let sample = PromptContext::sample().value();
    let mut sizes = String::new();
    for prompt in &prompts {
        told.extend(prompt.doubts(&sample).iter().map(ToString::to_string));
        if let Ok(parts) = prompt.sizes(&sample) {
            let total: u64 = parts.iter().map(|part| part.tokens).sum();
            let parts: Vec<String> = parts.iter().map(|part| format!("{} {}", part.name, part.tokens)).collect();
            let parts = if parts.len() > 1 { format!(": {}", parts.join(", ")) } else { String::new() };
            let _ = writeln!(sizes, "{}: {total} tokens{parts}", prompt.id());
        }
    }
    print_text(sizes)?;
    // A doubt about a module is reported once, however many prompts contain the module.
    let once: BTreeSet<&String> = told.iter().collect();
    if once.is_empty() {
        return Ok(exit::DONE);
    }
    let lines: Vec<String> = once.into_iter().cloned().collect();
    Err(CommandFailure::listed(exit::CONFIGURATION, "doubts", &lines))
}

/// Returns the prompts to check, and the errors of those that cannot be read.
fn asked_for(
    registry: &Registry,
    references: &[String],
) -> Result<(Vec<Arc<Prompt>>, Vec<String>), CommandFailure> {
    let (mut prompts, mut told) = (Vec::new(), Vec::new());
    let mut add = |read: Result<Arc<Prompt>, crate::prompt::PromptError>| match read {
        Ok(prompt) => prompts.push(prompt),
        Err(error) => told.push(error.to_string()),
    };
    if references.is_empty() {
        let mut unlisted = Vec::new();
        for name in registry.names().map_err(CommandFailure::prompt)? {
            match registry.list([name.as_str()]) {
                Ok(versions) => versions.into_iter().for_each(|listed| add(listed.prompt)),
                Err(error) => unlisted.push(error.to_string()),
            }
        }
        told.extend(unlisted);
    } else {
        for reference in references {
            match registry.get(reference) {
                Err(error) if error.file.is_none() => return Err(CommandFailure::prompt(error)),
                read => add(read),
            }
        }
    }
    Ok((prompts, told))
}
