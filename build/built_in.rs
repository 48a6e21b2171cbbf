//! Reads the files of `configs/`, `prompts/` and `skills/` as the program would: configuration and `release.yaml` as a
//! whole, the heads of prompts and skills, and the digests of composed prompts. A test of the program (`builtin`)
//! checks that the results equal what the program reads.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use sha2::{Digest, Sha256};

// The program's own reader. It uses more of the tree than the build does.
#[path = "../src/base/yaml/lines.rs"]
mod lines;
#[allow(dead_code)]
#[path = "../src/base/yaml/node.rs"]
mod node;
#[allow(dead_code)]
#[path = "../src/base/yaml/reader.rs"]
mod reader;

use node::{Node, ScalarForm, YamlPlace, YamlTree};

/// Writes `built_in.rs`: for each file its tree, packed as `src/base/yaml/packed.rs` unpacks it, and for each prompt its
/// digest.
pub fn make() {
    let (mut trees, mut digests) = (String::new(), String::new());
    for folder in ["configs", "prompts", "skills"] {
        println!("cargo::rerun-if-changed={folder}");
        for path in files(Path::new(folder)) {
            add(&path, &mut trees, &mut digests);
        }
    }
    println!("cargo::rerun-if-changed=src/base/yaml");
    let made = format!(
        "/// The packed tree of each file, or of its head.\nstatic TREES: &[(&str, &[u8])] = &[\n{trees}];\n\n\
         /// The digest of each prompt.\nstatic DIGESTS: &[(&str, &str)] = &[\n{digests}];\n"
    );
    let out = env::var_os("OUT_DIR").expect("cargo says where to");
    fs::write(Path::new(&out).join("built_in.rs"), made).expect("the build's own directory");
}

/// Every file below a folder, sorted, with `/` between the parts of its path.
fn files(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    let below = |path: &std::path::PathBuf| {
        if path.is_dir() { files(path) } else { vec![path.to_string_lossy().replace('\\', "/")] }
    };
    paths.iter().flat_map(below).collect()
}

fn add(path: &str, trees: &mut String, digests: &mut String) {
    let is_of = |folder: &str, kind: &str| {
        path.starts_with(folder) && Path::new(path).extension().is_some_and(|e| e == kind)
    };
    let is_prompt = is_of("prompts/", "md") && is_version(path);
    let is_yaml = is_of("configs/", "yaml") || path.starts_with("prompts/") && path.ends_with("/release.yaml");
    if !is_prompt && !is_yaml && !path.ends_with("/SKILL.md") {
        return;
    }
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    // The line break replaces the opening dashes, so places in the head are places in the file.
    let head =
        || text.strip_prefix("---\n").and_then(|rest| Some(format!("\n{}\n", rest.split_once("\n---\n")?.0)));
    let read = if is_yaml { text.clone() } else { head().unwrap_or_else(|| panic!("{path}: has no head")) };
    let node = reader::parse_tree(&read, 0).unwrap_or_else(|errors| panic!("{path}: {errors:?}"));
    if is_prompt {
        let _ = writeln!(digests, "    ({path:?}, {:?}),", digest(path, &text, &node));
    }
    let mut bytes = Vec::new();
    pack(&node, &mut bytes);
    let _ = writeln!(trees, "    ({path:?}, b\"{}\"),", bytes.escape_ascii());
}

/// True if a file is a version of a prompt: `vX.Y.md`.
fn is_version(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_prefix('v').and_then(|rest| rest.strip_suffix(".md")).is_some_and(|rest| version(rest).is_some())
}

fn version(written: &str) -> Option<(u32, u32)> {
    let (major, minor) = written.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The SHA-256 of a prompt: of its file, then of its examples, then of its modules, in their order.
fn digest(path: &str, text: &str, head: &Node) -> String {
    let mut hash = Sha256::new().chain_update(text);
    if let (Some(name), Some((folder, _))) = (head.get("examples").and_then(Node::text), path.rsplit_once('/')) {
        let file = format!("{folder}/{name}");
        hash.update(fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {file}: {error}")));
    }
    for section in head.get("modules").and_then(Node::items).unwrap_or_default() {
        let entry = section.entries().first().map_or(section, |(_, value)| value);
        let Some(reference) = entry.text().filter(|reference| *reference != "body") else { continue };
        // A module of a built-in prompt is named with its version.
        let file = match reference.split_once('@') {
            Some((name, version)) => format!("prompts/modules/{name}/v{}.md", version.trim_start_matches('v')),
            None => panic!("{path}: the module `{reference}` has no version"),
        };
        hash.update(fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {file}: {error}")));
    }
    hash.finalize().iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

fn pack(node: &Node, out: &mut Vec<u8>) {
    let (mark, parts) = match &node.tree {
        YamlTree::List(items) => (b'l', items.len()),
        YamlTree::Map(entries) => (b'm', entries.len()),
        YamlTree::Scalar(scalar) => match scalar.form {
            ScalarForm::Plain => (b'p', scalar.text.len()),
            ScalarForm::Block => (b'b', scalar.text.len()),
            _ => (b'q', scalar.text.len()),
        },
    };
    out.push(mark);
    pack_place(node.place, out);
    pack_number(parts, out);
    match &node.tree {
        YamlTree::Scalar(scalar) => out.extend(scalar.text.as_bytes()),
        YamlTree::List(items) => items.iter().for_each(|item| pack(item, out)),
        YamlTree::Map(entries) => {
            for (key, value) in entries {
                pack_place(key.place, out);
                pack_number(key.text.len(), out);
                out.extend(key.text.as_bytes());
                pack(value, out);
            }
        }
    }
}

fn pack_place(place: YamlPlace, out: &mut Vec<u8>) {
    pack_number(place.line, out);
    pack_number(place.column, out);
}

fn pack_number(number: usize, out: &mut Vec<u8>) {
    out.extend(u16::try_from(number).expect("built-in files are short").to_le_bytes());
}
