//! `agent tool list / show / call`: lists the tools as the model sees them, and calls one on the person's behalf.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::assembly::{self, RunOptions, SessionChoice};
use crate::agent::{
    Agent, CallEnd, CalledByHand, Cancel, Emitter, Filter, Run, ToolEntry, TurnStop, call_by_hand,
};
use crate::base::{json, text};
use crate::config::{ApprovalMode, SettingFlag, SettingFlags};
use crate::safety::{Approver, Nobody};
use crate::screen::{LookFacts, Outlets, Person, Screen, terminal};
use crate::tools::McpServers;

use super::args::{CallArgs, ToolCommand};
use super::setup::{CliSetup, assemble_unasked, build_runtime};
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, exit, print_json, print_table, print_text, print_visible};

pub(super) fn run_tool(setup: &CliSetup, command: ToolCommand) -> CommandOutcome {
    match command {
        ToolCommand::List { names, permission, agent } => {
            let agent = assemble_agent(setup, agent)?;
            let filter = Filter { names, most: permission };
            let found = agent.tools.list(&filter).map_err(CommandFailure::usage)?;
            print_table(&found.into_iter().map(list_cells).collect::<Vec<_>>())
        }
        ToolCommand::Show { name, agent } => {
            let agent = assemble_agent(setup, agent)?;
            let found = agent.tools.find(&name).map_err(CommandFailure::usage)?;
            let definition = agent.tools.show_tool(&name).unwrap_or_else(|| found.tool.definition().clone());
            print_json(&json!({
                "name": definition.name,
                "description": definition.description,
                "parameters": *definition.parameters,
            }))
        }
        ToolCommand::Call(args) => call_tool(setup, args, None),
    }
}

fn assemble_agent(setup: &CliSetup, agent: Option<String>) -> Result<Agent, CommandFailure> {
    let (workspace, config) = setup.load()?;
    Ok(assemble_unasked(&config, &workspace, &RunOptions { agent, ..RunOptions::default() })?.agent)
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

/// Calls a tool. `servers` are those that were started already.
pub(super) fn call_tool(setup: &CliSetup, args: CallArgs, servers: Option<Arc<McpServers>>) -> CommandOutcome {
    let CallArgs { name, arguments, format, encoding, agent, approve } = args;
    let approve = approve.map(|mode| mode.name().to_owned());
    let (workspace, config) = setup.load_with(SettingFlags::default().with(SettingFlag::Approve, approve))?;
    let signals = Signals::listen()?;
    let arguments = json::parse_object(&arguments)
        .map(Value::Object)
        .map_err(|why| CommandFailure::usage(format!("the arguments are not a JSON object: {why}")))?;
    // `finish` writes the result, once and whole; the screen shows only progress.
    let look = setup.look(LookFacts { json: true, ..LookFacts::default() });
    let outlets = Outlets::open(&look);
    let approver: Arc<dyn Approver> = if terminal::has_person() {
        Arc::new(Person::new(&outlets, &look, config.settings.ui.notify))
    } else {
        Arc::new(Nobody)
    };
    let options = RunOptions { agent, servers, ..RunOptions::default() };
    let mut services = assembly::assemble_services(&config, &workspace, &options, approver)?;
    services.agent.tools.find(&name).map_err(CommandFailure::usage)?;
    if let Some(terms) = services.agent.tools.terms_mut(&name) {
        terms.format = format.or(terms.format);
        terms.encoding = encoding.or(terms.encoding);
    }
    let agent = services.agent;
    let store = assembly::open_store(&config);
    let mut conversation =
        assembly::open_conversation(&store, &workspace, &SessionChoice::Ephemeral, &agent)?.conversation;
    let screen = Box::new(Screen::new(&outlets, look, CliSetup::manner(&config)));
    let mut run = Run::new(Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), screen));
    run.emitter.warn(services.warnings);
    let runtime = build_runtime()?;
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
        Ok(called) => finish_call(&name, &called, (run.totals.unasked > 0).then_some(agent.approval)),
        Err(TurnStop::Failed(error)) => Err(CommandFailure::new(exit::FAILED, error)),
        Err(stop) => Err(exit::name_ending(&stop, 0, agent.approval, signal).into()),
    }
}

/// `unasked` is the mode in which nobody could be asked.
fn finish_call(name: &str, called: &CalledByHand, unasked: Option<ApprovalMode>) -> CommandOutcome {
    print_visible(&called.content)?;
    if !called.content.ends_with('\n') {
        print_text("\n")?;
    }
    match (&called.end, unasked) {
        (end, _) if end.has_result() => Ok(exit::DONE),
        (CallEnd::Denied(_), Some(mode)) => {
            let hint = exit::hint_allow("it", mode);
            let why = format!("the call was denied because nobody could be asked. {hint}");
            Err(CommandFailure::word(exit::DENIED, why))
        }
        (end, _) => {
            let status = format!("{:?}", end.status()).to_lowercase();
            Err(CommandFailure::word(exit::FAILED, format!("{name}: {status}")))
        }
    }
}
