//! Commands that a real model ran in recorded tasks (`commands.jsonl.xz`): what the sandbox is blamed for, and what is
//! asked about. The recordings are no part of this repository: they are looked for beside it, and in the directory that
//! `AGENT_TEST_RECORDINGS` names.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use agent::facade::config::{ApprovalMode, Permission, ToolEffect};
use agent::facade::files::workspace::Workspace;
use agent::facade::safety::Hold;
use agent::facade::safety::policy::{Invocation, ParsedLine, PolicyRules, ProposedCall, Verdict, judge_call};
use agent::facade::safety::sandbox::{Boundary, explain_denial};
use serde::Deserialize;

/// One command.
#[derive(Debug, Deserialize)]
struct RecordedCommand {
    command: String,
    /// The end of the output, if it failed.
    failed_output: Option<String>,
}

/// The commands of the recordings; `None`, said aloud, where there are none.
fn read_commands() -> Option<Vec<RecordedCommand>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/recordings");
    let file =
        std::env::var_os("AGENT_TEST_RECORDINGS").map_or_else(beside, PathBuf::from).join("commands.jsonl.xz");
    let text = Command::new("xz").arg("-dc").arg(&file).output().ok().filter(|output| output.status.success());
    if text.is_none() {
        // The handle, because what `eprintln!` writes is shown only when a test fails.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no recorded commands, or no xz to read them: {}",
            file.display()
        );
    }
    let text = String::from_utf8(text?.stdout).expect("UTF-8");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a command")).collect())
}

#[test]
fn ordinary_errors_are_not_blamed_on_the_sandbox() {
    let Some(commands) = read_commands() else { return };
    let plan = Boundary::around(Path::new("/testbed"), Path::new("/root"), Path::new("/tmp"));
    let failures: Vec<&str> = commands.iter().filter_map(|command| command.failed_output.as_deref()).collect();
    assert!(failures.len() > 100, "{}", failures.len());
    let blamed: Vec<_> = failures.iter().filter(|output| explain_denial(output, None, &plan).is_some()).collect();
    assert!(blamed.is_empty(), "{} of {}: {:#?}", blamed.len(), failures.len(), &blamed[..blamed.len().min(3)]);
}

#[test]
fn inside_whole_walls_hardly_a_command_is_asked_about() {
    let Some(commands) = read_commands() else { return };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory outside of `/tmp`");
    let (root, temp) = (dir.path().join("testbed"), dir.path().join("tmp"));
    for made in [&root, &temp] {
        std::fs::create_dir(made).expect("made");
    }
    // The tasks ran in `/testbed`, with Python in a place that is there; `/tmp` is a directory of their own to commands.
    let python = dir.path().join("miniconda3");
    std::fs::create_dir_all(python.join("lib/python3.11/site-packages")).expect("made");
    let workspace = Workspace::open(&root).expect("a workspace");
    let workspace = workspace.of_commands(Path::new("/tmp"), move || Some(temp.clone()));
    let root = workspace.root().to_string_lossy().into_owned();
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for RecordedCommand { command, .. } in &commands {
        let command = command.replace("/testbed", &root).replace("/opt/miniconda3", &python.to_string_lossy());
        let invocation = Invocation { command: &command, dir: workspace.root() };
        let call = ProposedCall {
            tool: "run_command",
            permission: Permission::Write,
            always_asked: None,
            effects: &[ToolEffect::Process],
            has_network: false,
            reads: Vec::new(),
            writes: Vec::new(),
            line: Some(ParsedLine::new(invocation, &workspace, &[], None)),
            hold: Hold::Whole,
            host: None,
        };
        if let Verdict::Ask { why, .. } = judge_call(ApprovalMode::Edits, &PolicyRules::default(), &call, None) {
            asked.entry(why).or_default().push(command);
        }
    }
    let fetching = |command: &&RecordedCommand| command.command.contains("pip install");
    let fetching = commands.iter().filter(fetching).count();
    let count: usize = asked.values().map(Vec::len).sum();
    let classes: Vec<String> = asked.iter().map(|(why, lines)| format!("{} × {why}", lines.len())).collect();
    let said = format!(
        "{count} of {} recorded commands ask:\n{}\n{fetching} say `pip install`, which needs the network that it is not given\n",
        commands.len(),
        classes.join("\n")
    );
    let _ = std::io::stderr().write_all(said.as_bytes());
    assert!(count * 100 <= commands.len() * 2, "{asked:#?}");
}
