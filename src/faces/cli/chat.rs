//! `agent chat`: sets up the arguments, the signals and the terminal of a chat.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::agent::assembly::{self, ForkPoint, RunOptions, SessionChoice};
use crate::agent::exit::Signal;
use crate::config::{ApprovalMode, Config, PromptSource};
use crate::faces::chat::{self, AtHand, Chat, FirstInput, Interrupter, Interrupts, MessageLines, Opening};
use crate::faces::collector::CollectorExport;
use crate::files::workspace::Workspace;
use crate::model::Face;
use crate::prompt::Registry;
use crate::safety::{Approver, Nobody};
use crate::screen::ink::{Ink, Line};
use crate::screen::terminal;
use crate::screen::{Keyed, Look, LookFacts, Outlets, Person, Screen};

use super::args::{ChatArgs, TurnArgs};
use super::setup::{CliSetup, build_runtime, may_enter_layer, session_choice, setting_flags};
use super::signals::Signals;
use super::{CommandFailure, CommandOutcome, attachments, close_export, exit, init, run, signals};

pub(super) fn run_chat(setup: &CliSetup, args: ChatArgs) -> CommandOutcome {
    let runtime = build_runtime()?;
    let PreparedChat { mut chat, lines, mut interrupts, mut ended, export, mut outlets } =
        prepare_chat(setup, &args, &runtime)?;
    let tells = !setup.global.quiet;
    let code = runtime.block_on(async {
        let chat = async move {
            let cancel = chat.cancel();
            let signal = tokio::select! {
                biased;
                code = chat::run_chat(&mut chat, &lines, &mut interrupts, &mut outlets) => {
                    chat.end_background();
                    chat.tell_end().await;
                    if let Some(told) = chat.end_trial().filter(|_| tells) {
                        outlets.show(told.lines().map(|line| Line::new().add(Ink::Dim, line)).collect());
                    }
                    if let Some(way) = chat.tell_way_back().filter(|_| tells && lines.interactive()) {
                        outlets.show(vec![Line::new().add(Ink::Dim, &way)]);
                    }
                    let mut stopped = code;
                    let hurry = async {
                        if code != Signal::Interrupt.code() {
                            stopped = tokio::select! {
                                () = interrupts.next() => Signal::Interrupt.code(),
                                signal = ended.recv() => signal.map_or(code, Signal::code),
                            };
                        }
                    };
                    return if outlets.flush(hurry).await { code } else { stopped };
                }
                // Dropping the turn ends it, and its end names the signal.
                Some(signal) = async { ended.recv().await.inspect(|signal| cancel.trigger_by(*signal)) } => signal,
            };
            chat.end_background();
            outlets.flush(std::future::ready(())).await;
            signal.code()
        };
        Ok(tokio::spawn(chat).await?)
    });
    runtime.shutdown_background();
    close_export(export, *code.as_ref().unwrap_or(&exit::FAILED));
    code
}

/// A chat that is ready for its first line.
struct PreparedChat {
    chat: Chat,
    lines: Arc<MessageLines>,
    interrupts: Interrupts,
    ended: mpsc::UnboundedReceiver<Signal>,
    export: CollectorExport,
    outlets: Outlets,
}

/// True if nobody named a model, and none can be reached.
fn is_first_start(config: &Config, turn: &TurnArgs) -> bool {
    let options = RunOptions { agent: turn.agent.clone(), chat: true, ..RunOptions::default() };
    let is_named = turn.model.is_some() || turn.recording.replay.is_some();
    // What a person wrote there is theirs to mend.
    let is_written = config.dirs.config.join(init::MODEL).symlink_metadata().is_ok();
    !is_named
        && !is_written
        && assembly::read_outlook(config, &options).is_ok_and(|outlook| !outlook.is_configured)
}

/// Shows the greeting and the prompt, then assembles the chat while the person can already type.
fn prepare_chat(setup: &CliSetup, args: &ChatArgs, runtime: &Runtime) -> Result<PreparedChat, CommandFailure> {
    // Before the line editor starts: it restores the handlers that it found.
    let (signals, (workspace, mut config, place)) = Signals::listen_around(may_enter_layer(&args.turn), || {
        let (workspace, config) = setup.load_with(setting_flags(&args.turn))?;
        let place = setup.choose_place(&config, &workspace, &args.turn, &[])?;
        Ok((workspace, config, place))
    })?;
    let interactive = terminal::has_person();
    let mut demo = None;
    if interactive && setup.given_dir().is_none() && is_first_start(&config, &args.turn) {
        demo = init::choose_first_model(setup)?;
        config = setup.load_with(setting_flags(&args.turn))?.1;
    }
    let ui = &config.settings.ui;
    let facts = LookFacts { chat: true, theme: ui.theme, screen_reader: ui.screen_reader, ..LookFacts::default() };
    let look = setup.look(facts);
    let outlets = Outlets::open(&look);
    let (interrupter, interrupts) = chat::create_interrupts();
    terminal::leave_stops_to_the_reader();
    let ended = pass(&signals, interrupter.clone());
    let mut options =
        RunOptions { chat: true, output: run::plain_output(), ..run::read_options(&args.turn, None)? };
    options.model = options.model.or(demo.map(str::to_owned));
    let session = session_choice(&args.turn);
    let is_of_here = || match &session {
        SessionChoice::Id(id) | SessionChoice::Fork(ForkPoint { id, .. }) => assembly::open_store(&config)
            .summarize(id)
            .is_ok_and(|about| Path::new(&about.workspace) == workspace.root()),
        SessionChoice::New | SessionChoice::Latest | SessionChoice::Ephemeral => {
            place.workspace.root().to_str().is_some()
        }
    };
    options.is_undoable = interactive && session != SessionChoice::Ephemeral && is_of_here();
    options.tape = run::open_tape(&args.turn.recording, &config, &place.workspace)?;
    // Every message is a task for the flow.
    options.flow = run::choose_flow(&config, &args.turn, true, &options.vars)?;
    let setup_of_lines = || chat::EditorSetup {
        history: Some(chat::history::choose_file(&config.dirs.state, workspace.root())),
        edit_mode: config.settings.ui.edit_mode,
        colours: look.style.colours,
        asks_theme: look.asks_theme,
        modifies_keys: look.modifies_keys,
        outlets: outlets.clone(),
    };
    let mut greeted = None;
    if interactive && !setup.global.quiet {
        options.walls = assembly::create_walls(&config, &place.workspace, &options);
        greeted = greet_person(setup, &config, &options, &place.workspace, &outlets, runtime);
    }
    let editor = (interactive && look.live).then(|| MessageLines::editor(setup_of_lines(), interrupter.clone()));
    let lines = Arc::new(match editor.flatten() {
        Some(lines) => lines,
        None if interactive => MessageLines::plain(outlets.clone(), interrupter.clone()),
        None => MessageLines::piped(interrupter.clone()),
    });
    // The end of a conversation that goes on is shown above the prompt.
    let is_new = matches!(session, SessionChoice::New | SessionChoice::Ephemeral);
    if args.message.is_none() && is_new && is_asked_first(&config, &options) {
        lines.begin();
    }
    let approver = choose_approver(setup, &config, interactive.then_some(&lines), &outlets, &look);
    let attached = attachments::read_attachments(&args.turn.files)?;
    let known = Arc::clone(&config);
    let manner = CliSetup::manner(&config);
    let rendering = manner.rendering.clone();
    let export = CollectorExport::open(&config)?;
    let sink = export.attach(Box::new(Screen::new(&outlets, look, manner)));
    let opening = Opening {
        first: if args.resume { Some(FirstInput::Resume) } else { args.message.clone().map(FirstInput::Message) },
        options,
        session,
        skills: args.turn.skills.clone(),
        rendering,
        own: config.own_commands(chat::is_built_in),
        at_hand: AtHand::find(|name| setup.env.get(name), interactive.then(|| setup.editor(&config)), look.live),
        config,
        workspace,
        place,
        approver,
        attached,
    };
    let mut chat = Chat::open(opening, sink, &outlets)?;
    attachments::check_pictures(chat.attached(), chat.model())?;
    if greeted == Some(ApprovalMode::Edits) && chat.approval() == ApprovalMode::Ask {
        outlets.show(vec![Line::new().add(Ink::Dim, "It asks after all: commands are not fully confined now.")]);
    }
    if !setup.global.quiet {
        let is_greeted = Some(&known).filter(|_| interactive);
        let news = is_greeted.and_then(|known| Registry::new(&known.prompt_dirs).report_update(&known.dirs.state));
        for note in chat.note.take().into_iter().chain(news) {
            outlets.show(vec![Line::new().add(Ink::Dim, &note)]);
        }
    }
    if interactive
        && !setup.global.quiet
        && let Some((said, answer)) = chat.last_exchange()
    {
        let width = terminal::measure_width().map_or(80, |width| width.saturating_sub(1));
        outlets.show(chat::greeting::format_exchange(said, &answer, width));
    }
    for name in &args.turn.skills {
        chat.catalogue().get(name)?;
    }
    Ok(PreparedChat { chat, lines, interrupts, ended, export, outlets })
}

/// Shows which model answers, in which directory, and what it may do, and returns that; without a model, how to get one.
/// Mistakes in the configuration are reported when the chat is assembled.
fn greet_person(
    setup: &CliSetup,
    config: &Config,
    options: &RunOptions,
    workspace: &Workspace,
    outlets: &Outlets,
    runtime: &Runtime,
) -> Option<ApprovalMode> {
    let outlook = assembly::read_outlook(config, options).ok()?;
    let home = setup.env.get("HOME").map_or(Path::new("/nonexistent"), Path::new);
    let width = terminal::measure_width().map_or(80, |width| width.saturating_sub(1));
    let mut lines = if outlook.is_configured {
        chat::greeting::format_greeting(&outlook, workspace.root(), home, width)
    } else {
        let advice = runtime.block_on(assembly::without_model(config, Face::Chat));
        chat::greeting::without_model(&advice, width)
    };
    lines.push(Line::new());
    outlets.show(lines);
    Some(outlook.approval.mode)
}

/// True if the person speaks first: the prompt has no messages of its own that the model answers.
fn is_asked_first(config: &Config, options: &RunOptions) -> bool {
    let agent = config.agent(options.agent.as_deref());
    options.prompt.is_none() && agent.is_ok_and(|agent| agent.system_prompt == PromptSource::system())
}

/// Returns the approver: the person who types these lines, or nobody.
fn choose_approver(
    setup: &CliSetup,
    config: &Config,
    lines: Option<&Arc<MessageLines>>,
    outlets: &Outlets,
    look: &Look,
) -> Arc<dyn Approver> {
    let Some(lines) = lines else { return Arc::new(Nobody) };
    let person = match lines.console().zip(lines.typing().cloned()) {
        Some((console, line)) => {
            let notify = config.settings.ui.notify;
            Person::by_keys(Keyed { console, line, outlets: outlets.clone(), notify }, look)
        }
        None => Person::by_lines(Arc::clone(lines) as Arc<_>, outlets, look),
    };
    Arc::new(person.with_editor(setup.editor(config)))
}

/// Passes each SIGINT to the running turn. The receiver yields SIGTERM and SIGHUP, which end the program; a second one
/// ends it at once.
fn pass(signals: &Signals, interrupter: Interrupter) -> mpsc::UnboundedReceiver<Signal> {
    let (sender, ended) = mpsc::unbounded_channel();
    let is_ending = AtomicBool::new(false);
    signals.pass(move |signal| match signal {
        Signal::Interrupt => interrupter.interrupt(),
        Signal::Terminate | Signal::Hangup => {
            if is_ending.swap(true, Ordering::SeqCst) || sender.send(signal).is_err() {
                signals::die_at_once(signal);
            }
        }
    });
    ended
}
