//! `agent prompt check`: reports errors and likely mistakes in prompts, and the tokens of their parts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use crate::agent::assembly::{self, RunOptions};
use crate::config::Config;
use crate::files::workspace::Workspace;
use crate::prompt::{Prompt, PromptContext, Registry};
use crate::safety::Nobody;

use super::super::{CommandFailure, CommandOutcome, exit, print_text, warn_person};

pub(super) fn check_prompts(
    config: &Arc<Config>,
    workspace: &Workspace,
    registry: &Registry,
    references: &[String],
) -> CommandOutcome {
    let (prompts, mut told) = asked_for(registry, references)?;
    let tools = list_tools(config, workspace);
    let tools: Vec<(&str, &str)> = tools.iter().map(|(name, about)| (name.as_str(), about.as_str())).collect();
    let sample = PromptContext::sample().value();
    let mut sizes = String::new();
    for prompt in &prompts {
        told.extend(prompt.doubts(&sample).iter().map(ToString::to_string));
        told.extend(prompt.forbidden(&tools));
        if let Ok(rendered) = prompt.render(&sample) {
            told.extend(prompt.list_banned(&rendered, "", &tools));
        }
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

/// The names and descriptions of the default agent's tools; none, with a warning, if the agent cannot be assembled.
fn list_tools(config: &Arc<Config>, workspace: &Workspace) -> Vec<(String, String)> {
    match assembly::assemble_services(config, workspace, &RunOptions::default(), Arc::new(Nobody)) {
        Ok(services) => {
            services.agent.tools.all().map(|tool| (tool.name.clone(), tool.description.clone())).collect()
        }
        Err(error) => {
            warn_person(&format!("prompts are not compared with the tools of the agent: {error}"));
            Vec::new()
        }
    }
}
