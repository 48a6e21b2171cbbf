//! Reads the files of `configs/`, `prompts/` and `skills/` as the program would: configuration and `release.yaml` as a
//! whole, the heads of prompts and skills, and the fingerprints of prompts. A test of the program (`builtin`) holds what
//! is made here to what the program reads.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use sha2::{Digest, Sha256};

// The program's own reader. It uses more of the tree than the build does.
#[path = "../src/yaml/lines.rs"]
mod lines;
#[allow(dead_code)]
#[path = "../src/yaml/node.rs"]
mod node;
#[allow(dead_code)]
#[path = "../src/yaml/reader.rs"]
mod reader;

use node::{Form, Node, Place, Tree};

/// Writes `built_in.rs`: for each file its tree, packed as `src/yaml/packed.rs` unpacks it, and its fingerprint.
pub fn make() {
    let (mut trees, mut fingerprints) = (String::new(), String::new());
    for folder in ["configs", "prompts", "skills"] {
        println!("cargo::rerun-if-changed={folder}");
        for path in files(Path::new(folder)) {
            add(&path, &mut trees, &mut fingerprints);
        }
    }
    println!("cargo::rerun-if-changed=src/yaml");
    let made = format!(
        "/// The packed tree of each file, or of its head.\nstatic TREES: &[(&str, &[u8])] = &[\n{trees}];\n\n\
         /// The fingerprint of each prompt.\nstatic FINGERPRINTS: &[(&str, &str)] = &[\n{fingerprints}];\n"
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

fn add(path: &str, trees: &mut String, fingerprints: &mut String) {
    let is_of = |folder: &str, kind: &str| {
        path.starts_with(folder) && Path::new(path).extension().is_some_and(|e| e == kind)
    };
    let is_prompt = is_of("prompts/", "md");
    let is_yaml = is_of("configs/", "yaml") || is_of("prompts/", "yaml");
    if !is_prompt && !is_yaml && !path.ends_with("/SKILL.md") {
        return;
    }
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    if is_prompt {
        let digest = Sha256::digest(text.as_bytes());
        let digits = digest.iter().take(6).fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"));
        let _ = writeln!(fingerprints, "    ({path:?}, {digits:?}),");
    }
    // The line break replaces the opening dashes, so places in the head are places in the file.
    let head =
        || text.strip_prefix("---\n").and_then(|rest| Some(format!("\n{}\n", rest.split_once("\n---\n")?.0)));
    let read = if is_yaml { text.clone() } else { head().unwrap_or_else(|| panic!("{path}: has no head")) };
    let node = reader::tree(&read, 0).unwrap_or_else(|errors| panic!("{path}: {errors:?}"));
    let mut bytes = Vec::new();
    pack(&node, &mut bytes);
    let _ = writeln!(trees, "    ({path:?}, b\"{}\"),", bytes.escape_ascii());
}

fn pack(node: &Node, out: &mut Vec<u8>) {
    let (mark, parts) = match &node.tree {
        Tree::List(items) => (b'l', items.len()),
        Tree::Map(entries) => (b'm', entries.len()),
        Tree::Scalar(scalar) => match scalar.form {
            Form::Plain => (b'p', scalar.text.len()),
            Form::Block => (b'b', scalar.text.len()),
            _ => (b'q', scalar.text.len()),
        },
    };
    out.push(mark);
    pack_place(node.place, out);
    pack_number(parts, out);
    match &node.tree {
        Tree::Scalar(scalar) => out.extend(scalar.text.as_bytes()),
        Tree::List(items) => items.iter().for_each(|item| pack(item, out)),
        Tree::Map(entries) => {
            for (key, value) in entries {
                pack_place(key.place, out);
                pack_number(key.text.len(), out);
                out.extend(key.text.as_bytes());
                pack(value, out);
            }
        }
    }
}

fn pack_place(place: Place, out: &mut Vec<u8>) {
    pack_number(place.line, out);
    pack_number(place.column, out);
}

fn pack_number(number: usize, out: &mut Vec<u8>) {
    out.extend(u16::try_from(number).expect("built-in files are short").to_le_bytes());
}
