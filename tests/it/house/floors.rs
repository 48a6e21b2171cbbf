//! The floors: a folder uses only those below it, and so do the rooms of a folder, so that everything can be read from
//! the ground up.

use super::source::{Source, none, package, rust};

/// The folders, from the ground up. A folder uses only those above it in this list, and each stands whole: its data, its
/// traits and its code.
const FOLDERS: &[&str] = &[
    "base", "template", "files", "config", "conversation", "safety", "model", "prompt", "skills", "tools",
    "agent", "screen", "faces",
];

/// Folders that hold values and pure functions, without I/O.
const PURE: &[&str] = &["base", "template"];

/// A file of them that may name the clock all the same: a diff that takes too long becomes coarser.
const WITH_DEADLINE: &str = "src/base/diff.rs";

/// The text that would show it.
const IO: &[&str] = &["fs::", "std::net", "process::", "tokio::", "env::", "stdin()", "SystemTime", "Instant"];

/// The root of the library.
const ROOT: &str = "src/lib.rs";

/// The one public module of the library: what the binary, the tests and the benchmarks use of the folders.
const FACADE: &str = "facade";

/// The modules of the library that `main.rs` may use.
const MAIN_USES: &[&str] = &[FACADE];

#[test]
fn a_folder_uses_lower_ones_only() {
    let mut broken = Vec::new();
    for file in rust(&["src"]) {
        let folder = file.folder().expect("a file of src").to_owned();
        if folder == "lib" || folder == FACADE {
            continue;
        }
        for (line, used) in uses(&file.code()) {
            let allowed = if folder == "main" {
                MAIN_USES.contains(&used.as_str())
            } else {
                used == folder
                    || matches!((floor(&used), floor(&folder)), (Some(below), Some(here)) if below < here)
            };
            if !allowed {
                broken.push(format!("{}:{line}: `{folder}` uses `{used}`", file.path));
            }
        }
    }
    none(
        "A folder uses only those below it. Move what is shared down, hand it in from above, or put it behind a trait of \
         the folder that needs it:",
        &broken,
    );
}

#[test]
fn the_library_declares_its_folders_from_the_ground_up() {
    assert_eq!(list_rooms(ROOT), FOLDERS, "src/lib.rs declares the folders in the order of FOLDERS");
}

#[test]
fn a_room_uses_only_rooms_that_its_folder_declares_above_it() {
    let mut broken = Vec::new();
    for folder in FOLDERS {
        let rooms = list_rooms(&format!("src/{folder}/mod.rs"));
        let floor = |room: &str| rooms.iter().position(|other| other == room);
        for file in rust(&["src"]) {
            let Some(rest) = file.path.strip_prefix(&format!("src/{folder}/")) else { continue };
            let room = rest.split('/').next().unwrap_or_default().trim_end_matches(".rs");
            let Some(here) = floor(room) else { continue };
            for (line, used) in uses_below(&file.code(), &format!("crate::{folder}::")) {
                if floor(&used).is_some_and(|there| there > here) {
                    broken.push(format!("{}:{line}: `{room}` uses `{used}`", file.path));
                }
            }
        }
    }
    none("A folder declares its public rooms from the ground up, and a room uses only those above it:", &broken);
}

#[test]
fn the_map_shows_every_folder() {
    let map = std::fs::read_to_string(package().join("ARCHITECTURE.md")).expect("the package has a map");
    let rows = map.lines().skip_while(|line| !line.starts_with("| folder |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let shown: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(shown, FOLDERS, "the table of ARCHITECTURE.md lists the folders of FOLDERS in their order");
}

/// The rooms that a folder declares, in its order; of the root the folders, which are private.
fn list_rooms(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(package().join(path)).expect("a folder has a root");
    let public = |line: &str| {
        let rest = line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod ").filter(|_| path == ROOT))?;
        rest.strip_suffix(';').filter(|name| *name != FACADE).map(str::to_owned)
    };
    text.lines().filter_map(public).collect()
}

#[test]
fn values_do_no_input_or_output() {
    let is_pure = |file: &Source| file.folder().is_some_and(|folder| PURE.contains(&folder));
    let mut broken = Vec::new();
    for file in rust(&["src"]).into_iter().filter(is_pure) {
        for (line, code) in file.code() {
            let found = IO.iter().filter(|word| code.contains(**word));
            let found = found.filter(|word| **word != "Instant" || file.path != WITH_DEADLINE);
            broken.extend(found.map(|word| format!("{}:{line}: {word}", file.path)));
        }
    }
    none("These folders are values and pure functions. Take what is read as an argument:", &broken);
}

fn floor(folder: &str) -> Option<usize> {
    FOLDERS.iter().position(|other| *other == folder)
}

/// The folders that the code names, with their lines: `crate::x`, `use crate::{x, y::z}`, `agent::x`.
fn uses(code: &[(usize, String)]) -> Vec<(usize, String)> {
    ["crate::", "agent::"].iter().flat_map(|root| uses_below(code, root)).collect()
}

/// The names that the code uses right below `root`, such as `crate::base::`, with their lines.
fn uses_below(code: &[(usize, String)], root: &str) -> Vec<(usize, String)> {
    // Joined, as a list in braces may span lines; `starts` leads back to the line.
    let mut joined = String::new();
    let mut starts = Vec::new();
    for (line, text) in code {
        starts.push((joined.len(), *line));
        joined.push_str(text);
        joined.push('\n');
    }
    let mut found = Vec::new();
    for (at, _) in joined.match_indices(root) {
        let before = joined[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
            continue;
        }
        let line = starts.iter().rfind(|(start, _)| *start <= at).map_or(0, |(_, line)| *line);
        found.extend(first_names(&joined[at + root.len()..]).into_iter().map(|name| (line, name)));
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
