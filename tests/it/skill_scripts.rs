//! The scripts of the built-in skills, run as they are. Each `tests/skill_cases/SKILL/NAME.txt` is what a terminal
//! shows: command lines after `$ `, with what they print and, if they fail, their exit code. The other files of
//! the folder lie in the directory in which they run. Python 3 is needed here.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn code_review() {
    replay("code-review");
}

#[test]
fn data_report() {
    replay("data-report");
}

#[test]
fn book_flight() {
    replay("book-flight");
}

/// A directory of the package.
fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs every transcript of a skill, each in a fresh directory, and compares all of it.
#[track_caller]
fn replay(skill: &str) {
    let folder = package("tests/skill_cases").join(skill);
    let files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the skill has cases")
        .map(|entry| entry.expect("an entry of the tree").path())
        .collect();
    let (transcripts, inputs): (Vec<_>, Vec<_>) =
        files.iter().partition(|path| path.extension().is_some_and(|end| end == "txt"));
    assert!(!transcripts.is_empty(), "{} holds no transcript", folder.display());
    for transcript in transcripts {
        let place = tempfile::tempdir().expect("the temporary directory is writable");
        for input in &inputs {
            fs::copy(input, place.path().join(input.file_name().expect("a file"))).expect("copied");
        }
        let written = fs::read_to_string(transcript).expect("a transcript is UTF-8");
        let lines = written.lines().filter_map(|line| line.strip_prefix("$ "));
        let shown = lines.map(|line| shown(skill, line, place.path())).collect::<Vec<_>>().join("\n");
        assert!(shown == written, "{}: this came instead\n{shown}", transcript.display());
    }
}

/// One command line with what it printed on both streams, in the order in which that came.
fn shown(skill: &str, line: &str, place: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = [package("skills").join(skill).join("scripts"), package("tests/skill_cases")];
    let path = std::env::join_paths(ours.into_iter().chain(std::env::split_paths(&path))).expect("plain paths");
    let output = Command::new("/bin/sh")
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .current_dir(place)
        .env_clear()
        .envs([("LANG", "C.UTF-8"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .envs([("PATH", path), ("HOME", place.into()), ("GIT_CEILING_DIRECTORIES", place.into())])
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let mut shown = format!("$ {line}\n{}", String::from_utf8_lossy(&output.stdout));
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        let _ = writeln!(shown, "[exit {code}]");
    }
    shown
}
