//! `agent run`: carries out one task, writes its answer and returns an exit code.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::assembly::{self, FlowChoice, Options, Services};
use crate::agent::{
    Agent, Cancel, Conversation, Emitter, Input, Run, Stop, TurnEnd, already_loaded, brief, completed, exit,
    load_skills, started, take_turn,
};
use crate::config::Config;
use crate::conversation::EventSink;
use crate::conversation::attachment::{Attachment, attach};
use crate::conversation::event::EventKind;
use crate::conversation::message::{Item, Said};
use crate::model::{Request, ToolChoice};
use crate::prompt::{PromptError, Reader};
use crate::safety::Approver;
use crate::safety::Nobody;
use crate::screen::{Facts, Fanout, Jsonl, Outlets, Person, Screen};

use super::args::{OutputFormat, RunArgs, TurnArgs};
use super::attachments;
use super::collector::Export;
use super::setup::{Setup, session_choice};
use super::signals::Signals;
use super::stdin::{self, Input as Piped};
use super::{Failure, Outcome, print, vars};

/// Everything that is known before the first request.
struct Prepared {
    services: Services,
    conversation: Conversation,
    input: Input,
    run_id: String,
    sink: Box<dyn EventSink>,
    outlets: Outlets,
    output_file: Option<PathBuf>,
    warnings: Vec<String>,
    /// Events before the turn: loaded skills.
    events: Vec<EventKind>,
    export: Export,
}

pub(super) fn run(setup: Setup, args: RunArgs) -> Outcome {
    let signals = Signals::listen()?;
    let dry_run = args.dry_run;
    let mut prepared = prepare(&setup, args)?;
    if dry_run {
        return preview(&prepared);
    }
    // Spawned, because the runtime polls its root future far more often than a task.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let export = std::mem::take(&mut prepared.export);
    let code = runtime.block_on(async {
        let code = tokio::spawn(drive(prepared, signals)).await;
        // Lets the runtime drop the tasks that the run aborted, which clean up after themselves.
        tokio::task::yield_now().await;
        code
    });
    export.close(code.as_ref().ok().and_then(|code| code.as_ref().ok()).copied().unwrap_or(exit::FAILED));
    // Dropping the runtime would only free memory, and would wait for a thread that still reads a line.
    std::mem::forget(runtime);
    code?
}

fn prepare(setup: &Setup, args: RunArgs) -> Result<Prepared, Failure> {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    let schema = args.schema.as_deref().map(read_schema).transpose()?;
    if let Some(path) = &args.output_file {
        attachments::writable(path).map_err(Failure::usage)?;
    }
    let look = setup.look(Facts {
        json: args.output != OutputFormat::Text,
        stream: args.stream,
        schema: schema.is_some(),
        ..Facts::default()
    });
    let outlets = Outlets::open(&look);
    let person = io::stdin().is_terminal() && io::stderr().is_terminal();
    let approver: Arc<dyn Approver> = if person {
        Arc::new(Person::beside(&outlets, &look, config.settings.ui.notify).with_editor(setup.editor(&config)))
    } else {
        Arc::new(Nobody)
    };
    let output = match args.output {
        _ if schema.is_some() => Reader::Schema,
        OutputFormat::Json | OutputFormat::Jsonl => Reader::Json,
        OutputFormat::Text => plain_output(),
    };
    let mut options = Options { output, ..options(&args.turn, schema)? };
    options.flow = flow(&config, &args.turn, args.task.is_some(), &options.vars)?;
    if options.flow.is_some() && args.dry_run {
        return Err(Failure::usage("--dry-run shows one request, and a flow makes several or none"));
    }
    let flow = options.flow.clone();
    let mut services = assembly::assemble(&config, &workspace, &options, approver).map_err(Failure::from_setup)?;
    let mut warnings = std::mem::take(&mut services.warnings);
    let choice = session_choice(&args.turn, args.dry_run);
    let opened = assembly::open_conversation(&setup.store(&config), &workspace, &choice, &services.agent);
    let (conversation, notes) = opened.map_err(Failure::from_setup)?;
    warnings.extend(notes);
    let run_id = assembly::new_run_id();
    let mut opening = services.agent.opening(&conversation, &run_id).map_err(Failure::briefing)?;
    let say = if setup.global.quiet { |_: &str| {} } else { super::note };
    let (mut said, attached) = input(&args, (flow.as_ref(), &options.vars), &mut opening, say, &mut warnings)?;
    let events =
        load_skills(&services.agent, &conversation, &mut said, &args.turn.skills).map_err(Failure::skill)?;
    warnings.extend(already_loaded(&args.turn.skills, &events));
    said.text = attach(&said.text, &attached);
    if let Some(schema) = &services.agent.schema {
        said.text = format!("{}\n\n{}", said.text, schema.instruction());
    }
    let input = Input { opening, said };
    let screen = Screen::on(&outlets, look, Setup::manner(&config));
    let stdout = outlets.answer.clone();
    let sink: Box<dyn EventSink> = match args.output {
        OutputFormat::Text => Box::new(screen),
        OutputFormat::Json => Box::new(Fanout { sinks: vec![Box::new(Jsonl::last(stdout)), Box::new(screen)] }),
        OutputFormat::Jsonl => Box::new(Fanout { sinks: vec![Box::new(Jsonl::all(stdout)), Box::new(screen)] }),
    };
    // A dry run sends no telemetry.
    let (sink, export) = if args.dry_run { (sink, Export::default()) } else { Export::beside(sink, &config)? };
    let output_file = args.output_file;
    Ok(Prepared { services, conversation, input, run_id, sink, outlets, output_file, warnings, events, export })
}

/// Translates the options of a turn for the agent.
pub(super) fn options(args: &TurnArgs, schema: Option<Value>) -> Result<Options, Failure> {
    Ok(Options {
        agent: args.agent.clone(),
        model: args.model.clone(),
        prompt: args.prompt.clone(),
        vars: vars::read(&args.vars)?,
        approve: args.approve,
        mode: args.mode,
        flow: None,
        max_turns: args.max_turns,
        max_time: args.max_time,
        max_tokens: args.max_tokens,
        max_cost: args.max_cost,
        schema,
        effort: None,
        log_wire: args.log_wire.clone(),
        chat: false,
        output: Reader::default(),
    })
}

/// Returns the flow that carries out every input. `says` is true if a task is given.
pub(super) fn flow(
    config: &Config,
    args: &TurnArgs,
    says: bool,
    vars: &[(String, Value)],
) -> Result<Option<FlowChoice>, Failure> {
    let Some(name) = &args.flow else { return Ok(None) };
    let goes_on = args.continue_latest || args.session.is_some();
    FlowChoice::of(config, name, (says, goes_on), vars).map(Some).map_err(Failure::from_setup)
}

/// The reader of an answer that is written to stdout as it is.
pub(super) fn plain_output() -> Reader {
    if io::stdout().is_terminal() { Reader::Terminal } else { Reader::Pipe }
}

fn read_schema(path: &std::path::Path) -> Result<Value, Failure> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("--schema {name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Failure::usage(format!("--schema {name}: not JSON: {error}")))
}

/// Returns the task and its attachments. Without a task argument, the task is the user message that ends the prompt's
/// messages, and is taken from `opening`; without one, stdin is the task.
fn input(
    args: &RunArgs,
    (flow, vars): (Option<&FlowChoice>, &[(String, Value)]),
    opening: &mut Vec<Item>,
    say: fn(&str),
    warnings: &mut Vec<String>,
) -> Result<(Said, Vec<Attachment>), Failure> {
    if let Some(flow) = flow.filter(|flow| !flow.has_task) {
        if !args.turn.files.is_empty() {
            return Err(Failure::usage("a flow without a task takes no -f: give it an input, --var NAME=@FILE"));
        }
        return Ok((Said::by_person(flow.request(vars)), Vec::new()));
    }
    let task = args.task.as_deref().filter(|task| *task != "-");
    let asked = if args.task.is_none() { opening.pop_if(|last| matches!(last, Item::Said(_))) } else { None };
    let mut attached = Vec::new();
    for file in &args.turn.files {
        attached.push(attachments::read(file).map_err(Failure::usage)?);
    }
    let from_stdin = args.turn.files.iter().any(|file| file.as_os_str() == "-");
    let task = match (task, asked) {
        (Some(task), _) if task.trim().is_empty() => return Err(Failure::usage("the task is empty")),
        (Some(task), _) => Said::by_person(task),
        (None, Some(Item::Said(said))) => said,
        _ if from_stdin => return Err(Failure::usage("`-f -` reads stdin, so the task must be an argument")),
        _ => {
            let bytes = stdin::whole(say).map_err(|error| {
                Failure::usage(format!(
                    "no task: {error}. Pass it as an argument, agent run \"task\", or pipe it in."
                ))
            })?;
            return Ok((Said::by_person(String::from_utf8_lossy(&bytes).trim_end()), attached));
        }
    };
    if !from_stdin {
        match stdin::attachment(args.stdin, say).map_err(Failure::usage)? {
            Piped::Text(bytes) => attached.push(attachments::from_bytes("stdin", bytes).map_err(Failure::usage)?),
            Piped::Nothing(note) => warnings.extend(note),
        }
    }
    Ok((task, attached))
}

/// `--dry-run`: prints the request instead of sending it.
fn preview(prepared: &Prepared) -> Outcome {
    let agent = &prepared.services.agent;
    let conversation = &prepared.conversation;
    let system = match conversation.session.system() {
        Some(prompt) => prompt.text.clone(),
        None => agent.system_prompt(conversation, &prepared.run_id).map_err(Failure::briefing)?,
    };
    let Input { opening, mut said } = prepared.input.clone();
    said.text = agent.redactor.redact_known(&said.text).into_owned();
    let role = agent.preview_role(conversation, &prepared.run_id, &said.text);
    if let Some(body) = role.map_err(Failure::briefing)? {
        return print(serde_json::to_string_pretty(&body)? + "\n");
    }
    let mut items = conversation.session.items().to_vec();
    items.extend(opening);
    items.extend(agent.before_input().map(Item::Said));
    items.push(Item::Said(said));
    let request = Request {
        system: &system,
        tools: agent.tools.definitions(),
        tool_choice: ToolChoice::Auto,
        ..Request::of(&items, conversation.session.id())
    };
    let body = serde_json::to_string_pretty(&agent.model.preview(request))?;
    print(body + "\n")
}

async fn drive(prepared: Prepared, signals: Signals) -> Result<u8, Failure> {
    let Prepared {
        services,
        mut conversation,
        input,
        run_id,
        sink,
        mut outlets,
        output_file,
        warnings,
        events,
        ..
    } = prepared;
    let agent = services.agent;
    let cancel = Cancel::default();
    signals.trigger(&cancel);
    let id = conversation.session.id().to_owned();
    let mut run = Run::new(Emitter::new(id, run_id, sink).through(Box::new(outlets.clone())));
    let briefed = brief(&agent, &mut conversation, &run);
    if briefed.as_ref().is_err_and(anyhow::Error::is::<PromptError>) {
        // A mistake in the configuration is reported before any event.
        return briefed.map(|_| exit::DONE).map_err(Failure::briefing);
    }
    run.emitter.notify(started(&agent, conversation.session.id()));
    run.emitter.warn(warnings);
    for event in events {
        run.emitter.notify(event);
    }
    let end = match briefed {
        Ok(contradictions) => {
            run.emitter.warn(contradictions);
            take_turn(&agent, &mut conversation, &mut run, input, &cancel).await
        }
        Err(error) => TurnEnd { stop: Stop::Failed(error), answer: String::new() },
    };
    run.emitter.warn(agent.end_background());
    let mut ending = exit::ending(&end.stop, run.totals.unasked, signals.seen());
    ending.reason = agent.redactor.redact(&ending.reason).into_owned();
    if let Some(path) = output_file.filter(|_| is_final(&agent, &end.stop))
        && let Err(error) = std::fs::write(&path, &end.answer)
    {
        ending.fail(format!("cannot write the answer to {}: {error}", path.display()));
    }
    if let Err(error) = conversation.session.end_turn(&ending.reason, ending.code, Timestamp::now()) {
        ending.fail(exit::told(&error.into()));
    }
    run.emitter.notify(completed(&agent, &run, &ending, &end));
    let out_of_time = async {
        match agent.limits.max_time {
            Some(most) => tokio::time::sleep(most.saturating_sub(run.started.elapsed())).await,
            None => std::future::pending().await,
        }
    };
    let hurry = async {
        tokio::select! {
            () = cancel.triggered() => {}
            () = out_of_time => {}
        }
    };
    if !outlets.flush(hurry).await {
        let unread = exit::unread(signals.seen());
        if unread.code != ending.code {
            outlets.last_words(&unread.reason).await;
        }
        return Ok(unread.code);
    }
    if let Some(error) = run.emitter.failure().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        return Err(Failure::new(exit::FAILED, anyhow::anyhow!("cannot write the output: {error}")));
    }
    Ok(ending.code)
}

/// True if there is an answer to write to a file. Under a schema, the summary after a limit does not count as one.
fn is_final(agent: &Agent, stop: &Stop) -> bool {
    match stop {
        Stop::Answered => true,
        Stop::Limit(_) | Stop::Escalated(_) => agent.schema.is_none(),
        _ => false,
    }
}
