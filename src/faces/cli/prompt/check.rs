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
            let _ = write!(sizes, "{}: {total} tokens", prompt.id());
            if parts.len() > 1 {
                let parts: Vec<_> = parts.iter().map(|part| format!("{} {}", part.name, part.tokens)).collect();
                let _ = write!(sizes, ": {}", parts.join(", "));
            }
            sizes.push('\n');
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
    let mut read = Vec::new();
    if references.is_empty() {
        for name in registry.names()? {
            match registry.list([name.as_str()]) {
                Ok(versions) => read.extend(versions.into_iter().map(|listed| listed.prompt)),
                Err(error) => read.push(Err(error)),
            }
        }
    }
    for reference in references {
        match registry.get(reference) {
            Err(error) if error.file.is_none() => return Err(error.into()),
            prompt => read.push(prompt),
        }
    }
    let (prompts, wrong): (Vec<_>, Vec<_>) = read.into_iter().partition(Result::is_ok);
    let told = wrong.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    Ok((prompts.into_iter().flatten().collect(), told))
}
