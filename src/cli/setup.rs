//! What every command begins with: the workspace, the merged configuration, the question of trust, what is shown
//! where.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use crate::app::{SessionChoice, SetupError, SetupErrorKind};
use crate::config::{self, Config, ConfigError, Env, LoadOptions};
use crate::sink::{Colour, Facts, Look, look};
use crate::terminal;
use crate::workspace::Workspace;

use super::args::{ColorChoice, GlobalArgs, TurnArgs};
use super::{Failure, exit};

pub(super) struct Setup {
    pub global: GlobalArgs,
    pub env: Env,
}

impl Setup {
    pub(super) fn new(global: GlobalArgs, env: Env) -> Self {
        Self { global, env }
    }

    pub(super) fn workspace(&self) -> Result<Workspace, Failure> {
        let dir = self.global.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        Workspace::open(&dir)
            .map_err(|error| Failure::usage(format!("cannot work in {}: {error}", dir.display())))
    }

    /// The merged configuration, after asking whether the workspace's own part of it is to be used.
    pub(super) fn config(&self, workspace: &Workspace) -> Result<Config, Failure> {
        self.load(workspace).map_err(|error| Failure::new(exit::CONFIGURATION, error))
    }

    pub(super) fn load(&self, workspace: &Workspace) -> Result<Config, ConfigError> {
        let options = LoadOptions {
            env: &self.env,
            workspace,
            config_dir: self.global.config.as_deref(),
            sets: &self.global.sets,
            trust: self.global.trust,
        };
        config::load(&options)
    }

    pub(super) fn look(&self, json: bool, stream: bool, schema: bool, chat: bool) -> Look {
        let facts = Facts {
            stdout_terminal: io::stdout().is_terminal(),
            stderr_terminal: io::stderr().is_terminal(),
            json,
            stream,
            schema,
            quiet: self.global.quiet,
            verbose: self.global.verbose,
            chat,
            colour: match self.global.color {
                ColorChoice::Auto => Colour::Auto,
                ColorChoice::Always => Colour::Always,
                ColorChoice::Never => Colour::Never,
            },
            no_color: self.env.get("NO_COLOR"),
            term: self.env.get("TERM"),
        };
        look(&facts, terminal::width)
    }

    pub(super) fn session_choice(&self, args: &TurnArgs, nothing_kept: bool) -> SessionChoice {
        match (&args.session, args.continue_latest) {
            (Some(id), _) => SessionChoice::Id(id.clone()),
            (None, true) => SessionChoice::Latest,
            (None, false) if args.ephemeral || nothing_kept => SessionChoice::Ephemeral,
            (None, false) => SessionChoice::New,
        }
    }
}

impl Failure {
    pub(super) fn from_setup(error: SetupError) -> Self {
        let code = match error.kind {
            SetupErrorKind::Usage => exit::USAGE,
            SetupErrorKind::Configuration => exit::CONFIGURATION,
            SetupErrorKind::NoModel => exit::AUTHENTICATION,
            SetupErrorKind::Failed => exit::FAILED,
        };
        Self::new(code, error)
    }
}
