//! docs/orchestration.md: its commands run as they are written and print the text below them, and its figures are
//! measured. `BLESS=1` rewrites both.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::Run;

/// The time of a request, and the tokens of a reply per second: the assumptions that the page states.
const SECONDS_A_REQUEST: u64 = 1;
const TOKENS_A_SECOND: u64 = 50;
/// The price of a token that is written, and the part of a price that is paid for one that the provider has in its cache.
const WRITTEN: f64 = 5.0;
const CACHED: f64 = 0.1;

const BEGIN: &str = "<!-- BEGIN costs: tests/it/orchestration_docs.rs measures this; BLESS=1 writes it. -->\n";
const END: &str = "<!-- END costs -->\n";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/orchestration.md")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("the examples are there").map(|entry| entry.expect("an entry")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("copied");
        }
    }
}

/// Gives a run the examples as its workspace.
fn with_examples(run: Run) -> Run {
    copy(&page().with_extension(""), &run.place().workspace());
    run
}

/// The commands of a block for a shell: each is shown as it is written, and then run.
fn script(block: &str) -> String {
    let commands = block.lines().filter(|line| line.starts_with("$ "));
    let play = |line: &str| format!("printf '%s\\n' '{line}'\n{}\n", line.trim_start_matches("$ "));
    commands.map(play).collect()
}

/// The page with what its commands print now to both streams, one after another in one directory, as a reader types them.
fn with_output(page: &str) -> String {
    let mut parts = page.split("```console\n");
    let mut now = parts.next().unwrap_or_default().to_owned();
    let parts: Vec<(&str, &str)> = parts.map(|part| part.split_once("```\n").expect("a block ends")).collect();
    let scripts: Vec<String> = parts.iter().map(|(block, _)| script(block)).collect();
    let whole = format!("exec 2>&1\n{}", scripts.join("printf '\\001'\n"));
    let played = with_examples(Run::script("sh", &whole)).run().success().stdout;
    let blocks: Vec<&str> = played.split('\u{1}').collect();
    assert_eq!(blocks.len(), parts.len(), "{played}");
    for (block, (_, rest)) in blocks.iter().zip(parts) {
        now.extend(["```console\n", block, "```\n", rest]);
    }
    now
}

/// What a task took.
struct Taken {
    requests: u64,
    read: u64,
    written: u64,
    /// The price of it all, where that of a token that is read is 1.
    price: f64,
}

fn measured(task: &str, model: &str, mode: &str) -> Taken {
    let args = ["run", "-c", "config", "-m", model, "--mode", mode, "--approve", "edits", "-o", "jsonl", task];
    let output = with_examples(Run::new().args(args)).run().success();
    let mut taken = Taken { requests: 0, read: 0, written: 0, price: 0.0 };
    // The part of a request that extends the one before; those of roles extend none.
    let mut known = 0.0;
    for event in output.events().0 {
        let count = |counted: &serde_json::Value| counted.as_u64().expect("it is counted");
        match event["type"].as_str() {
            Some("request.started") => {
                known = count(&event["prefix_tokens"]) as f64 / count(&event["input_tokens"]) as f64;
            }
            Some("request.finished") => {
                let usage = &event["usage"];
                let (read, written) = (count(&usage["input_tokens"]), count(&usage["output_tokens"]));
                let known = std::mem::take(&mut known);
                taken.requests += 1;
                taken.read += read;
                taken.written += written;
                taken.price += read as f64 * (1.0 - known * (1.0 - CACHED)) + written as f64 * WRITTEN;
            }
            _ => {}
        }
    }
    taken
}

impl Taken {
    /// The columns of the table of costs; the last is the price beside that of `direct`.
    fn columns(&self, direct: &Self) -> String {
        let Self { requests, written, .. } = self;
        // Paths and dates are part of requests, so that their last digits differ between machines.
        let read = (self.read + 50) / 100 * 100;
        let seconds = requests * SECONDS_A_REQUEST + (written + TOKENS_A_SECOND / 2) / TOKENS_A_SECOND;
        let beside = (self.price / direct.price * 20.0).round() * 5.0;
        format!("| {requests} | {read} | {} | {seconds} s | {beside} % |\n", (written + 5) / 10 * 10)
    }
}

/// True if two rows differ in their numbers alone, and by a tenth at most.
fn is_about(shown: &str, row: &str) -> bool {
    let words = |row: &str| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (shown, row) = (words(shown), words(row));
    let near = |(a, b): (&String, &String)| match (a.parse::<u64>(), b.parse::<u64>()) {
        (Ok(a), Ok(b)) => a.abs_diff(b) * 10 <= a,
        _ => a == b,
    };
    shown.len() == row.len() && shown.iter().zip(&row).all(near)
}

/// The page with costs as they are measured now.
fn with_costs(page: &str) -> String {
    let (head, rest) = page.split_once(BEGIN).expect("the page has the table");
    let (shown, tail) = rest.split_once(END).expect("the table ends");
    let mut shown = shown.lines().filter(|line| line.starts_with('|')).skip(2);
    let small = "What is in may.txt?";
    let large = "Put april.txt and may.txt together in both.txt.";
    let mut table =
        "| task | mode | requests | tokens in | tokens out | time | price |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    let mut direct: Option<Taken> = None;
    for (task, what, model, mode, said) in [
        (small, "one question, one call", "direct-small", "direct", "`direct`"),
        (small, "", "route-small", "route", "`route`, to the tool"),
        (small, "", "plan-small", "plan", "`plan`"),
        (large, "two reads, one write", "direct", "direct", "`direct`"),
        (large, "", "proposed", "direct", "`direct`, by `propose_plan`"),
        (large, "", "route", "route", "`route`, to `plan`"),
        (large, "", "plan", "plan", "`plan`"),
        (large, "", "explore", "explore", "`explore`, the proposal"),
    ] {
        let taken = measured(task, model, mode);
        if !what.is_empty() {
            direct = None;
        }
        let row = format!("| {what} | {said} {}", taken.columns(direct.as_ref().unwrap_or(&taken)));
        direct.get_or_insert(taken);
        // A path or a day of another length is no reason to rewrite the page.
        let shown = shown.next().map(|row| format!("{row}\n"));
        table += &shown.filter(|shown| is_about(shown, &row)).unwrap_or(row);
    }
    format!("{head}{BEGIN}\n{table}\n{END}{tail}")
}

#[test]
fn the_page_shows_what_its_commands_print_and_cost() {
    let before = fs::read_to_string(page()).expect("the page is text");
    assert!(before.matches("```console").count() >= 6, "every mode has an example");
    let now = with_output(&with_costs(&before));
    if std::env::var_os("BLESS").is_some() {
        fs::write(page(), now).expect("the page can be written");
    } else {
        assert_eq!(before, now, "docs/orchestration.md is behind; BLESS=1 writes it anew");
    }
}

#[test]
fn the_page_names_tests_that_there_are() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(page()).expect("the page is text");
    let (_, table) = page.split_once("and the test that shows it\n").expect("the page has the table");
    let table = table.split("\n## ").next().expect("the table ends");
    let named: Vec<(&str, &str)> = table
        .split('`')
        .filter_map(|word| word.split_once("::"))
        .filter(|(_, test)| !test.contains(' '))
        .collect();
    assert!(named.len() > 12, "{named:?}");
    for (file, test) in named {
        let places = [format!("tests/it/{file}.rs"), format!("src/agent/orchestration/tests/{file}.rs")];
        let sources = places.iter().filter_map(|place| fs::read_to_string(package.join(place)).ok());
        let is_there = sources.into_iter().any(|source| source.contains(&format!("fn {test}(")));
        assert!(is_there, "there is no test {file}::{test}");
    }
}
