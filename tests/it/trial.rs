//! `--trial`: a run works in a copy of the workspace, and its changes are applied later, or never.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::kernel::has_walls;
use crate::pty::APPROVAL;
use crate::repl::start;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;
use crate::undo_files::{change, read_tree, runs, session, workspace_with};

/// The copies that are there.
fn copies(place: &Place) -> Vec<PathBuf> {
    let Ok(all) = fs::read_dir(place.home().join(".cache/agent/trials")) else { return Vec::new() };
    all.map(|entry| entry.expect("listed").path()).filter(|path| path.is_dir()).collect()
}

const COMMAND: &str = "sed -i s/two/three/ text.txt; rm gone.txt; chmod 755 run.sh; ln -sfn nowhere link; mkdir -p new; \
                       echo fresh > new/file; echo more >> built/out";

fn prepare() -> Arc<Place> {
    let files = [
        ("text.txt", "one\ntwo\n"),
        ("gone.txt", "here\n"),
        ("run.sh", "#!/bin/sh\n"),
        (".gitignore", "built/\n"),
    ];
    let place = workspace_with(&files);
    let root = place.workspace();
    fs::create_dir(root.join("built")).expect("made");
    fs::write(root.join("built/out"), "ignored\n").expect("written");
    symlink("text.txt", root.join("link")).expect("linked");
    place
}

#[test]
fn the_next_trial_removes_the_copy_of_one_that_was_killed_before_a_session_named_it() {
    let place = prepare();
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    let [kept] = <[PathBuf; 1]>::try_from(copies(&place)).expect("one copy");
    let lost = kept.with_file_name("lost");
    let of_others = kept.with_file_name("others");
    for dir in [&lost, &of_others] {
        fs::create_dir_all(dir.join("workspace")).expect("made");
        fs::write(dir.join("workspace/text.txt"), "one\n").expect("written");
    }
    // As a killed process leaves it, here and where sessions are kept elsewhere.
    fs::copy(kept.with_extension("lock"), lost.with_extension("lock")).expect("copied");
    fs::write(of_others.with_extension("lock"), "/elsewhere/sessions").expect("written");
    change(&runs(&["true"]), &place, &["--trial", "and nothing"]);
    let mut left = copies(&place);
    left.sort();
    let mut expected = vec![kept.clone(), of_others];
    expected.sort();
    assert_eq!(left, expected);
    assert!(!lost.with_extension("lock").exists() && !kept.with_extension("lock").exists());
    session(&place, &["list"]).success().stdout_has("a trial that waits");
}

#[test]
fn nothing_reaches_the_workspace_until_it_is_applied_and_an_undo_takes_that_back() {
    let place = prepare();
    let root = place.workspace();
    let before = read_tree(&root);
    let server = runs(&[COMMAND, "cat built/out new/file"]);
    let done = change(&server, &place, &["--trial", "do it"]);
    done.stderr_has("+three").stderr_has("The trial changed 6 paths").stderr_has("agent session apply ");
    assert_eq!(read_tree(&root), before);
    // The conversation goes on in its copy, with what is ignored.
    let more = change(&server, &place, &["--continue", "and now?"]);
    more.stderr_has("The trial goes on");
    let results = session(&place, &["export", "--to", "json"]).success().stdout;
    assert!(results.contains("ignored\\nmore\\nfresh"), "{results}");
    session(&place, &["apply", "--dry-run"]).success().stdout_has("+three");
    assert_eq!(read_tree(&root), before);
    session(&place, &["apply"]).success().stderr_has("Applied 6 paths").stderr_lacks("+three");
    assert_eq!(place.read("text.txt"), "one\nthree\n");
    assert_eq!(place.read("new/file"), "fresh\n");
    assert_eq!(place.read("built/out"), "ignored\n", "what is ignored stays");
    assert_eq!(fs::metadata(root.join("run.sh")).expect("there").permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(root.join("link")).expect("a link"), PathBuf::from("nowhere"));
    assert!(!root.join("gone.txt").exists() && copies(&place).is_empty());
    session(&place, &["apply"]).exits(2).reason_has("has no trial that waits");
    session(&place, &["undo", "--to", "m1"]).success();
    assert_eq!(read_tree(&root), before);
}

#[test]
fn what_changed_in_the_workspace_meanwhile_wins_and_the_version_of_the_trial_is_beside_it() {
    let place = prepare();
    let root = place.workspace();
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    fs::write(root.join("text.txt"), "mine\n").expect("written");
    fs::write(root.join("gone.txt"), "mine too\n").expect("written");
    fs::write(root.join("text.txt.trial"), "of another trial\n").expect("written");
    session(&place, &["apply"])
        .exits(1)
        .stderr_has(
            "text.txt: it changed in the workspace too; the trial's version is beside it, text.txt.trial-2",
        )
        .stderr_has("gone.txt: it changed in the workspace too, and stays");
    let read = |name: &str| place.read(name);
    assert_eq!((read("text.txt"), read("gone.txt")), ("mine\n".to_owned(), "mine too\n".to_owned()));
    assert_eq!((read("text.txt.trial-2"), read("new/file")), ("one\nthree\n".to_owned(), "fresh\n".to_owned()));
    assert!(copies(&place).is_empty());
}

#[test]
fn single_paths_are_applied_and_the_rest_waits_or_is_discarded() {
    let place = prepare();
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    let id = session(&place, &["list"]).stdout.split_whitespace().next().expect("an id").to_owned();
    session(&place, &["apply", &id, "new", "text.txt"])
        .success()
        .stderr_has("Applied 3 paths")
        .stderr_has("The rest waits");
    assert_eq!((place.read("text.txt"), place.read("gone.txt")), ("one\nthree\n".to_owned(), "here\n".to_owned()));
    session(&place, &["discard", &id]).success().stderr_has("Its conversation is kept");
    assert!(copies(&place).is_empty() && place.workspace().join("gone.txt").exists());
    session(&place, &["discard", &id]).exits(2);
    session(&place, &["show", &id]).success().stdout_has("do it");
}

#[test]
fn a_copy_goes_with_what_it_is_for() {
    let place = prepare();
    // Nothing was changed.
    change(&runs(&["true"]), &place, &["--trial", "look"]).stderr_has("The trial changed no file");
    assert!(copies(&place).is_empty());
    // Its session is deleted.
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    assert_eq!(copies(&place).len(), 1);
    let id = session(&place, &["list"]).stdout.split_whitespace().next().expect("an id").to_owned();
    session(&place, &["delete", &id]).success();
    assert!(copies(&place).is_empty());
    // No agent could be assembled.
    Run::at(&place).args(["run", "--trial", "-a", "nobody", "hello"]).run().exits(2);
    assert!(copies(&place).is_empty());
}

#[test]
fn what_cannot_be_applied_is_not_lost() {
    let place = prepare();
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    session(&place, &["list"]).success().stdout_has("(a trial that waits)");
    // The directory of a new file cannot be made.
    fs::write(place.workspace().join("new"), "a file of mine").expect("written");
    session(&place, &["apply"]).exits(1).stderr_has("new/file: ").stderr_has("The rest waits");
    assert_eq!((copies(&place).len(), place.read("new").as_str()), (1, "a file of mine"));
    fs::remove_file(place.workspace().join("new")).expect("removed");
    session(&place, &["apply"]).success().stderr_has("create  new/file");
    assert!(copies(&place).is_empty());
}

#[test]
fn the_reason_of_a_failed_trial_is_the_last_line() {
    let place = prepare();
    let server = Server::start([Reply::error(401, "no such key")]);
    let done = Run::at(&place).args(["run", "--trial", "do it"]).server(&server).run().exits(4);
    done.stderr_has("The trial changed no file.").reason_has("no such key");
}

#[test]
fn commits_of_a_trial_are_said_not_to_be_applied() {
    let place = prepare();
    let git =
        "git init --quiet && git add --all && git -c user.name=a -c user.email=a@b commit --quiet --message one";
    assert!(
        Command::new("sh").args(["-c", git]).current_dir(place.workspace()).status().expect("git runs").success()
    );
    let commit = "echo x > x.txt; git add x.txt; git -c user.name=a -c user.email=a@b commit --quiet --message two; git log --oneline";
    let done = change(&runs(&[commit]), &place, &["--trial", "commit it"]);
    done.stderr_has("git went on in the trial").stderr_has("create  x.txt");
    session(&place, &["apply"]).success();
    assert_eq!(place.read("x.txt"), "x\n");
    let log =
        Command::new("git").args(["log", "--oneline"]).current_dir(place.workspace()).output().expect("git runs");
    assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 1);
}

#[test]
fn tasks_of_a_map_work_in_copies_of_their_own() {
    if !has_walls() {
        return;
    }
    let place = prepare();
    let before = read_tree(&place.workspace());
    let map = |how: &str| {
        let words = ["map", "--isolate", how, "--approve", "edits", "{{ item }}"];
        let done = Run::at(&place).server(&runs(&[COMMAND])).args(words).stdin("one\ntwo\n").run().success();
        assert_eq!(read_tree(&place.workspace()), before);
        done
    };
    map("copy").stderr_has("goes with it");
    assert!(copies(&place).is_empty());
    let done = map("trial");
    assert_eq!(copies(&place).len(), 2);
    let row: Value = serde_json::from_str(done.stdout.lines().next().expect("a row")).expect("JSON");
    let words = ["apply", row["session"].as_str().expect("its session")];
    session(&place, &words).success().stderr_has("Applied 6 paths");
    assert_eq!(copies(&place).len(), 1);
}

#[test]
fn a_chat_in_a_trial_has_one_conversation() {
    let place = prepare();
    let server = runs(&[COMMAND]);
    let run = Run::at(&place).args(["chat", "--trial"]).env(APPROVAL, "all");
    let mut chat = start(&run.server(&server));
    chat.line("do it");
    chat.wait_for("Done.");
    chat.line("/clear");
    chat.wait_for("a trial has one conversation");
    chat.line("/exit");
    chat.wait_for("agent session apply");
    assert!(chat.screen().contains("The trial changed 6 paths"));
    assert_eq!(place.read("text.txt"), "one\ntwo\n");
}

#[test]
fn an_undo_leaves_what_never_reached_the_workspace() {
    let place = prepare();
    let keep = place.workspace().join("text.txt");
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    session(&place, &["discard"]).success();
    fs::write(&keep, "one\nthree\n").expect("written");
    session(&place, &["undo", "--files"]).success();
    assert_eq!(place.read("text.txt"), "one\nthree\n", "what the trial had done too is a person's now");

    fs::write(&keep, "one\ntwo\n").expect("written");
    change(&runs(&[COMMAND]), &place, &["--trial", "do it again"]);
    fs::write(&keep, "one\nmine\n").expect("written");
    session(&place, &["apply"]).exits(1).stderr_has("text.txt.trial");
    session(&place, &["undo", "--files"]).success().stderr_has("create  gone.txt");
    assert_eq!((place.read("text.txt"), place.read("gone.txt")), ("one\nmine\n".to_owned(), "here\n".to_owned()));
    assert!(!place.workspace().join("text.txt.trial").exists(), "it is of the trial");
}

#[test]
fn a_layer_shows_the_workspace_at_its_own_path_and_says_what_it_does_not_do() {
    if !has_walls() {
        return;
    }
    let place = prepare();
    let rename =
        "pwd; cat /proc/self/mountinfo | grep -c upperdir; perl -e 'rename(\"built\", \"other\") or die $!'";
    let done = change(&runs(&[rename]), &place, &["--trial", "do it"]);
    assert!(!done.stderr.contains("Copying"), "{}", done.stderr);
    let results = session(&place, &["export", "--to", "json"]).success().stdout;
    assert!(results.contains(&format!("{}\\n", place.workspace().display())), "{results}");
    assert!(results.contains("cannot be renamed: copy it"), "{results}");
    // What this program writes there for a person would be seen by nobody.
    let copied = change(&runs(&["pwd"]), &place, &["--trial", "--output-file", "answer.txt", "and this"]);
    copied.stderr_has(
        "Copying the workspace for the trial, as it can have no layer here: answer.txt is written in it",
    );
    assert!(place.workspace().join("answer.txt").exists());
}

#[test]
fn what_is_beneath_a_layer_is_out_of_reach_of_commands() {
    if !has_walls() {
        return;
    }
    let place = prepare();
    let line = "find / -xdev -maxdepth 6 -name beneath 2>/dev/null | head -3; ls $(printenv HOME)/.local/share/agent/beneath";
    change(&runs(&[line]), &place, &["--trial", "do it"]);
    let results = session(&place, &["export", "--to", "json"]).success().stdout;
    assert!(!results.contains("gone.txt"), "{results}");
}

#[test]
fn what_a_rule_denies_in_a_copy_it_denies_in_the_workspace_as_well() {
    let place = prepare();
    fs::write(place.workspace().join(".env"), "SECRET=1\n").expect("written");
    let there = place.workspace().join(".env").display().to_string();
    let hidden = format!("cat {}/.e*; ls {}", place.workspace().display(), place.workspace().display());
    let server = Server::start([
        Reply::call("read_file", &json!({ "path": there })),
        Reply::call("run_command", &json!({ "command": format!("cat {there}") })),
        Reply::call("run_command", &json!({ "command": hidden })),
        Reply::text("Done."),
    ]);
    let rule = "permissions:\n  rules:\n    - { deny: read_file, path: \"**/.env\" }\n";
    let run = Run::at(&place).config("agent.yaml", rule).server(&server);
    run.args(["run", "--approve", "all", "--trial", "--output-file", "answer.txt", "do it"]).run();
    let results = session(&place, &["export", "--to", "json"]).success().stdout;
    assert!(!results.contains("SECRET"), "{results}");
    assert_eq!(results.matches("rule `deny: read_file").count(), if has_walls() { 2 } else { 3 }, "{results}");
}

#[test]
fn an_undo_in_a_trial_that_waits_says_where_it_is() {
    let place = prepare();
    change(&runs(&[COMMAND]), &place, &["--trial", "do it"]);
    let id = session(&place, &["list"]).stdout.split_whitespace().next().expect("an id").to_owned();
    session(&place, &["apply", &id, "text.txt"]).success();
    let doubt = "text.txt was applied from this trial";
    session(&place, &["undo", "--files"]).exits(1).reason_has(doubt);
    session(&place, &["undo", "--dry-run"]).success().stdout_has(&format!("Needs --force: {doubt}"));
    let chat = Run::at(&place).server(&runs(&[])).args(["chat", "--continue"]).stdin("/undo\n").run();
    chat.stderr_has(&format!("nothing was put back. {doubt}"));
    session(&place, &["undo", "--files", "--force"])
        .success()
        .stderr_has("That is in its trial: what was applied");
    assert_eq!(place.read("text.txt"), "one\nthree\n");
    session(&place, &["redo", "--files"]).success();
    session(&place, &["discard", &id]).success();
    session(&place, &["undo", "--files"]).success();
    assert_eq!(place.read("text.txt"), "one\ntwo\n");
}

#[test]
fn a_redo_brings_nothing_of_an_ended_trial_into_the_workspace() {
    for end in ["discard", "apply"] {
        let place = prepare();
        let before = read_tree(&place.workspace());
        change(&runs(&["rm gone.txt; echo z > text.txt"]), &place, &["--trial", "do it"]);
        session(&place, &["undo"]).success();
        session(&place, &[end]).success();
        session(&place, &["redo"]).success().stderr_lacks("Put back");
        assert_eq!(read_tree(&place.workspace()), before, "{end}");
    }
}

#[test]
fn what_is_said_to_be_applied_is_what_was() {
    let place = prepare();
    let turned =
        "rm text.txt; mkdir text.txt; echo in > text.txt/in; mkdir deep; echo x > deep/x; echo y > deep/y";
    change(&runs(&[turned]), &place, &["--trial", "do it"]);
    let id = session(&place, &["list"]).stdout.split_whitespace().next().expect("an id").to_owned();
    session(&place, &["apply", &id, "typo"]).exits(2).reason_has("the trial changed nothing at typo");
    assert_eq!(copies(&place).len(), 1);
    // The directory comes with it.
    session(&place, &["apply", &id, "./deep/x"])
        .success()
        .stderr_has("Applied 2 paths")
        .stderr_has("The rest waits");
    assert!(!place.exists("deep/y"));
    session(&place, &["apply", &id, "text.txt/in"]).success();
    assert_eq!(place.read("text.txt/in"), "in\n");
    fs::remove_dir_all(place.workspace().join("deep")).expect("removed");
    fs::write(place.workspace().join("deep"), "a file of mine").expect("written");
    session(&place, &["apply", &id]).exits(1).stderr_lacks("Applied").stderr_has("The rest waits");
}

#[test]
fn a_version_beside_is_written_once_and_where_its_directory_is_gone() {
    let place = prepare();
    let root = place.workspace();
    fs::create_dir(root.join("d")).expect("made");
    fs::write(root.join("d/x"), "x\n").expect("written");
    change(&runs(&["echo y > d/x; echo new > text.txt"]), &place, &["--trial", "do it"]);
    let id = session(&place, &["list"]).stdout.split_whitespace().next().expect("an id").to_owned();
    fs::remove_dir_all(root.join("d")).expect("removed");
    fs::write(root.join("text.txt"), "mine\n").expect("written");
    session(&place, &["apply", &id, "text.txt"]).exits(1).stderr_has("is beside it, text.txt.trial");
    session(&place, &["apply", &id]).exits(1).stderr_has("is beside it, d/x.trial");
    assert_eq!((place.read("d/x.trial").as_str(), place.exists("text.txt.trial-2")), ("y\n", false));
}
