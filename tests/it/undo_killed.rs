//! A call that was killed is undone as well, and what a person did after it is not taken for the call's.

use std::fs;
use std::sync::Arc;

use nix::sys::signal::Signal;

use crate::run::{Place, Run};
use crate::undo_files::{runs, session, workspace_with};

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
    session(&place, &["undo"]).exits(1).reason_has(
        "changed during or after a call that was killed, maybe by something else: a.txt, gone.txt, mine.txt",
    );
    assert_eq!((place.read("mine.txt").as_str(), place.exists("gone.txt")), ("hours of work\n", false));
    session(&place, &["undo", "--force"]).success();
    assert_eq!((place.read("a.txt").as_str(), place.read("mine.txt").as_str()), ("before\n", "mine\n"));
    session(&place, &["redo"]).success();
    assert_eq!((place.read("mine.txt").as_str(), place.exists("gone.txt")), ("hours of work\n", false));
}
