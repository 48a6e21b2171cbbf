//! The examples of README.md and docs/: each `sh` block runs, and each block of YAML or Markdown is read by the program
//! as the file that it shows.
//!
//! A page has one home and one workspace (`tests/example_files/`), with a scripted server in place of every address of
//! this machine. Its files are written first, then its commands run in their order; each must exit with 0. The words
//! after the language of a block say what is special about it:
//!
//! | block | |
//! |---|---|
//! | `sh` | runs |
//! | `sh run` | `.ci/readme` runs it, in a fresh clone |
//! | `sh needs=jq` | runs where these programs are installed |
//! | `sh by-hand` | needs a network, a key, a person, or builds the program; not run |
//! | `yaml agents/a.yaml` | is this file of the config directory; a first line `# agents/a.yaml` says the same |
//! | `yaml output` | is written by the program; another test holds it |
//!
//! A `console` block shows output: the test of its page compares it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::reply::Reply;
use crate::run::{Place, Run};
use crate::server::{Request, Server};

/// The most blocks that nothing runs.
const MOST_BY_HAND: usize = 6;

/// Pages whose `console` blocks another test compares with what the program prints.
const HELD: [&str; 2] = ["docs/flows.md", "docs/orchestration.md"];

struct Block {
    /// `docs/page.md:12`
    place: String,
    language: String,
    /// The words after the language.
    mark: String,
    text: String,
}

/// What became of a block.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Runs,
    /// A file of the config directory.
    IsFile(String),
    Elsewhere,
    ByHand,
    /// A program that it needs is missing.
    Lacks(String),
    Unmarked,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    let mut pages: Vec<PathBuf> = docs.filter(is_page).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// The fenced blocks of a page. One in a list is as far to the left as its fence.
fn blocks(path: &Path) -> Vec<Block> {
    let page = path.strip_prefix(root()).expect("a page of ours").display().to_string();
    let text = fs::read_to_string(path).expect("a page is text");
    let mut found = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let indent = line.len() - line.trim_start().len();
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                let (language, mark) = info.split_once(' ').unwrap_or((info, ""));
                let place = format!("{page}:{number}");
                let (language, mark) = (language.to_owned(), mark.to_owned());
                open = Some((indent, Block { place, language, mark, text: String::new() }));
            }
            (Some(_), Some((_, block))) => found.push(block),
            (None, Some((by, mut block))) => {
                block.text.extend([line.get(by..).unwrap_or_default(), "\n"]);
                open = Some((by, block));
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block has no end");
    found
}

fn is_installed(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(program).exists())
}

impl Block {
    fn fate(&self) -> Fate {
        match (self.language.as_str(), self.mark.as_str()) {
            ("sh", "") => Fate::Runs,
            ("sh", "by-hand") => Fate::ByHand,
            // Beside what is held elsewhere: doctests and plain text.
            ("sh", "run") | ("yaml" | "json" | "xml", "output") | ("" | "text" | "rust" | "json", "") => {
                Fate::Elsewhere
            }
            // `.ci/editors` runs them.
            ("python" | "typescript", "") if self.place.starts_with("docs/sdk.md") => Fate::Elsewhere,
            ("console", "") if HELD.iter().any(|page| self.place.starts_with(page)) => Fate::Elsewhere,
            ("sh", mark) if mark.starts_with("needs=") => {
                let needed = mark["needs=".len()..].split(',');
                let missing: Vec<&str> = needed.filter(|program| !is_installed(program)).collect();
                if missing.is_empty() { Fate::Runs } else { Fate::Lacks(missing.join(", ")) }
            }
            ("yaml" | "markdown", "") => self.first_line().map_or(Fate::Unmarked, Fate::IsFile),
            ("yaml" | "markdown", file) if file.contains('/') || file.contains('.') => {
                Fate::IsFile(file.to_owned())
            }
            _ => Fate::Unmarked,
        }
    }

    /// The file that the first line names: `# ~/.config/agent/models/local.yaml, …`.
    fn first_line(&self) -> Option<String> {
        let line = self.text.lines().next()?.strip_prefix("# ")?;
        let word = line.split([',', ' ']).next()?;
        let file = word.strip_prefix("~/.config/agent/").unwrap_or(word);
        Path::new(file).extension().is_some_and(|end| end == "yaml").then(|| file.to_owned())
    }
}

/// Replies as each role would, so that every mode comes to its end.
fn answer(request: &Request) -> Reply {
    let says = |part: &str| request.raw.contains(part);
    let plan = r#"{"analysis": "a", "plan": [{"step_id": 1, "description": "finds", "tool_name": "grep",
        "tool_input": {"pattern": "TODO"}, "depends_on": []}], "estimated_steps": 1, "can_parallelize": []}"#;
    let score = r#"{"score": 5, "reason": "r"}"#;
    let judged = format!(
        r#"{{"evaluation": {{"completeness": {score}, "correctness": {score}, "format": {score}}},
        "overall_pass": true, "action": "accept", "retry_details": {{"step_id": null, "modification": ""}}}}"#
    );
    let route = r#"{"reasoning": "r", "tool_name": "calculator", "tool_input": {}, "confidence": 0.9}"#;
    let action = |reply: &str| Reply::text(&format!("<scratchpad>s</scratchpad><action>{reply}</action>"));
    if says("can_parallelize") {
        action(plan)
    } else if says("overall_pass") {
        action(&judged)
    } else if says("tool_name") {
        Reply::text(route)
    } else if says("Who wrote this?") {
        Reply::text(r#"{"name": "Ada"}"#)
    } else {
        Reply::text("Done.")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("the files are there").map(|entry| entry.expect("an entry")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("copied");
        }
    }
}

/// Writes the files of a page. What it says of one file in several blocks is one file.
fn write(blocks: &[Block], place: &Place, server: &Server) -> Vec<String> {
    let mut checks = Vec::new();
    for block in blocks {
        let Fate::IsFile(file) = block.fate() else { continue };
        let path = place.config().join(&file);
        fs::create_dir_all(path.parent().expect("a file in a directory")).expect("made");
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, before + &of_server(&block.text, server)).expect("written");
        let names: Vec<&str> = file.split('/').collect();
        checks.push(match names[..] {
            ["prompts", name, "release.yaml"] => format!("agent prompt list | grep -w {name}"),
            ["prompts", name, _] => format!("agent prompt check {name}"),
            ["skills", name, _] => format!("agent skill check ~/.config/agent/skills/{name}"),
            _ => "agent config check".to_owned(),
        });
    }
    checks.sort();
    checks.dedup();
    checks
}

/// The text with the server in place of every one of this machine.
fn of_server(text: &str, server: &Server) -> String {
    let mut parts = text.split("http://127.0.0.1:");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out += &server.url();
        out += rest.strip_prefix("/v1").unwrap_or(rest);
    }
    out
}

/// Runs the examples of a page; the reason of a failure begins with the block.
fn play(blocks: &[Block]) -> Result<(), String> {
    let server = Server::answering(|request, _| answer(request));
    let run = Run::script("bash", "eval \"$1\"").arg("examples").server(&server);
    let place = run.place();
    let files = root().join("tests/example_files");
    copy(&files.join("workspace"), &place.workspace());
    copy(&files.join("config"), &place.config());
    let bin = place.home().join("bin");
    copy(&files.join("bin"), &bin);
    for program in fs::read_dir(&bin).expect("programs").map(|entry| entry.expect("a program").path()) {
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let checks = write(blocks, &place, &server);
    let mut script = "set -euo pipefail\nPATH=~/bin:$PATH\ngit init -q . 2>/dev/null || true\n".to_owned();
    for check in checks {
        script.extend(["echo '=== ", &check, "' >&2\n", &check, " >/dev/null\n"]);
    }
    for block in blocks.iter().filter(|block| block.fate() == Fate::Runs) {
        script.extend(["echo '=== ", &block.place, "' >&2\n(\n", &of_server(&block.text, &server), ")\n"]);
    }
    let output = run.arg(script).stdin("Say hello.\n").run();
    if output.code == 0 { Ok(()) } else { Err(format!("{}\n{}", output.shown(), blocks[0].place)) }
}

#[test]
fn the_examples_of_the_pages_do_as_they_say() {
    let pages: Vec<Vec<Block>> = pages().iter().map(|page| blocks(page)).collect();
    let all = || pages.iter().flatten();
    let unmarked: Vec<&str> = all().filter(|b| b.fate() == Fate::Unmarked).map(|b| b.place.as_str()).collect();
    assert!(unmarked.is_empty(), "blocks that nothing checks; tests/it/examples.rs has the marks: {unmarked:?}");
    let by_hand = all().filter(|block| block.fate() == Fate::ByHand).count();
    assert!(by_hand <= MOST_BY_HAND, "{by_hand} blocks are left to people, at most {MOST_BY_HAND}");
    for block in all() {
        if let Fate::Lacks(programs) = block.fate() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: {} needs {programs}", block.place);
        }
    }
    let has_examples = |page: &&Vec<Block>| page.iter().any(|b| matches!(b.fate(), Fate::Runs | Fate::IsFile(_)));
    let failed: Vec<String> = std::thread::scope(|scope| {
        let pages = pages.iter().filter(has_examples);
        let running: Vec<_> = pages.map(|page| scope.spawn(move || play(page))).collect();
        running.into_iter().filter_map(|page| page.join().expect("a page is played").err()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
