//! `agent prompt check`: reports errors and likely mistakes in prompts, and the tokens of their parts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use crate::agent::assembly::{RunOptions, Services};
use crate::config::Config;
use crate::files::workspace::Workspace;
use crate::prompt::{Prompt, PromptContext, Registry};

use super::super::setup::assemble_unasked;
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

/// The names and descriptions of the default agent's tools; none, with a warning, if the agent cannot be assembled.
fn list_tools(config: &Arc<Config>, workspace: &Workspace) -> Vec<(String, String)> {
    match assemble_unasked(config, workspace, &RunOptions::default()) {
        Ok(Services { agent, .. }) => {
            agent.tools.all().map(|tool| (tool.name.clone(), tool.description.clone())).collect()
        }
        Err(error) => {
            warn_person(&format!("prompts are not compared with the tools of the agent: {error}"));
            Vec::new()
        }
    }
}
