//! An attacker who swaps a directory for a link while the agent's own tools work in it: what was judged is what is
//! opened, so nothing outside is read, named or written.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::pty::Terminal;
use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;

/// Replies with calls, and calls of each kind in one.
const ROUNDS: usize = 40;
const READS: usize = 6;
const WRITES: usize = 6;

const SECRET: &str = "the-key-of-somebody-else";
/// A name that exists outside alone.
const NAME: &str = "known_to_nobody_inside";

/// `a`, a directory, and `b`, a link to what the attacker is after, change places until this is dropped; so do a file
/// `f` and a link `g` to another.
struct Swapping {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapping {
    fn start(workspace: &Path) -> Self {
        let [a, b, f, g] = ["a", "b", "f", "g"].map(|name| workspace.join(name));
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let swap = move || {
            while !is_over.load(Ordering::Relaxed) {
                exchange(&a, &b);
                exchange(&f, &g);
            }
        };
        Self { over, thread: Some(thread::spawn(swap)) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()), "the attacker worked to the end");
    }
}

fn exchange(a: &Path, b: &Path) {
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).expect("they can be exchanged");
}

/// The same names inside and outside, with other content.
fn prepared(run: Run) -> Run {
    let place = run.place();
    let outside = outside(&place);
    fs::create_dir_all(outside.join("deep")).expect("made");
    for (name, text) in [("id", SECRET), ("edited", "begin"), (NAME, SECRET), ("deep/id", SECRET)] {
        fs::write(outside.join(name), format!("{text}\n")).expect("written");
    }
    symlink(&outside, place.workspace().join("b")).expect("linked");
    symlink(outside.join("edited"), place.workspace().join("g")).expect("linked");
    run.file("f", "begin\n").file("a/id", "harmless\n").file("a/edited", "begin\n").file("a/deep/id", "harmless\n")
}

fn outside(place: &Place) -> PathBuf {
    place.home().join(".ssh")
}

/// Every file below a directory.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(content(&entry));
        } else {
            found.insert(entry.clone(), fs::read(&entry).expect("read"));
        }
    }
    found
}

/// The calls of one reply. No two rounds make the same call: that would look like a loop.
fn calls(round: usize) -> Vec<(&'static str, String)> {
    let mut calls = Vec::new();
    for n in 0..READS {
        let path = format!("{}{}", "./".repeat(n), if n % 2 == 0 { "a/id" } else { "b/deep/id" });
        calls.push(("read_file", json!({ "path": path, "limit": round + 1 }).to_string()));
    }
    calls.push(("grep", json!({ "pattern": "the-key|harmless", "limit": round + 5 }).to_string()));
    calls.push(("grep", json!({ "pattern": "the-key|harmless", "path": "a", "limit": round + 5 }).to_string()));
    calls.push(("glob", json!({ "pattern": format!("{{**/*,{round}}}") }).to_string()));
    calls.push(("glob", json!({ "pattern": format!("{{**/*,{round}}}"), "path": "a" }).to_string()));
    let dots = "./".repeat(round);
    calls.push(("list_dir", json!({ "depth": 3, "path": format!("{dots}.") }).to_string()));
    calls.push(("list_dir", json!({ "depth": 3, "path": format!("{dots}a") }).to_string()));
    for n in 0..WRITES {
        let path = format!("a/{}new_{round}_{n}", if n % 2 == 0 { "" } else { "fresh/" });
        calls.push(("write_file", json!({ "path": path, "content": "x" }).to_string()));
    }
    for path in ["a/edited", "f", "g"] {
        let edit = json!({ "path": path, "old_text": "begin", "new_text": format!("begin\n{round}") });
        calls.push(("edit_file", edit.to_string()));
    }
    let patch = format!("*** Begin Patch\n*** Add File: a/patched_{round}\n+x\n*** End Patch");
    calls.push(("apply_patch", json!({ "patch": patch }).to_string()));
    calls
}

#[test]
fn nothing_outside_is_read_named_or_written() {
    let server = Server::answering(|_, round| match round {
        round if round < ROUNDS => Reply::calls(&calls(round)),
        _ => Reply::text("done"),
    });
    let run = prepared(Run::task(&server, "task").args(["--approve", "edits", "-o", "jsonl"]));
    let run = run.config("agents/default.yaml", "tools: ['*', apply_patch]\nlimits: { max_turns: 1000 }\n");
    let place = run.place();
    let before = content(&outside(&place));
    let output = {
        let _swapping = Swapping::start(&place.workspace());
        run.run()
    };
    assert_eq!(server.requests().len(), ROUNDS + 1, "{}", output.shown());
    let mut read = String::new();
    for request in server.requests() {
        read.extend(request.tool_results().into_iter().map(|(_, result)| result));
    }
    assert!(!read.contains(SECRET), "something outside was read");
    assert!(!read.contains(NAME), "something outside was named");
    assert!(
        content(&outside(&place)) == before,
        "something outside was written: {:?}",
        content(&outside(&place)).keys()
    );
    let inside = content(&place.workspace());
    let has = |part: &str| inside.keys().any(|path| path.to_string_lossy().contains(part));
    assert!(
        read.contains("harmless") && has("new_") && has("patched_"),
        "the calls worked while nothing was swapped"
    );
}

#[test]
fn a_yes_is_to_the_file_that_was_asked_about() {
    let arguments = json!({ "path": "a/fresh", "content": "x" });
    let server = Server::start([Reply::call("write_file", &arguments), Reply::text("done")]);
    let run = prepared(Run::task(&server, "task"));
    let place = run.place();
    let before = content(&outside(&place));
    let mut terminal = Terminal::start(&run);
    terminal.wait_for("(y or n");
    exchange(&place.workspace().join("a"), &place.workspace().join("b"));
    terminal.line("y");
    assert_eq!(terminal.exit_code(), 0);
    assert!(content(&outside(&place)) == before);
    assert!(
        server.requests()[1].last_result().contains("symbolic link"),
        "{}",
        server.requests()[1].last_result()
    );
}
