//! A run under strace: its system calls, the files that were opened, the processes that were started.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::observer;

/// All threads and processes of a run together.
pub struct Trace {
    pub system_calls: f64,
    /// Files and directories, the libraries of the dynamic linker among them; failed attempts are not.
    pub files: f64,
    pub processes: f64,
}

/// Runs `command` under strace; `None` if it is not installed.
pub fn trace(command: &Command, dir: &Path) -> Option<Trace> {
    let out = dir.join("strace");
    let mut under = Command::new("strace");
    under.args(["-f", "-qq", "-e", "signal=none", "-o"]).arg(&out);
    observer::run(under, command, &[], dir)?;
    Some(read(&String::from_utf8_lossy(&fs::read(out).expect("strace wrote its log"))))
}

fn read(text: &str) -> Trace {
    let mut trace = Trace { system_calls: 0.0, files: 0.0, processes: 0.0 };
    let mut unfinished: HashMap<&str, &str> = HashMap::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(begun) = call.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, begun);
            continue;
        }
        let begun = if call.starts_with("<... ") { unfinished.remove(thread).unwrap_or_default() } else { call };
        let result = call.rsplit_once(" = ").map_or("", |(_, result)| result);
        let succeeded = result.starts_with(|first: char| first.is_ascii_digit());
        trace.system_calls += 1.0;
        match begun.split('(').next().unwrap_or_default() {
            "open" | "openat" | "openat2" if succeeded => trace.files += 1.0,
            "fork" | "vfork" => trace.processes += 1.0,
            "clone" | "clone3" if !begun.contains("CLONE_THREAD") => trace.processes += 1.0,
            _ => {}
        }
    }
    trace
}
