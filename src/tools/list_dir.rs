//! `list_dir`: the contents of a directory. Everything is listed; but below the first level, directories that
//! `.gitignore` excludes are named and not entered.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contract::{CallContext, Permission, Tool, ToolDefinition};
use crate::file_name;
use crate::output::{ToolError, ToolOutput};
use crate::workspace::Workspace;

use super::aside::{Abandoned, aside};
use super::files::walk::walk;
use super::{arguments, bytes_for, counted, definition, files, text_of};

const MOST_ENTRIES: usize = 500;
const MOST_DEPTH: usize = 8;

/// `list_dir`: the contents of a directory, to some depth.
pub struct ListDir {
    definition: ToolDefinition,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    path: Option<String>,
    depth: Option<usize>,
}

/// One line of a listing.
#[derive(Debug, Serialize)]
struct Entry {
    /// Relative to the listed directory.
    name: String,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    File,
    Dir,
    Link,
    Other,
}

impl ListDir {
    /// Lists nothing until it is called.
    pub fn new() -> Self {
        let definition = definition(
            "list_dir",
            "Lists a directory. Returns sorted names with sizes, at most 500; deeper levels skip what \
             .gitignore excludes. To find files use glob.",
            (Permission::Read, &[]),
            json!({
                "path": { "type": "string" },
                "depth": { "type": "integer", "default": 1, "description": "At most 8" },
            }),
            &[],
        );
        Self { definition }
    }
}

impl Tool for ListDir {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn reads<'a>(&self, arguments: &'a Value) -> Vec<&'a str> {
        text_of(arguments, "path").into_iter().collect()
    }

    fn subject(&self, arguments: &Value) -> String {
        text_of(arguments, "path").unwrap_or(".").to_owned()
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let workspace = context.workspace.clone();
        let budget = bytes_for(context.max_tokens);
        Box::pin(async move {
            let arguments: Arguments = arguments(given)?;
            aside(move |abandoned| list(&arguments, &workspace, budget, abandoned)).await
        })
    }
}

fn list(
    arguments: &Arguments,
    workspace: &Workspace,
    budget: usize,
    abandoned: &Abandoned,
) -> Result<ToolOutput, ToolError> {
    let dir = files::find_dir(workspace, arguments.path.as_deref())?;
    let path = workspace.display(&dir);
    let depth = arguments.depth.unwrap_or(1).clamp(1, MOST_DEPTH);
    let mut listing = Listing { root: &dir, depth, entered: entered(&dir, depth), entries: Vec::new(), abandoned };
    listing.read(&dir, 1).map_err(|error| files::failed(&path, &error))?;
    abandoned.check()?;

    let mut observation = String::new();
    let mut shown = 0;
    for entry in listing.entries.iter().take(MOST_ENTRIES) {
        let line = entry.line();
        if observation.len() + line.len() > budget {
            break;
        }
        observation += &line;
        shown += 1;
    }
    let total = listing.entries.len();
    if total == 0 {
        let _ = write!(observation, "[{path} is empty]");
    }
    if shown < total {
        let left_out = counted((total - shown) as u64, "more entry", "more entries");
        let _ = write!(observation, "[{left_out} not shown, {total} in all]");
    }
    listing.entries.truncate(shown);
    Ok(ToolOutput {
        result: json!({ "path": path, "entries": listing.entries, "total": total }),
        observation: observation.trim_end().to_owned(),
        summary: counted(total as u64, "entry", "entries"),
        truncated: shown < total,
        ..ToolOutput::default()
    })
}

/// The directories that are listed besides the first: those that no ignore file excludes.
fn entered(dir: &Path, depth: usize) -> HashSet<PathBuf> {
    if depth == 1 {
        return HashSet::new();
    }
    let dirs = walk(dir).max_depth(Some(depth - 1)).build().flatten();
    dirs.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir()))
        .map(ignore::DirEntry::into_path)
        .collect()
}

struct Listing<'a> {
    root: &'a Path,
    depth: usize,
    entered: HashSet<PathBuf>,
    entries: Vec<Entry>,
    abandoned: &'a Abandoned,
}

impl Listing<'_> {
    fn read(&mut self, dir: &Path, level: usize) -> std::io::Result<()> {
        let mut found: Vec<fs::DirEntry> = fs::read_dir(dir)?.flatten().collect();
        found.sort_by_key(fs::DirEntry::file_name);
        for file in found {
            if self.abandoned.get() {
                return Ok(());
            }
            let path = file.path();
            let Ok(metadata) = file.metadata() else { continue };
            let kind = match metadata.file_type() {
                kind if kind.is_dir() => Kind::Dir,
                kind if kind.is_file() => Kind::File,
                kind if kind.is_symlink() => Kind::Link,
                _ => Kind::Other,
            };
            let goes_on = kind == Kind::Dir && level < self.depth;
            let enter = goes_on && self.entered.contains(&path);
            let below = path.strip_prefix(self.root).unwrap_or(&path);
            self.entries.push(Entry {
                name: file_name::written(below).into_owned(),
                kind,
                size: (kind == Kind::File).then_some(metadata.len()),
                target: fs::read_link(&path).ok().map(|target| file_name::written(&target).into_owned()),
                ignored: goes_on && !enter,
            });
            if enter {
                // An unreadable directory is listed without its contents.
                let _ = self.read(&path, level + 1);
            }
        }
        Ok(())
    }
}

impl Entry {
    fn line(&self) -> String {
        let name = &self.name;
        let ignored = if self.ignored { " (ignored, not listed)" } else { "" };
        match self.kind {
            Kind::Dir => format!("{name}/{ignored}\n"),
            Kind::Link => format!("{name} -> {}\n", self.target.as_deref().unwrap_or("?")),
            Kind::File => format!("{name} {}\n", files::size(self.size.unwrap_or(0))),
            Kind::Other => format!("{name} (special)\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Place;
    use super::*;

    #[test]
    fn everything_is_listed_in_order() {
        let place = Place::with(&[("b.txt", "12345"), (".hidden", ""), ("a/x", ""), ("中.txt", "")]);
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", place.path("link")).expect("a link can be made");
        let output = place.call(&ListDir::new(), json!({})).expect("it can be listed");
        #[cfg(unix)]
        assert_eq!(output.observation, ".hidden 0 B\na/\nb.txt 5 B\nlink -> /etc\n中.txt 0 B");
        assert_eq!(output.result["entries"][2], json!({ "name": "b.txt", "kind": "file", "size": 5 }));
        assert_eq!((&output.result["total"], output.summary.as_str()), (&json!(5), "5 entries"));
    }

    #[test]
    fn deeper_levels_do_not_enter_what_is_ignored() {
        let place =
            Place::with(&[(".gitignore", "target/\n"), ("target/x/y", ""), ("src/a/b/c", ""), (".git/HEAD", "")]);
        let names = |depth| place.read(&ListDir::new(), json!({ "depth": depth }));
        assert_eq!(names(1), ".git/\n.gitignore 8 B\nsrc/\ntarget/");
        assert_eq!(
            names(2),
            ".git/ (ignored, not listed)\n.gitignore 8 B\nsrc/\nsrc/a/\ntarget/ (ignored, not listed)"
        );
        assert!(names(3).contains("src/a/b/\n") && !names(3).contains("src/a/b/ ("));
        // Asked for by name, it is listed.
        assert_eq!(place.read(&ListDir::new(), json!({ "path": "target", "depth": 2 })), "x/\nx/y 0 B");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let place = Place::new();
        (0..600).for_each(|n| place.put(&format!("f{n:03}"), ""));
        let output = place.call(&ListDir::new(), json!({})).expect("it can be listed");
        assert!(output.observation.ends_with("f499 0 B\n[100 more entries not shown, 600 in all]"));
        assert!(output.truncated);
    }

    #[test]
    fn what_is_no_directory_says_so() {
        let place = Place::with(&[("file", "")]);
        fs::create_dir(place.path("empty")).expect("it can be made");
        assert_eq!(place.fail(&ListDir::new(), json!({ "path": "file" })), "file is not a directory");
        assert!(place.fail(&ListDir::new(), json!({ "path": "fil" })).contains("near it: file"));
        assert_eq!(place.read(&ListDir::new(), json!({ "path": "empty" })), "[empty is empty]");
    }
}
