//! `agent doctor`: checks what a run needs, and says what to do about what is missing.

use std::fmt::Write;
use std::path::Path;

use crate::app;
use crate::config::Config;
use crate::workspace::Workspace;

use super::setup::Setup;
use super::{Outcome, exit, print};

/// The account of one check.
struct Check {
    of: &'static str,
    health: Health,
    says: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    /// Weaker than it could be; a run works.
    Weak,
    /// Something is to be done before a run works.
    Bad,
}

impl Check {
    fn new(of: &'static str, health: Health, says: impl Into<String>) -> Self {
        Self { of, health, says: says.into() }
    }
}

pub(super) fn run(setup: &Setup) -> Outcome {
    let workspace = setup.workspace()?;
    let mut checks = vec![Check::new("version", Health::Good, env!("CARGO_PKG_VERSION"))];
    match setup.config(&workspace) {
        Ok(config) => {
            let counts = format!("{} agents, {} models", config.agents.len(), config.models.len());
            checks.push(Check::new("config", Health::Good, counts));
            checks.push(sandbox(&config, &workspace));
            checks.push(data(&config.session_dir()));
        }
        Err(failure) => checks.push(Check::new("config", Health::Bad, failure.told())),
    }
    checks.push(git(&workspace));
    print(table(&checks))?;
    Ok(if checks.iter().any(|check| check.health == Health::Bad) { exit::FAILED } else { exit::DONE })
}

fn sandbox(config: &Config, workspace: &Workspace) -> Check {
    let of = "sandbox";
    match app::confinement(config, workspace) {
        None => Check::new(of, Health::Weak, "commands run with your own permissions"),
        Some(Err(error)) => Check::new(of, Health::Bad, error.to_string()),
        Some(Ok(form)) => match form.weakness() {
            None => Check::new(of, Health::Good, "namespaces, Landlock and seccomp"),
            Some(weakness) => Check::new(of, Health::Weak, weakness),
        },
    }
}

/// Sessions are written below this directory.
fn data(dir: &Path) -> Check {
    let made = std::fs::create_dir_all(dir).and_then(|()| tempfile::tempfile_in(dir));
    match made {
        Ok(_) => Check::new("disk", Health::Good, format!("sessions go to {}", dir.display())),
        Err(error) => {
            let says = format!(
                "{} cannot be written: {error}; `--ephemeral` runs without sessions, XDG_DATA_HOME names another place",
                dir.display()
            );
            Check::new("disk", Health::Bad, says)
        }
    }
}

fn git(workspace: &Workspace) -> Check {
    match workspace.git_root() {
        Some(root) => Check::new("git", Health::Good, format!("the repository at {}", root.display())),
        None => Check::new(
            "git",
            Health::Weak,
            "the workspace is no repository: changes cannot be seen or undone by git",
        ),
    }
}

fn table(checks: &[Check]) -> String {
    checks.iter().fold(String::new(), |mut out, Check { of, health, says }| {
        let mark = match health {
            Health::Good => "ok",
            Health::Weak => "weak",
            Health::Bad => "bad",
        };
        let _ = writeln!(out, "{mark:<5} {of:<8} {}", crate::text::visible(says));
        out
    })
}
