//! A call that was killed is undone as well, and what a person did after it is not taken for the call's.

use std::fs;
use std::sync::Arc;

use nix::sys::signal::Signal;

use crate::run::{Place, Run};
use crate::undo_files::{change, runs, session, workspace_with};

/// Runs a command that changes `a.txt` and goes on, and kills the program then.
fn run_and_kill(place: &Arc<Place>) {
    let server = runs(&["echo half > a.txt; echo beg''un; sleep 1000"]);
    let run = Run::at(place).args(["run", "-v", "--approve", "all", "do it"]).server(&server).spawn();
    run.wait_stderr("begun");
    run.signal(Signal::SIGKILL);
    run.wait();
}

#[test]
fn a_call_that_was_killed_is_undone_too() {
    let place = workspace_with(&[("a.txt", "before\n")]);
    run_and_kill(&place);
    session(&place, &["undo"]).success().stdout_is("do it\n");
    assert_eq!(place.read("a.txt"), "before\n");
}

#[test]
fn what_changed_long_after_a_killed_call_began_may_be_a_persons_and_needs_force() {
    let place = workspace_with(&[("a.txt", "before\n"), ("mine.txt", "mine\n"), ("gone.txt", "here\n")]);
    run_and_kill(&place);
    // As if hours had gone by.
    let journal = place.session_logs()[0].with_extension("files");
    let journal = fs::File::options().append(true).open(journal).expect("a journal");
    journal.set_modified(std::time::UNIX_EPOCH).expect("set");
    fs::write(place.workspace().join("mine.txt"), "hours of work\n").expect("written");
    fs::remove_file(place.workspace().join("gone.txt")).expect("removed");
    let doubt =
        "changed during or after a call that was killed, maybe by something else: a.txt, gone.txt, mine.txt";
    session(&place, &["undo", "--dry-run"]).success().stdout_has(&format!("Needs --force: {doubt}\n"));
    let forced = session(&place, &["undo", "--dry-run", "--force"]).success().stdout;
    assert!(!forced.contains("Needs"), "{forced}");
    session(&place, &["undo"]).exits(1).reason_has(doubt);
    assert_eq!((place.read("mine.txt").as_str(), place.exists("gone.txt")), ("hours of work\n", false));
    session(&place, &["undo", "--force"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.read("mine.txt").as_str()), ("before\n", "mine\n"));
    session(&place, &["redo"]).success();
    assert_eq!((place.read("mine.txt").as_str(), place.exists("gone.txt")), ("hours of work\n", false));
}

#[test]
fn what_a_killed_undo_left_behind_is_gone_after_the_next_one() {
    let place = workspace_with(&[("a.txt", "before\n")]);
    change(&runs(&["echo after > a.txt"]), &place, &["do it"]);
    session(&place, &["undo"]).success();
    let notes = fs::read_dir(place.home().join(".local/state/agent/writes")).expect("there are notes");
    let notes: String =
        notes.map(|entry| fs::read_to_string(entry.expect("listed").path()).expect("text")).collect();
    let root = place.workspace().canonicalize().expect("it exists");
    let paths: Vec<&str> = notes.split_terminator('\0').collect();
    assert!(paths.len() == 1 && paths[0].starts_with(&format!("{}/.agent-", root.display())), "{notes:?}");
    // As a killed one leaves it.
    fs::write(paths[0], "bef").expect("written");
    let others = place.workspace().join(".agent-abcdefgh.tmp");
    fs::write(&others, "mine").expect("written");
    session(&place, &["redo", "--dry-run"]).success();
    assert!(fs::exists(paths[0]).expect("looked"), "a dry run changes nothing");
    session(&place, &["redo"]).success();
    assert!(!fs::exists(paths[0]).expect("looked") && others.exists());
    assert_eq!(place.read("a.txt"), "after\n");
}

#[test]
fn a_dry_run_beside_a_running_call_leaves_the_undo_as_it_is() {
    let place = workspace_with(&[("a.txt", "before\n")]);
    let command = "echo half > a.txt; echo beg''un; until test -e go; do sleep 0.02; done; echo whole > a.txt";
    let server = runs(&[command]);
    let run = Run::at(&place).args(["run", "-v", "--approve", "all", "do it"]).server(&server).spawn();
    run.wait_stderr("begun");
    session(&place, &["undo", "--dry-run"]).success().stdout_has("change  a.txt");
    fs::write(place.workspace().join("go"), "").expect("written");
    run.wait().success();
    session(&place, &["undo"]).success();
    assert_eq!(place.read("a.txt"), "before\n");
}
