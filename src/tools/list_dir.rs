//! `list_dir`: lists the contents of a directory. Everything is listed, but below the first level, directories that
//! `.gitignore` excludes are named without being entered.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::config::Permission;
use crate::files::disk::{self, Dir};
use crate::files::{file_name, ignored::IgnoreFiles, regular::Links};
use crate::model::ToolDefinition;
use crate::safety::Reach;

use super::aside::{Abandoned, AsideContext, call_aside};
use super::files::walk::WalkGaps;
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, files, text_of};

const MOST_ENTRIES: usize = 500;
const MOST_DEPTH: usize = 8;

/// `list_dir`: the contents of a directory, to some depth.
pub struct ListDir(ToolDefinition);

#[derive(Debug, Deserialize)]
struct ListDirArguments {
    path: Option<String>,
    depth: Option<usize>,
}

/// One line of a listing.
#[derive(Debug, Serialize)]
struct ListedEntry {
    /// Relative to the listed directory.
    name: String,
    kind: ListedKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ignored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ListedKind {
    File,
    Dir,
    Link,
    Other,
}

impl ListDir {
    /// Lists nothing until it is called.
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Call it first in a workspace that you do not know.",
            returns: "{path, entries: [{name, kind, size}], total}",
            reads: Some("path"),
            ..define_tool(
                "list_dir",
                "Lists a directory. Returns sorted names with sizes, at most 500; deeper levels skip what \
                 .gitignore excludes.",
                (Permission::Read, &[]),
                json!({
                    "path": { "type": "string" },
                    "depth": { "type": "integer", "default": 1, "description": "At most 8" },
                }),
                &[],
            )
        })
    }
}

impl Tool for ListDir {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn subject(&self, arguments: &Value) -> String {
        text_of(arguments, "path").unwrap_or(".").to_owned()
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        call_aside(given, context, list_dir)
    }
}

fn list_dir(arguments: &ListDirArguments, aside: &AsideContext) -> Result<ToolOutput, ToolError> {
    let AsideContext { reach, budget, abandoned, whole, .. } = aside;
    let most = if *whole { usize::MAX } else { MOST_ENTRIES };
    let dir = files::find_dir(reach, arguments.path.as_deref())?;
    let path = reach.workspace().display(&dir);
    let depth = arguments.depth.unwrap_or(1).clamp(1, MOST_DEPTH);
    let ignored = IgnoreFiles::anywhere(Links::Refuse);
    let mut listing = DirListing {
        root: &dir,
        reach,
        depth,
        ignored,
        entries: Vec::new(),
        gaps: WalkGaps::default(),
        abandoned,
    };
    let opened = Dir::open(&dir).and_then(|opened| listing.read(&opened, &dir, 1));
    opened.map_err(|error| files::word_failure(&path, &error))?;
    abandoned.check()?;

    let mut observation = String::new();
    let mut shown = 0;
    for entry in listing.entries.iter().take(most) {
        let line = entry.line();
        if observation.len() + line.len() > *budget {
            break;
        }
        observation += &line;
        shown += 1;
    }
    let total = listing.entries.len();
    if total == 0 {
        let _ = writeln!(observation, "[{path} is empty]");
    }
    if shown < total {
        let left_out = count_noun((total - shown) as u64, "more entry", "more entries");
        let _ = writeln!(observation, "[{left_out} not shown, {total} in all]");
    }
    observation += &listing.gaps.describe(reach.workspace());
    if arguments.depth > Some(MOST_DEPTH) {
        let _ = write!(observation, "[listed to depth {MOST_DEPTH}, which is the most]");
    }
    listing.entries.truncate(shown);
    Ok(ToolOutput {
        result: json!({ "path": path, "entries": listing.entries, "total": total }),
        observation: observation.trim_end().to_owned(),
        summary: count_noun(total as u64, "entry", "entries"),
        truncated: shown < total,
        ..ToolOutput::default()
    })
}

struct DirListing<'a> {
    root: &'a Path,
    reach: &'a Reach,
    depth: usize,
    ignored: IgnoreFiles,
    entries: Vec<ListedEntry>,
    gaps: WalkGaps,
    abandoned: &'a Abandoned,
}

impl DirListing<'_> {
    /// Lists `dir`, whose path is `path`, and what is below it as far as no ignore file excludes it.
    fn read(&mut self, dir: &Dir, path: &Path, level: usize) -> std::io::Result<()> {
        let mut found = dir.entries()?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        for disk::DirEntry { name, kind } in found {
            if self.abandoned.get() {
                return Ok(());
            }
            let path = path.join(&name);
            if self.reach.omits(&path, self.root) {
                self.gaps.omitted += 1;
                continue;
            }
            let kind = match kind {
                disk::DirEntryKind::Dir => ListedKind::Dir,
                disk::DirEntryKind::File => ListedKind::File,
                disk::DirEntryKind::Link => ListedKind::Link,
                _ => ListedKind::Other,
            };
            let size = if kind == ListedKind::File { dir.facts(&name).ok().map(|facts| facts.len) } else { None };
            let target = if kind == ListedKind::Link { dir.link(&name).ok() } else { None };
            let goes_on = kind == ListedKind::Dir && level < self.depth;
            let enter = goes_on && name != ".git" && !self.ignored.has(&path, true);
            let below = path.strip_prefix(self.root).unwrap_or(&path);
            self.entries.push(ListedEntry {
                name: file_name::quote(below).into_owned(),
                kind,
                size,
                target: target.map(|target| file_name::quote(&target).into_owned()),
                ignored: goes_on && !enter,
            });
            if enter {
                // An unreadable directory is listed without its contents.
                let below = dir.dir(&name).and_then(|dir| self.read(&dir, &path, level + 1));
                below.unwrap_or_else(|error| self.gaps.add(&path, error));
            }
        }
        Ok(())
    }
}

impl ListedEntry {
    fn line(&self) -> String {
        let name = &self.name;
        let ignored = if self.ignored { " (ignored, not listed)" } else { "" };
        match self.kind {
            ListedKind::Dir => format!("{name}/{ignored}\n"),
            ListedKind::Link => format!("{name} -> {}\n", self.target.as_deref().unwrap_or("?")),
            ListedKind::File => format!("{name} {}\n", files::format_size(self.size.unwrap_or(0))),
            ListedKind::Other => format!("{name} (special)\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let deep = place.read(&ListDir::new(), json!({ "path": "target", "depth": 9 }));
        assert_eq!(deep, "x/\nx/y 0 B\n[listed to depth 8, which is the most]");
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
