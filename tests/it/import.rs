//! `agent import`: what a person set up for another agent, in the words of this one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::output::Output;
use crate::run::{Place, Run};
use crate::undo_files::read_tree;

/// A file in the home of the test.
fn put(place: &Place, path: &str, text: &str) {
    put_at(&place.home().join(path), text);
}

fn put_at(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    fs::write(path, text).expect("written");
}

fn import(place: &Arc<Place>, words: &[&str]) -> Output {
    Run::at(place).arg("import").args(words.to_vec()).run().success()
}

/// The rows of the table: the agent, the kind and the name, and what becomes of it.
fn rows(text: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        (cells[..3].join(" "), cells[3].to_owned())
    };
    text.lines().take_while(|line| !line.is_empty()).map(row).collect()
}

/// The home of somebody who tried five agents.
fn settle_home() -> Arc<Place> {
    let place = Place::new();
    put(&place, ".claude/CLAUDE.md", "Answer in German.\n");
    put(
        &place,
        ".claude/commands/git/commit.md",
        "---\ndescription: Commits\nallowed-tools: Bash\n---\nCommit $ARGUMENTS\n",
    );
    put(
        &place,
        ".claude/agents/rev.md",
        "---\nname: rev\ndescription: \"Use: reviews\"\ntools: Read, Grep, NotebookEdit\n---\nYou review {{ code }}.\n",
    );
    put(&place, ".claude/skills/one/SKILL.md", "---\nname: one\ndescription: One.\n---\nx\n");
    put(
        &place,
        ".claude/settings.json",
        r#"{ // with a comment
        "permissions": { "allow": ["Bash(npm run test:*)", "mcp__git", "WebFetch(domain:a.example)"], "deny": ["Read(./.env)"],
                         "additionalDirectories": ["~/lib", "../docs", "/"] },
        "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "true", "timeout": 5 },
                                                                  { "type": "prompt", "prompt": "x" }] }],
                   "SubagentStop": [{ "hooks": [{ "type": "command", "command": "x" }] }] },
        "statusLine": {},
        }"#,
    );
    put(
        &place,
        ".claude.json",
        r#"{"mcpServers": {"git": {"command": "uvx", "args": ["git"], "cwd": "/x", "env": {"GIT_TOKEN": "plain-secret", "L": "${L:-info}"}}}}"#,
    );
    put(
        &place,
        ".codex/config.toml",
        "model = \"m\"\n[mcp_servers.docs]\nurl = \"https://d.example/mcp\"\nbearer_token_env_var = \"DOCS\"\n[model_providers.local]\nbase_url = \"http://localhost:8000/v1\"\nenv_key = \"LOCAL_KEY\"\n[sandbox_workspace_write]\nwritable_roots = [\"/srv/data\"]\nnetwork_access = true\n",
    );
    put(&place, ".codex/skills/two/SKILL.md", "---\nname: two\ndescription: Two.\n---\nx\n");
    put(
        &place,
        ".gemini/commands/explain.toml",
        "description = \"Explains\"\nprompt = \"\"\"Explain {{args}}.\"\"\"\n",
    );
    put(&place, ".gemini/settings.json", "{\"broken\": ");
    put(
        &place,
        ".config/opencode/opencode.json",
        r#"{"provider": {"my": {"options": {"baseURL": "http://m/v1", "apiKey": "plain-secret"}, "models": {"org/q": {}}}}}"#,
    );
    put(
        &place,
        ".config/goose/config.yaml",
        "extensions:\n  mem: {type: stdio, cmd: npx, args: [mem], envs: {K: v}}\n",
    );
    place
}

#[test]
fn every_entry_of_five_agents_is_accounted_for_and_a_second_time_nothing_is_new() {
    let place = settle_home();
    let before = read_tree(&place.home());
    let shown = import(&place, &["--dry-run"]).stderr_has("16 entries are new. Nothing was written.");
    assert!(read_tree(&place.home()) == before, "a dry run writes nothing");
    let expected = [
        ("claude instructions ~/.claude/CLAUDE.md", "taken"),
        ("claude skill one", "used"),
        ("claude command git-commit", "rewritten"),
        ("claude agent rev", "rewritten"),
        ("claude server git", "rewritten"),
        ("claude rule allow Bash(npm run test:*)", "taken"),
        ("claude rule allow mcp__git", "taken"),
        ("claude rule allow WebFetch(domain:a.example)", "not possible"),
        ("claude rule deny Read(./.env)", "taken"),
        ("claude directory ~/lib", "taken"),
        ("claude directory ../docs", "not possible"),
        ("claude directory /", "not possible"),
        ("claude hook claude-pretooluse-1", "rewritten"),
        ("claude hook PreToolUse 2", "not possible"),
        ("claude hook SubagentStop 1", "not possible"),
        ("claude setting statusLine", "not possible"),
        ("codex skill two", "taken"),
        ("codex server docs", "taken"),
        ("codex setting model", "not possible"),
        ("codex directory /srv/data", "taken"),
        ("codex setting network_access", "not possible"),
        ("codex model local", "taken"),
        ("gemini command explain", "taken"),
        ("gemini file ~/.gemini/settings.json", "not possible"),
        ("opencode model my-org-q", "rewritten"),
        ("goose server mem", "taken"),
    ];
    let found = rows(&shown.stdout);
    let mut sorted: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut wanted = expected.to_vec();
    sorted.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted);
    for advice in ["its GIT_TOKEN is not copied: set GIT_TOKEN; without `cwd`", "in models/my-org-q.yaml"] {
        assert!(shown.stdout.contains(advice), "{}", shown.stdout);
    }
    import(&place, &[]).stderr_has("16 entries are in ");
    // What is theirs is as it was, what is written is read, and no secret is in it.
    let after = read_tree(&place.home());
    assert!(before.iter().all(|(path, content)| after.get(path) == Some(content)));
    let own = place.home().join(".config/agent");
    let written = after.iter().filter(|(path, _)| path.starts_with(&own));
    assert!(
        written
            .map(|(_, (_, content))| String::from_utf8_lossy(content))
            .all(|text| !text.contains("plain-secret"))
    );
    Run::at(&place).args(["config", "check"]).run().success();
    let rules = fs::read_to_string(own.join("agent.yaml")).expect("written");
    assert!(rules.contains(r#"{ allow: run_command, command: ["npm", "run", "test", "*"] }"#), "{rules}");
    assert!(rules.contains("sandbox:\n  write:\n    - \"~/lib\"\n    - \"/srv/data\"\n"), "{rules}");
    let again = import(&place, &[]).stderr_has("Nothing is new.");
    assert!(rows(&again.stdout).iter().all(|(_, fate)| !matches!(fate.as_str(), "taken" | "rewritten")));
    assert!(read_tree(&own).iter().all(|(path, content)| after.get(path) == Some(content)), "nothing was written");
}

#[test]
fn what_a_person_has_here_already_stays() {
    let place = settle_home();
    put(&place, ".config/agent/mcp/git.yaml", "command: [mine]\n");
    put(&place, ".config/agent/agent.yaml", "permissions:\n  rules: []\n");
    let done = import(&place, &["claude"]);
    assert!(
        done.stdout.contains("yours stays") && done.stdout.contains("mcp/git.yaml is another one"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("add to `permissions.rules` in agent.yaml: { deny: \"*\", path: \".env\" }"),
        "{}",
        done.stdout
    );
    let kept = |path: &str| fs::read_to_string(place.home().join(path)).expect("there");
    assert_eq!(kept(".config/agent/mcp/git.yaml"), "command: [mine]\n");
    assert_eq!(kept(".config/agent/agent.yaml"), "permissions:\n  rules: []\n");
    assert!(!place.home().join(".config/agent/skills").exists(), "only of that agent");
}

#[test]
fn servers_of_the_workspace_are_taken_only_by_name() {
    let place = Place::new();
    let theirs = r#"{"mcpServers": {"evil": {"command": "evil"}}}"#;
    fs::write(place.workspace().join(".mcp.json"), theirs).expect("written");
    import(&place, &[]).stderr_has("Nothing of another agent was found");
    let own = place.home().join(".config/agent/mcp/evil.yaml");
    assert!(!own.exists());
    import(&place, &["mcp.json"]).stderr_has("1 entry is in ");
    assert_eq!(fs::read_to_string(own).expect("written"), "command: [\"evil\"]\n");
    fs::remove_file(place.workspace().join(".mcp.json")).expect("removed");
    put(&place, "elsewhere.json", theirs);
    std::os::unix::fs::symlink(place.home().join("elsewhere.json"), place.workspace().join(".mcp.json"))
        .expect("linked");
    let refused = import(&place, &["mcp.json"]).stdout;
    assert!(refused.contains("not possible") && refused.contains("link"), "{refused}");
}

#[test]
fn hooks_of_codex_are_those_of_claude_in_either_of_its_files() {
    let place = Place::new();
    let group = r#"{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "one"}]}]}"#;
    put(&place, ".codex/hooks.json", &format!(r#"{{"hooks": {group}}}"#));
    put(
        &place,
        ".codex/config.toml",
        "[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"two\"\n[hooks.state]\n",
    );
    import(&place, &["codex"]).stderr_has("2 entries are in ");
    let hook =
        |name: &str| fs::read_to_string(place.home().join(".config/agent/hooks").join(name)).expect("written");
    let first = "on: before_tool\ncommand: [sh, -c, \"one\"]\nspeaks: claude\nmatch: { tool: \"run_command\" }\n";
    assert_eq!(hook("codex-pretooluse-1.yaml"), first);
    assert!(hook("codex-pretooluse-2.yaml").contains("\"two\""));
}

#[test]
fn what_a_project_brings_along_stays_in_it_and_allows_nothing() {
    let place = Place::new();
    let put = |path: &str, text: &str| put_at(&place.workspace().join(path), text);
    put(".claude/CLAUDE.md", "Answer in German.\n");
    put(".claude/commands/fix.md", "Fix $ARGUMENTS\n");
    put(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(x)"], "deny": ["Read(./.env)"]}}"#);
    put(
        ".claude/settings.local.json",
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#,
    );
    put("opencode.json", r#"{"mcp": {"docs": {"url": "https://d.example/mcp"}}}"#);
    put(".gemini/settings.json", "{}");
    let secret = place.home().join("secret.md");
    fs::write(&secret, "private\n").expect("written");
    std::os::unix::fs::symlink(&secret, place.workspace().join(".claude/commands/leak.md")).expect("linked");
    import(&place, &[]).stderr_has("Nothing of another agent was found");
    let done = import(&place, &["--project"]).stderr_has("4 entries are in ");
    let rows = rows(&done.stdout);
    for (entry, fate) in [
        ("claude instructions .claude/CLAUDE.md", "not possible"),
        ("claude command fix", "taken"),
        ("claude rule allow Bash(x)", "not possible"),
        ("claude rule deny Read(./.env)", "taken"),
        ("claude hook claude-stop-1", "rewritten"),
        ("opencode server docs", "taken"),
    ] {
        assert!(rows.contains(&(entry.to_owned(), fate.to_owned())), "{entry}: {fate} is not in {rows:#?}");
    }
    let own = place.workspace().join(".agent");
    assert!(!own.join("commands/leak.md").exists() && own.join("commands/fix.md").exists());
    assert!(!place.home().join(".config/agent/agent.yaml").exists());
    import(&place, &["--project"]).stderr_has("Nothing is new.");
    let checked = Run::at(&place).args(["config", "check", "--trust"]).run().success();
    assert!(!checked.stderr.contains("warning"), "{}", checked.shown());
    // Nor is anything written through a link.
    fs::remove_dir_all(own.join("hooks")).expect("removed");
    std::os::unix::fs::symlink(place.home(), own.join("hooks")).expect("linked");
    let refused = Run::at(&place).args(["import", "--project"]).run().exits(3);
    refused.stderr_has("is a link, and nothing is written through it");
    // Nor if the directory itself is one.
    fs::remove_dir_all(&own).expect("removed");
    let persons = place.home().join(".config/agent");
    fs::create_dir_all(&persons).expect("made");
    std::os::unix::fs::symlink(&persons, &own).expect("linked");
    let before = read_tree(&persons);
    let refused = Run::at(&place).args(["import", "--project"]).run().exits(3);
    refused.stderr_has("is a link, and nothing is written through it");
    assert!(read_tree(&persons) == before);
}

#[test]
fn what_the_program_could_not_read_is_left_or_written_as_a_literal() {
    let place = Place::new();
    let servers = json!({ "mcpServers": {
        "docker": { "command": "docker", "args": ["ps", "--format", "{{.Names}}"] },
        "default": { "command": "srv", "env": { "G": "${G:-it's}" } },
        "shell": { "command": "sh", "args": ["-c", "echo $1 {% {${X}"] },
        "input": { "command": "srv", "env": { "T": "${input:api-key}" } },
        "minus": { "command": "srv", "args": ["${A-B}"] },
        "socket": { "url": "ws://localhost/" },
        "a__b": { "command": "srv" },
        "日本": { "command": "srv" },
    } });
    put(&place, ".claude.json", &servers.to_string());
    for name in ["help", "undo", "x".repeat(200).as_str()] {
        put(&place, &format!(".claude/commands/{name}.md"), "Do it.\n");
    }
    put(&place, ".claude/commands/empty.md", "---\ndescription: x\n---\n");
    for name in ["default", "review"] {
        put(&place, &format!(".claude/agents/{name}.md"), "You obey.\n");
    }
    put(&place, ".claude/agents/raw.md", "Say {% endraw %} and {{ x.\n");
    put(
        &place,
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["Bash(docker ps --format {{.ID}})", "Read([)", "Edit(.env)"]},
            "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "docker ps --format {{.ID}}"}]}]}}"#,
    );
    let shown = import(&place, &[]).stderr_has("7 entries are in ").stdout.clone();
    for why in ["`${input:api-key}` is no variable", "/help is built in", "too long", "that of a built-in one"] {
        assert!(shown.contains(why), "{why}: {shown}");
    }
    let own = place.home().join(".config/agent");
    let files = read_tree(&own);
    let files: Vec<String> = files
        .keys()
        .filter(|path| path.is_file())
        .map(|path| path.strip_prefix(&own).expect("inside").display().to_string())
        .collect();
    let expected = [
        "agent.yaml", "agents/raw.yaml", "hooks/claude-stop-1.yaml", "mcp/default.yaml", "mcp/docker.yaml",
        "mcp/shell.yaml",
    ];
    assert_eq!(files, expected, "{shown}");
    let docker = fs::read_to_string(own.join("mcp/docker.yaml")).expect("written");
    assert!(docker.contains(r#""{{ \"{{\" }}.Names}}""#), "{docker}");
    let checked = Run::at(&place).args(["config", "check"]).run().success();
    assert!(!checked.stderr.contains("template"), "{}", checked.shown());
}

#[test]
fn without_another_agent_there_is_nothing_to_import() {
    let place = Place::new();
    import(&place, &[]).stderr_has("Nothing of another agent was found").stdout_is("");
    import(&place, &["aider"]).stderr_has("Nothing of aider was found");
    Run::at(&place).args(["import", "vim"]).run().exits(2).stderr_has("claude, codex, gemini");
}

#[test]
fn instructions_of_a_person_stand_before_those_of_the_project() {
    let place = Place::new();
    put(&place, ".config/agent/AGENTS.md", "Answer in German.\n");
    fs::write(place.workspace().join("AGENTS.md"), "Use tabs.\n").expect("written");
    let shown = Run::at(&place).args(["run", "--dry-run", "-m", "demo", "hello"]).run().success().stdout;
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(at("Answer in German.") < at("Use tabs."));
}

#[test]
fn no_key_is_copied_wherever_it_stands() {
    let place = Place::new();
    let servers = json!({ "mcpServers": {
        "words": { "command": "npx", "args": ["srv", "--api-key", "plain-value-99", "x"] },
        "signs": { "command": "srv", "args": ["--token=hunter2hunter2zz", "-e", "MY_KEY=passw0rdxyz"],
                   "env": { "PGPASS": "passw0rdxyz", "A_KEY": "${A_KEY:-plain-value-98}", "B_KEY": "plain$value-97" } },
        "shape": { "command": "srv", "env": { "HARMLESS": "ghp_a8Fk29dLqPz7XcVbNm4Rt6Yu1Io0PaSdFgHj" } },
        "address": { "url": "https://me:hunter2pw@mcp.example/x?api_key=s3cr3tPlainValue" },
        "header": { "command": "npx", "args": ["mcp-remote", "https://h.example/sse", "--header", "Authorization:Bearer mytok12345678"] },
        "nested": { "command": "docker", "args": ["run", "--env=API_KEY=secretval34", "-eB_TOKEN=${B:-secretval35}", "img"] },
        "both": { "command": "srv", "args": ["--header=Authorization: Bearer mytok2secret", "-H=X-Api-Key: qqqqqqqqq", "--password", "123456", "--api-key", "two words"] },
        "line": { "command": "npx --api-key=cmdsecret1 srv" },
        "sh": { "command": "sh", "args": ["-c", "curl -H 'Authorization: Bearer cmdsecret2' && srv"] },
        "json": { "command": "srv", "env": { "CONFIG": "{\"API_KEY\": \"nestedsecret\"}" } },
        "variable": { "url": "https://${USER}:${PASS}@mcp.example/", "headers": { "Authorization": "Bearer ${T}" } },
    } });
    fs::create_dir_all(place.home()).expect("made");
    fs::write(place.home().join(".claude.json"), servers.to_string()).expect("written");
    let shown = import(&place, &[]);
    let files = read_tree(&place.home().join(".config/agent"));
    let all = files.values().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect::<String>();
    let keys = [
        "plain-value-9", "value-97", "ghp_", "hunter2", "s3cr3tPlainValue", "passw0rdxyz", "mytok", "secretval3",
        "qqqqqqqqq", "123456", "two words", "cmdsecret", "nestedsecret",
    ];
    for key in keys {
        assert!(!all.contains(key) && !shown.stdout.contains(key), "{key}: {all}");
    }
    for word in [
        r#"--api-key", "{{ env.WORDS_API_KEY }}"#,
        "--token={{ env.SIGNS_TOKEN }}",
        r#""Authorization:{{ env.HEADER_AUTHORIZATION }}""#,
        r#""--env=API_KEY={{ env.NESTED_API_KEY }}", "-eB_TOKEN={{ env.B }}", "img""#,
        r#""--header=Authorization: {{ env.BOTH_AUTHORIZATION }}", "-H=X-Api-Key: {{ env.BOTH_X_API_KEY }}""#,
        r#""CONFIG": "{{ env.CONFIG }}""#,
    ] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert_eq!(shown.stdout.matches("its line holds a key").count(), 2, "{}", shown.stdout);
    assert!(all.contains("https://{{ env.USER }}:{{ env.PASS }}@mcp.example/"), "{all}");
    assert!(shown.stdout.contains("what looks like a key in it is not copied"), "{}", shown.stdout);
}

#[test]
fn words_that_are_no_keys_stay_as_they_are() {
    let place = Place::new();
    let words = [
        "--max-tokens", "4096", "--auth-type=basic", "--auth", "none", "--key-file", "/a/b.pem", "--sort-key",
        "name", "--primary-key=id", "--password-stdin", "/data", "--no-auth", "service", "keycloak:latest",
        "--token-url=https://a.example",
    ];
    let line = "TOKEN=$(cat /run/tok) exec srv --port 1";
    let servers = json!({ "mcpServers": {
        "words": { "command": "srv", "args": words, "env": { "MAX_TOKENS": "4096" } },
        "sh": { "command": "sh", "args": ["-c", line] },
    } });
    put(&place, ".claude.json", &servers.to_string());
    import(&place, &[]).stderr_has("2 entries are in ");
    let mcp = place.home().join(".config/agent/mcp");
    let written = |name: &str| fs::read_to_string(mcp.join(name)).expect("written");
    let quoted = words.map(|word| format!("\"{word}\"")).join(", ");
    let expected = format!("command: [\"srv\", {quoted}]\nenv: {{ \"MAX_TOKENS\": \"4096\" }}\n");
    assert_eq!(written("words.yaml"), expected);
    assert_eq!(written("sh.yaml"), format!("command: [\"sh\", \"-c\", \"{line}\"]\n"));
}
