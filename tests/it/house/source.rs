//! The files of the tree, read for the rules: what is code, and what is comment, text or an inline test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A source file, its path relative to the package (`src/model/sse.rs`).
pub struct Source {
    pub path: String,
    pub text: String,
}

/// The directory of the package.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files below these directories.
pub fn rust(dirs: &[&str]) -> Vec<Source> {
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    let mut files: Vec<PathBuf> =
        dirs.iter().flat_map(|dir| below(&package().join(dir))).filter(is_rust).collect();
    files.sort();
    files
        .into_iter()
        .map(|path| Source {
            text: fs::read_to_string(&path).expect("a source file is UTF-8"),
            path: relative(&path),
        })
        .collect()
}

/// Every file below `dir`, whatever its kind; nothing where there is no such directory.
pub fn below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().map(|entry| entry.expect("an entry of the tree")) {
        let path = entry.path();
        if path.is_dir() {
            files.extend(below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

pub fn relative(path: &Path) -> String {
    path.strip_prefix(package()).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

impl Source {
    /// The file without its inline tests.
    pub fn production(&self) -> &str {
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }

    /// The code alone, with its line numbers: comments gone, the insides of plain string literals blanked.
    pub fn code(&self) -> Vec<(usize, String)> {
        code_lines(self.production())
    }

    /// The code of the whole file, inline tests included.
    pub fn all_code(&self) -> Vec<(usize, String)> {
        code_lines(&self.text)
    }

    /// True for a file that is compiled only for tests.
    pub fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/tests/")
            || name.ends_with("tests.rs")
            || ["cases.rs", "conversations.rs", "damage.rs", "histories.rs", "testing.rs"].contains(&name)
    }

    /// The folder of a file: `src/model/sse.rs` belongs to `model`, `src/main.rs` to `main`.
    pub fn folder(&self) -> Option<&str> {
        let rest = self.path.strip_prefix("src/")?;
        let folder = rest.split('/').next()?;
        Some(folder.strip_suffix(".rs").unwrap_or(folder))
    }
}

fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut in_block = false;
    let mut out = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = code_of(line, &mut in_block);
        if !code.trim().is_empty() {
            out.push((index + 1, code));
        }
    }
    out
}

/// One line without comments and without what stands between quotes. String literals over several lines keep their
/// words: a rule that trips over one is better off with other words there.
fn code_of(line: &str, in_block: &mut bool) -> String {
    let mut out = String::new();
    let mut rest = line;
    loop {
        if *in_block {
            let Some(end) = rest.find("*/") else { return out };
            *in_block = false;
            rest = &rest[end + 2..];
        }
        let mut chars = rest.char_indices();
        let mut quoted = false;
        let mut stop = None;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if quoted => {
                    chars.next();
                }
                '"' if !rest[..at].ends_with('\'') => {
                    quoted = !quoted;
                    out.push('"');
                }
                _ if quoted => {}
                '/' if rest[at..].starts_with("//") => return out,
                '/' if rest[at..].starts_with("/*") => {
                    stop = Some(at + 2);
                    break;
                }
                c => out.push(c),
            }
        }
        match stop {
            Some(at) => {
                *in_block = true;
                rest = &rest[at..];
            }
            None => return out,
        }
    }
}

/// Fails with the rule and every place that breaks it.
#[track_caller]
pub fn none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}\n\n  {}\n", broken.join("\n  "));
}

/// Shows the rule and every place that breaks it, and lets the test pass: a word may be the right one.
pub fn few(rule: &str, broken: &[String]) {
    if !broken.is_empty() {
        // The handle, because what `eprintln!` writes is shown only when a test fails.
        let _ = writeln!(std::io::stderr(), "warning: {rule}\n\n  {}\n", broken.join("\n  "));
    }
}

#[test]
fn code_is_told_from_comment_and_text() {
    let mut block = false;
    for (line, code) in [
        ("let x = 1; // not this", "let x = 1; "),
        ("say(\"crate::llm // no\"); y", "say(\"\"); y"),
        ("a /* b */ c", "a  c"),
        ("'\"' x", "'\"' x"),
    ] {
        assert_eq!(code_of(line, &mut block), code, "{line}");
    }
}
