//! `agent plugin`: plugins of Claude Code and codex. Adding one shows everything that it brings, and what of it can run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::assembly;
use crate::base::diff;
use crate::base::text::count_noun;
use crate::config::{
    Config, EntryPlan, EntryState, ForeignPlugin, PluginLock, digest_plugin, plugin_root, read_plugin,
    read_plugin_files, settle_entries,
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
        PluginCommand::Update { names } => Ok(update_plugins(here, &mut lock, names)),
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

/// A plugin's files, and where an update finds them again.
struct FetchedPlugin {
    dir: PathBuf,
    /// An absolute path, or an address.
    source: String,
    digest: String,
    /// It goes with this.
    _clone: Option<tempfile::TempDir>,
}

/// True for what names another machine, whatever directory has such a name here: `https://…`, `git@host:path`.
fn names_machine(source: &str) -> bool {
    let is_host = |host: &str| host.len() > 1 && !host.contains(['/', '\\']);
    source.contains("://") || source.split_once(':').is_some_and(|(host, _)| is_host(host))
}

/// The address of a source, and the revision after its last `@`, which is not that of `git@host:path`.
fn split_revision(source: &str) -> (&str, Option<&str>) {
    match source.rsplit_once('@') {
        Some((address, revision)) if !revision.contains([':', '/']) => (address, Some(revision)),
        _ => (source, None),
    }
}

/// Finds a source, or clones it.
fn fetch_source(here: &PluginGround<'_>, source: &str) -> Result<FetchedPlugin, CommandFailure> {
    let find = |path: &str| Some(here.workspace.root().join(path)).filter(|_| !names_machine(path));
    let (dir, source, clone) = match find(source).filter(|dir| dir.is_dir() && !dir.join("HEAD").is_file()) {
        Some(dir) => {
            let dir = crate::files::canonicalize(&dir)?;
            let source = dir.display().to_string();
            (dir, source, None)
        }
        None => {
            let (address, revision) = split_revision(source);
            let local = find(address).filter(|path| path.exists());
            let local = local.map(|path| crate::files::canonicalize(&path)).transpose()?;
            let address = local.map_or_else(|| address.to_owned(), |path| path.display().to_string());
            let clone = assembly::clone_repository(here.config, here.workspace, &address, revision);
            let (place, dir) = build_runtime()?.block_on(clone)?;
            (
                dir,
                [Some(address.as_str()), revision].into_iter().flatten().collect::<Vec<_>>().join("@"),
                Some(place),
            )
        }
    };
    let digest = digest_plugin(&dir).map_err(CommandFailure::usage)?;
    Ok(FetchedPlugin { dir, source, digest, _clone: clone })
}

fn add_plugin(here: &PluginGround<'_>, lock: &mut PluginLock, source: &str) -> CommandOutcome {
    let fetched = fetch_source(here, source)?;
    let plugin = read_here(here, &fetched.dir)?;
    if lock.plugins.contains_key(&plugin.name) {
        let why = format!("`{0}` is installed: agent plugin update {0}", plugin.name);
        return Err(CommandFailure::usage(why));
    }
    show_plugin(here, &plugin, &fetched.dir)?;
    if !is_wanted(&format!("Install {}?", plugin.name))? {
        note_progress("Nothing was installed.");
        return Ok(exit::DONE);
    }
    install_plugin(lock, &plugin, &fetched)?;
    note_progress(&format!("{} is installed.", plugin.name));
    Ok(exit::DONE)
}

fn install_plugin(
    lock: &mut PluginLock,
    plugin: &ForeignPlugin,
    fetched: &FetchedPlugin,
) -> Result<(), CommandFailure> {
    let kept = lock.install(plugin, &fetched.dir, &fetched.source, &fetched.digest);
    for path in kept.map_err(|why| CommandFailure::word(exit::FAILED, why))? {
        note_progress(&format!("{path} was changed since, and stays."));
    }
    Ok(())
}

fn read_here(here: &PluginGround<'_>, dir: &Path) -> Result<ForeignPlugin, CommandFailure> {
    read_plugin(dir, |name| plugin_root(&here.config.dirs.config, name)).map_err(CommandFailure::usage)
}

/// The table of what a plugin brings, then what can run: hooks, servers, and the files that they name.
fn show_plugin(here: &PluginGround<'_>, plugin: &ForeignPlugin, dir: &Path) -> CommandOutcome {
    let ForeignPlugin { name, version, description, entries } = plugin;
    print_visible(&format!("{} {description}\n", [name.as_str(), version].join(" ").trim()))?;
    let states = settle_entries(entries, &here.config.dirs.config);
    let rows = entries.iter().zip(&states).map(|(entry, state)| {
        let [_, kind, name, fate, note] = write_row(entry, *state);
        [kind, name, fate, note]
    });
    print_entries(&rows.collect::<Vec<_>>())?;
    let mut lines = String::new();
    for entry in entries.iter().filter(|entry| matches!(entry.kind, "hook" | "server")) {
        if let EntryPlan::Write(to, text) = &entry.plan {
            print_visible(&format!("\n# It can run: {}\n{}\n", to.display(), text.trim_end()))?;
            lines += text;
        }
    }
    for (path, text) in read_plugin_files(dir, |path| lines.contains(path)).map_err(CommandFailure::usage)? {
        print_visible(&format!("\n# It can run: {path}\n{}\n", text.trim_end()))?;
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

/// Updates plugins, each for itself. Returns the highest exit code.
fn update_plugins(here: &PluginGround<'_>, lock: &mut PluginLock, names: Vec<String>) -> u8 {
    let names = if names.is_empty() { lock.plugins.keys().cloned().collect() } else { names };
    let update = |name: &String| update_plugin(here, lock, name).unwrap_or_else(CommandFailure::report);
    names.iter().map(update).max().unwrap_or(exit::DONE)
}

fn update_plugin(here: &PluginGround<'_>, lock: &mut PluginLock, name: &str) -> CommandOutcome {
    let Some(installed) = lock.plugins.get(name) else {
        return Err(CommandFailure::usage(format!("there is no plugin `{name}`")));
    };
    let source = installed.source.clone();
    let place = split_revision(&source).0;
    if Path::new(place).is_absolute() && !Path::new(place).exists() {
        return Err(CommandFailure::word(exit::FAILED, format!("{name} cannot be updated: {place} is gone")));
    }
    let fetched = fetch_source(here, &source)?;
    if lock.is_current(name, &fetched.digest) {
        note_progress(&format!("{name} is current."));
        return Ok(exit::DONE);
    }
    let plugin = read_here(here, &fetched.dir)?;
    if plugin.name != name {
        let why = format!("{source} is the plugin `{}` now: remove `{name}`, and add it", plugin.name);
        return Err(CommandFailure::word(exit::FAILED, why));
    }
    show_changes(lock, here, &plugin, &fetched.dir)?;
    if !is_wanted(&format!("Update {name}?"))? {
        note_progress("Nothing was changed.");
        return Ok(exit::DONE);
    }
    install_plugin(lock, &plugin, &fetched)?;
    note_progress(&format!("{name} is updated."));
    Ok(exit::DONE)
}

/// The differences of what can run, and of all files that the plugin brings.
fn show_changes(
    lock: &PluginLock,
    here: &PluginGround<'_>,
    plugin: &ForeignPlugin,
    dir: &Path,
) -> Result<(), CommandFailure> {
    let states = settle_entries(&plugin.entries, &here.config.dirs.config);
    let runs = plugin.entries.iter().zip(states).filter(|(entry, _)| matches!(entry.kind, "hook" | "server"));
    for (entry, state) in runs {
        if let (EntryPlan::Write(to, text), EntryState::New | EntryState::Differs) = (&entry.plan, state) {
            let before = lock.read(to).unwrap_or_default();
            print_visible(&diff::unify(&to.to_string_lossy(), &before, text))?;
        }
    }
    let files = lock.compare_copy(&plugin.name, dir).map_err(|why| CommandFailure::word(exit::FAILED, why))?;
    print_visible(&files)?;
    Ok(())
}
