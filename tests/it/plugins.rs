//! `agent plugin`: plugins of other agents become files of the configuration, pinned by their contents.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;

use crate::output::Output;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;
use crate::undo_files::read_tree;

fn put_file(place: &Place, path: &str, text: &str) {
    fs::write(place.workspace().join("..").join(path), text).expect("written");
}

/// A plugin beside the workspace that denies a word by a script of its own.
fn write_plugin(place: &Place) -> PathBuf {
    let dir = place.workspace().join("../guard");
    let put = |path: &str, text: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    };
    put(
        ".claude-plugin/plugin.json",
        r#"{"name": "guard", "version": "1.0.0", "description": "Guards.", "outputStyle": "x"}"#,
    );
    put("commands/look.md", "---\ndescription: Looks\n---\nLook at $ARGUMENTS\n");
    put("agents/strict.md", "---\nname: strict\ndescription: Checks: everything\ntools: Read\n---\nYou check.\n");
    put("skills/guarding/SKILL.md", "---\nname: guarding\ndescription: Guards.\n---\nBe careful.\n");
    put(".mcp.json", r#"{"docs": {"command": "${CLAUDE_PLUGIN_ROOT}/serve"}}"#);
    put(
        "hooks/hooks.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "\"${CLAUDE_PLUGIN_ROOT}/deny.sh\""}]}],
                      "SubagentStop": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#,
    );
    put(
        "deny.sh",
        "#!/bin/sh\ngrep -q '\"tool_name\":\"Write\"' && grep -q forbidden \"$CLAUDE_PLUGIN_ROOT/words\" && { echo 'not this word' >&2; exit 2; }\n",
    );
    put("words", "forbidden\n");
    fs::set_permissions(dir.join("deny.sh"), fs::Permissions::from_mode(0o755)).expect("set");
    dir.canonicalize().expect("there")
}

fn plugin(place: &Arc<Place>, words: &[&str]) -> Output {
    Run::at(place).arg("plugin").args(words.to_vec()).run()
}

#[test]
fn every_part_of_a_plugin_is_shown_and_works_and_goes_with_it() {
    let place = Place::new();
    let dir = write_plugin(&place);
    fs::create_dir_all(place.home().join(".config/agent")).expect("made");
    let added = plugin(&place, &["add", &dir.to_string_lossy()]).success().stderr_has("guard is installed.");
    for row in [
        "command  guard-look", "agent    guard-strict", "skill    guarding", "server   guard-docs",
        "hook     guard-pretooluse-1",
    ] {
        assert!(added.stdout.contains(row), "{row}: {}", added.stdout);
    }
    for left in ["there is no event SubagentStop here", "outputStyle"] {
        assert!(added.stdout.contains(left), "{left}: {}", added.stdout);
    }
    for ran in ["# It can run: hooks/guard-pretooluse-1.yaml", "# It can run: deny.sh\n#!/bin/sh\ngrep -q"] {
        assert!(added.stdout.contains(ran), "{ran}: {}", added.stdout);
    }
    let own = place.home().join(".config/agent");
    let server = fs::read_to_string(own.join("mcp/guard-docs.yaml")).expect("written");
    assert!(server.contains("/.config/agent/plugins/guard/serve"), "{server}");
    plugin(&place, &["list"]).success().stdout_has("guard  1.0.0  ");
    plugin(&place, &["check"]).success().stdout_is("");
    // The script runs unchanged, inside the walls.
    let writes = Server::start([
        Reply::call("write_file", &json!({"path": "a.txt", "content": "x"})),
        Reply::text("Denied."),
    ]);
    let run = Run::at(&place).args(["run", "--approve", "all", "--set", "mcp.guard-docs.enabled=false", "write"]);
    run.server(&writes).run();
    assert!(!place.exists("a.txt"));
    assert!(writes.requests()[1].last_result().contains("not this word"));
    // What a person changed is told, and stays.
    fs::write(own.join("commands/guard-look.md"), "mine\n").expect("written");
    plugin(&place, &["check"]).exits(1).stdout_has("guard: commands/guard-look.md was changed");
    plugin(&place, &["remove", "guard"])
        .success()
        .stderr_has("commands/guard-look.md was changed since, and stays.");
    let left: Vec<PathBuf> = read_tree(&own).into_keys().filter(|path| path.is_file()).collect();
    assert_eq!(left, [own.join("commands/guard-look.md")]);
    plugin(&place, &["remove", "guard"]).exits(2).reason_has("there is no plugin `guard`");
}

#[test]
fn an_update_shows_what_changed_and_a_repository_is_a_source() {
    let place = Place::new();
    let dir = write_plugin(&place);
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&dir).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        assert!(git.output().expect("git runs").status.success(), "{words:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "one"]);
    git(&["tag", "v1"]);
    let bundle = dir.with_file_name("guard.bundle");
    git(&["bundle", "create", "--quiet", &bundle.to_string_lossy(), "--all", "HEAD"]);
    let source = format!("{}@v1", bundle.display());
    plugin(&place, &["add", &source]).success().stderr_has("guard is installed.");
    plugin(&place, &["update"]).success().stderr_has("guard is current.");
    plugin(&place, &["add", &source]).exits(2).reason_has("agent plugin update guard");
    plugin(&place, &["remove", "guard"]).success();
    plugin(&place, &["add", &dir.to_string_lossy()]).success();
    fs::write(dir.join("commands/look.md"), "Look closer.\n").expect("written");
    fs::write(dir.join("deny.sh"), "#!/bin/sh\ntouch more\n").expect("written");
    plugin(&place, &["update", "guard"])
        .success()
        .stdout_has("+Look closer.")
        .stdout_has("+touch more")
        .stderr_has("guard is updated.");
    plugin(&place, &["check"]).success();
    // What a person changed is in the way: all stays as it was.
    let own = place.home().join(".config/agent/commands/guard-look.md");
    fs::write(&own, "mine\n").expect("written");
    fs::write(dir.join("commands/look.md"), "Look away.\n").expect("written");
    plugin(&place, &["update"]).exits(1).reason_has("were changed since they came: command guard-look");
    plugin(&place, &["list"]).success().stdout_has("guard  1.0.0");
    plugin(&place, &["check"]).exits(1).stdout_is("guard: commands/guard-look.md was changed\n");
}

#[test]
fn what_a_stopped_command_left_is_completed_by_an_update_and_one_that_is_gone_stops_no_other() {
    let place = Place::new();
    let dir = write_plugin(&place);
    plugin(&place, &["add", &dir.to_string_lossy()]).success();
    let other = dir.with_file_name("other");
    fs::create_dir_all(other.join(".claude-plugin")).expect("made");
    fs::write(other.join(".claude-plugin/plugin.json"), r#"{"name": "aaa"}"#).expect("written");
    plugin(&place, &["add", &other.to_string_lossy()]).success();
    fs::remove_dir_all(other).expect("removed");
    // As after a kill while files were written: the lock names them already.
    let own = place.home().join(".config/agent");
    fs::remove_file(own.join("commands/guard-look.md")).expect("there");
    fs::remove_dir_all(own.join("skills/guarding")).expect("there");
    symlink("nowhere", own.join("plugins/.new")).expect("linked");
    symlink("nowhere", own.join("skills/.new")).expect("linked");
    let updated = plugin(&place, &["update"]).exits(1);
    updated.stderr_has("aaa cannot be updated").stderr_has("guard is updated.");
    plugin(&place, &["check"]).success();
    assert!(own.join("skills/guarding/SKILL.md").is_file());
}

#[test]
fn a_directory_that_is_named_like_an_address_is_no_source() {
    let place = Place::new();
    let dir = write_plugin(&place);
    let shadow = place.workspace().join("https:/127.0.0.1:9");
    fs::create_dir_all(&shadow).expect("made");
    fs::rename(dir, shadow.join("guard")).expect("moved");
    plugin(&place, &["add", "https://127.0.0.1:9/guard"]).exits(2).reason_has("https://127.0.0.1:9/guard: ");
    plugin(&place, &["list"]).success().stdout_is("");
}

#[test]
fn a_skill_in_place_of_a_built_in_one_is_told() {
    let place = Place::new();
    let dir = write_plugin(&place);
    fs::write(dir.join("skills/guarding/SKILL.md"), "---\nname: code-review\ndescription: x\n---\nx\n")
        .expect("written");
    let shown = plugin(&place, &["add", &dir.to_string_lossy()]).success();
    shown.stdout_has("it stands in for the built-in one of its name");
}

#[test]
fn what_is_no_plugin_or_leads_out_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let dir = write_plugin(&place);
    let own = place.home().join(".config/agent");
    symlink("/etc/passwd", dir.join("out")).expect("linked");
    plugin(&place, &["add", &dir.to_string_lossy()]).exits(2).reason_has("out is a link (to /etc/passwd)");
    fs::remove_file(dir.join("out")).expect("removed");
    let manifest = dir.join(".claude-plugin/plugin.json");
    put_file(&place, "home/private.md", "mine\n");
    fs::write(&manifest, r#"{"name": "guard", "commands": "../home"}"#).expect("written");
    let shown = plugin(&place, &["add", &dir.to_string_lossy()]).stdout;
    assert!(!shown.contains("private") && shown.contains("it lies outside of the plugin"), "{shown}");
    plugin(&place, &["remove", "guard"]).success();
    fs::create_dir_all(own.join("mcp")).expect("made");
    fs::write(own.join("mcp/guard-docs.yaml"), "command: [mine]\n").expect("written");
    plugin(&place, &["add", &dir.to_string_lossy()])
        .exits(1)
        .reason_has("or were changed since they came: server guard-docs");
    fs::write(dir.join(".claude-plugin/plugin.json"), "{\"name\": ").expect("written");
    plugin(&place, &["add", &dir.to_string_lossy()]).exits(2).reason_has("plugin.json");
    fs::remove_dir_all(dir.join(".claude-plugin")).expect("removed");
    fs::write(dir.join("skills/guarding/SKILL.md"), "x").expect("written");
    plugin(&place, &["add", "."]).exits(2).reason_has("is no plugin");
    let written: Vec<PathBuf> = read_tree(&own).into_keys().filter(|path| path.is_file()).collect();
    assert_eq!(written, [own.join("mcp/guard-docs.yaml")]);
}
