//! The completion scripts in real shells: what is completed is data, whatever it is called.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::run::{Place, Run};
use crate::skills::{skill, write};

/// Names that a shell would run, expand or split, if it took them for syntax.
const HOSTILE: [&str; 5] = ["a$(touch x)b", "a`touch x`b", "a;touch x", "a*", "a b"];

/// Each shell, and how it completes the word after `agent run --skill`, one candidate a line.
const SHELLS: [(&str, &str); 3] = [
    (
        "bash",
        "source ./script; COMP_WORDS=(agent run --skill a); COMP_CWORD=3; _agent_with_skills agent a --skill; \
         printf '%s\\n' \"${COMPREPLY[@]}\"",
    ),
    (
        "zsh",
        "compdef() { :; }; compadd() { print -rl -- \"${(@M)names:#a*}\"; }; source ./script; _agent_skill_names",
    ),
    ("fish", "source ./script; complete -C 'agent run --skill a'"),
];

/// The shell's completions; `None` if it is not installed.
fn completed(place: &Arc<Place>, (shell, line): (&str, &str)) -> Option<Vec<String>> {
    let script = Run::at(place).args(["completions", shell]).run().success().stdout;
    fs::write(place.workspace().join("script"), script).expect("written");
    let path = format!("{}:{}", bin(place).display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(shell);
    command.args(["-c", line]).current_dir(place.workspace()).env("PATH", path).env("HOME", place.home());
    let output = command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_DATA_HOME").output().ok()?;
    let mut names: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    names.sort();
    assert!(!place.exists("x"), "{shell} ran what it completed: {names:?}");
    Some(names)
}

fn bin(place: &Arc<Place>) -> PathBuf {
    let bin = place.home().join("bin");
    fs::create_dir_all(&bin).expect("made");
    bin
}

#[test]
fn names_that_the_standard_does_not_know_are_not_completed() {
    for shell in SHELLS {
        let place = Place::new();
        symlink(env!("CARGO_BIN_EXE_agent"), bin(&place).join("agent")).expect("linked");
        for name in HOSTILE.iter().chain(&["a-brew"]) {
            write(&place.home(), &format!(".agents/skills/{name}/SKILL.md"), skill(name, "Body."));
        }
        if let Some(names) = completed(&place, shell) {
            assert_eq!(names, ["a-brew"], "{}", shell.0);
        }
    }
}

#[test]
fn a_script_takes_what_it_is_given_for_data() {
    for shell in SHELLS {
        let place = Place::new();
        let agent = bin(&place).join("agent");
        let lines: String = HOSTILE.iter().chain(&["a-brew"]).map(|name| format!("{name}\n")).collect();
        fs::write(&agent, format!("#!/bin/sh\ncat <<'END'\n{lines}END\n")).expect("written");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("set");
        let Some(names) = completed(&place, shell) else { continue };
        assert_eq!(names.len(), HOSTILE.len() + 1, "{}: {names:?}", shell.0);
        if shell.0 == "bash" {
            // It inserts a candidate as it is.
            assert!(names.contains(&r"a\$\(touch\ x\)b".to_owned()), "{names:?}");
        }
    }
}
