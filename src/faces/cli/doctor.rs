//! `agent doctor`: checks everything that a run needs, and says how to fix what is missing.

mod account;
mod disks;
mod newer;
mod screen;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::assembly::{self, ModelCheck, Outlook, Reached, RunOptions};
use crate::base::text;
use crate::config::{Config, Env};
use crate::files::workspace::Workspace;
use crate::model::Face;
use crate::safety::sandbox::SUPPORTED;

use super::config::load_checked;
use super::setup::{CliSetup, build_runtime};
use super::{CommandFailure, CommandOutcome, exit, print_text, tables};
use account::{DoctorCheck, Health};

/// The longest that the doctor waits for the answer.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run_doctor(setup: &CliSetup, online: bool) -> CommandOutcome {
    let workspace = setup.workspace()?;
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = format!("{} on {os}, {arch}", env!("CARGO_PKG_VERSION"));
    let (config, check) = check_configuration(setup, &workspace)?;
    let mut checks = vec![("version", DoctorCheck::good(version))];
    checks.extend(online.then(|| newer::check_newer(&setup.env)).transpose()?.map(|check| ("newer", check)));
    checks.push(("config", check));
    if let Some(config) = &config {
        let check = check_model(config).unwrap_or_else(|error| DoctorCheck::bad(error.to_string()));
        checks.push(("model", check));
        checks.push(("sandbox", check_sandbox(config, &workspace)));
    }
    checks.push(("terminal", screen::check_screen(&screen::ScreenFacts::now(setup))));
    let sessions = config.as_ref().map_or_else(|| setup.env.dirs().data, |config| config.session_dir());
    let otherwise =
        "`--ephemeral` keeps no session, the `dir` of the session store, else XDG_DATA_HOME, names their place";
    checks.push(("disk", disks::check_disk("sessions go to", &sessions, otherwise)));
    let (state, otherwise) = (setup.env.dirs().state, "XDG_STATE_HOME names another place");
    checks.push(("state", disks::check_disk("histories and drafts go to", &state, otherwise)));
    checks.extend(disks::check_kept(&setup.env.dirs()).map(|check| ("kept", check)));
    checks.push(("git", check_git(&setup.env, &workspace)));
    print_text(format_checks(&checks, tables::find_edge()))?;
    Ok(if checks.iter().any(|(_, check)| check.health == Health::Bad) { exit::FAILED } else { exit::DONE })
}

/// Checks the configuration for mistakes, and for keys that this version does not use. Returns it, if a run could use it, and the result of its check.
fn check_configuration(
    setup: &CliSetup,
    workspace: &Workspace,
) -> Result<(Option<Arc<Config>>, DoctorCheck), CommandFailure> {
    let config = match load_checked(setup, workspace) {
        Ok(config) => config,
        Err(failure) if failure.code == exit::CONFIGURATION => {
            let says =
                format!("{}\nfix it, then run `agent config check` to be sure", failure.word_reason().trim_end());
            return Ok((None, DoctorCheck::bad(says)));
        }
        Err(failure) => return Err(failure),
    };
    let dirs: Vec<String> = config.config_dirs.iter().map(|dir| dir.display().to_string()).collect();
    let from = if dirs.is_empty() {
        "built-in only; `agent init` writes files to edit".to_owned()
    } else {
        dirs.join(", ")
    };
    let counts = format!("{} agents, {} models ({from})", config.agents.len(), config.models.len());
    let check = match config.warnings.as_slice() {
        [] => DoctorCheck::good(counts),
        warnings => DoctorCheck::weak(format!("{counts}\n{}", warnings.join("\n"))),
    };
    Ok((Some(config), check))
}

/// Checks that the model answers, with one short question that costs a few tokens.
fn check_model(config: &Arc<Config>) -> anyhow::Result<DoctorCheck> {
    let outlook = assembly::read_outlook(config, &RunOptions::default())?;
    let runtime = build_runtime()?;
    if !outlook.is_configured {
        let advice = runtime.block_on(assembly::without_model(config, Face::Run));
        return Ok(DoctorCheck::bad(format!("none is configured\n{advice}")));
    }
    let Some(server) = &outlook.server else {
        return Ok(DoctorCheck::good(format!("{}: scripted, needs no server", outlook.model)));
    };
    let check = ModelCheck::new(config, &RunOptions::default())?;
    let name = format!("{} at {server}", outlook.model);
    let reached = runtime.block_on(async { tokio::time::timeout(PATIENCE, check.reach()).await });
    Ok(match reached {
        Ok(Ok(reached)) => judge_reached(&outlook, &name, &reached),
        Ok(Err(error)) => {
            let why = config.redactor().redact(&error.to_string()).into_owned();
            DoctorCheck::bad(format!(
                "{name} does not answer: {why}\n`agent model check` asks again, and tests more"
            ))
        }
        Err(_) => DoctorCheck::bad(format!(
            "{name} has not answered within {} s: check that the server is running, or name another model \
             (models/default.yaml, -m)",
            PATIENCE.as_secs()
        )),
    })
}

fn judge_reached(outlook: &Outlook, name: &str, reached: &Reached) -> DoctorCheck {
    let Reached { streams, window, calls_tools, sees, usage } = reached;
    let can = [(*streams, "streams"), (*calls_tools, "calls tools"), (*sees, "sees pictures")];
    let can: Vec<&str> = can.iter().filter(|(can, _)| *can).map(|(_, what)| *what).collect();
    let spent = format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
    let says = format!(
        "{name} answers; it {}, window {} tokens ({}); this took one request, {spent}",
        can.join(", "),
        window.tokens,
        window.source
    );
    if window.source == "assumed" {
        let file = if outlook.model.contains('/') { "models/NAME.yaml" } else { "models/default.yaml" };
        return DoctorCheck::weak(format!(
            "{says}\nnobody knows its window: declare `context_window` in {file} (`agent model check` helps)"
        ));
    }
    DoctorCheck::good(says)
}

fn check_sandbox(config: &Config, workspace: &Workspace) -> DoctorCheck {
    match assembly::find_confinement(config, workspace) {
        None if !SUPPORTED => DoctorCheck::weak("this system has none: commands run with your own permissions"),
        None => DoctorCheck::weak(
            "commands run with your own permissions; `sandbox.mode: on` in agent.yaml confines them",
        ),
        Some(Err(error)) => DoctorCheck::bad(format!(
            "{error}; without it no command runs, unless you set `sandbox.mode: off` (docs/sandbox.md)"
        )),
        Some(Ok(form)) => match form.weakness() {
            None => DoctorCheck::good("namespaces, Landlock and seccomp"),
            Some(weakness) => DoctorCheck::weak(format!("{weakness} (docs/sandbox.md says what helps)")),
        },
    }
}

fn check_git(env: &Env, workspace: &Workspace) -> DoctorCheck {
    let has_git = |dir: &Path| dir.join("git").is_file() || dir.join("git.exe").is_file();
    let is_there = std::env::split_paths(env.get("PATH").unwrap_or_default()).any(|dir| has_git(&dir));
    match workspace.git_root() {
        _ if !is_there => DoctorCheck::weak("git is not on your PATH: install it to see and undo changes"),
        Some(root) => DoctorCheck::good(format!("the repository at {}", root.display())),
        None => {
            DoctorCheck::weak("the workspace is not in a repository: `git init` lets you see and undo changes")
        }
    }
}

/// Formats one check per line. On a narrow screen the text of a check is wrapped in its own column.
fn format_checks(checks: &[(&str, DoctorCheck)], edge: Option<usize>) -> String {
    /// The columns before the text of a check.
    const BEFORE: usize = 15;
    /// With fewer columns than this for the text, the text starts on a line of its own.
    const LEAST: usize = 24;
    let width = edge.map_or(usize::MAX, |edge| edge.saturating_sub(1));
    let apart = width < BEFORE + LEAST;
    let indent = if apart { 2 } else { BEFORE };
    checks.iter().fold(String::new(), |mut out, (of, DoctorCheck { health, says })| {
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
            ("disk", DoctorCheck::good("sessions go to /srv/x")),
            ("model", DoctorCheck::bad("set a key\nor start a server of your own on this machine")),
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
