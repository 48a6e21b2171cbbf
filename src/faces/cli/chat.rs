//! `agent chat`: sets up the arguments, the signals and the terminal of a chat.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::agent::assembly::{self, Options};
use crate::agent::exit::Signal;
use crate::config::{Config, PromptSource};
use crate::faces::chat::{self, AtHand, Chat, Interrupter, Interrupts, Lines, Opening};
use crate::files::workspace::Workspace;
use crate::model::Face;
use crate::safety::Approver;
use crate::safety::Nobody;
use crate::screen::ink::Line;
use crate::screen::terminal;
use crate::screen::{Facts, Keyed, Look, Outlets, Person, Screen};

use super::args::ChatArgs;
use super::collector::Export;
use super::setup::{Setup, session_choice, setting_flags};
use super::signals::Signals;
use super::{Failure, Outcome, attachments, exit, run, signals};

pub(super) fn run(setup: &Setup, args: ChatArgs) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Prepared { mut chat, lines, mut interrupts, mut ended, export, mut outlets } =
        prepare(setup, &args, &runtime)?;
    let code = runtime.block_on(async {
        let chat = async move {
            let cancel = chat.cancel();
            let signal = tokio::select! {
                biased;
                code = chat::run(&mut chat, &lines, &mut interrupts, &mut outlets) => {
                    chat.end_background();
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
    export.close(*code.as_ref().unwrap_or(&exit::FAILED));
    code
}

/// A chat that is ready for its first line.
struct Prepared {
    chat: Chat,
    lines: Arc<Lines>,
    interrupts: Interrupts,
    ended: mpsc::UnboundedReceiver<Signal>,
    export: Export,
    outlets: Outlets,
}

/// Shows the greeting and the prompt, then assembles the chat while the person can already type.
fn prepare(setup: &Setup, args: &ChatArgs, runtime: &Runtime) -> Result<Prepared, Failure> {
    // Before the line editor starts: it restores the handlers that it found.
    let signals = Signals::listen()?;
    let workspace = setup.workspace()?;
    let config = setup.config_with(&workspace, setting_flags(&args.turn))?;
    let look = setup.look(Facts { chat: true, theme: config.settings.ui.theme, ..Facts::default() });
    let outlets = Outlets::open(&look);
    let interactive = io::stdin().is_terminal() && io::stderr().is_terminal();
    let (interrupter, interrupts) = chat::interrupts();
    terminal::leave_signals_to_the_reader();
    let ended = pass(&signals, interrupter.clone());
    let mut options = Options { chat: true, output: run::plain_output(), ..run::options(&args.turn, None)? };
    // Every message is a task for the flow.
    options.flow = run::flow(&config, &args.turn, true, &options.vars)?;
    // The names are known only once the agent is assembled.
    let vocabulary = Arc::new(OnceLock::new());
    let setup_of_lines = || chat::Setup {
        history: Some(chat::history::file(&config.dirs.state, workspace.root())),
        vocabulary: Arc::clone(&vocabulary),
        style: look.style,
        edit_mode: config.settings.ui.edit_mode,
        reflows: look.reflows,
        stdout_terminal: io::stdout().is_terminal(),
        asks_theme: look.asks_theme,
        outlets: outlets.clone(),
    };
    if interactive && !setup.global.quiet {
        greet(setup, &config, &options, &workspace, &outlets, runtime);
    }
    let editor = (interactive && look.live).then(|| Lines::editor(setup_of_lines(), interrupter.clone()));
    let lines = Arc::new(match editor.flatten() {
        Some(lines) => lines,
        None if interactive => Lines::plain(outlets.clone(), interrupter.clone()),
        None => Lines::piped(interrupter.clone()),
    });
    if is_asked_first(&config, &options) {
        lines.begin();
    }
    let approver = approver(setup, &config, interactive.then_some(&lines), &outlets, &look);
    let files = args.turn.files.iter().map(|file| attachments::read(file));
    let attached = files.collect::<Result<_, _>>().map_err(Failure::usage)?;
    let manner = Setup::manner(&config);
    let rendering = manner.rendering.clone();
    let (sink, export) = Export::beside(Box::new(Screen::on(&outlets, look, manner)), &config)?;
    let opening = Opening {
        options,
        session: session_choice(&args.turn),
        skills: args.turn.skills.clone(),
        rendering,
        own: config.own_commands(chat::is_built_in),
        at_hand: AtHand::find(|name| setup.env.get(name), interactive.then(|| setup.editor(&config)), look.live),
        config,
        workspace,
        approver,
        attached,
    };
    let chat = Chat::open(opening, sink, &outlets).map_err(Failure::from_setup)?;
    for name in &args.turn.skills {
        chat.catalogue().get(name).map_err(Failure::skill)?;
    }
    vocabulary.get_or_init(|| chat::vocabulary(&chat));
    Ok(Prepared { chat, lines, interrupts, ended, export, outlets })
}

/// Shows which model answers, in which directory, and what it may do; without a model, how to get one. Mistakes in the
/// configuration are reported when the chat is assembled.
fn greet(
    setup: &Setup,
    config: &Config,
    options: &Options,
    workspace: &Workspace,
    outlets: &Outlets,
    runtime: &Runtime,
) {
    let Ok(outlook) = assembly::outlook(config, options) else { return };
    let home = setup.env.get("HOME").map_or(Path::new("/nonexistent"), Path::new);
    let width = terminal::width().map_or(80, |width| width.saturating_sub(1));
    let mut lines = if outlook.is_configured {
        chat::greeting::greeting(&outlook, workspace.root(), home, width)
    } else {
        let advice = runtime.block_on(assembly::without_model(config, Face::Chat));
        chat::greeting::without_model(&advice, width)
    };
    lines.push(Line::new());
    outlets.show(lines);
}

/// True if the person speaks first: the prompt has no messages of its own that the model answers.
fn is_asked_first(config: &Config, options: &Options) -> bool {
    let agent = config.agent(options.agent.as_deref());
    options.prompt.is_none() && agent.is_ok_and(|agent| agent.system_prompt == PromptSource::system())
}

/// Returns the approver: the person who types these lines, or nobody.
fn approver(
    setup: &Setup,
    config: &Config,
    lines: Option<&Arc<Lines>>,
    outlets: &Outlets,
    look: &Look,
) -> Arc<dyn Approver> {
    let Some(lines) = lines else { return Arc::new(Nobody) };
    let person = match lines.console() {
        Some(console) => {
            let notify = config.settings.ui.notify;
            Person::by_keys(Keyed { console, outlets: outlets.clone(), notify }, look)
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
                signals::die(signal);
            }
        }
    });
    ended
}
