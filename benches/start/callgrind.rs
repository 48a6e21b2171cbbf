//! A run under callgrind: how many instructions it took, and which functions of the program they belong to.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::observer;
use super::server::Phase;

/// What valgrind is called with.
pub const TOOL: [&str; 2] = ["--tool=callgrind", "--demangle=no"];

pub struct Profile {
    /// Of the process itself, its libraries and the dynamic linker.
    pub instructions: f64,
    /// Symbols of the program that were executed, as its symbol table spells them. Empty if it has none.
    pub functions: Vec<String>,
}

/// Runs `command` under callgrind; `None` if valgrind is not installed. It does not know the system calls of
/// Landlock, so a run that starts commands does so without the sandbox.
pub fn profile(command: &Command, phase: Phase, dir: &Path) -> Option<Profile> {
    let (out, log) = (dir.join("callgrind"), dir.join("valgrind"));
    let mut under = Command::new("valgrind");
    under
        .args(TOOL)
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(format!("--log-file={}", log.display()));
    let last: &[&str] = if phase.calls_tools() { &["--sandbox", "off"] } else { &[] };
    observer::run(under, command, last, dir)?;
    let text = fs::read_to_string(out).expect("callgrind wrote its profile");
    Some(read(&text, &command.get_program().to_string_lossy()))
}

/// Reads the format of callgrind ("Callgrind Format Specification"): a name is spelled out where its number comes
/// first.
pub fn read(text: &str, program: &str) -> Profile {
    let mut profile = Profile { instructions: 0.0, functions: Vec::new() };
    let (mut objects, mut functions) = (HashMap::new(), HashMap::new());
    let mut inside = false;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(['=', ':']) else { continue };
        match key {
            "ob" => inside = named(&mut objects, value) == Some(program),
            "cob" => drop(named(&mut objects, value)),
            "fn" => {
                let name = named(&mut functions, value);
                profile.functions.extend(name.filter(|_| inside).map(|name| without_depth(name).to_owned()));
            }
            "cfn" => drop(named(&mut functions, value)),
            "summary" | "totals" => profile.instructions = value.trim().parse().unwrap_or_default(),
            _ => {}
        }
    }
    profile
}

/// `(NUMBER) NAME` or `(NUMBER)`.
fn named<'a, 't>(names: &'a mut HashMap<&'t str, &'t str>, value: &'t str) -> Option<&'a str> {
    let (number, name) = value.strip_prefix('(')?.split_once(')')?;
    if !name.is_empty() {
        names.insert(number, name.trim_start());
    }
    names.get(number).copied()
}

/// A function that calls itself appears once for each depth, as `NAME'2`.
fn without_depth(name: &str) -> &str {
    match name.rsplit_once('\'') {
        Some((name, depth)) if depth.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}
