//! `agent tool list / show / call`: lists the tools as the model sees them, and calls one on the person's behalf.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::assembly::{self, RunOptions, SessionChoice};
use crate::agent::{CallEnd, CalledByHand, Cancel, Emitter, Filter, Run, ToolEntry, TurnStop, call_by_hand};
use crate::base::json;
use crate::base::text;
use crate::config::{Config, SettingFlag, SettingFlags};
use crate::files::workspace::Workspace;
use crate::safety::Approver;
use crate::safety::Nobody;
use crate::screen::{LookFacts, Outlets, Person, Screen};

use super::args::{CallArgs, ToolCommand};
use super::setup::CliSetup;
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, exit, print_text, tables};

pub(super) fn run_tool(setup: &CliSetup, command: ToolCommand) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let flags = match &command {
        ToolCommand::Call(args) => {
            SettingFlags::default().with(SettingFlag::Approve, args.approve.map(|mode| mode.name().to_owned()))
        }
        _ => SettingFlags::default(),
    };
    let config = setup.config_with(&workspace, flags)?;
    let services = |agent: Option<String>| {
        let options = RunOptions { agent, ..RunOptions::default() };
        assembly::assemble_services(&config, &workspace, &options, Arc::new(Nobody))
            .map_err(CommandFailure::from_setup)
    };
    match command {
        ToolCommand::List { names, permission, agent } => {
            let services = services(agent)?;
            let filter = Filter { names, most: permission };
            let found = services.agent.tools.list(&filter).map_err(CommandFailure::usage)?;
            let rows: Vec<[String; 5]> = found.into_iter().map(list_cells).collect();
            print_text(tables::lay_out_columns(&rows, tables::find_edge()))
        }
        ToolCommand::Show { name, agent } => {
            let services = services(agent)?;
            let tools = &services.agent.tools;
            let found = tools.find(&name).map_err(CommandFailure::usage)?;
            let definition = tools.show_tool(&name).unwrap_or_else(|| found.tool.definition().clone());
            let shown = json!({
                "name": definition.name,
                "description": definition.description,
                "parameters": *definition.parameters,
            });
            print_text(serde_json::to_string_pretty(&shown)? + "\n")
        }
        ToolCommand::Call(args) => call_tool(setup, &config, &workspace, args),
    }
}

/// The cells of a row: name, permission, effects, origin, summary.
fn list_cells(found: &ToolEntry) -> [String; 5] {
    let definition = found.tool.definition();
    let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let effects: Vec<String> = definition.effects.iter().map(|effect| word(json!(effect))).collect();
    let effects = if effects.is_empty() { "-".to_owned() } else { effects.join(",") };
    let origin = found.terms.file.clone().unwrap_or_else(|| "built in".to_owned());
    let summary = text::one_line(definition.summary(), 100);
    [definition.name.clone(), word(json!(definition.permission)), effects, origin, summary]
}

fn call_tool(setup: &CliSetup, config: &Arc<Config>, workspace: &Workspace, args: CallArgs) -> CommandOutcome {
    let signals = Signals::listen()?;
    let CallArgs { name, arguments, format, encoding, agent, .. } = args;
    let arguments = json::parse_object(&arguments)
        .map(Value::Object)
        .map_err(|why| CommandFailure::usage(format!("the arguments are not a JSON object: {why}")))?;
    // `finish` writes the result, once and whole; the screen shows only progress.
    let look = setup.look(LookFacts { json: true, ..LookFacts::default() });
    let outlets = Outlets::open(&look);
    let approver: Arc<dyn Approver> = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Arc::new(Person::new(&outlets, &look, config.settings.ui.notify))
    } else {
        Arc::new(Nobody)
    };
    let options = RunOptions { agent, ..RunOptions::default() };
    let mut services =
        assembly::assemble_services(config, workspace, &options, approver).map_err(CommandFailure::from_setup)?;
    services.agent.tools.find(&name).map_err(CommandFailure::usage)?;
    if let Some(terms) = services.agent.tools.terms_mut(&name) {
        terms.format = format.or(terms.format);
        terms.encoding = encoding.or(terms.encoding);
    }
    let agent = services.agent;
    let (mut conversation, _) =
        assembly::open_conversation(&assembly::open_store(config), workspace, &SessionChoice::Ephemeral, &agent)
            .map_err(CommandFailure::from_setup)?;
    let screen = Box::new(Screen::new(&outlets, look, CliSetup::manner(config)));
    let mut run = Run::new(Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), screen));
    run.emitter.warn(services.warnings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (outcome, signal) = runtime.block_on(async {
        let cancel = Cancel::default();
        signals.trigger(&cancel);
        let outcome = call_by_hand(&agent, &mut conversation, &mut run, &name, &arguments, &cancel).await;
        outlets.flush(cancel.triggered()).await;
        (outcome, cancel.signal())
    });
    // A thread may still wait for a line; it must not keep the process alive.
    runtime.shutdown_background();
    match outcome {
        Ok(called) => finish_call(&name, &called, run.totals.unasked > 0),
        Err(TurnStop::Failed(error)) => Err(CommandFailure::new(exit::FAILED, error)),
        Err(stop) => {
            let ending = exit::name_ending(&stop, 0, signal);
            Err(CommandFailure::new(ending.code, anyhow::anyhow!("{}", ending.reason)))
        }
    }
}

fn finish_call(name: &str, called: &CalledByHand, unasked: bool) -> CommandOutcome {
    let content = if io::stdout().is_terminal() {
        text::make_visible(&called.content)
    } else {
        called.content.as_str().into()
    };
    let end = if content.ends_with('\n') { "" } else { "\n" };
    print_text(format!("{content}{end}"))?;
    match &called.end {
        end if end.has_result() => Ok(exit::DONE),
        CallEnd::Denied(_) if unasked => {
            let hint = exit::hint_allow("it");
            Err(CommandFailure::new(
                exit::DENIED,
                anyhow::anyhow!("the call was denied because nobody could be asked. {hint}"),
            ))
        }
        end => {
            let status = format!("{:?}", end.status()).to_lowercase();
            Err(CommandFailure::new(exit::FAILED, anyhow::anyhow!("{name}: {status}")))
        }
    }
}
