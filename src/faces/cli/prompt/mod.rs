//! `agent prompt`: shows prompts as files or as the agent would render them here, tests them and releases them.

mod check;
mod diff;
mod release;
mod test;

use std::fmt::Write;
use std::sync::Arc;

use jiff::Zoned;

use crate::agent::assembly::{self, RunOptions, SessionChoice};
use crate::config::{ApprovalMode, Config, SettingFlag, SettingFlags};
use crate::files::workspace::Workspace;
use crate::prompt::{ListedPrompt, MODULES, Promotion, Prompt, Registry};

use super::args::PromptCommand;
use super::setup::{CliSetup, assemble_unasked};
use super::{
    CommandFailure, CommandOutcome, attachments, exit, print_json, print_table, print_visible, warn_person,
};

pub(super) fn run_prompt(setup: &CliSetup, command: PromptCommand) -> CommandOutcome {
    let (workspace, config) = setup.load_with(flags(&command))?;
    let registry = Registry::new(&config.prompt_dirs);
    let outcome = carry_out(setup, &workspace, &config, &registry, command);
    registry.warnings().iter().for_each(|warning| warn_person(warning));
    outcome
}

fn carry_out(
    setup: &CliSetup,
    workspace: &Workspace,
    config: &Arc<Config>,
    registry: &Registry,
    command: PromptCommand,
) -> CommandOutcome {
    match command {
        PromptCommand::List => {
            let names = registry.names()?;
            // Whole prompts come before modules.
            let (modules, whole): (Vec<&str>, Vec<&str>) =
                names.iter().map(String::as_str).partition(|name| name.starts_with(MODULES));
            // One that cannot be read does not hide the others.
            let rows = whole.into_iter().chain(modules).flat_map(|name| match registry.list([name]) {
                Ok(listed) => listed.into_iter().map(list_cells).collect(),
                Err(error) => vec![[name, "-", "-", &format!("error: {error}")].map(str::to_owned)],
            });
            print_table(&rows.collect::<Vec<_>>())
        }
        PromptCommand::Show { reference } => print_visible(&write_source(&*registry.get(&reference)?)),
        PromptCommand::Test(args) => test::run_tests(setup, config, registry, args),
        PromptCommand::Diff { old, new } => diff::print_diff(registry, &old, &new),
        PromptCommand::Check { references } => check::check_prompts(registry, &references),
        PromptCommand::Promote { name, version, canary, label, message, force } => {
            let today = Zoned::now().date();
            let promotion = Promotion { version, label: &label, canary, note: &message, today };
            release::promote_version(setup, registry, &config.prompt_dirs, &name, &promotion, force)
        }
        PromptCommand::Rollback { name } => release::roll_back(setup, registry, &name),
        PromptCommand::Repair { name } => release::repair_releases(setup, registry, &name),
        PromptCommand::New { name } => release::begin_version(setup, registry, &name),
        PromptCommand::Render { reference, vars, messages } => {
            registry.get(&reference)?;
            let options = RunOptions {
                prompt: Some(reference),
                vars: attachments::read_vars(&vars)?,
                ..RunOptions::default()
            };
            let agent = assemble_unasked(config, workspace, &options)?.agent;
            let store = assembly::open_store(config);
            let opened = assembly::read_conversation(&store, workspace, &SessionChoice::Ephemeral, &agent)?;
            let conversation = opened.conversation;
            let (briefing, run_id) = (&agent.briefing, assembly::new_run_id());
            if messages {
                let messages = briefing.preview_messages(&conversation, &run_id, &agent.limits);
                return print_json(&messages.map_err(CommandFailure::briefing)?);
            }
            let text = briefing.preview(&conversation, &run_id, &agent.limits);
            print_visible(&(text.map_err(CommandFailure::briefing)? + "\n"))
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

fn list_cells(listed: ListedPrompt) -> [String; 4] {
    let (fingerprint, description) = match &listed.prompt {
        Ok(prompt) => (prompt.fingerprint().to_owned(), prompt.head.description.clone()),
        Err(error) => ("-".to_owned(), format!("error: {error}")),
    };
    let version = match listed.labels.as_slice() {
        [] => listed.version.to_string(),
        labels => format!("{} ({})", listed.version, labels.join(", ")),
    };
    [listed.name, version, fingerprint, description]
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
        exit::refuse_run(&error, None).into()
    }
}
