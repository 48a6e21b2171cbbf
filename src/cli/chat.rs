//! `agent chat`: the interactive front end over the same turns as `agent run`. Each turn is a run of its own in one
//! session.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::agent::{Agent, Cancel, Emitter, Run, Stop, TurnEnd as AgentTurnEnd, compact, pin, settle, take_turn};
use crate::app::{self, Options, Services, SessionChoice};
use crate::attachment::attach;
use crate::config::Config;
use crate::contract::Approver;
use crate::repl::{self, ChatHost, Interrupter, Lines, TurnEnd, TurnInput, Vocabulary};
use crate::session::Session;
use crate::sink::{Facts, Nobody, Person, Screen, Spinner};
use crate::workspace::Workspace;
use crate::{process, telemetry, terminal, text};

use super::args::ChatArgs;
use super::collector::Export;
use super::exit::Signal;
use super::setup::{Setup, session_choice};
use super::{Failure, Outcome, attachments, context, exit, run, stats, tables};

pub(super) fn run(setup: &Setup, args: ChatArgs) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Prepared { mut host, lines, mut interrupts, interrupter, export } = prepare(setup, &args)?;
    let code = runtime.block_on(async {
        let mut ended = listen(interrupter)?;
        let chat = async move {
            let mut err = io::stderr();
            let signal = tokio::select! {
                biased;
                code = repl::chat(&mut host, lines.as_ref(), &mut interrupts, &mut err) => {
                    host.end_background();
                    return code;
                }
                Some(signal) = ended.recv() => signal,
            };
            host.ended_by(signal);
            signal.code()
        };
        Ok(tokio::spawn(chat).await?)
    });
    runtime.shutdown_background();
    export.close(*code.as_ref().unwrap_or(&exit::FAILED));
    code
}

/// A chat before its first line.
struct Prepared {
    host: Host,
    lines: Arc<Lines>,
    interrupts: repl::Interrupts,
    interrupter: Interrupter,
    export: Export,
}

fn prepare(setup: &Setup, args: &ChatArgs) -> Result<Prepared, Failure> {
    let workspace = setup.workspace()?;
    let config = setup.config(&workspace)?;
    let look = setup.look(Facts { chat: true, ..Facts::default() });
    let spinner = Spinner::new(look.spinner);
    let interactive = io::stdin().is_terminal() && io::stderr().is_terminal();
    let (interrupter, interrupts) = repl::interrupts();
    let lines = Arc::new(if interactive {
        let editor = repl::Setup {
            history: Some(config.dirs.state.join("history")),
            vocabulary: Vocabulary {
                models: config.models.keys().cloned().collect(),
                skills: app::skill_names(&config, args.turn.agent.as_deref()),
                workspace: workspace.root().to_path_buf(),
            },
            style: look.style,
            stdout_terminal: io::stdout().is_terminal(),
        };
        Lines::editor(editor, interrupter.clone())
    } else {
        Lines::piped(interrupter.clone())
    });
    let approver: Arc<dyn Approver> = if interactive {
        Arc::new(Person::new(Arc::clone(&lines) as Arc<_>, io::stderr(), look.style, spinner.clone()))
    } else {
        Arc::new(Nobody)
    };
    let options = run::options(&args.turn, None);
    let mut services =
        app::assemble(&config, &workspace, &options, Arc::clone(&approver)).map_err(Failure::from_setup)?;
    let choice = session_choice(&args.turn, false);
    let (session, notes) =
        app::open_session(&config, &workspace, &choice, &services.agent).map_err(Failure::from_setup)?;
    let mut attached = Vec::new();
    for file in &args.turn.files {
        attached.push(attachments::read(file).map_err(Failure::usage)?);
    }
    let screen = Screen::new(io::stdout(), io::stderr(), look, spinner);
    let (sink, export) = Export::beside(Box::new(screen), &config)?;
    let run = Run::new(Emitter::new(session.id().to_owned(), app::new_run_id(), sink));
    let warnings = services.warnings.drain(..).chain(notes);
    run.emitter.warn(warnings);
    for name in &args.turn.skills {
        services.catalogue.get(name).map_err(Failure::skill)?;
    }
    let host = Host {
        config,
        workspace,
        options,
        approver,
        services,
        session,
        run,
        attached,
        skills: args.turn.skills.clone(),
        ephemeral: matches!(choice, SessionChoice::Ephemeral),
        in_turn: false,
    };
    Ok(Prepared { host, lines, interrupts, interrupter, export })
}

/// SIGINT, wherever it was typed, stops the turn; SIGTERM and SIGHUP, which come out of the receiver, end the program,
/// and a second one of them ends it at once.
#[cfg(unix)]
fn listen(interrupter: Interrupter) -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let (sender, ended) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut before = None;
        loop {
            let signal = tokio::select! {
                Some(()) = interrupt.recv() => {
                    interrupter.interrupt();
                    continue;
                }
                Some(()) = terminate.recv() => Signal::Terminate,
                Some(()) = hangup.recv() => Signal::Hangup,
            };
            if before.replace(signal).is_some() || sender.send(signal).is_err() {
                process::kill_all();
                std::process::exit(signal.code().into());
            }
        }
    });
    Ok(ended)
}

#[cfg(not(unix))]
fn listen(interrupter: Interrupter) -> io::Result<mpsc::UnboundedReceiver<Signal>> {
    let (sender, ended) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            interrupter.interrupt();
        }
        drop(sender);
    });
    Ok(ended)
}

struct Host {
    config: Config,
    workspace: Workspace,
    options: Options,
    approver: Arc<dyn Approver>,
    services: Services,
    session: Session,
    run: Run,
    /// `-f` files, which go along with the first message.
    attached: Vec<crate::attachment::Attachment>,
    /// Skills that go along with the next message.
    skills: Vec<String>,
    ephemeral: bool,
    /// A turn has begun and its end has not been told.
    in_turn: bool,
}

impl Host {
    /// Shows how the turn ended and says it to the loop.
    fn finish(&mut self, end: &AgentTurnEnd, signal: Option<Signal>) -> TurnEnd {
        self.in_turn = false;
        let agent = &self.services.agent;
        let mut verdict = exit::verdict(&end.stop, self.run.totals.unasked, signal);
        verdict.reason = agent.redactor.redact(&verdict.reason).into_owned();
        if let Err(error) = self.session.end_turn(&verdict.reason, Timestamp::now()) {
            let message = format!("the session is not kept on disk: {:#}", anyhow::Error::from(error));
            self.run.emitter.warn([message]);
        }
        match self.run.emitter.emit(run::completed(agent, &self.run, &verdict, end)) {
            Ok(()) => TurnEnd::Done(verdict.code),
            Err(_) => TurnEnd::Unseen,
        }
    }
}

impl Host {
    /// After the turn that was running, if one was, has been dropped: leaves the conversation whole.
    fn ended_by(&mut self, signal: Signal) {
        self.end_background();
        if self.in_turn {
            self.settle(Some(signal));
        }
    }

    /// Nothing goes on once a person has stopped a turn, left the conversation, or gone.
    fn end_background(&self) {
        self.run.emitter.warn(run::ended_with_the_run(&self.services.agent));
    }

    fn settle(&mut self, signal: Option<Signal>) -> TurnEnd {
        let stop = match settle(&mut self.session, &self.run.emitter, "interrupted") {
            Ok(()) => Stop::Interrupted,
            Err(error) => Stop::Failed(error),
        };
        self.finish(&AgentTurnEnd { stop, answer: String::new() }, signal)
    }
}

impl Host {
    /// What `tell` says of a conversation that has its system prompt, as the next request will.
    fn told(&mut self, tell: fn(&Agent, &mut Session, &mut Run) -> String) -> String {
        let agent = &self.services.agent;
        match app::brief(agent, &mut self.session, &self.run) {
            Ok(contradictions) => self.run.emitter.warn(contradictions),
            Err(error) => return format!("{error:#}\n"),
        }
        tell(agent, &mut self.session, &mut self.run)
    }
}

impl ChatHost for Host {
    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    async fn turn(&mut self, mut input: TurnInput) -> TurnEnd {
        self.in_turn = true;
        self.run.begin(self.session.id(), app::new_run_id());
        let agent = &self.services.agent;
        self.run.emitter.notify(run::started(agent));
        input.attachments.splice(0..0, self.attached.drain(..));
        let prepared = app::with_skills(agent, &input.text, &std::mem::take(&mut self.skills))
            .map_err(anyhow::Error::from)
            .and_then(|with| {
                for event in with.events {
                    self.run.emitter.notify(event);
                }
                let contradictions = app::brief(agent, &mut self.session, &self.run)?;
                Ok((attach(&with.text, &input.attachments), contradictions))
            });
        let end = match prepared {
            Ok((text, contradictions)) => {
                self.run.emitter.warn(contradictions);
                take_turn(agent, &mut self.session, &mut self.run, text, &Cancel::default()).await
            }
            Err(error) => AgentTurnEnd { stop: Stop::Failed(error), answer: String::new() },
        };
        self.finish(&end, None)
    }

    async fn interrupted(&mut self) -> TurnEnd {
        self.end_background();
        self.settle(None)
    }

    fn models_table(&self) -> String {
        tables::models(&self.config, self.services.agent.model.info())
    }

    fn switch_model(&mut self, name: &str) -> Result<String, String> {
        let options = Options { model: Some(name.to_owned()), ..self.options.clone() };
        let services = app::assemble(&self.config, &self.workspace, &options, Arc::clone(&self.approver))
            .map_err(|error| error.to_string())?;
        self.end_background();
        self.options = options;
        self.services = services;
        self.services.agent.spill.attach(self.session.path());
        app::remember_loaded(&self.session, &self.services.agent);
        Ok(format!("The model is now {}.", self.services.agent.model.info().id))
    }

    fn tools_table(&self) -> String {
        tables::tools(self.services.agent.tools.all())
    }

    fn skills_table(&self) -> String {
        tables::skills(&self.services.catalogue, &self.services.agent.briefing.loaded)
    }

    fn take_skill(&mut self, name: &str) -> Result<String, String> {
        self.services.catalogue.get(name).map_err(|error| error.message)?;
        if self.services.agent.briefing.loaded.contains(name) {
            return Ok(format!("{name} is already loaded."));
        }
        if !self.skills.iter().any(|known| known == name) {
            self.skills.push(name.to_owned());
        }
        Ok(format!("{name} goes along with your next message."))
    }

    fn unload_skill(&mut self, name: &str) -> Result<String, String> {
        let agent = &self.services.agent;
        let event = app::unload(agent, &mut self.session, name).map_err(|error| format!("{error:#}"))?;
        self.run.emitter.notify(event);
        Ok(format!("{name} is no longer part of what is sent."))
    }

    fn context_table(&mut self) -> String {
        self.told(context::table)
    }

    async fn compact(&mut self, focus: &str) -> Result<String, String> {
        self.run.begin(self.session.id(), app::new_run_id());
        let agent = &self.services.agent;
        let done = compact(agent, &mut self.session, &mut self.run, focus, &Cancel::default()).await;
        match done {
            // What was done is told by the event.
            Ok(Some(_)) => Ok(String::new()),
            Ok(None) => Ok("There is nothing to gain: recent steps and what is pinned stay whole.".to_owned()),
            Err(stop) => Err(exit::verdict(&stop, 0, None).reason),
        }
    }

    fn compaction_table(&mut self) -> String {
        self.told(context::plan)
    }

    fn uncompact(&mut self) -> Result<String, String> {
        let restored = self.session.restore(Timestamp::now()).map_err(|error| error.to_string())?;
        app::remember_loaded(&self.session, &self.services.agent);
        Ok(match restored {
            0 => "Everything is sent as it was said already.".to_owned(),
            1 => "1 message is sent again as it was said.".to_owned(),
            count => format!("{count} messages are sent again as they were said."),
        })
    }

    fn pin(&mut self, text: &str) -> Result<String, String> {
        match pin(&mut self.session, text, Timestamp::now()).as_slice() {
            [] if text.is_empty() => Err("nothing was said yet".to_owned()),
            [] => Err(format!("no message contains `{}`", text::one_line(text, 60))),
            pinned => Ok(format!("Pinned:\n{}", pinned.join("\n"))),
        }
    }

    fn stats_table(&self) -> String {
        telemetry::table(&stats::report(&self.session), self.session.about().model, terminal::width())
    }

    fn clear(&mut self) -> Result<String, String> {
        let choice = if self.ephemeral { SessionChoice::Ephemeral } else { SessionChoice::New };
        let agent = &self.services.agent;
        let (session, _) =
            app::open_session(&self.config, &self.workspace, &choice, agent).map_err(|error| error.to_string())?;
        self.end_background();
        agent.briefing.loaded.clear();
        let before = std::mem::replace(&mut self.session, session);
        let id = before.id().to_owned();
        Ok(if self.ephemeral {
            "A new conversation.".to_owned()
        } else {
            format!("A new conversation. The one before is kept: agent chat --session {id}")
        })
    }
}
