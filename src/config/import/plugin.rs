//! Plugins in the layouts of Claude Code and codex: a directory with a manifest, and commands, agents, skills, hooks and
//! servers beside it.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::agents::take_agents;
use super::claude::take_hooks;
use super::home::{ForeignHome, clean_name, parse_commented};
use super::parts::{list_texts, take_commands, take_servers};
use super::tree::digest_tree;
use super::{ForeignAgent, ImportEntry};

/// The manifests, in the order in which they count.
const MANIFESTS: [&str; 2] = [".claude-plugin/plugin.json", ".codex-plugin/plugin.json"];
/// Keys that only describe.
const DESCRIBING: [&str; 11] = [
    "$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords",
    "category", "interface",
];
/// Entries of a plugin that nothing here corresponds to.
const UNKNOWN_PARTS: [&str; 6] = ["output-styles", "outputStyles", "themes", ".lsp.json", "monitors", ".app.json"];

/// A plugin as its directory describes it.
#[derive(Debug, Clone)]
pub struct ForeignPlugin {
    pub name: String,
    /// Empty if it names none.
    pub version: String,
    pub description: String,
    pub entries: Vec<ImportEntry>,
}

/// Reads a plugin in `dir`. What it brings names `root`, where it will be.
///
/// # Errors
/// A sentence: it is no plugin, or its manifest cannot be read.
pub fn read_plugin(dir: &Path, root: impl FnOnce(&str) -> PathBuf) -> Result<ForeignPlugin, String> {
    // Before anything is read: a link could lead to a file of the person's.
    digest_tree(dir)?;
    let mut home = ForeignHome::new(ForeignAgent::Claude, dir, dir);
    let found = MANIFESTS.iter().find(|path| dir.join(path).is_file());
    let manifest = match found {
        Some(path) => home.read_object(path, parse_commented).ok_or_else(|| {
            let why = home.entries.first().map_or("it cannot be read", |entry| entry.note.as_str());
            format!("{}: {why}", dir.join(path).display())
        })?,
        None if dir.join(".claude-plugin/marketplace.json").is_file() => return Err(list_marketplace(&mut home)),
        None if ["skills", "commands", "agents", "hooks"].iter().any(|part| dir.join(part).is_dir()) => Map::new(),
        None => return Err(format!("{} is no plugin: it has no {}", dir.display(), MANIFESTS[0])),
    };
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let folder = dir.file_name().unwrap_or_default().to_string_lossy();
    let name =
        clean_name(if text("name").is_empty() { &folder } else { manifest["name"].as_str().unwrap_or_default() });
    if name.is_empty() {
        return Err(format!("{}: its name has no letters", dir.display()));
    }
    home.prefix = format!("{name}-");
    home.plugin_root = Some(root(&name));
    take_parts(&mut home, &manifest);
    super::settle::drop_repeated(&mut home.entries);
    let (version, description) = (text("version"), text("description"));
    Ok(ForeignPlugin { name, version, description, entries: home.entries })
}

fn take_parts(home: &mut ForeignHome<'_>, manifest: &Map<String, Value>) {
    let paths = |home: &mut ForeignHome<'_>, key: &str, usual: &str| {
        let own = manifest.get(key).map(list_texts).unwrap_or_default();
        let (inside, outside): (Vec<String>, Vec<String>) = own.into_iter().partition(|path| {
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        });
        for path in outside {
            home.leave("part", format!("{key} {path}"), "it lies outside of the plugin");
        }
        let inside = inside.iter().map(|path| path.trim_start_matches("./").trim_end_matches('/').to_owned());
        std::iter::once(usual.to_owned()).chain(inside.filter(|path| path != usual)).collect::<Vec<_>>()
    };
    let (commands, agents) = (paths(home, "commands", "commands"), paths(home, "agents", "agents"));
    take_commands(home, &commands);
    take_agents(home, &agents);
    let skills = paths(home, "skills", "skills");
    home.take_skills(&skills);
    let inner = |key: &str| manifest.get(key).filter(|value| value.is_object()).cloned();
    for path in paths(home, "hooks", "hooks/hooks.json").iter().chain([&"hooks.json".to_owned()]) {
        if let Some(hooks) = home.read_object(path, parse_commented) {
            take_hooks(home, hooks.get("hooks").unwrap_or(&Value::Null));
        }
    }
    if let Some(hooks) = inner("hooks") {
        take_hooks(home, hooks.get("hooks").unwrap_or(&hooks));
    }
    for path in paths(home, "mcpServers", ".mcp.json") {
        if let Some(servers) = home.read_object(&path, parse_commented) {
            let servers = Value::Object(servers);
            take_servers(home, Some(servers.get("mcpServers").unwrap_or(&servers)));
        }
    }
    take_servers(home, inner("mcpServers").as_ref());
    let known = ["commands", "agents", "skills", "hooks", "mcpServers"];
    for key in manifest.keys().filter(|key| !known.contains(&key.as_str()) && !DESCRIBING.contains(&key.as_str()))
    {
        home.leave_unknown(key);
    }
    for part in UNKNOWN_PARTS {
        if home.path(part).exists() {
            home.leave("part", part, "nothing here corresponds to it");
        }
    }
}

/// The sentence about a marketplace: its plugins that lie in it.
fn list_marketplace(home: &mut ForeignHome<'_>) -> String {
    let read = home.read_object(".claude-plugin/marketplace.json", parse_commented).unwrap_or_default();
    let plugins = read.get("plugins").and_then(Value::as_array).cloned().unwrap_or_default();
    let here: Vec<String> = plugins
        .iter()
        .filter_map(|plugin| plugin["source"].as_str())
        .map(|path| home.path(path.trim_start_matches("./")))
        .filter(|path| path.is_dir())
        .map(|path| path.display().to_string())
        .collect();
    let dir = home.path("").display().to_string();
    if here.is_empty() {
        return format!("{dir} is a marketplace of {} plugins, none of which lies in it", plugins.len());
    }
    format!("{dir} is a marketplace; add one of its plugins: {}", here.join(", "))
}
