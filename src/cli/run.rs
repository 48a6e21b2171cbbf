//! `agent run`: one task, its answer, an exit code.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::agent::{Agent, Cancel, Emitter, Run, Stop, TurnEnd, take_turn};
use crate::app::{self, Options, Services, WithSkills};
use crate::attachment::{Attachment, attach};
use crate::contract::{Approver, EventSink, Request, ToolChoice};
use crate::event::{ContextSize, EventKind, RunCompleted, RunStarted};
use crate::message::Message;
use crate::prompt::PromptError;
use crate::session::Session;
use crate::sink::{Facts, Fanout, Jsonl, Nobody, Person, Screen, Spinner, StdinLines};

use super::args::{OutputFormat, RunArgs, TurnArgs};
use super::attachments;
use super::collector::Export;
use super::exit::{self, Verdict};
use super::setup::{Setup, session_choice};
use super::signals::Signals;
use super::stdin::{self, Input};
use super::{Failure, Outcome, print};

/// Everything that is known before the first request.
struct Prepared {
    services: Services,
    session: Session,
    input: String,
    sink: Box<dyn EventSink>,
    output_file: Option<PathBuf>,
    warnings: Vec<String>,
    /// What happened before the turn: skills that were loaded.
    events: Vec<EventKind>,
    export: Export,
}

pub(super) fn run(setup: Setup, args: RunArgs) -> Outcome {
    let dry_run = args.dry_run;
    let mut prepared = prepare(&setup, args)?;
    if dry_run {
        return preview(&prepared);
    }
    // Inside a task of its own the loop is woken far less often than as the runtime's root future.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let export = std::mem::take(&mut prepared.export);
    let code = runtime.block_on(async { tokio::spawn(drive(prepared)).await });
    export.close(code.as_ref().ok().and_then(|code| code.as_ref().ok()).copied().unwrap_or(exit::FAILED));
    // A thread that still waits for a line nobody types must not hold the process.
    runtime.shutdown_background();
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
    let spinner = Spinner::new(look.spinner);
    let person = io::stdin().is_terminal() && io::stderr().is_terminal();
    let approver: Arc<dyn Approver> = if person {
        let lines = Arc::new(StdinLines::spawn());
        Arc::new(Person::new(lines, io::stderr(), look.style, spinner.clone()))
    } else {
        Arc::new(Nobody)
    };
    let options = options(&args.turn, schema);
    let mut services = app::assemble(&config, &workspace, &options, approver).map_err(Failure::from_setup)?;
    let mut warnings = std::mem::take(&mut services.warnings);
    let (task, attached) = input(&args, &mut warnings)?;
    let choice = session_choice(&args.turn, args.dry_run);
    let (session, notes) =
        app::open_session(&config, &workspace, &choice, &services.agent).map_err(Failure::from_setup)?;
    warnings.extend(notes);
    let WithSkills { text, events } =
        app::with_skills(&services.agent, &task, &args.turn.skills).map_err(Failure::skill)?;
    let mut input = attach(&text, &attached);
    if let Some(schema) = &services.agent.schema {
        input = format!("{input}\n\n{}", schema.instruction());
    }
    let screen = Screen::new(io::stdout(), io::stderr(), look, spinner);
    let sink: Box<dyn EventSink> = match args.output {
        OutputFormat::Text => Box::new(screen),
        OutputFormat::Json => {
            Box::new(Fanout { sinks: vec![Box::new(Jsonl::last(io::stdout())), Box::new(screen)] })
        }
        OutputFormat::Jsonl => {
            Box::new(Fanout { sinks: vec![Box::new(Jsonl::all(io::stdout())), Box::new(screen)] })
        }
    };
    // A run that sends nothing has nothing to tell.
    let (sink, export) = if args.dry_run { (sink, Export::default()) } else { Export::beside(sink, &config)? };
    Ok(Prepared { services, session, input, sink, output_file: args.output_file, warnings, events, export })
}

/// What the options of a turn mean for the agent.
pub(super) fn options(args: &TurnArgs, schema: Option<Value>) -> Options {
    Options {
        agent: args.agent.clone(),
        model: args.model.clone(),
        prompt: args.prompt.clone(),
        vars: args.vars.clone(),
        approve: args.approve,
        max_turns: args.max_turns,
        max_time: args.max_time,
        max_tokens: args.max_tokens,
        max_cost: args.max_cost,
        schema,
    }
}

fn read_schema(path: &std::path::Path) -> Result<Value, Failure> {
    let name = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("--schema {name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Failure::usage(format!("--schema {name}: not JSON: {error}")))
}

/// The task and what is attached to it. Without a task, standard input is the task.
fn input(args: &RunArgs, warnings: &mut Vec<String>) -> Result<(String, Vec<Attachment>), Failure> {
    let task = args.task.as_deref().filter(|task| *task != "-");
    let mut attached = Vec::new();
    for file in &args.turn.files {
        attached.push(attachments::read(file).map_err(Failure::usage)?);
    }
    let from_stdin = args.turn.files.iter().any(|file| file.as_os_str() == "-");
    let task = match task {
        Some(task) if task.trim().is_empty() => return Err(Failure::usage("the task is empty")),
        Some(task) => task.to_owned(),
        None if from_stdin => return Err(Failure::usage("give the task as an argument when -f - reads stdin")),
        None => {
            let bytes = stdin::whole(super::note).map_err(|error| {
                Failure::usage(format!("no task: {error} (agent run \"task\", or pipe the task in)"))
            })?;
            return Ok((String::from_utf8_lossy(&bytes).trim_end().to_owned(), attached));
        }
    };
    if !from_stdin {
        match stdin::attachment(args.stdin, super::note).map_err(Failure::usage)? {
            Input::Text(bytes) => attached.push(attachments::from_bytes("stdin", bytes).map_err(Failure::usage)?),
            Input::Nothing(note) => warnings.extend(note),
        }
    }
    Ok((task, attached))
}

/// `--dry-run`: the request as it would be sent.
fn preview(prepared: &Prepared) -> Outcome {
    let agent = &prepared.services.agent;
    let mut messages = prepared.session.messages().to_vec();
    if messages.is_empty() {
        let system = agent.system_prompt(&prepared.session, "dry-run").map_err(Failure::briefing)?;
        messages.push(Message::System { content: system });
    }
    messages.push(Message::user(agent.redactor.redact_known(&prepared.input)));
    let request = Request {
        messages: &messages,
        tools: agent.tools.definitions(),
        tool_choice: ToolChoice::Auto,
        schema: None,
        session_id: prepared.session.id(),
        results: &[],
    };
    let body = serde_json::to_string_pretty(&agent.model.preview(request))?;
    print(body + "\n")
}

async fn drive(prepared: Prepared) -> Result<u8, Failure> {
    let Prepared { services, mut session, input, sink, output_file, warnings, events, .. } = prepared;
    let agent = services.agent;
    let cancel = Cancel::default();
    let signals = Signals::listen(cancel.clone())?;
    let mut run = Run::new(Emitter::new(session.id().to_owned(), app::new_run_id(), sink));
    let briefed = app::brief(&agent, &mut session, &run);
    if briefed.as_ref().is_err_and(anyhow::Error::is::<PromptError>) {
        // A mistake in what is configured is told before any event.
        return briefed.map(|_| exit::DONE).map_err(Failure::briefing);
    }
    run.emitter.notify(started(&agent));
    run.emitter.warn(warnings);
    for event in events {
        run.emitter.notify(event);
    }
    let end = match briefed {
        Ok(contradictions) => {
            run.emitter.warn(contradictions);
            take_turn(&agent, &mut session, &mut run, input, &cancel).await
        }
        Err(error) => TurnEnd { stop: Stop::Failed(error), answer: String::new() },
    };
    run.emitter.warn(ended_with_the_run(&agent));
    let mut verdict = exit::verdict(&end.stop, run.totals.unasked, signals.seen());
    verdict.reason = agent.redactor.redact(&verdict.reason).into_owned();
    if let Some(path) = output_file.filter(|_| is_final(&end.stop))
        && let Err(error) = std::fs::write(&path, &end.answer)
    {
        verdict.fail(format!("cannot write the answer to {}: {error}", path.display()));
    }
    if let Err(error) = session.end_turn(&verdict.reason, Timestamp::now()) {
        verdict.fail(format!("{:#}", anyhow::Error::from(error)));
    }
    run.emitter.notify(completed(&agent, &run, &verdict, &end));
    if let Some(error) = run.emitter.failure().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        return Err(Failure::new(exit::FAILED, anyhow::anyhow!("cannot write the output: {error}")));
    }
    Ok(verdict.code)
}

/// Kills what still runs in the background; a line that says so.
pub(super) fn ended_with_the_run(agent: &Agent) -> Option<String> {
    let ended = agent.jobs.end_all();
    (!ended.is_empty()).then(|| format!("ended what was running in the background: {}", ended.join(", ")))
}

/// Whether there is an answer that a file may be made of.
fn is_final(stop: &Stop) -> bool {
    matches!(stop, Stop::Answered | Stop::Limit(_))
}

/// The first event of a run.
pub(super) fn started(agent: &Agent) -> EventKind {
    EventKind::RunStarted(RunStarted {
        cwd: agent.workspace.root().display().to_string(),
        agent: agent.name.clone(),
        model: agent.model.info().id.clone(),
        scripted: agent.model.info().scripted,
        prompts: agent.briefing.used(),
        tools: agent.tools.names().map(str::to_owned).collect(),
        limits: (&agent.limits).into(),
        context: ContextSize { budget: agent.budget.tokens, window: agent.budget.window },
    })
}

/// The last event of a run.
pub(super) fn completed(agent: &Agent, run: &Run, verdict: &Verdict, end: &TurnEnd) -> EventKind {
    let valid = matches!(end.stop, Stop::Answered);
    let result = match &agent.schema {
        Some(_) if valid => serde_json::from_str(&end.answer).unwrap_or(Value::Null),
        Some(_) => Value::Null,
        None => Value::String(end.answer.clone()),
    };
    let totals = run.totals;
    EventKind::RunCompleted(RunCompleted {
        status: verdict.status,
        exit_code: verdict.code,
        reason: verdict.reason.clone(),
        result,
        usage: totals.usage,
        cost_usd: totals.cost_usd,
        turns: totals.turns,
        steps: totals.steps,
        tool_calls: totals.tool_calls,
        denied: totals.denied,
        duration_ms: u64::try_from(run.started.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
}
