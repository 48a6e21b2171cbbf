//! Files and their words: opening lines, sizes, paths of one machine and forgotten files fail; names and marks of
//! unfinished work warn.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::source::{below, few, none, package, relative, rust};

/// Lines of a file, inline tests not counted.
const LONGEST_FILE: usize = 400;

/// Lines of code of the program: no blank lines, no comments, no tests. 80,000 was meant for all; servers of tools, editors, undoing, many
/// tasks, hooks, reviews, trials, recordings, imports, plugins, serving other agents and workers go beyond it. What stands is all
/// there is room for: whatever comes takes the place of something.
const MOST_CODE_LINES: usize = 101_675;

const ALL: &[&str] = &["src", "build", "tests", "benches"];

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager", "managers"];

/// Marks of unfinished work, in halves so that this file does not break its own rule.
const UNFINISHED: &[(&str, &str)] = &[
    ("todo", "!("),
    ("unimplemented", "!("),
    ("FIX", "ME"),
    ("TO", "DO"),
    ("XX", "X"),
    ("#[ig", "nore"),
    ("for n", "ow"),
    ("assert!(", "true)"),
];

/// Paths that exist only on one author's machine.
const MACHINE_PATHS: &[(&str, &str)] =
    &[("/wo", "rk/"), ("/tmp/", "wt"), ("/ro", "ot/"), ("/tmp/bash", "_jobs"), ("/home/", "runner")];

/// Functions that no test needs: order comes from gates and streams, and no assertion reads the clock.
const CLOCKS: &[&str] = &["thread::sleep", "Instant::now", "SystemTime::now", ".elapsed()", "tokio::time::sleep"];

#[test]
fn every_file_says_what_it_is_for() {
    let broken: Vec<String> =
        rust(ALL).into_iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path).collect();
    none("A source file opens with `//!`: what it is for, and its strategy or invariant if it has one:", &broken);
}

#[test]
fn no_file_is_too_long_to_read() {
    let broken: Vec<String> = rust(ALL)
        .iter()
        .map(|file| (&file.path, file.production().lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    none(
        &format!("A file has at most {LONGEST_FILE} lines without its inline tests. Find the second thing in:"),
        &broken,
    );
}

#[test]
fn the_program_is_no_larger_than_its_budget() {
    let files = rust(&["src"]);
    let lines: usize = files.iter().filter(|file| !file.is_test()).map(|file| file.code().len()).sum();
    assert!(lines <= MOST_CODE_LINES, "{lines} lines of code are {} too many", lines - MOST_CODE_LINES);
}

#[test]
fn names_say_what_is_inside() {
    let mut broken = Vec::new();
    for file in rust(ALL) {
        let empty = |name: &str| EMPTY_NAMES.contains(&name.to_lowercase().trim_end_matches(".rs"));
        if file.path.split('/').any(|part| part.split('_').any(empty)) {
            broken.push(file.path.clone());
        }
        for (line, code) in file.all_code() {
            let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            while let Some(word) = words.next() {
                if ["struct", "enum", "trait", "type", "mod"].contains(&word)
                    && let Some(name) = words.next()
                    && camel_words(name).iter().any(|word| empty(word))
                {
                    broken.push(format!("{}:{line}: {name}", file.path));
                }
            }
        }
    }
    few("Name a thing by what it is or does, not utils, helper, common, misc or manager:", &broken);
}

/// `SessionManager` → `Session`, `Manager`; `my_helper` → `my`, `helper`.
fn camel_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
    }
    words
}

#[test]
fn nothing_is_left_unfinished() {
    let mut broken = Vec::new();
    for file in rust(ALL) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some((a, b)) = UNFINISHED.iter().find(|(a, b)| line.contains(&format!("{a}{b}"))) {
                broken.push(format!("{}:{}: {a}{b}", file.path, index + 1));
            }
        }
    }
    few("Finish it, or take it out; what is planned stands in the issue tracker, not in the code:", &broken);
}

#[test]
fn tests_do_not_watch_the_clock() {
    let mut broken = Vec::new();
    for file in rust(&["tests"]) {
        for (line, code) in file.all_code() {
            broken.extend(
                CLOCKS.iter().filter(|word| code.contains(**word)).map(|w| format!("{}:{line}: {w}", file.path)),
            );
        }
    }
    none("A test waits for something that happens (a gate, a line, an end), never for time:", &broken);
}

#[test]
fn no_path_of_one_machine_is_in_the_tree() {
    let mut broken = Vec::new();
    for path in tracked().iter().filter(|path| *path != "Cargo.lock") {
        let Ok(text) = fs::read_to_string(package().join(path)) else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some((a, b)) = MACHINE_PATHS.iter().find(|(a, b)| line.contains(&format!("{a}{b}"))) {
                broken.push(format!("{path}:{}: {a}{b}", index + 1));
            }
        }
    }
    none("Use a path relative to the package, or one of the user's directories:", &broken);
}

#[test]
fn every_source_file_is_declared() {
    let manifest = fs::read_to_string(package().join("Cargo.toml")).expect("the manifest");
    // Files that the manifest names are targets of their own.
    let targets = manifest.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
    let mut declared: BTreeSet<String> =
        ["src/lib.rs", "src/main.rs"].into_iter().chain(targets).map(str::to_owned).collect();
    let files = rust(&["src", "tests"]);
    for file in &files {
        let (dir, name) = file.path.rsplit_once('/').unwrap_or_default();
        let home = match name {
            "mod.rs" | "lib.rs" | "main.rs" => dir.to_owned(),
            name => format!("{dir}/{}", name.trim_end_matches(".rs")),
        };
        for (_, code) in file.all_code() {
            let code = code.trim();
            let module = code.rsplit_once("mod ").and_then(|(before, rest)| {
                (before.is_empty() || before.starts_with("pub")).then(|| rest.strip_suffix(';')).flatten()
            });
            if let Some(module) = module {
                declared.extend([format!("{home}/{module}.rs"), format!("{home}/{module}/mod.rs")]);
            }
        }
    }
    let forgotten: Vec<String> =
        files.into_iter().map(|file| file.path).filter(|path| !declared.contains(path)).collect();
    none("No `mod` declares these files, so nothing compiles them. Declare or delete them:", &forgotten);
}

#[test]
fn nothing_strays_among_what_is_compiled_in() {
    const KINDS: &[(&str, &[&str])] = &[
        ("configs", &["yaml", "j2"]),
        ("prompts", &["md", "yaml", "json", "jsonl"]),
        ("skills", &["md", "yaml", "txt", "sh", "py", "csv"]),
    ];
    let mut stray = Vec::new();
    for (dir, ends) in KINDS {
        let files = below(&package().join(dir));
        assert!(!files.is_empty(), "{dir}/ is empty: the program is built with what lies there");
        for path in files {
            let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
            if !ends.contains(&end) {
                stray.push(relative(&path));
            }
        }
    }
    none(
        "Everything in configs/, prompts/ and skills/ is compiled in and shown to users; these do not belong:",
        &stray,
    );
    let leftovers: Vec<String> = tracked()
        .into_iter()
        .filter(|path| {
            [".orig", ".rej", ".bak", "~", ".swp", ".snap.new", ".pending-snap"]
                .iter()
                .any(|end| path.ends_with(end))
        })
        .collect();
    none("Left over from an edit; delete them:", &leftovers);
}

#[test]
fn the_readme_names_the_command_that_the_gate_runs() {
    let read = |path: &str| fs::read_to_string(package().join(path)).unwrap_or_default();
    let (readme, gate, fast) = (read("README.md"), read(".ci/run"), read(".ci/fast"));
    let command = readme
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("cargo test") || line.starts_with("$ cargo test"))
        .map(|line| line.trim_start_matches("$ ").split(" #").next().unwrap_or_default().trim())
        .expect("README.md says in a line of its own how to pass the tests: `cargo test`");
    let runs = |script: &str, line: &str| script.lines().any(|known| known == line);
    assert!(runs(&fast, command), ".ci/fast must run `{command}`, as README.md says");
    assert!(runs(&gate, ".ci/fast"), ".ci/run must run .ci/fast");
}

/// Every file that git knows; without git, everything but what builds leave behind.
fn tracked() -> Vec<String> {
    let listed = Command::new("git").arg("-C").arg(package()).args(["ls-files", "-z"]).output();
    match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8_lossy(&output.stdout)
                .split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect()
        }
        _ => ["src", "build", "tests", "benches", "configs", "prompts", "skills", ".ci"]
            .iter()
            .flat_map(|dir| below(&package().join(dir)))
            .map(|path| relative(&path))
            .collect(),
    }
}
