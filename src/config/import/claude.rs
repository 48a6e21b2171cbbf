//! Claude Code: `~/.claude` and `~/.claude.json`, or `.claude` of a project.

use std::fmt::Write;
use std::iter;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::agents::take_agents;
use super::home::{ForeignHome, parse_commented};
use super::keys::quote_literal;
use super::parts::{entries, take_commands, take_servers};
use super::{EntryPlan, ImportEntry, SettingsList};
use crate::base::text::GlobPattern;
use crate::config::hook::HookEvent;
use crate::config::peer_tools::find_own_tool;

/// The longest time limit of a hook, in seconds.
const LONGEST_HOOK: u64 = 600;
pub(super) fn read_claude(home: &mut ForeignHome<'_>) {
    home.take_instructions(".claude/CLAUDE.md");
    for (name, _) in home.list_dirs(&[".claude/skills".to_owned()]) {
        home.add("skill", name, EntryPlan::Used, "read where it is");
    }
    take_commands(home, &[".claude/commands".to_owned()]);
    take_agents(home, &[".claude/agents".to_owned()]);
    if let Some(state) = home.read_object(".claude.json", parse_commented) {
        take_servers(home, state.get("mcpServers"));
        for (project, settings) in state.get("projects").into_iter().flat_map(entries) {
            for (name, _) in entries(&settings["mcpServers"]) {
                let why = format!("it is for {project} alone: put it into that project's .mcp.json");
                home.leave("server", name, why);
            }
        }
    }
    for file in ["settings.json", "settings.local.json"] {
        let Some(settings) = home.read_object(&format!(".claude/{file}"), parse_commented) else { continue };
        for (key, value) in &settings {
            match key.as_str() {
                "$schema" => {}
                "permissions" => take_permissions(home, value),
                "hooks" => take_hooks(home, value),
                "mcpServers" => take_servers(home, Some(value)),
                "model" => home.leave("setting", key, "name a model with -m, or in models/default.yaml"),
                key => home.leave_unknown(key),
            }
        }
    }
}

fn take_permissions(home: &mut ForeignHome<'_>, permissions: &Value) {
    for (key, value) in entries(permissions) {
        let word = match key.as_str() {
            "allow" | "deny" | "ask" => key.as_str(),
            "defaultMode" => {
                let advice = "--approve, or `approval` in agents/default.yaml";
                home.leave("setting", format!("permissions.{key}"), advice);
                continue;
            }
            "additionalDirectories" => {
                take_directories(home, value);
                continue;
            }
            _ => {
                home.leave_unknown(&format!("permissions.{key}"));
                continue;
            }
        };
        for rule in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let servers: Vec<String> = home
                .entries
                .iter()
                .filter(|entry| entry.kind == "server" && entry.plan != EntryPlan::Left)
                .map(|entry| entry.name.clone())
                .collect();
            if home.is_project && word == "allow" {
                home.leave("rule", format!("{word} {rule}"), "a project's rules only deny and ask");
                continue;
            }
            match translate_rule(word, rule, &servers) {
                Ok(lines) => {
                    home.add("rule", format!("{word} {rule}"), EntryPlan::List(SettingsList::Rules, lines), "");
                }
                Err(why) => home.leave("rule", format!("{word} {rule}"), why),
            }
        }
    }
}

/// The directories beside the workspace in which a person's agents work.
pub(super) fn take_directories(home: &mut ForeignHome<'_>, dirs: &Value) {
    for dir in dirs.as_array().into_iter().flatten().filter_map(Value::as_str) {
        match dir {
            _ if home.is_project => home.leave("directory", dir, "a project does not widen what may be written"),
            dir if home.is_within(dir) => home.leave("directory", dir, "your whole home is in it"),
            dir if dir.starts_with(['/', '~']) => {
                home.add(
                    "directory",
                    dir,
                    EntryPlan::List(SettingsList::Directories, vec![quote_literal(dir)]),
                    "",
                );
            }
            _ => home.leave("directory", dir, "it is relative to whatever directory their agent started in"),
        }
    }
}

/// A rule in our words, as lines of `permissions.rules`.
fn translate_rule(word: &str, rule: &str, servers: &[String]) -> Result<Vec<String>, String> {
    let unreadable = || "the rule cannot be read".to_owned();
    let (name, inner) = match rule.trim().split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').ok_or_else(unreadable)?.trim())),
        None => (rule.trim(), None),
    };
    if word == "allow" && inner == Some("") {
        return Err(unreadable());
    }
    let own = find_own_tool(name).ok_or("there is no such tool here")?;
    if let Some((server, _)) = own.split_once("__") {
        let is_known = servers.iter().any(|known| known == server);
        return match (is_known, inner) {
            (false, _) => Err("its server is not there".to_owned()),
            (true, Some(_)) => Err("a rule of ours cannot say that".to_owned()),
            (true, None) if GlobPattern::word(&own).is_err() => Err(unreadable()),
            (true, None) => Ok(vec![format!("{{ {word}: {} }}", quote_literal(&own))]),
        };
    }
    let inner = inner.filter(|inner| !inner.is_empty() && !matches!(*inner, "*" | "**"));
    // Their `Edit` and `Read` that forbid cover every tool that does so.
    let tools: &[&str] = match (word, own.as_str(), inner.is_some()) {
        ("allow", "edit_file", true) => &["edit_file", "write_file"],
        ("allow", own, _) => &[own],
        (_, "edit_file", _) | (_, "write_file", true) => &["edit_file", "write_file", "apply_patch"],
        (_, "write_file", false) => &["write_file", "apply_patch"],
        // A command could read it as well.
        ("deny", "read_file", true) => &["\"*\""],
        (_, "read_file", false) => &["read_file", "grep", "view_image"],
        (_, own, _) => &[own],
    };
    let Some(inner) = inner else {
        return Ok(tools.iter().map(|tool| format!("{{ {word}: {tool} }}")).collect());
    };
    match own.as_str() {
        "run_command" => {
            translate_command(inner).map(|words| vec![format!("{{ {word}: run_command, command: [{words}] }}")])
        }
        "read_file" | "edit_file" | "write_file" => {
            let paths = translate_path(word, inner)?;
            let lines = paths.iter().flat_map(|path| {
                tools.iter().map(move |tool| format!("{{ {word}: {tool}, path: {} }}", quote_literal(path)))
            });
            Ok(lines.collect())
        }
        "fetch_url" => Err("a rule of ours names no hosts: fetch_url asks once for each".to_owned()),
        _ => Err("a rule of ours cannot say that".to_owned()),
    }
}

/// Our patterns for one of theirs, which is read as in a `.gitignore`: a bare name is meant at any depth, and a
/// directory with all in it. What allows is taken as it stands, so that it is never wider.
fn translate_path(word: &str, theirs: &str) -> Result<Vec<String>, String> {
    let below = theirs.trim_start_matches("./");
    if below.starts_with(['/', '~']) || below.split('/').any(|part| part == "..") {
        return Err("a rule of ours names paths of the workspace".to_owned());
    }
    let path = below.trim_end_matches('/');
    // In a set a mark for letters would be one of its letters.
    if path.starts_with('!') || (word == "allow" && path.contains('[') && path.contains(['{', '}'])) {
        return Err("a rule of ours cannot say that".to_owned());
    }
    // Their braces are letters.
    let path = ["{", "}"].iter().fold(path.to_owned(), |path, brace| {
        let marked = format!("\\{brace}");
        path.replace(&marked, brace).replace(brace, &marked)
    });
    let found = match word {
        "allow" if below.ends_with('/') => vec![format!("{path}/**")],
        "allow" => vec![path.clone()],
        _ => {
            let is_bare = below == theirs && !path.contains('/');
            let whole = if is_bare { format!("**/{path}") } else { path.clone() };
            let inside = (!whole.ends_with("/**")).then(|| format!("{whole}/**"));
            iter::once(whole).chain(inside).collect()
        }
    };
    let is_pattern = !path.is_empty() && found.iter().all(|pattern| GlobPattern::path(pattern).is_ok());
    if is_pattern { Ok(found) } else { Err("the rule cannot be read".to_owned()) }
}

/// The words of a command, where `:*` and `*` at the end stand for any further ones.
fn translate_command(spec: &str) -> Result<String, String> {
    let (line, goes_on) = match spec.strip_suffix(":*").or_else(|| spec.strip_suffix(" *")) {
        Some(line) => (line, true),
        None => (spec, spec.ends_with('*')),
    };
    if line.contains(['|', ';', '&', '>', '<']) {
        return Err("it is more than one command".to_owned());
    }
    if line.contains(['"', '\'', '\\', '$', '`']) {
        return Err("its words cannot be told apart".to_owned());
    }
    // Only their `*` is a pattern.
    let mark = |word: &str| {
        word.chars()
            .flat_map(|c| matches!(c, '?' | '[' | ']' | '{' | '}').then_some('\\').into_iter().chain([c]))
            .collect()
    };
    let words = line.split_whitespace().map(mark).chain(goes_on.then(|| "*".to_owned()));
    let words: Vec<String> = words.map(|word: String| quote_literal(&word)).collect();
    if words.is_empty() { Err("it names no command".to_owned()) } else { Ok(words.join(", ")) }
}

pub(super) fn take_hooks(home: &mut ForeignHome<'_>, hooks: &Value) {
    for (event, groups) in entries(hooks) {
        let own = HookEvent::deserialize(&Value::from(event.as_str())).ok().map(|event| event.names()[0]);
        let of = if home.plugin_root.is_some() { String::new() } else { format!("{}-", home.agent.word()) };
        let stem = home.name_file(&format!("{of}{}", event.to_lowercase()));
        let is_same = |entry: &&ImportEntry| entry.kind == "hook" && entry.name.starts_with(&stem);
        let mut number = home.entries.iter().filter(is_same).count();
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group["matcher"].as_str().unwrap_or_default();
            for hook in group["hooks"].as_array().into_iter().flatten() {
                number += 1;
                let name = format!("{stem}-{number}");
                match write_hook(home, own.ok_or(event), matcher, hook) {
                    Ok(text) => {
                        let to = Path::new("hooks").join(format!("{name}.yaml"));
                        home.add("hook", name, EntryPlan::Write(to, text), "it runs inside the walls of commands");
                    }
                    Err(why) => home.leave("hook", format!("{event} {number}"), why),
                }
            }
        }
    }
}

/// The file of a hook; `own` is our name of its event, or theirs that has none.
fn write_hook(
    home: &ForeignHome<'_>,
    own: Result<&str, &String>,
    matcher: &str,
    hook: &Value,
) -> Result<String, String> {
    let own = own.map_err(|event| format!("there is no event {event} here"))?;
    if let Some(kind) = hook["type"].as_str().filter(|kind| *kind != "command") {
        return Err(format!("hooks of the type {kind} are not run"));
    }
    if hook["async"] == true {
        return Err("a hook that runs on by itself is not run".to_owned());
    }
    let command = hook["command"].as_str().ok_or("it has no command")?;
    let program = match &home.plugin_root {
        Some(root) => format!("env, {}, sh", quote_literal(&format!("CLAUDE_PLUGIN_ROOT={}", root.display()))),
        None => "sh".to_owned(),
    };
    let mut out = format!("on: {own}\ncommand: [{program}, -c, {}]\nspeaks: claude\n", quote_literal(command));
    let is_of_tool = matches!(own, "before_tool" | "after_tool" | "permission");
    if is_of_tool && !matches!(matcher, "" | "*" | ".*") {
        let names = matcher.split('|').map(|name| name.trim().trim_end_matches(".*"));
        let is_pattern = |name: &String| GlobPattern::word(name).is_ok();
        let names: Option<Vec<String>> = names.map(|name| find_own_tool(name).filter(is_pattern)).collect();
        let names = names.ok_or_else(|| format!("the tools of `{matcher}` have no counterpart"))?;
        let _ = writeln!(out, "match: {{ tool: {} }}", quote_literal(&names.join("|")));
    }
    if let Some(seconds) = hook["timeout"].as_u64() {
        let _ = writeln!(out, "time_limit: {}s", seconds.clamp(1, LONGEST_HOOK));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_meaning_or_are_left() {
        let servers = ["git".to_owned()];
        for (rule, expected) in [
            ("Bash", Ok("{ allow: run_command }")),
            ("Bash(npm run test:*)", Ok(r#"{ allow: run_command, command: ["npm", "run", "test", "*"] }"#)),
            ("Bash(git diff)", Ok(r#"{ allow: run_command, command: ["git", "diff"] }"#)),
            ("Bash(a && b)", Err("it is more than one command")),
            ("Read(./docs/**)", Ok(r#"{ allow: read_file, path: "docs/**" }"#)),
            ("Read(~/.zshrc)", Err("a rule of ours names paths of the workspace")),
            ("WebFetch(domain:a.example)", Err("a rule of ours names no hosts: fetch_url asks once for each")),
            ("mcp__git__status", Ok(r#"{ allow: "git__status" }"#)),
            ("mcp__other", Err("its server is not there")),
            ("NotebookEdit", Err("there is no such tool here")),
        ] {
            let found = translate_rule("allow", rule, &servers).map(|lines| lines.join("; "));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{rule}");
        }
        let secret = translate_rule("deny", "Read(.env)", &[]).expect("translated");
        assert_eq!(secret, [r#"{ deny: "*", path: "**/.env" }"#, r#"{ deny: "*", path: "**/.env/**" }"#]);
        assert_eq!(translate_rule("ask", "Edit(src/**)", &[]).expect("translated").len(), 3);
    }

    #[test]
    fn a_rule_that_cannot_be_read_allows_nothing() {
        for rule in
            ["Bash(ls", "Bash(git status:*) x", "Bash()", "Bash( )", "mcp__git(x)", "Read(../x)", "Read([)"]
        {
            assert!(translate_rule("allow", rule, &["git".to_owned()]).is_err(), "{rule}");
        }
        let trimmed = translate_rule("allow", "Bash(git status:*) ", &[]).expect("translated");
        assert_eq!(trimmed, [r#"{ allow: run_command, command: ["git", "status", "*"] }"#]);
        let literal = translate_rule("deny", "Bash(docker ps --format {{.ID}})", &[]).expect("translated");
        assert_eq!(
            literal,
            [r#"{ deny: run_command, command: ["docker", "ps", "--format", "\\{\\{.ID\\}\\}"] }"#]
        );
    }

    #[test]
    fn what_forbids_covers_as_much_as_theirs_and_what_allows_no_more() {
        let paths = |word: &str, path: &str| translate_path(word, path).expect("translated").join(" ");
        for (path, denied, allowed) in [
            (".env", "**/.env **/.env/**", ".env"),
            ("*.pem", "**/*.pem **/*.pem/**", "*.pem"),
            ("secrets/", "**/secrets **/secrets/**", "secrets/**"),
            ("./secrets", "secrets secrets/**", "secrets"),
            ("src/keys", "src/keys src/keys/**", "src/keys"),
            ("src/**", "src/**", "src/**"),
            ("{{cookiecutter.slug}}/**", r"\{\{cookiecutter.slug\}\}/**", r"\{\{cookiecutter.slug\}\}/**"),
            ("tpl/{prod}.json", r"tpl/\{prod\}.json tpl/\{prod\}.json/**", r"tpl/\{prod\}.json"),
            (r"\{a,b}", r"**/\{a,b\} **/\{a,b\}/**", r"\{a,b\}"),
        ] {
            assert_eq!(
                (paths("deny", path), paths("allow", path)),
                (denied.to_owned(), allowed.to_owned()),
                "{path}"
            );
        }
        assert!(translate_path("allow", "[{]").is_err());
        let braces = GlobPattern::path(&paths("ask", "{{a}}/**")).expect("a pattern");
        assert!(braces.matches("{{a}}/x") && !braces.matches("a/x"));
        let edits = translate_rule("deny", "Edit", &[]).expect("translated");
        assert_eq!(edits, ["{ deny: edit_file }", "{ deny: write_file }", "{ deny: apply_patch }"]);
        assert_eq!(translate_rule("allow", "Write(a)", &[]).expect("translated").len(), 1);
    }
}
