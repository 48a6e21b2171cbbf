//! `agent doctor`: checks everything that a run needs, and says how to fix what is missing.

mod account;
mod configuration;
mod disks;
mod model;
mod screen;

use std::fmt::Write;
use std::path::Path;

use crate::agent::assembly;
use crate::base::text;
use crate::config::{Config, Env};
use crate::files::workspace::Workspace;

use super::setup::CliSetup;
use super::{CommandOutcome, exit, print_text, tables};
use account::{DoctorCheck, Health};

pub(super) fn run_doctor(setup: &CliSetup) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let mut checks =
        vec![DoctorCheck::new("version", Health::Good, format!("{} on {os}, {arch}", env!("CARGO_PKG_VERSION")))];
    let (config, check) = configuration::check_configuration(setup, &workspace)?;
    checks.push(check);
    if let Some(config) = &config {
        checks.push(model::check_model(config)?);
        checks.push(check_sandbox(config, &workspace));
    }
    checks.push(screen::check_screen(&screen::ScreenFacts::now(setup)));
    let sessions = config.as_ref().map_or_else(|| setup.env.dirs().data, |config| config.session_dir());
    checks.extend(disks::check_disks(&sessions, &setup.env.dirs().state));
    checks.push(check_git(&setup.env, &workspace));
    print_text(format_checks(&checks, tables::find_edge()))?;
    Ok(if checks.iter().any(|check| check.health == Health::Bad) { exit::FAILED } else { exit::DONE })
}

fn check_sandbox(config: &Config, workspace: &Workspace) -> DoctorCheck {
    let of = "sandbox";
    match assembly::find_confinement(config, workspace) {
        None => DoctorCheck::new(
            of,
            Health::Weak,
            "commands run with your own permissions; `sandbox.mode: on` in agent.yaml confines them where the system can",
        ),
        Some(Err(error)) => DoctorCheck::new(
            of,
            Health::Bad,
            format!("{error}; without it no command runs, unless you set `sandbox.mode: off` (docs/sandbox.md)"),
        ),
        Some(Ok(form)) => match form.weakness() {
            None => DoctorCheck::new(of, Health::Good, "namespaces, Landlock and seccomp"),
            Some(weakness) => {
                DoctorCheck::new(of, Health::Weak, format!("{weakness} (docs/sandbox.md says what helps)"))
            }
        },
    }
}

fn check_git(env: &Env, workspace: &Workspace) -> DoctorCheck {
    let has_git = |dir: &Path| dir.join("git").is_file() || dir.join("git.exe").is_file();
    let is_there = std::env::split_paths(env.get("PATH").unwrap_or_default()).any(|dir| has_git(&dir));
    match workspace.git_root() {
        _ if !is_there => {
            DoctorCheck::new("git", Health::Weak, "git is not on your PATH: install it to see and undo changes")
        }
        Some(root) => DoctorCheck::new("git", Health::Good, format!("the repository at {}", root.display())),
        None => DoctorCheck::new(
            "git",
            Health::Weak,
            "the workspace is not in a repository: `git init` lets you see and undo changes",
        ),
    }
}

/// Formats one check per line. On a narrow screen the text of a check is wrapped in its own column.
fn format_checks(checks: &[DoctorCheck], edge: Option<usize>) -> String {
    /// The columns before the text of a check.
    const BEFORE: usize = 15;
    /// With fewer columns than this for the text, the text starts on a line of its own.
    const LEAST: usize = 24;
    let width = edge.map_or(usize::MAX, |edge| edge.saturating_sub(1));
    let apart = width < BEFORE + LEAST;
    let indent = if apart { 2 } else { BEFORE };
    checks.iter().fold(String::new(), |mut out, DoctorCheck { of, health, says }| {
        let mark = match health {
            Health::Good => "ok",
            Health::Weak => "weak",
            Health::Bad => "bad",
        };
        let says = text::make_visible(says);
        let says = text::fold_to_width(&says, width.saturating_sub(indent));
        let says = says.lines().map(str::trim_end).collect::<Vec<_>>().join(&format!("\n{:indent$}", ""));
        let gap = if apart { format!("\n{:indent$}", "") } else { String::new() };
        let head = format!("{mark:<5} {of:<8} ");
        let _ = writeln!(out, "{}{gap}{says}", if apart { head.trim_end() } else { &head });
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits_and_reads_without_colour() {
        let checks = [
            DoctorCheck::new("disk", Health::Good, "sessions go to /srv/x"),
            DoctorCheck::new("model", Health::Bad, "set a key\nor start a server of your own on this machine"),
        ];
        assert_eq!(
            format_checks(&checks, None),
            "ok    disk     sessions go to /srv/x\n\
             bad   model    set a key\n               or start a server of your own on this machine\n"
        );
        assert_eq!(
            format_checks(&checks, Some(40)),
            "ok    disk     sessions go to /srv/x\n\
             bad   model    set a key\n               or start a server of\n               your own on this machine\n"
        );
        let narrow = format_checks(&checks, Some(30));
        assert!(narrow.lines().all(|line| line.len() < 30), "{narrow}");
    }
}
