//! `agent plugin`: plugins of Claude Code and codex. Adding one shows everything that it brings, and what of it can run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::assembly;
use crate::base::diff;
use crate::base::text::count_noun;
use crate::config::{
    Config, EntryPlan, EntryState, ForeignPlugin, PluginLock, plugin_root, read_plugin, settle_entries,
};
use crate::files::workspace::Workspace;

use super::args::PluginCommand;
use super::import::{is_wanted, print_entries, write_row};
use super::setup::{CliSetup, build_runtime};
use super::{CommandFailure, CommandOutcome, exit, note_progress, print_table, print_visible};

pub(super) fn run_plugin(setup: &CliSetup, command: PluginCommand) -> CommandOutcome {
    let (workspace, config) = setup.load()?;
    let mut lock = PluginLock::open(&config.dirs.config).map_err(CommandFailure::usage)?;
    let here = &PluginGround { config: &config, workspace: &workspace };
    match command {
        PluginCommand::Add { source } => add_plugin(here, &mut lock, &source),
        PluginCommand::List => list_plugins(&lock),
        PluginCommand::Update { names } => update_plugins(here, &mut lock, names),
        PluginCommand::Remove { name } => {
            for path in lock.remove(&name).map_err(CommandFailure::usage)? {
                note_progress(&format!("{path} was changed since, and stays."));
            }
            Ok(exit::DONE)
        }
        PluginCommand::Check => {
            let wrong = lock.check();
            for line in &wrong {
                print_visible(&format!("{line}\n"))?;
            }
            note_progress(&count_noun(lock.plugins.len() as u64, "plugin is checked.", "plugins are checked."));
            Ok(if wrong.is_empty() { exit::DONE } else { exit::FAILED })
        }
    }
}

/// Where plugins are installed, and what addresses are relative to.
struct PluginGround<'a> {
    config: &'a Arc<Config>,
    workspace: &'a Workspace,
}

/// The directory of a source: itself, or a clone, which goes with the second part.
fn fetch_source(
    here: &PluginGround<'_>,
    source: &str,
) -> Result<(PathBuf, Option<tempfile::TempDir>), CommandFailure> {
    let dir = here.workspace.root().join(source);
    let (address, revision) = match source.rsplit_once('@') {
        // Not the one of `git@host:path`.
        Some((address, revision)) if !revision.contains([':', '/']) => (address, Some(revision)),
        _ => (source, None),
    };
    if dir.is_dir() && !dir.join("HEAD").is_file() {
        return Ok((crate::files::canonicalize(&dir)?, None));
    }
    let clone = assembly::clone_repository(here.config, here.workspace, address, revision);
    let (place, dir) = build_runtime()?.block_on(clone)?;
    Ok((dir, Some(place)))
}

fn add_plugin(here: &PluginGround<'_>, lock: &mut PluginLock, source: &str) -> CommandOutcome {
    let (dir, clone) = fetch_source(here, source)?;
    let plugin = read_here(here, &dir)?;
    if lock.plugins.contains_key(&plugin.name) {
        let why = format!("`{0}` is installed: agent plugin update {0}", plugin.name);
        return Err(CommandFailure::usage(why));
    }
    show_plugin(here, &plugin)?;
    if !is_wanted(&format!("Install {}?", plugin.name))? {
        note_progress("Nothing was installed.");
        return Ok(exit::DONE);
    }
    let source = if clone.is_some() { source.to_owned() } else { dir.display().to_string() };
    lock.install(&plugin, &dir, &source).map_err(|why| CommandFailure::word(exit::FAILED, why))?;
    note_progress(&format!("{} is installed.", plugin.name));
    Ok(exit::DONE)
}

fn read_here(here: &PluginGround<'_>, dir: &Path) -> Result<ForeignPlugin, CommandFailure> {
    read_plugin(dir, |name| plugin_root(&here.config.dirs.config, name)).map_err(CommandFailure::usage)
}

/// The table of what a plugin brings, then what can run.
fn show_plugin(here: &PluginGround<'_>, plugin: &ForeignPlugin) -> CommandOutcome {
    let ForeignPlugin { name, version, description, entries } = plugin;
    print_visible(&format!("{} {description}\n", [name.as_str(), version].join(" ").trim()))?;
    let states = settle_entries(entries, &here.config.dirs.config);
    let rows = entries.iter().zip(&states).map(|(entry, state)| {
        let [_, kind, name, fate, note] = write_row(entry, *state);
        [kind, name, fate, note]
    });
    print_entries(&rows.collect::<Vec<_>>())?;
    for entry in entries.iter().filter(|entry| matches!(entry.kind, "hook" | "server")) {
        if let EntryPlan::Write(to, text) = &entry.plan {
            print_visible(&format!("\n# It can run: {}\n{}\n", to.display(), text.trim_end()))?;
        }
    }
    Ok(exit::DONE)
}

fn list_plugins(lock: &PluginLock) -> CommandOutcome {
    if lock.plugins.is_empty() {
        note_progress("There are no plugins: agent plugin add DIR|URL[@REVISION]");
    }
    let rows: Vec<_> = lock
        .plugins
        .iter()
        .map(|(name, plugin)| [name.clone(), plugin.version.clone(), plugin.source.clone()])
        .collect();
    print_table(&rows)
}

fn update_plugins(here: &PluginGround<'_>, lock: &mut PluginLock, names: Vec<String>) -> CommandOutcome {
    let names = if names.is_empty() { lock.plugins.keys().cloned().collect() } else { names };
    for name in names {
        let Some(installed) = lock.plugins.get(&name) else {
            return Err(CommandFailure::usage(format!("there is no plugin `{name}`")));
        };
        let source = installed.source.clone();
        let (dir, _clone) = fetch_source(here, &source)?;
        let failed = |why| CommandFailure::word(exit::FAILED, why);
        if lock.is_current(&name, &dir).map_err(failed)? {
            note_progress(&format!("{name} is current."));
            continue;
        }
        let plugin = read_here(here, &dir)?;
        if plugin.name != name {
            return Err(failed(format!(
                "{source} is the plugin `{}` now: remove `{name}`, and add it",
                plugin.name
            )));
        }
        show_changes(lock, here, &plugin)?;
        if !is_wanted(&format!("Update {name}?"))? {
            note_progress("Nothing was changed.");
            continue;
        }
        for path in lock.remove(&name).map_err(failed)? {
            note_progress(&format!("{path} was changed since, and stays."));
        }
        lock.install(&plugin, &dir, &source).map_err(failed)?;
        note_progress(&format!("{name} is updated."));
    }
    Ok(exit::DONE)
}

/// The differences of the files that an update would write.
fn show_changes(lock: &PluginLock, here: &PluginGround<'_>, plugin: &ForeignPlugin) -> CommandOutcome {
    let states = settle_entries(&plugin.entries, &here.config.dirs.config);
    for (entry, state) in plugin.entries.iter().zip(states) {
        if let (EntryPlan::Write(to, text), EntryState::New | EntryState::Differs) = (&entry.plan, state) {
            let before = lock.read(to).unwrap_or_default();
            print_visible(&diff::unify(&to.to_string_lossy(), &before, text))?;
        }
    }
    note_progress("Its other files may have changed too.");
    Ok(exit::DONE)
}
