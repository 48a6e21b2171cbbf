//! The common setup of every command: the workspace, the merged configuration, the question of trust, and the look of
//! the output.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Runtime;

use crate::agent::assembly::{
    self, ForkPoint, RunOptions, RunPlace, Services, SessionChoice, SetupError, TrialWish,
};
use crate::config::{
    self, Config, Env, LoadOptions, Manifest, SettingFlag, SettingFlags, TrustStore, format_duration,
};
use crate::conversation::session::{Far, Session, SessionError, SessionSummary, Store};
use crate::files::workspace::Workspace;
use crate::safety::{Nobody, sandbox};
use crate::screen::ink::ColourWishes;
use crate::screen::terminal::{self, Abilities};
use crate::screen::{Bar, ExternalEditor, Look, LookFacts, Manner, Rendering, choose_look};
use crate::tools;

use super::args::{GlobalArgs, TurnArgs};
use super::{CommandFailure, exit, note_progress, warn_person};

pub(super) struct CliSetup {
    pub global: GlobalArgs,
    pub env: Env,
}

impl CliSetup {
    pub(super) fn workspace(&self) -> Result<Workspace, CommandFailure> {
        let dir = self.global.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        Workspace::open(&dir)
            .map_err(|error| CommandFailure::usage(format!("cannot work in {}: {error}", dir.display())))
    }

    /// The workspace and the merged configuration.
    pub(super) fn load(&self) -> Result<(Workspace, Arc<Config>), CommandFailure> {
        self.load_with(SettingFlags::default())
    }

    /// The workspace and the merged configuration, without a question: what a person has not trusted is left out.
    pub(super) fn read_unasked(&self) -> Option<(Workspace, Config)> {
        let workspace = self.workspace().ok()?;
        let mut options = self.sources(&workspace);
        let store = TrustStore::open(&self.env.dirs().data);
        options.trust |= options.brought.as_deref().is_some_and(|brought| store.trusts(brought));
        config::read_sound_parts(&options).map(|config| (workspace.clone(), config))
    }

    /// The workspace and the merged configuration, with the flags of a command above it.
    pub(super) fn load_with(&self, flags: SettingFlags) -> Result<(Workspace, Arc<Config>), CommandFailure> {
        let workspace = self.workspace()?;
        let config = config::load_config(&LoadOptions { flags, ..self.load_options(&workspace)? })?;
        sandbox::limit_rendering(*config.settings.templates.timeout);
        Ok((workspace, Arc::new(config)))
    }

    /// Returns the sources of the configuration. Asks for trust first if the workspace has its own configuration.
    pub(super) fn load_options<'a>(&'a self, workspace: &'a Workspace) -> Result<LoadOptions<'a>, CommandFailure> {
        let mut options = self.sources(workspace);
        if !options.trust
            && let Some(brought) = options.brought.as_deref().filter(|brought| brought.brings_anything())
        {
            options.trust = self.trusts(brought)?;
        }
        Ok(options)
    }

    fn sources<'a>(&'a self, workspace: &'a Workspace) -> LoadOptions<'a> {
        LoadOptions {
            env: &self.env,
            workspace,
            config_dir: self.global.config.clone(),
            sets: &self.global.sets,
            flags: SettingFlags::default(),
            brought: config::find_brought(&self.env, workspace, self.global.config.as_deref()),
            trust: self.global.trust,
            tools: &tools::NAMES,
        }
    }

    /// True if the configuration of the workspace may be used, as a person decided before or answers now. With nobody
    /// to ask the answer is no, and loading reports that in one line.
    fn trusts(&self, brought: &Manifest) -> Result<bool, CommandFailure> {
        let store = TrustStore::open(&self.env.dirs().data);
        if store.trusts(brought) {
            return Ok(true);
        }
        if !terminal::has_person() {
            return Ok(false);
        }
        let mut shown = brought.describe(false);
        let mut head = "This workspace brings its own configuration.\n";
        // Nobody agrees to what was not shown.
        if shown.is_cut {
            let question = "There is more than is shown here. Show all of it? [y/N]";
            if !agrees(&format!("{head}{}\n{question}", shown.text))? {
                return Ok(false);
            }
            (shown, head) = (brought.describe(true), "");
        }
        let yes = agrees(&format!("{head}{}\nUse it? You are asked again when it changes. [y/N]", shown.text))?;
        if yes {
            store.remember(brought)?;
        }
        Ok(yes)
    }

    /// The person's editor: `VISUAL`, else `EDITOR`, else `vi`.
    pub(super) fn editor(&self, config: &Config) -> ExternalEditor {
        let line = ["VISUAL", "EDITOR"].iter().find_map(|name| self.env.get(name)).unwrap_or("vi");
        ExternalEditor { line: line.to_owned(), dir: config.dirs.state.join("drafts") }
    }

    /// The person's choices about the screen.
    pub(super) fn manner(config: &Config) -> Manner {
        let ui = config.settings.ui.clone();
        let rendering = Rendering::new(ui.markdown && !ui.screen_reader);
        Manner { ui, rendering, compress_at: config.settings.context.compress_at.value() }
    }

    /// The directory of configuration that the person named, if any.
    pub(super) fn given_dir(&self) -> Option<PathBuf> {
        self.global.config.clone().or_else(|| self.env.get("AGENT_CONFIG").map(PathBuf::from))
    }

    /// The directory of the person's own configuration: what is written there is read by the same command.
    pub(super) fn own_dir(&self) -> PathBuf {
        self.given_dir().unwrap_or_else(|| self.env.dirs().config)
    }

    /// A progress bar for work that may take long.
    pub(super) fn bar(&self) -> Bar {
        let is_drawn = terminal::stderr_is_terminal() && self.env.get("TERM") != Some("dumb");
        Bar::on_stderr(is_drawn && !self.global.quiet)
    }

    /// The sessions, with a bar while they are read.
    pub(super) fn store(&self, config: &Config) -> Store {
        let bar = self.bar();
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        assembly::open_store(config).watch_reading(move |far| match far {
            Far::Logs(done, all) => bar.set(size(done), size(all), "sessions"),
            Far::Bytes(done, all) => bar.set(size(done >> 20), size(all >> 20), "MiB of the session"),
        })
    }

    /// Where a run works, with the files that it writes for a person. This process must have one thread.
    pub(super) fn choose_place(
        &self,
        config: &Config,
        workspace: &Workspace,
        turn: &TurnArgs,
        outputs: &[&Path],
    ) -> Result<RunPlace, SetupError> {
        let say = |note: &str| {
            if !self.global.quiet {
                note_progress(note);
            }
        };
        let outputs: Vec<&Path> = outputs.iter().copied().chain(turn.recording.record.as_deref()).collect();
        let wish = TrialWish { outputs: &outputs, say: &say };
        let choice = session_choice(turn);
        assembly::choose_place(config, &self.store(config), workspace, &choice, turn.trial.then_some(&wish))
    }

    /// The sessions of a workspace, or of all. Prints which logs are left out.
    pub(super) fn list_sessions(
        &self,
        config: &Config,
        workspace: Option<&Path>,
    ) -> Result<Vec<SessionSummary>, SessionError> {
        let listed = self.store(config).list(workspace, Timestamp::now())?;
        warn_of_left_out(&listed.left_out);
        Ok(listed.sessions)
    }

    /// The id of the workspace's latest session. Prints which logs after it are left out.
    pub(super) fn find_latest(
        &self,
        config: &Config,
        workspace: &Workspace,
    ) -> Result<Option<String>, SessionError> {
        let (latest, left_out) = self.store(config).latest(workspace.root(), Timestamp::now())?;
        warn_of_left_out(&left_out);
        Ok(latest.map(|summary| summary.id))
    }

    /// Reads a session, and prints what is wrong with its log.
    pub(super) fn read_session(&self, config: &Config, id: &str) -> Result<Session, CommandFailure> {
        let read = self.store(config).read(id);
        let (session, warnings) = read.map_err(|error| CommandFailure::new(exit::USAGE, error))?;
        for warning in warnings {
            warn_person(&warning);
        }
        Ok(session)
    }

    /// Decides the look of the output. `facts` are known to the command itself.
    pub(super) fn look(&self, facts: LookFacts<'_>) -> Look {
        let facts = LookFacts {
            stdout_terminal: terminal::stdout_is_terminal(),
            stderr_terminal: terminal::stderr_is_terminal(),
            quiet: self.global.quiet,
            verbose: self.global.verbose,
            colour: self.global.color,
            wishes: ColourWishes::read(|name| self.env.get(name)),
            abilities: Abilities::read(|name| self.env.get(name)),
            ..facts
        };
        choose_look(&facts, terminal::measure_width)
    }
}

/// Asks on the terminal for a `y`.
fn agrees(question: &str) -> io::Result<bool> {
    let mut err = io::stderr().lock();
    // Text typed before the question is not an answer to it.
    terminal::forget_typed();
    write!(err, "{question} ")?;
    err.flush()?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        // Ctrl-D ends no line.
        writeln!(err)?;
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn warn_of_left_out(errors: &[SessionError]) {
    for error in errors {
        warn_person(&format!("left out: {error}"));
    }
}

/// Returns the flags of a turn that name a setting.
pub(super) fn setting_flags(args: &TurnArgs) -> SettingFlags {
    SettingFlags::default()
        .of_agent(args.agent.clone())
        .with(SettingFlag::Approve, args.approve.map(|mode| mode.name().to_owned()))
        .with(SettingFlag::Mode, args.mode.map(|mode| mode.name().to_owned()))
        .with(SettingFlag::MaxTurns, args.max_turns.map(|most| most.to_string()))
        .with(SettingFlag::MaxRequests, args.max_requests.map(|most| most.to_string()))
        .with(SettingFlag::MaxTime, args.max_time.map(format_duration))
        .with(SettingFlag::MaxTokens, args.max_tokens.map(|most| most.to_string()))
        .with(SettingFlag::MaxCost, args.max_cost.map(|most| most.to_string()))
}

/// Returns the session that the options ask for.
pub(super) fn session_choice(args: &TurnArgs) -> SessionChoice {
    match (&args.session, &args.fork) {
        (Some(id), _) => SessionChoice::Id(id.clone()),
        (None, Some(id)) => SessionChoice::Fork(ForkPoint { id: id.clone(), at: args.at.clone() }),
        _ if args.continue_latest => SessionChoice::Latest,
        _ if args.ephemeral => SessionChoice::Ephemeral,
        _ => SessionChoice::New,
    }
}

/// Assembles an agent for a command at which nobody is asked.
pub(super) fn assemble_unasked(
    config: &Arc<Config>,
    workspace: &Workspace,
    options: &RunOptions,
) -> Result<Services, SetupError> {
    assembly::assemble_services(config, workspace, options, Arc::new(Nobody))
}

/// True if a run may work in the layer of a trial: it is one, or goes on with a session that may be one.
pub(super) fn may_enter_layer(turn: &TurnArgs) -> bool {
    turn.trial || matches!(session_choice(turn), SessionChoice::Latest | SessionChoice::Id(_))
}

/// Builds the runtime of a command.
pub(super) fn build_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
