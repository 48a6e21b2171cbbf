//! The floors: a module uses strictly lower floors only, so that everything can be read from the ground up.

use super::source::{Source, none, package, rust};

/// From the ground up. A module may use what stands on a lower line; neighbours on one line never see one another.
const FLOORS: &[&[&str]] = &[
    &["text", "long_text", "builtin", "json", "image", "protected"],
    &["file_name", "yaml", "template", "validator", "message", "attachment", "output", "ink"],
    &["regular", "diff", "highlight"],
    &["frontmatter", "markdown", "tokens", "present", "event", "disk"],
    &["workspace", "ignored", "secrets"],
    &["config", "net", "sandbox", "spill", "knowledge", "telemetry", "terminal"],
    &["process", "ledger"],
    &["contract"],
    &["prompt", "skills", "session", "policy"],
    &["llm", "tools", "sink"],
    &["window"],
    &["agent"],
    &["app"],
    &["repl"],
    &["cli"],
];

/// Floors below this one do no I/O.
const FLOORS_WITH_IO: usize = 2;

/// The text that would show it.
const IO: &[&str] = &["fs::", "std::net", "process::", "tokio::", "env::", "stdin()", "SystemTime", "Instant"];

/// The modules of the library that `main.rs` may use.
const MAIN_USES: &[&str] = &["cli"];

#[test]
fn a_module_uses_lower_floors_only() {
    let mut broken = Vec::new();
    for file in rust(&["src"]) {
        let module = file.module().expect("a file of src").to_owned();
        if module == "lib" {
            continue;
        }
        for (line, used) in uses(&file.code()) {
            let allowed = if module == "main" {
                MAIN_USES.contains(&used.as_str())
            } else {
                used == module
                    || matches!((floor(&used), floor(&module)), (Some(below), Some(here)) if below < here)
            };
            if !allowed {
                broken.push(format!("{}:{line}: `{module}` uses `{used}`", file.path));
            }
        }
    }
    none(
        "A module uses strictly lower floors only. Move what is shared down, hand it in from above, or put it behind \
         a trait of `contract`:",
        &broken,
    );
}

#[test]
fn every_module_stands_on_a_floor() {
    let text = std::fs::read_to_string(package().join("src/lib.rs")).expect("the library has a root");
    let declared: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub mod ").or_else(|| line.trim().strip_prefix("mod ")))
        .filter_map(|rest| rest.strip_suffix(';'))
        .collect();
    let missing: Vec<String> = declared.iter().filter(|m| floor(m).is_none()).map(|m| (*m).to_owned()).collect();
    none("Give each module of src/lib.rs a floor in tests/it/house/floors.rs:", &missing);
    let gone: Vec<String> =
        FLOORS.iter().copied().flatten().filter(|m| !declared.contains(m)).map(|m| (*m).to_owned()).collect();
    none("These stand on a floor, but src/lib.rs does not declare them; take them out of the table:", &gone);
    let order: Vec<usize> = declared.iter().filter_map(|m| floor(m)).collect();
    assert!(
        order.is_sorted(),
        "src/lib.rs declares its modules from the ground up; put them in the table's order"
    );
}

#[test]
fn the_map_shows_every_module_in_its_band() {
    let map = std::fs::read_to_string(package().join("ARCHITECTURE.md")).expect("the package has a map");
    let rows = map.lines().skip_while(|line| !line.starts_with("| band |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let modules = |row: &str| -> Vec<String> {
        let named = row.split('|').nth(2).unwrap_or_default().split(':').next().unwrap_or_default();
        named.split_whitespace().map(|name| name.trim_matches('`').to_owned()).collect()
    };
    let shown: Vec<Vec<String>> = rows.map(modules).collect();
    assert_eq!(shown.len(), 5, "ARCHITECTURE.md has a table of five bands");
    let shown: Vec<&str> = shown.iter().flatten().map(String::as_str).collect();
    let built: Vec<&str> = FLOORS.iter().copied().flatten().copied().collect();
    assert_eq!(shown, built, "the bands of ARCHITECTURE.md list the modules of FLOORS in their order");
}

#[test]
fn values_do_no_input_or_output() {
    let is_value = |file: &Source| file.module().and_then(floor).is_some_and(|floor| floor < FLOORS_WITH_IO);
    let mut broken = Vec::new();
    for file in rust(&["src"]).into_iter().filter(is_value) {
        for (line, code) in file.code() {
            broken.extend(IO.iter().filter(|w| code.contains(**w)).map(|w| format!("{}:{line}: {w}", file.path)));
        }
    }
    none("The lowest floors are values and pure functions. Take what is read as an argument:", &broken);
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The modules of this crate that the code names, with their lines: `crate::x`, `use crate::{x, y::z}`, `agent::x`.
fn uses(code: &[(usize, String)]) -> Vec<(usize, String)> {
    // Joined, as a list in braces may span lines; `starts` leads back to the line.
    let mut joined = String::new();
    let mut starts = Vec::new();
    for (line, text) in code {
        starts.push((joined.len(), *line));
        joined.push_str(text);
        joined.push('\n');
    }
    let mut found = Vec::new();
    for root in ["crate::", "agent::"] {
        for (at, _) in joined.match_indices(root) {
            let before = joined[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
                continue;
            }
            let line = starts.iter().rfind(|(start, _)| *start <= at).map_or(0, |(_, line)| *line);
            found.extend(first_names(&joined[at + root.len()..]).into_iter().map(|name| (line, name)));
        }
    }
    found
}

/// The first segments of a path: one, or each in a list in braces.
fn first_names(rest: &str) -> Vec<String> {
    let name =
        |text: &str| -> String { text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(list) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let (mut depth, mut names, mut item) = (0, Vec::new(), String::new());
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => names.push(name(&std::mem::take(&mut item))),
            c => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                item.push(c);
            }
        }
    }
    names.push(name(&item));
    names.retain(|name| !name.is_empty() && name != "self");
    names
}

#[test]
fn uses_are_found_however_they_are_written() {
    let code = |text: &str| vec![(1, text.to_owned())];
    let names = |text: &str| uses(&code(text)).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    for (text, expected) in [
        ("use crate::llm::sse;", vec!["llm"]),
        ("use crate::{config::{Env, Dirs}, text, tools::{self}};", vec!["config", "text", "tools"]),
        ("let x = crate::text::head(a, 3);", vec!["text"]),
        ("pub(crate) fn f() {}", vec![]),
        ("fn main() -> ExitCode { agent::cli::main() }", vec!["cli"]),
        ("my_agent::x", vec![]),
    ] {
        assert_eq!(names(text), expected, "{text}");
    }
}
