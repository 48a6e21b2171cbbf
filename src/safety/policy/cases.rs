//! Each file of `tests/policy_cases/` is a case: a call, the mode and rules, and the expected verdict.
//!
//! `expect` is `read` (it runs in walls that allow no writing), `run`, `ask` or `deny`; `why` is a part of the reason;
//! `always` is the grant offered to the person (`none` if nothing is offered). Without a `tool` the call is
//! `run_command` with `command`; other tools get `path` or `host`; `makes` is the command that a configured tool makes
//! from its arguments. There are walls, unless `walls` says no. [`workspace`] builds the workspace of every case.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::*;
use crate::base::text;
use crate::config::{Permission, PermissionRule};
use crate::files::workspace::Workspace;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Case {
    tool: Option<String>,
    command: Option<String>,
    /// The command of a configured tool: its words, or, with only one word, a line for the shell.
    makes: Option<Vec<String>>,
    workdir: Option<String>,
    path: Option<String>,
    host: Option<String>,
    walls: Option<bool>,
    has_network: bool,
    mode: ApprovalMode,
    rules: Vec<PermissionRule>,
    /// The external source that has entered the conversation, if any.
    taint: Option<String>,
    expect: String,
    why: Option<String>,
    always: Option<String>,
}

/// Files, a secret, a link out of the workspace, and one to the secret.
#[cfg(unix)]
pub(super) fn workspace(dir: &Path) -> Workspace {
    let root = dir.join("workspace");
    for (path, text) in [("src/main.rs", ""), ("secrets/key", "k"), (".git/config", ""), ("notes.txt", "")] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    for (target, link) in [("/etc", "out"), ("secrets", "hidden"), ("secrets/key", "public.txt")] {
        std::os::unix::fs::symlink(target, root.join(link)).expect("linked");
    }
    let secrets = || ["/home/x/.ssh", "/home/x/.aws"].map(PathBuf::from).into();
    Workspace::open(&root).expect("a workspace").of_person(Path::new("/home/x"), secrets)
}

#[cfg(unix)]
fn verdict(case: &Case, workspace: &Workspace) -> Verdict {
    let rules = PolicyRules::new(&case.rules).expect("rules without mistakes");
    let tool = case.tool.as_deref().unwrap_or("run_command");
    let given: Vec<&str> = case.path.iter().map(String::as_str).collect();
    let paths = look_up_targets(workspace, &given, &[]);
    let mut call = ProposedCall {
        tool,
        permission: Permission::Read,
        requires_confirmation: false,
        effects: &[],
        has_network: case.has_network,
        reads: Vec::new(),
        writes: Vec::new(),
        line: None,
        hold: if case.walls.unwrap_or(true) { Hold::Permitted } else { Hold::Nothing },
        host: case.host.clone(),
    };
    let dir = workspace.resolve(case.workdir.as_deref().unwrap_or(".")).path;
    match tool {
        _ if let Some(makes) = &case.makes => {
            let line = match makes.as_slice() {
                [line] => line.clone(),
                words => words.iter().map(|word| text::shell_quoted(word)).collect::<Vec<_>>().join(" "),
            };
            let configured = Configured { arguments: "{}".to_owned(), shown: makes.join(" ") };
            (call.permission, call.effects) = (Permission::Write, &[ToolEffect::Process]);
            let invocation = Invocation { command: &line, dir: &dir };
            call.line = Some(ParsedLine::new(invocation, workspace, &[], Some(configured)));
        }
        "run_command" => {
            let command = case.command.as_deref().expect("a case of a command has one");
            let invocation = Invocation { command, dir: &dir };
            (call.permission, call.effects) = (Permission::Write, &[ToolEffect::Process]);
            call.line = Some(ParsedLine::new(invocation, workspace, &[], None));
        }
        "write_file" | "edit_file" => {
            (call.permission, call.effects, call.writes) = (Permission::Write, &[ToolEffect::Files], paths);
        }
        "fetch_url" => call.effects = &[ToolEffect::Network],
        _ => call.reads = paths,
    }
    judge_call(case.mode, &rules, &call, case.taint.as_deref())
}

#[cfg(unix)]
#[test]
fn every_case_is_judged_as_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let workspace = workspace(&dir.path().canonicalize().expect("a path"));
    let mut files: Vec<_> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy_cases"))
        .expect("cases")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).expect("readable");
        let case: Case =
            crate::base::yaml::parse_document(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (what, why, always) = match verdict(&case, &workspace) {
            Verdict::Allow(Grounds::Reading) => ("read", String::new(), None),
            Verdict::Allow(_) => ("run", String::new(), None),
            Verdict::Ask { why, always } => {
                ("ask", why, Some(always.map_or("none".to_owned(), |grant| grant.to_string())))
            }
            Verdict::Deny { why, .. } => ("deny", why, None),
        };
        let is_right = what == case.expect
            && case.why.as_ref().is_none_or(|part| why.contains(part))
            && (case.always.is_none() || case.always == always);
        if !is_right {
            wrong.push(format!("{name}: {what}: {why}; always: {always:?}"));
        }
    }
    assert!(wrong.is_empty(), "judged in another way:\n{}", wrong.join("\n"));
}
