//! Each line of `tests/everyday_cases/` is what people and models run all day, with what it usually does: `read`,
//! `write` (which works offline), `network`, or `ask` (whatever is allowed). A line that begins with none of these
//! goes on with the one before.
//!
//! Nine of ten lines that only read run unasked, and none of the others does.

use std::fs;
use std::io::Write;
use std::path::Path;

use agent::facade::config::ApprovalMode;
use agent::facade::config::{Permission, ToolEffect};
use agent::facade::files::workspace::Workspace;
use agent::facade::safety::Hold;
use agent::facade::safety::policy::{
    Grounds, Invocation, ParsedLine, PolicyRules, ProposedCall, Verdict, judge_call,
};

const CLASSES: [&str; 4] = ["read", "write", "network", "ask"];

/// Class and line of each case.
fn lines(text: &str) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for row in text.lines().filter(|row| !row.starts_with('#')) {
        match (row.split_once(' ').filter(|(class, _)| CLASSES.contains(class)), lines.last_mut()) {
            (Some((class, line)), _) => lines.push((class.to_owned(), line.trim_start().to_owned())),
            (None, Some((_, line))) => line.extend(["\n", row]),
            (None, None) => panic!("it begins with a class: {row}"),
        }
    }
    lines
}

#[test]
fn what_only_reads_runs_unasked_and_nothing_else_does() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("src")).expect("made");
    let workspace = Workspace::open(dir.path()).expect("a workspace");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/everyday_cases");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("cases").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let (mut wrong, mut asked, mut reading, mut all) = (Vec::new(), Vec::new(), 0, 0);
    for (class, line) in files.iter().flat_map(|file| lines(&fs::read_to_string(file).expect("readable"))) {
        let invocation = Invocation { command: &line, dir: workspace.root() };
        let call = ProposedCall {
            tool: "run_command",
            permission: Permission::Write,
            always_asked: None,
            effects: &[ToolEffect::Process],
            has_network: false,
            reads: Vec::new(),
            writes: Vec::new(),
            line: Some(ParsedLine::new(invocation, &workspace, &[], None)),
            hold: Hold::Permitted,
            host: None,
        };
        let rules = PolicyRules::default();
        let reads = judge_call(ApprovalMode::Ask, &rules, &call, None) == Verdict::Allow(Grounds::Reading);
        let always_asks = matches!(judge_call(ApprovalMode::All, &rules, &call, None), Verdict::Ask { .. });
        all += 1;
        reading += usize::from(class == "read");
        match class.as_str() {
            "read" if !reads => asked.push(line),
            "write" | "network" | "ask" if reads => wrong.push(format!("it runs unasked: {line}")),
            "ask" if !always_asks => wrong.push(format!("it runs where all is allowed: {line}")),
            "read" | "write" if always_asks => wrong.push(format!("it asks where all is allowed: {line}")),
            _ => {}
        }
    }
    let ran = reading - asked.len();
    let said = format!("{all} lines; of {reading} that only read, {ran} run unasked; these ask: {asked:#?}\n");
    // The handle, because what `eprintln!` writes is shown only when a test fails.
    let _ = std::io::stderr().write_all(said.as_bytes());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(ran * 10 >= reading * 9, "{said}");
}
