//! The tests of the policy. Each file of `tests/policy_cases/` is a case: a call, the mode and rules, and the expected
//! verdict.
//!
//! `expect` is `read` (it runs in walls that allow no writing), `run`, `ask` or `deny`; `why` is a part of the reason;
//! `always` is the grant offered to the person (`none` if nothing is offered). Without a `tool` the call is
//! `run_command` with `command`; other tools get `path` or `host`; `makes` is the command that a configured tool makes
//! from its arguments. There are walls, unless `walls` says `none`, or that they are `whole`. [`workspace`] builds the workspace of every case.

#[cfg(unix)]
use std::fs;
#[cfg(unix)]
use std::path::{Path, PathBuf};

#[cfg(unix)]
use serde::Deserialize;

use super::*;
#[cfg(unix)]
use crate::base::text;
use crate::config::Permission;
#[cfg(unix)]
use crate::config::PermissionRule;
#[cfg(unix)]
use crate::files::workspace::Workspace;

#[cfg(unix)]
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PolicyCase {
    tool: Option<String>,
    command: Option<String>,
    /// The command of a configured tool: its words, or, with only one word, a line for the shell.
    makes: Option<Vec<String>>,
    workdir: Option<String>,
    path: Option<String>,
    host: Option<String>,
    walls: Option<String>,
    has_network: bool,
    mode: ApprovalMode,
    rules: Vec<PermissionRule>,
    /// The external source that has entered the conversation, if any.
    taint: Option<String>,
    expect: String,
    why: Option<String>,
    always: Option<String>,
}

/// Files, a secret, a link out of the workspace, and one to the secret; beside it a directory that belongs to the work.
#[cfg(unix)]
pub(super) fn workspace(dir: &Path) -> Workspace {
    let root = dir.join("workspace");
    for (path, text) in
        [("src/main.rs", ""), ("secrets/key", "k"), (".git/config", ""), ("notes.txt", ""), ("editor/x", "")]
    {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("made");
        fs::write(path, text).expect("written");
    }
    for (target, link) in
        [("/etc", "out"), ("secrets", "hidden"), ("secrets/key", "public.txt"), ("editor", ".vscode")]
    {
        std::os::unix::fs::symlink(target, root.join(link)).expect("linked");
    }
    let beside = dir.join("beside");
    for made in ["bin", "bare.git/objects", "bare.git/refs", "bare.git/HEAD"].map(|made| beside.join(made)) {
        fs::create_dir_all(made).expect("made");
    }
    let secrets = || ["/home/x/.ssh", "/home/x/.aws"].map(PathBuf::from).into();
    let workspace = Workspace::open(&root).expect("a workspace").of_person(Path::new("/home/x"), secrets);
    // What holds the workspace is not beside it.
    workspace.with_beside(&[beside.clone(), dir.to_path_buf()]).with_programs(vec![beside.join("bin")])
}

#[cfg(unix)]
fn verdict(case: &PolicyCase, workspace: &Workspace) -> Verdict {
    let rules = PolicyRules::new(&case.rules).expect("rules without mistakes");
    let tool = case.tool.as_deref().unwrap_or("run_command");
    let given: Vec<&str> = case.path.iter().map(String::as_str).collect();
    let paths = look_up_targets(workspace, &given, &[]);
    let mut call = ProposedCall {
        tool,
        permission: Permission::Read,
        always_asked: None,
        effects: &[],
        has_network: case.has_network,
        reads: Vec::new(),
        writes: Vec::new(),
        line: None,
        hold: match case.walls.as_deref() {
            None => Hold::Permitted,
            Some("whole") => Hold::Whole,
            Some(_) => Hold::Nothing,
        },
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
        "write_file" | "edit_file" | "apply_patch" => {
            call.reads = if tool == "write_file" { Vec::new() } else { paths.clone() };
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
    let workspace = workspace(&crate::files::canonicalize(dir.path()).expect("a path"));
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
        let case: PolicyCase =
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

#[test]
fn a_line_usually_reads_if_all_its_programs_do_and_it_opens_nothing_to_write() {
    for (line, expected) in [
        ("head -n 3 a", true),
        ("cd sub && grep x a 2>/dev/null | wc -l", true),
        ("timeout 5 cat a", true),
        ("echo x >> a", false),
        ("timeout 5 make", false),
        ("cat a; make", false),
        ("", false),
    ] {
        assert_eq!(usually_reads(line), expected, "{line}");
    }
}

#[test]
fn each_mode_frees_what_it_says_and_nothing_else() {
    use ApprovalMode::{All, Ask, Edits, Never};
    let inside = || PathTarget {
        given: "x".to_owned(),
        path: "x".to_owned(),
        place: PathPlace::Inside,
        ..PathTarget::default()
    };
    let outside = || PathTarget { place: PathPlace::Outside, ..inside() };
    let protected = || PathTarget { is_protected: true, ..inside() };
    let secret = || PathTarget { place: PathPlace::Secret, ..inside() };
    let read = |reads: Vec<PathTarget>| ProposedCall {
        tool: "t",
        permission: Permission::Read,
        always_asked: None,
        effects: &[],
        has_network: false,
        reads,
        writes: Vec::new(),
        line: None,
        hold: Hold::Permitted,
        host: None,
    };
    let write = |effects: &'static [ToolEffect], writes: Vec<PathTarget>| ProposedCall {
        permission: Permission::Write,
        effects,
        writes,
        ..read(Vec::new())
    };
    let table = [
        ("reading", read(vec![inside()]), "run run run run"),
        ("an edit", write(&[ToolEffect::Files], vec![inside()]), "ask run run deny"),
        ("a command", write(&[ToolEffect::Process], Vec::new()), "ask ask run deny"),
        ("reading outside", read(vec![outside()]), "ask ask run deny"),
        ("reading a skill", read(vec![PathTarget { place: PathPlace::Readable, ..inside() }]), "run run run run"),
        (
            "reading that is to be confirmed",
            ProposedCall { always_asked: Some("it is so"), ..read(vec![inside()]) },
            "ask ask run deny",
        ),
        ("reading credentials", read(vec![secret()]), "ask ask ask deny"),
        ("an edit outside", write(&[ToolEffect::Files], vec![outside()]), "ask ask ask deny"),
        ("an edit of what git runs", write(&[ToolEffect::Files], vec![protected()]), "ask ask ask deny"),
        ("a page", ProposedCall { host: Some("example.com".to_owned()), ..read(Vec::new()) }, "ask ask run deny"),
    ];
    for (what, call, expected) in table {
        let verdicts =
            [Ask, Edits, All, Never].map(|mode| match judge_call(mode, &PolicyRules::default(), &call, None) {
                Verdict::Allow(_) => "run",
                Verdict::Ask { .. } => "ask",
                Verdict::Deny { .. } => "deny",
            });
        assert_eq!(verdicts.join(" "), expected, "{what}");
    }
}
