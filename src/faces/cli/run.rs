//! `agent run`: carries out one task, writes its answer and returns an exit code.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::agent::assembly::{self, FlowChoice, OpenedConversation, RunOptions, RunPlace, Services};
use crate::agent::{
    Agent, Cancel, Conversation, Emitter, HookReport, KeepAnswer, Run, RunInput, TurnEnd, TurnStop, end_session,
    exit, run_input,
};
use crate::config::{ApprovalMode, Config};
use crate::conversation::EventSink;
use crate::conversation::attachment::Attachments;
use crate::conversation::event::{Event, EventKind};
use crate::conversation::message::UserText;
use crate::faces::chat::trial::end_trial;
use crate::faces::collector::CollectorExport;
use crate::files::workspace::Workspace;
use crate::model::{Recorder, Recording, Tape};
use crate::prompt::AnswerReader;
use crate::safety::{Approver, Nobody};
use crate::screen::{Fanout, Jsonl, LookFacts, Outlets, Person, Screen, terminal};
use crate::tools::decode_text;

use super::args::{OutputFormat, RecordingArgs, RunArgs, StdinMode, TurnArgs};
use super::attachments;
use super::github::{WorkflowStep, annotate};
use super::setup::{CliSetup, build_runtime, may_enter_layer, session_choice, setting_flags};
use super::signals::Signals;
use super::stdin::{self, PipedInput as Piped};
use super::{CommandFailure, CommandOutcome, close_export, print_json};

/// Everything that is known before the run begins.
struct PreparedRun {
    services: Services,
    conversation: Conversation,
    run: Run,
    input: RunInput<'static>,
    outlets: Outlets,
    export: CollectorExport,
    /// Where a step of a workflow is told of the end.
    workflow: Option<WorkflowStep>,
    config: Arc<Config>,
    is_quiet: bool,
}

pub(super) fn run_once(setup: CliSetup, args: RunArgs) -> CommandOutcome {
    if args.output != OutputFormat::Github {
        return run_task(setup, args, None);
    }
    let step = WorkflowStep::begin(&setup.env)?;
    let outcome = run_task(setup, args, Some(step.clone()));
    step.end(outcome)
}

fn run_task(setup: CliSetup, args: RunArgs, workflow: Option<WorkflowStep>) -> CommandOutcome {
    let choose = || RunGround::choose(&setup, &args);
    let (signals, ground) = Signals::listen_around(may_enter_layer(&args.turn), choose)?;
    let prepared = prepare_run(&setup, args, ground)?;
    let mut prepared = PreparedRun { workflow, ..prepared };
    // Spawned, because the runtime polls its root future far more often than a task.
    let runtime = build_runtime()?;
    let export = std::mem::take(&mut prepared.export);
    let code = runtime.block_on(async {
        let code = tokio::spawn(carry_out(prepared, signals)).await;
        // Lets the runtime drop the tasks that the run aborted, which clean up after themselves.
        tokio::task::yield_now().await;
        code
    });
    close_export(export, code.as_ref().ok().and_then(|code| code.as_ref().ok()).copied().unwrap_or(exit::FAILED));
    // Dropping the runtime would only free memory, and would wait for a thread that still reads a line.
    std::mem::forget(runtime);
    code?
}

/// What is chosen while this process has one thread.
struct RunGround {
    workspace: Workspace,
    config: Arc<Config>,
    place: RunPlace,
}

impl RunGround {
    fn choose(setup: &CliSetup, args: &RunArgs) -> Result<Self, CommandFailure> {
        let (workspace, config) = setup.load_with(setting_flags(&args.turn))?;
        let outputs: Vec<&Path> = args.output_file.iter().map(PathBuf::as_path).collect();
        let turn = TurnArgs { trial: args.turn.trial && !args.dry_run, ..args.turn.clone() };
        let place = setup.choose_place(&config, &workspace, &turn, &outputs)?;
        Ok(Self { workspace, config, place })
    }
}

fn prepare_run(setup: &CliSetup, args: RunArgs, ground: RunGround) -> Result<PreparedRun, CommandFailure> {
    let RunGround { workspace, config, place } = ground;
    let RunPlace { workspace: place, copy, note: place_note, warning } = place;
    let schema = args.schema.as_deref().map(read_schema).transpose()?;
    if let Some(path) = &args.output_file {
        attachments::check_writable(path).map_err(CommandFailure::usage)?;
    }
    let look = setup.look(LookFacts {
        json: matches!(args.output, OutputFormat::Json | OutputFormat::Jsonl),
        stream: args.stream,
        schema: schema.is_some(),
        screen_reader: config.settings.ui.screen_reader,
        ..LookFacts::default()
    });
    let outlets = Outlets::open(&look);
    let person = terminal::has_person();
    let approver: Arc<dyn Approver> = if person {
        Arc::new(Person::new(&outlets, &look, config.settings.ui.notify).with_editor(setup.editor(&config)))
    } else {
        Arc::new(Nobody)
    };
    let output = match args.output {
        _ if schema.is_some() => AnswerReader::Schema,
        OutputFormat::Json | OutputFormat::Jsonl => AnswerReader::Json,
        OutputFormat::Text | OutputFormat::Github => plain_output(),
    };
    let mut options = RunOptions { output, ..read_options(&args.turn, schema)? };
    options.flow = choose_flow(&config, &args.turn, args.task.is_some(), &options.vars)?;
    if options.flow.is_some() && args.dry_run {
        return Err(CommandFailure::usage("--dry-run shows one request, and a flow makes several or none"));
    }
    let flow = options.flow.clone();
    let (store, choice) = (setup.store(&config), session_choice(&args.turn));
    if !args.dry_run {
        options.tape = open_tape(&args.turn.recording, &config, &place)?;
    }
    let mut services = assembly::assemble_services(&config, &place, &options, approver)?;
    let mut warnings = std::mem::take(&mut services.warnings);
    warnings.extend(warning);
    let opened = if args.dry_run {
        assembly::read_conversation(&store, &workspace, &choice, &services.agent)
    } else {
        assembly::open_conversation(&store, &workspace, &choice, &services.agent)
    };
    let OpenedConversation { conversation, note, warnings: repairs } = opened?;
    warnings.extend(repairs);
    if let Some(copy) = copy {
        assembly::require_history(&conversation)?;
        copy.keep();
    }
    let say = if setup.global.quiet { |_: &str| {} } else { super::note_progress };
    note.iter().chain(&place_note).for_each(|note| say(note));
    if let Some(key) = assembly::find_choosing_key(&config, &options) {
        say(&format!("{} answers, as {key} is set (-m names another model)", services.agent.model.info().id));
    }
    if services.agent.approval == ApprovalMode::Edits && !setup.global.quiet {
        let agent = config.agent(options.agent.as_deref()).map_err(assembly::SetupError::usage)?;
        warnings.insert(0, assembly::describe_freedom(agent));
    }
    let screen = Screen::new(&outlets, look, CliSetup::manner(&config));
    let stdout = outlets.answer.clone();
    let sink: Box<dyn EventSink> = match args.output {
        _ if args.dry_run => Box::new(OnlyWarnings { screen }),
        OutputFormat::Text | OutputFormat::Github => Box::new(screen),
        OutputFormat::Json | OutputFormat::Jsonl => {
            let write = if args.output == OutputFormat::Json { Jsonl::last } else { Jsonl::all };
            Box::new(Fanout { sinks: vec![Box::new(write(stdout, config.redactor())), Box::new(screen)] })
        }
    };
    // A dry run sends no telemetry.
    let export = if args.dry_run { CollectorExport::default() } else { CollectorExport::open(&config)? };
    let sink = export.attach(sink);
    let emitter = Emitter::new(conversation.session.id().to_owned(), assembly::new_run_id(), sink);
    let run = Run { is_dry: args.dry_run, ..Run::new(emitter.set_outlets(Box::new(outlets.clone()))) };
    let is_asked = args.task.is_none() && is_asked(&services.agent, &conversation, &run)?;
    let flow = flow.as_ref().filter(|flow| !flow.has_task).map(|flow| flow.request(&options.vars));
    let (said, attached) = read_input(&args, flow, is_asked, say, &mut warnings)?;
    attachments::check_pictures(&attached, services.agent.model.info())?;
    let has_schema = services.agent.schema.is_some();
    let keep_answer = args
        .output_file
        .map(|path| -> KeepAnswer<'static> { Box::new(move |end| keep_answer(&path, has_schema, end)) });
    let input =
        RunInput { said, skills: args.turn.skills, attached, warnings, keep_answer, ..RunInput::default() };
    let is_quiet = setup.global.quiet;
    Ok(PreparedRun { services, conversation, run, input, outlets, export, workflow: None, config, is_quiet })
}

/// Translates the options of a turn for the agent.
pub(super) fn read_options(args: &TurnArgs, schema: Option<Value>) -> Result<RunOptions, CommandFailure> {
    Ok(RunOptions {
        agent: args.agent.clone(),
        model: args.model.clone(),
        prompt: args.prompt.clone(),
        vars: attachments::read_vars(&args.vars)?,
        flow: None,
        schema,
        effort: None,
        log_wire: args.log_wire.clone(),
        tape: None,
        chat: false,
        is_undoable: false,
        output: AnswerReader::default(),
        walls: None,
        servers: None,
    })
}

/// Opens the recording that the options name.
pub(super) fn open_tape(
    args: &RecordingArgs,
    config: &Config,
    workspace: &Workspace,
) -> Result<Option<Tape>, CommandFailure> {
    if let Some(path) = &args.replay {
        let recording = Recording::open(path, workspace.root(), &args.map, args.replay_strict);
        let recording = recording.map_err(|why| CommandFailure::usage(format!("--replay: {why}")))?;
        return Ok(Some(Tape::Replay(Arc::new(recording))));
    }
    let Some(path) = &args.record else { return Ok(None) };
    let recorder = Recorder::create(path, workspace.root(), args.record_tools, config.redactor());
    let failed = |error| CommandFailure::usage(format!("--record {}: {error}", path.display()));
    Ok(Some(Tape::Record(Arc::new(recorder.map_err(failed)?))))
}

/// Returns the flow that carries out every input. `says` is true if a task is given.
pub(super) fn choose_flow(
    config: &Config,
    args: &TurnArgs,
    says: bool,
    vars: &[(String, Value)],
) -> Result<Option<FlowChoice>, CommandFailure> {
    let Some(name) = &args.flow else { return Ok(None) };
    if args.mode.is_some() {
        let message = "--flow carries out the input itself: leave out --mode";
        return Err(CommandFailure::usage(message));
    }
    let goes_on = args.continue_latest || args.session.is_some();
    Ok(Some(FlowChoice::choose_flow(config, name, (says, goes_on), vars)?))
}

/// The reader of an answer that is written to stdout as it is.
pub(super) fn plain_output() -> AnswerReader {
    if terminal::stdout_is_terminal() { AnswerReader::Terminal } else { AnswerReader::Pipe }
}

pub(super) fn read_schema(path: &Path) -> Result<Value, CommandFailure> {
    let wrong = |why: String| CommandFailure::usage(format!("--schema {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(format!("not JSON: {error}")))
}

/// True if the messages of the prompt end with a question, which is the task if no other is given.
fn is_asked(agent: &Agent, conversation: &Conversation, run: &Run) -> Result<bool, CommandFailure> {
    agent.is_asked(conversation, &run.emitter.run_id()).map_err(CommandFailure::briefing)
}

/// Returns the task and its attachments. Without a task argument, the task is the question of the prompt (`is_asked`),
/// else stdin. `flow` is the request of a flow that takes no task.
fn read_input(
    args: &RunArgs,
    flow: Option<String>,
    is_asked: bool,
    say: fn(&str),
    warnings: &mut Vec<String>,
) -> Result<(Option<UserText>, Attachments), CommandFailure> {
    if let Some(request) = flow {
        if !args.turn.files.is_empty() {
            return Err(CommandFailure::usage(
                "a flow without a task takes no -f: give it an input, --var NAME=@FILE",
            ));
        }
        return Ok((Some(UserText::by_person(request)), Attachments::default()));
    }
    let task = args.task.as_deref().filter(|task| *task != "-");
    let mut attached = attachments::read_attachments(&args.turn.files)?;
    let from_stdin = args.turn.files.iter().any(|file| file.as_os_str() == "-");
    let task = match task {
        Some(task) if task.trim().is_empty() => return Err(CommandFailure::usage("the task is empty")),
        Some(task) => Some(UserText::by_person(task)),
        None if is_asked => None,
        None if from_stdin => {
            return Err(CommandFailure::usage("`-f -` reads stdin, so the task must be an argument"));
        }
        None if args.task.is_none() && matches!(args.stdin, StdinMode::None) => {
            return Err(CommandFailure::usage(
                "no task: `--stdin none` never reads it from stdin; pass it as an argument",
            ));
        }
        None => {
            let bytes = stdin::read_whole(say).map_err(|error| {
                CommandFailure::usage(format!(
                    "no task: {error}. Pass it as an argument, agent run \"task\", or pipe it in."
                ))
            })?;
            let task = decode_text(&bytes).ok_or_else(|| {
                CommandFailure::usage("stdin is binary, so it is no task; a picture or a PDF is attached by -f -")
            })?;
            return Ok((Some(UserText::by_person(task.trim_end())), attached));
        }
    };
    if !from_stdin {
        match stdin::read_attachment(args.stdin, say).map_err(CommandFailure::usage)? {
            Piped::Text(bytes) => {
                attachments::attach(&mut attached, "stdin", &bytes).map_err(CommandFailure::usage)?;
            }
            Piped::Nothing(note) => warnings.extend(note),
        }
    }
    Ok((task, attached))
}

async fn carry_out(prepared: PreparedRun, signals: Signals) -> Result<u8, CommandFailure> {
    let PreparedRun {
        services, mut conversation, mut run, input, mut outlets, workflow, config, is_quiet, ..
    } = prepared;
    let (agent, cancel) = (services.agent, Cancel::default());
    signals.trigger(&cancel);
    let end = run_input(&agent, &mut conversation, &mut run, input, &cancel).await?;
    if run.is_dry {
        outlets.flush(cancel.triggered()).await;
        return match end.stop {
            TurnStop::Shown(request) => print_json(&request),
            _ => Err(end.ending.into()),
        };
    }
    let out_of_time = async {
        match agent.limits.max_time {
            Some(most) => tokio::time::sleep(most.saturating_sub(run.ledger.elapsed())).await,
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
        let unread = exit::end_unread(cancel.signal());
        if unread.code != end.ending.code {
            outlets.last_words(&unread.reason).await;
        }
        return Ok(unread.code);
    }
    if let Some(error) = run.emitter.failure().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        return Err(CommandFailure::word(exit::FAILED, format!("cannot write the output: {error}")));
    }
    let HookReport { runs, warnings: failed_hooks } = end_session(&agent, &conversation, "exit").await;
    run.emitter.note_hooks(&runs);
    assembly::apply_retention(&config);
    for warning in &failed_hooks {
        super::warn_person(warning);
    }
    let told = end_trial(&config, &conversation).filter(|_| !is_quiet);
    if let Some(told) = &told {
        super::note_progress(told);
    }
    // The reason stays the last line.
    if end.ending.code != exit::DONE && (told.is_some() || !failed_hooks.is_empty()) {
        super::note_progress(&end.ending.reason);
    }
    if let Some(step) = workflow {
        if end.ending.code != exit::DONE {
            step.speak(&annotate("error", &[("title", "agent")], &end.ending.reason))?;
        }
        if let Err(failure) = step.add_summary(&end.answer) {
            let code = failure.report();
            return Ok(if end.ending.code == exit::DONE { code } else { end.ending.code });
        }
    }
    Ok(end.ending.code)
}

/// `--output-file`: writes the answer, if there is one. With a schema, the summary after a limit does not count.
fn keep_answer(path: &Path, has_schema: bool, end: &TurnEnd) -> Result<(), String> {
    let is_final = match end.stop {
        TurnStop::Answered => true,
        TurnStop::Limit(_) | TurnStop::Escalated(_) => !has_schema,
        _ => false,
    };
    if !is_final {
        return Ok(());
    }
    std::fs::write(path, &end.answer)
        .map_err(|error| format!("cannot write the answer to {}: {error}", path.display()))
}

/// The sink of a dry run, whose stdout is for the request.
struct OnlyWarnings {
    screen: Screen,
}

impl EventSink for OnlyWarnings {
    fn emit(&mut self, event: &Event) -> io::Result<()> {
        match event.kind {
            EventKind::Warning { .. } => self.screen.emit(event),
            _ => Ok(()),
        }
    }
}
