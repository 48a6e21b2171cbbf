//! `agent prompt`: shows prompts as files or as the agent would render them here, tests them and releases them.

mod check;
mod diff;
mod release;
mod test;

use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;

use crate::agent::Conversation;
use crate::agent::assembly::{self, RunOptions};
use crate::config::{ApprovalMode, SettingFlag, SettingFlags};
use crate::conversation::session::{About, Session};
use crate::prompt::{ListedPrompt, MODULES, Prompt, PromptError, Registry};
use crate::safety::Nobody;

use super::args::PromptCommand;
use super::setup::CliSetup;
use super::{CommandFailure, CommandOutcome, exit, print_text, tables, vars};

pub(super) fn run_prompt(setup: &CliSetup, command: PromptCommand) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let config = setup.config_with(&workspace, flags(&command))?;
    let registry = Registry::new(&config.prompt_dirs);
    match command {
        PromptCommand::List => {
            let names = registry.names().map_err(CommandFailure::prompt)?;
            // Whole prompts come before modules.
            let (modules, whole): (Vec<&str>, Vec<&str>) =
                names.iter().map(String::as_str).partition(|name| name.starts_with(MODULES));
            let listed = registry.list(whole.into_iter().chain(modules)).map_err(CommandFailure::prompt)?;
            print_text(format_prompts(&listed))
        }
        PromptCommand::Show { reference } => {
            let prompt = registry.get(&reference).map_err(CommandFailure::prompt)?;
            print_text(write_source(&prompt))
        }
        PromptCommand::Test(args) => test::run_tests(setup, &config, &registry, args),
        PromptCommand::Diff { old, new } => diff::print_diff(&registry, &old, &new),
        PromptCommand::Check { references } => check::check_prompts(&registry, &references),
        PromptCommand::Promote { name, version, canary, label, message, force } => {
            let wanted = release::Wanted { name: &name, version, label: &label, canary, note: &message, force };
            release::promote_version(setup, &registry, &config.prompt_dirs, &wanted)
        }
        PromptCommand::Rollback { name } => release::roll_back(setup, &registry, &name),
        PromptCommand::New { name } => release::begin_version(setup, &registry, &name),
        PromptCommand::Render { reference, vars, messages } => {
            registry.get(&reference).map_err(CommandFailure::prompt)?;
            let options =
                RunOptions { prompt: Some(reference), vars: vars::read_vars(&vars)?, ..RunOptions::default() };
            let services = assembly::assemble_services(&config, &workspace, &options, Arc::new(Nobody))
                .map_err(CommandFailure::from_setup)?;
            let agent = &services.agent;
            let about = About { workspace: workspace.root(), agent: &agent.name, model: &agent.model.info().id };
            let now = Timestamp::now();
            let conversation = Conversation::new(Session::ephemeral(about, now), now);
            let run_id = assembly::new_run_id();
            let briefing = &agent.briefing;
            if messages {
                let messages = briefing.preview_messages(&conversation, &run_id, &agent.limits);
                let messages = messages.map_err(CommandFailure::briefing)?;
                return print_text(serde_json::to_string_pretty(&messages)? + "\n");
            }
            let text =
                briefing.preview(&conversation, &run_id, &agent.limits).map_err(CommandFailure::briefing)?;
            print_text(text + "\n")
        }
    }
}

/// The source of a prompt: the template of each module under its heading, then the prompt's own. A prompt with messages
/// is shown as its whole file, because the messages are in its head.
fn write_source(prompt: &Prompt) -> String {
    if prompt.has_messages() {
        return format!("{}\n", prompt.text().trim_end());
    }
    let mut out = String::new();
    for (heading, module) in prompt.modules() {
        let version = module.version.map(|version| version.to_string()).unwrap_or_default();
        let heading = heading.map(|heading| format!("# {heading}\n")).unwrap_or_default();
        let _ = writeln!(out, "{{# {}@{version} #}}\n{heading}{}\n", module.name, module.body().trim());
    }
    out + prompt.body().trim() + "\n"
}

fn format_prompts(prompts: &[ListedPrompt]) -> String {
    let rows: Vec<[String; 4]> = prompts
        .iter()
        .map(|listed| {
            let (fingerprint, description) = match &listed.prompt {
                Ok(prompt) => (prompt.fingerprint().to_owned(), prompt.head.description.clone()),
                Err(error) => ("-".to_owned(), format!("error: {error}")),
            };
            let version = match listed.labels.as_slice() {
                [] => listed.version.to_string(),
                labels => format!("{} ({})", listed.version, labels.join(", ")),
            };
            [listed.name.clone(), version, fingerprint, description]
        })
        .collect();
    tables::lay_out_columns(&rows, tables::find_edge())
}

/// The flags of a command that name a setting. The configured approval is for daily work; nobody watches a test.
fn flags(command: &PromptCommand) -> SettingFlags {
    let PromptCommand::Test(args) = command else { return SettingFlags::default() };
    let approve = args.approve.unwrap_or(ApprovalMode::Edits);
    SettingFlags::default().with(SettingFlag::Approve, Some(approve.name().to_owned()))
}

impl CommandFailure {
    /// Maps a prompt that cannot be rendered to a mistake in the configuration.
    pub(super) fn briefing(error: anyhow::Error) -> Self {
        let code = if error.is::<PromptError>() { exit::CONFIGURATION } else { exit::FAILED };
        Self::new(code, error)
    }

    pub(super) fn prompt(error: PromptError) -> Self {
        let code = if error.file.is_some() { exit::CONFIGURATION } else { exit::USAGE };
        Self::new(code, error)
    }
}
