//! Rings: the files of a room import one another from the bottom up, so that each can be read after those it names.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, none, rust};

/// Files that may form a ring all the same, by room, and why.
const KNOWN_RINGS: &[(&str, &[&str], &str)] = &[
    (
        "skills",
        &["catalogue", "check", "discover", "standard"],
        "discovering makes the skills that the catalogue holds; the standard's rules are told as the check's problems",
    ),
    (
        "agent/window",
        &["draft", "give_way", "importance", "plan", "staged", "summary"],
        "a plan is drafted by its own strategies, and says what its summary stands for",
    ),
];

/// A module, or the item of one, by the names on the way to it.
type Path = Vec<String>;

#[test]
fn the_files_of_a_room_form_no_ring() {
    let files = rust(&["src"]);
    let found = rings(&files);
    let holds = |(room, files, _): &(&str, &[&str], &str), of: &str, ring: &[String]| {
        *room == of && ring.iter().all(|file| files.contains(&file.as_str()))
    };
    let broken: Vec<String> = found
        .iter()
        .filter(|(room, ring)| !KNOWN_RINGS.iter().any(|known| holds(known, room, ring)))
        .map(|(room, ring)| format!("{room}: {}", ring.join(", ")))
        .collect();
    none("These files import one another in a ring. Move what they share into a file below them:", &broken);
    let gone: Vec<String> = KNOWN_RINGS
        .iter()
        .filter(|known| !found.iter().any(|(room, ring)| holds(known, room, ring)))
        .map(|(room, files, _)| format!("{room}: {}", files.join(", ")))
        .collect();
    none("These form no ring any more; take them out of tests/it/house/rings.rs:", &gone);
}

/// Every room with the names in it that reach one another, both sorted.
fn rings(files: &[Source]) -> Vec<(String, Vec<String>)> {
    let modules: BTreeMap<Path, &Source> = files.iter().map(|file| (module(file), file)).collect();
    let code = |file: &Source| file.code().into_iter().map(|(_, line)| line + "\n").collect::<String>();
    // The items that a room's root re-exports from its files: the path of the item, and that of the file.
    let mut passed_on = BTreeMap::new();
    for (room, file) in &modules {
        for line in code(file).split(';').filter_map(|statement| statement.trim().strip_prefix("pub use ")) {
            for tree in tree(line) {
                if let [child, .., item] = tree.as_slice() {
                    passed_on.insert(below(room, item), below(room, child));
                }
            }
        }
    }
    let mut edges: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (own, file) in &modules {
        for used in paths(&code(file), own) {
            for depth in 1..own.len().min(used.len()) {
                if own[..depth] != used[..depth] {
                    break;
                }
                let target = below(&own[..depth], &used[depth]);
                let target = passed_on.get(&target).unwrap_or(&target);
                let name = &target[depth];
                if modules.contains_key(target) && *name != own[depth] {
                    let from = (own[..depth].join("/"), own[depth].clone());
                    edges.entry(from).or_default().insert(name.clone());
                }
            }
        }
    }
    let mut rings = BTreeSet::new();
    for (room, name) in edges.keys() {
        let reached = reach(&edges, room, name);
        let ring: Vec<String> =
            reached.iter().filter(|other| reach(&edges, room, other).contains(name)).cloned().collect();
        if !ring.is_empty() {
            rings.insert((room.clone(), ring));
        }
    }
    rings.into_iter().collect()
}

fn reach(edges: &BTreeMap<(String, String), BTreeSet<String>>, room: &str, name: &str) -> BTreeSet<String> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = next.pop() {
        for used in edges.get(&(room.to_owned(), name)).into_iter().flatten() {
            if seen.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    seen
}

/// `src/model/sse.rs` → `model`, `sse`; `src/model/mod.rs` → `model`.
fn module(file: &Source) -> Path {
    let path = file.path.trim_start_matches("src/").trim_end_matches(".rs");
    path.split('/').filter(|name| *name != "mod").map(str::to_owned).collect()
}

fn below(room: &[String], name: &str) -> Path {
    room.iter().cloned().chain([name.to_owned()]).collect()
}

/// Every path of the code that begins with `crate` or `super`, from the root of the package.
fn paths(code: &str, own: &[String]) -> Vec<Path> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        let before = code[..at].trim_end_matches("super::");
        if before.len() < at || before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = code[at..].trim_start_matches("super::");
        let ups = (code.len() - at - rest.len()) / "super::".len();
        let root = &own[..own.len().saturating_sub(ups)];
        let (root, rest) = if ups == 0 { (&own[..0], &rest["crate::".len()..]) } else { (root, rest) };
        found.extend(tree(rest).into_iter().map(|path| [root, &path].concat()));
    }
    found
}

/// The paths of a tree as `use` writes it: `a::{b, c::d}` → `a::b`, `a::c::d`.
fn tree(text: &str) -> Vec<Path> {
    fn walk<'t>(mut text: &'t str, prefix: &mut Path, found: &mut Vec<Path>) -> &'t str {
        let depth = prefix.len();
        loop {
            text = text.trim_start();
            if let Some(mut rest) = text.strip_prefix('{') {
                loop {
                    rest = walk(rest, prefix, found).trim_start();
                    match rest.strip_prefix(',') {
                        Some(more) => rest = more,
                        None => break,
                    }
                }
                prefix.truncate(depth);
                return rest.trim_start_matches('}');
            }
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
            let (name, rest) = text.split_at(end);
            if !name.is_empty() && name != "self" {
                prefix.push(name.to_owned());
            }
            match rest.strip_prefix("::") {
                Some(rest) => text = rest,
                None => {
                    if prefix.len() > depth || name == "self" {
                        found.push(prefix.clone());
                    }
                    prefix.truncate(depth);
                    // `a as b` names `a`.
                    let renamed = rest.trim_start().strip_prefix("as ").unwrap_or(rest);
                    return renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(text, &mut Path::new(), &mut found);
    found
}

#[test]
fn rings_are_found_through_what_a_room_passes_on() {
    let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let files = [
        file("src/a/mod.rs", "mod b;\nmod c;\nmod d;\npub use c::{C, Other as D};\n"),
        file("src/a/b.rs", "use super::{C, d::{self, E}};\n"),
        file("src/a/c.rs", "fn f() { crate::a::b::g() }\n"),
        file("src/a/d.rs", "use crate::text;\n"),
        file("src/text.rs", "\n"),
    ];
    assert_eq!(rings(&files), [("a".to_owned(), vec!["b".to_owned(), "c".to_owned()])]);
    let names = |text: &str| tree(text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(names("a::{self, b, c::{d as e, f}};"), ["a", "a::b", "a::c::d", "a::c::f"]);
    assert_eq!(names("a::b(c)"), ["a::b"]);
}
