//! `glob`: finds files by a pattern for their paths, sorted.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::output::{ToolError, ToolOutput};
use crate::config::Permission;
use crate::files::disk::{Dir, DirEntry};
use crate::model::ToolDefinition;

use super::aside::{AsideContext, call_aside};
use super::files::walk::{SearchPattern, walk_files};
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, files, text_of};

const MOST_FILES: usize = 200;

/// `glob`: the files whose paths match a pattern.
pub struct Glob(ToolDefinition);

#[derive(Debug, Deserialize)]
struct GlobArguments {
    pattern: String,
    path: Option<String>,
}

impl Glob {
    /// Compiles nothing until it is called.
    pub fn new() -> Self {
        Self(ToolDefinition {
            advice: "Example: {\"pattern\": \"tests/**/*_test.py\"}.",
            returns: "{files: [path], total}",
            reads: Some("path"),
            ..define_tool(
                "glob",
                "Finds files by name. Returns sorted paths, at most 200; honours .gitignore. A pattern without / \
                 matches at any depth.",
                (Permission::Read, &[]),
                json!({
                    "pattern": { "type": "string", "description": "src/**/*.{ts,tsx}" },
                    "path": { "type": "string" },
                }),
                &["pattern"],
            )
        })
    }
}

impl Tool for Glob {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn subject(&self, arguments: &Value) -> String {
        let pattern = text_of(arguments, "pattern").unwrap_or_default();
        text_of(arguments, "path").map_or_else(|| pattern.to_owned(), |path| format!("{pattern} in {path}"))
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        call_aside(given, context, find_paths)
    }
}

fn find_paths(arguments: &GlobArguments, aside: &AsideContext) -> Result<ToolOutput, ToolError> {
    let AsideContext { reach, budget, abandoned, whole, .. } = aside;
    let most = if *whole { usize::MAX } else { MOST_FILES };
    let pattern = SearchPattern::new(&arguments.pattern)?;
    let dir = files::find_dir(reach, arguments.path.as_deref())?;
    let found = Mutex::new(Vec::new());
    let gaps = walk_files(&dir, reach, abandoned, || {
        |_: &Dir, _: &DirEntry, path: PathBuf| {
            if pattern.matches(&dir, &path) {
                found.lock().expect("no holder of the lock panics").push(path);
            }
        }
    });
    let mut found = found.into_inner().expect("no holder of the lock panics");
    abandoned.check()?;
    let total = found.len();
    // If there are too many, only the shown ones need an order.
    if total > most {
        found.select_nth_unstable(most);
        found.truncate(most);
    }
    found.sort_unstable();
    let mut names: Vec<String> = Vec::new();
    let mut bytes = 0;
    for path in &found {
        let name = reach.workspace().display(path);
        bytes += name.len() + 1;
        if bytes > *budget {
            break;
        }
        names.push(name);
    }
    let truncated = names.len() < total;
    let mut observation = names.join("\n");
    if total == 0 {
        observation = format!("[no file matches {}; ignored files are not searched]", arguments.pattern);
    } else if truncated {
        let left_out = count_noun((total - names.len()) as u64, "more file", "more files");
        let _ = write!(observation, "\n[{left_out} not shown, {total} in all: narrow the pattern]");
    }
    let _ = write!(observation, "\n{}", gaps.describe(reach.workspace()));
    Ok(ToolOutput {
        result: json!({ "files": names, "total": total }),
        observation: observation.trim_end_matches('\n').to_owned(),
        summary: count_noun(total as u64, "file", "files"),
        truncated,
        ..ToolOutput::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Place;
    use super::*;

    #[test]
    fn files_are_found_and_sorted() {
        let place = Place::with(&[
            ("src/main.rs", ""),
            ("src/a/文.rs", ""),
            ("build.rs", ""),
            (".github/ci.yml", ""),
            ("target/x.rs", ""),
            (".gitignore", "target\n"),
        ]);
        let glob = |arguments| place.read(&Glob::new(), arguments);
        assert_eq!(glob(json!({ "pattern": "*.rs" })), "build.rs\nsrc/a/文.rs\nsrc/main.rs");
        assert_eq!(glob(json!({ "pattern": "*.rs", "path": "src" })), "src/a/文.rs\nsrc/main.rs");
        assert_eq!(glob(json!({ "pattern": "**/*.yml" })), ".github/ci.yml");
        assert_eq!(glob(json!({ "pattern": "x.rs", "path": "target" })), "target/x.rs");
        assert!(glob(json!({ "pattern": "x.rs" })).contains("no file matches x.rs"));
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let place = Place::new();
        (0..250).for_each(|n| place.put(&format!("f{n:03}"), ""));
        let output = place.call(&Glob::new(), json!({ "pattern": "f*" })).expect("it can be searched");
        assert!(output.observation.ends_with("f199\n[50 more files not shown, 250 in all: narrow the pattern]"));
        assert_eq!((&output.result["total"], output.truncated), (&json!(250), true));
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_cannot_be_read_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let place = Place::with(&[("shut/a", "")]);
        let set = |mode| std::fs::set_permissions(place.path("shut"), std::fs::Permissions::from_mode(mode));
        set(0).expect("it can be set");
        let said = place.read(&Glob::new(), json!({ "pattern": "b" }));
        // Root may read whatever the mode.
        let is_shut = std::fs::read_dir(place.path("shut")).is_err();
        assert_eq!(said.ends_with("\n[1 directory could not be read: shut: no permission]"), is_shut, "{said}");
        set(0o700).expect("it can be set");
    }

    #[test]
    fn a_bad_pattern_says_so() {
        assert!(Place::new().fail(&Glob::new(), json!({ "pattern": "{a" })).contains("not a valid pattern"));
    }
}
