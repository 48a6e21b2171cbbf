//! Completion in shells: what is offered for a word, and that a name is data in real shells, whatever it is called.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::Server;
use crate::skills::{skill, write};

/// Names that a shell would run, expand or split, if it took them for syntax.
const HOSTILE: [&str; 5] = ["a$(touch x)b", "a`touch x`b", "a;touch x", "a*", "a b"];

/// Each shell, and how it completes the word after `agent run --skill`, one candidate a line.
const SHELLS: [(&str, &str); 3] = [
    (
        "bash",
        "source ./script; COMP_WORDS=(agent run --skill a); COMP_CWORD=3; _clap_complete_agent agent a --skill; \
         printf '%s\\n' \"${COMPREPLY[@]}\"",
    ),
    (
        "zsh",
        "compdef() { :; }; _describe() { print -rl -- \"${completions[@]}\"; }; source ./script; \
         words=(agent run --skill a); CURRENT=4; _clap_dynamic_completer_agent",
    ),
    ("fish", "source ./script; complete -C 'agent run --skill a'"),
];

/// What is offered for the last of these words, in the form that fish reads: a name and what it is, tab between.
fn offered(run: Run, words: &[&str]) -> Vec<String> {
    let run = run.env("AGENT_COMPLETE", "fish").arg("--").arg("agent").args(words.iter().copied());
    let output = run.run().success();
    output.stdout.lines().map(str::to_owned).collect()
}

/// The shell's completions; `None` if it is not installed.
fn completed(place: &Arc<Place>, (shell, line): (&str, &str)) -> Option<Vec<String>> {
    let script = Run::at(place).args(["completions", shell]).run().success().stdout;
    fs::write(place.workspace().join("script"), script).expect("written");
    let path = format!("{}:{}", bin(place).display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(shell);
    command.args(["-c", line]).current_dir(place.workspace()).env("PATH", path).env("HOME", place.home());
    let output = command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").output().ok()?;
    let names = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert!(!place.exists("x"), "{shell} ran what it completed: {names:?}");
    Some(names)
}

fn bin(place: &Arc<Place>) -> PathBuf {
    let bin = place.home().join("bin");
    fs::create_dir_all(&bin).expect("made");
    bin
}

#[test]
fn real_shells_complete_a_name_and_leave_out_what_they_could_run() {
    for shell in SHELLS {
        let place = Place::new();
        symlink(env!("CARGO_BIN_EXE_agent"), bin(&place).join("agent")).expect("linked");
        for name in HOSTILE.iter().chain(&["a-brew"]) {
            write(&place.home(), &format!(".agents/skills/{name}/SKILL.md"), skill(name, "Body."));
        }
        if let Some(names) = completed(&place, shell) {
            assert_eq!(names.len(), 1, "{}: {names:?}", shell.0);
            assert!(names[0].starts_with("a-brew"), "{}: {names:?}", shell.0);
        }
    }
}

#[test]
fn an_option_completes_what_it_takes() {
    let run = || {
        let run =
            Run::new().env("DEEPSEEK_API_KEY", "k").config("agents/critic.yaml", "description: finds faults\n");
        run.config("models/fast.yaml", "provider: scripted\nscript: []\n")
            .config("flows/ship.yaml", "steps:\n  - id: look\n    tool: list_dir\n")
    };
    for (words, expected) in [
        (&["run", "-m", "fa"][..], "fast"),
        (&["run", "--model=deepseek/deepseek-f"], "--model=deepseek/deepseek-flash"),
        (&["-m", "fa"], "fast"),
        (&["run", "--flow", "sh"], "ship"),
        (&["chat", "-a", "cri"], "critic\tfinds faults"),
        (&["run", "--approve", "ed"], "edits"),
        (&["tool", "call", "grep", "--format", "det"], "detailed"),
        (&["--set", "limits.max_tu"], "limits.max_turns="),
        (&["config", "explain", "limits.max_tu"], "limits.max_turns="),
        (&["tool", "show", "read_f"], "read_file"),
        (&["prompt", "show", "syst"], "system"),
        (&["login", "open"], "openrouter\tOpenRouter"),
        (&["key", "set", "deep"], "deepseek\tDeepSeek"),
    ] {
        assert_eq!(offered(run(), words), [expected], "{words:?}");
    }
    assert!(offered(run(), &["run", "-m", "claude"]).is_empty(), "the key of its provider is not set");
}

#[test]
fn what_is_wrong_in_one_place_hides_no_names_in_others() {
    let run = || {
        Run::new()
            .config("agent.yaml", "limits: { max_turns: many }\n")
            .config("agents/critic.yaml", "description: finds faults\n")
            .config("models/broken.yaml", "provider: [\n")
    };
    assert_eq!(offered(run(), &["run", "-a", "cri"]), ["critic\tfinds faults"]);
    assert_eq!(offered(run(), &["run", "-m", "de"]), ["default", "demo"]);
}

#[test]
fn sessions_are_offered_with_their_titles_and_nothing_is_written_or_asked() {
    let server = Server::always(Reply::text("done"));
    let id = Run::task(&server, "Add\ta retry").run().success();
    let before = id.place.kept();
    let offers = offered(Run::at(&id.place).server(&server), &["run", "--session", ""]);
    assert_eq!(offers.len(), 1, "{offers:?}");
    assert!(offers[0].ends_with("Add a retry"), "{offers:?}");
    assert_eq!(id.place.kept(), before);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_project_that_nobody_trusts_offers_nothing_and_nobody_is_asked() {
    let run = || Run::new().file(".agent/agents/critic.yaml", "description: d\n");
    assert!(offered(run(), &["run", "-a", "cri"]).is_empty());
    assert_eq!(offered(run(), &["--trust", "run", "-a", "cri"]), ["critic\td"]);
}
