//! `write_file`: writes a whole file, new or replaced. A file that the session has not read, or that has changed since,
//! is not overwritten; encoding, line endings and byte order mark of the old content are kept.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::diff::{self, LineCounts};
use crate::base::output::{ToolError, ToolOutput};
use crate::config::{Permission, ToolEffect};
use crate::conversation::knowledge::{Familiarity, Ledger};
use crate::model::ToolDefinition;
use crate::safety::Reach;

use super::files::encoding::TextEncoding;
use super::files::replace::replace_file;
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, files, parse_arguments};

const BOM: &str = "\u{feff}";

/// `write_file`: a file as a whole.
pub struct WriteFile(ToolDefinition);

#[derive(Debug, Deserialize)]
struct WriteFileArguments {
    path: String,
    content: String,
}

impl WriteFile {
    pub fn new() -> Self {
        Self(ToolDefinition {
            previews_change: true,
            advice: "Give the whole text, never `... rest as before`.",
            writes: Some("path"),
            ..define_tool(
                "write_file",
                "Creates or wholly replaces a file. Makes missing directories; refuses to overwrite what was not read before or has changed. For small changes use edit_file.",
                (Permission::Write, &[ToolEffect::Files]),
                json!({
                    "path": { "type": "string" },
                    "content": { "type": "string" },
                }),
                &["path", "content"],
            )
        })
    }
}

impl Tool for WriteFile {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn preview(&self, given: &Value, reach: &Reach, files: &Ledger) -> Result<String, ToolError> {
        let arguments: WriteFileArguments = parse_arguments(given.clone())?;
        let planned = plan_write(&arguments, reach, files)?;
        Ok(diff::unify(&planned.name, &planned.old, &planned.new))
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        // There is no await point: a call that has begun to write cannot be dropped halfway.
        Box::pin(async move {
            let arguments: WriteFileArguments = parse_arguments(given)?;
            write_content(&arguments, context.reach, context.files)
        })
    }
}

/// The change that a call would make.
struct PlannedWrite {
    target: PathBuf,
    name: String,
    created: bool,
    old: String,
    new: String,
    /// The new text as it is written.
    bytes: Vec<u8>,
    /// The former encoding, if it lacks a character of the new text.
    left: Option<TextEncoding>,
}

fn plan_write(arguments: &WriteFileArguments, reach: &Reach, ledger: &Ledger) -> Result<PlannedWrite, ToolError> {
    let path = arguments.path.as_str();
    let target = reach.find(path)?;
    let name = reach.workspace().display(&target);
    let old = files::read_existing(reach, path, "overwritten")?;
    let created = old.is_none();
    let old = old.unwrap_or_default();
    refuse_unfamiliar(path, ledger.familiarity(&target, &old), &old)?;
    let (old, encoding) = TextEncoding::transcode(&old);
    let old = String::from_utf8_lossy(&old).into_owned();
    let new = in_the_manner_of(&old, &arguments.content);
    let (bytes, left) = match encoding.encode(&new, path) {
        Ok(bytes) => (bytes, None),
        Err(_) => (new.clone().into_bytes(), Some(encoding)),
    };
    Ok(PlannedWrite { target, name, created, old, new, bytes, left })
}

fn write_content(arguments: &WriteFileArguments, reach: &Reach, ledger: &Ledger) -> Result<ToolOutput, ToolError> {
    let PlannedWrite { target, name, created, old, new, bytes, left } = plan_write(arguments, reach, ledger)?;
    replace_file(&target, &bytes).map_err(|error| files::word_failure(&arguments.path, &error))?;
    ledger.remember(&target, &bytes);

    let change = LineCounts::count_changes(&old, &new);
    let lines = count_noun(new.lines().count() as u64, "line", "lines");
    let mut observation = if created {
        format!("created {name}, {lines}")
    } else if old == new {
        format!("{name} already held exactly this, {lines}")
    } else {
        format!("replaced {name}, {lines} ({change})")
    };
    if let Some(left) = left {
        let _ = write!(observation, "; written in UTF-8 now: {} lacks some of its characters", left.name());
    }
    Ok(ToolOutput {
        result: json!({ "path": name, "created": created, "added": change.added, "removed": change.removed }),
        observation,
        summary: diff::summarise_change(&change.to_string(), &diff::unify_nameless(&old, &new)),
        ..ToolOutput::default()
    })
}

fn refuse_unfamiliar(path: &str, familiarity: Familiarity, old: &[u8]) -> Result<(), ToolError> {
    let reason = match familiarity {
        // There is nothing to lose in an empty file, or in none.
        _ if old.is_empty() => return Ok(()),
        Familiarity::Current => return Ok(()),
        Familiarity::Unseen => "exists and was not read in this session".to_owned(),
        Familiarity::Begun { lines } => {
            format!("was not read as a whole (go on with offset={}, or use edit_file)", lines + 1)
        }
        Familiarity::Changed => "has changed since it was last read".to_owned(),
    };
    Err(ToolError::permanent(format!("{path} {reason}, so it was not overwritten: read it, then write it again")))
}

/// `new` with the byte order mark of `old`, and with its line endings if they are all CRLF.
fn in_the_manner_of(old: &str, new: &str) -> String {
    let feeds = old.matches('\n').count();
    let crlf = feeds > 0 && old.matches("\r\n").count() == feeds;
    let mut out = if crlf { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new.to_owned() };
    if old.starts_with(BOM) && !out.starts_with(BOM) {
        out.insert_str(0, BOM);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::read_file::ReadFile;
    use super::super::testing::Place;
    use super::*;

    fn tools() -> (ReadFile, WriteFile) {
        (ReadFile::new(), WriteFile::new())
    }

    #[test]
    fn a_new_file_gets_its_directories() {
        let (place, (_, write)) = (Place::new(), tools());
        let output =
            place.call(&write, json!({ "path": "a/b/新.txt", "content": "一\n二\n" })).expect("it is written");
        assert_eq!(output.observation, "created a/b/新.txt, 2 lines");
        assert_eq!(output.outcome(), "+2 −0 lines");
        assert_eq!(place.text("a/b/新.txt"), "一\n二\n");
    }

    #[test]
    fn only_what_was_read_is_overwritten() {
        let (place, (read, write)) = (Place::with(&[("a.txt", "old\n")]), tools());
        let arguments = json!({ "path": "a.txt", "content": "new\n" });
        assert!(place.fail(&write, arguments.clone()).contains("was not read in this session"));
        place.read(&read, json!({ "path": "a.txt" }));
        place.put("a.txt", "changed\n");
        assert!(place.fail(&write, arguments.clone()).contains("has changed since"));
        assert_eq!(place.text("a.txt"), "changed\n");
        place.read(&read, json!({ "path": "./a.txt" }));
        assert_eq!(place.read(&write, arguments.clone()), "replaced a.txt, 1 line (+1 −1 lines)");
        // The session knows a file that it wrote itself.
        assert_eq!(place.read(&write, arguments), "a.txt already held exactly this, 1 line");
    }

    #[test]
    fn what_was_read_in_part_is_not_overwritten() {
        let (place, (read, write)) = (Place::with(&[("a.txt", &"line\n".repeat(2500))]), tools());
        let arguments = json!({ "path": "a.txt", "content": "new\n" });
        place.read(&read, json!({ "path": "a.txt", "offset": 2400 }));
        assert!(
            place.fail(&write, arguments.clone()).contains("as a whole (go on with offset=1, or use edit_file)")
        );
        place.read(&read, json!({ "path": "a.txt" }));
        assert!(
            place
                .fail(&write, arguments.clone())
                .contains("as a whole (go on with offset=2001, or use edit_file)")
        );
        place.read(&read, json!({ "path": "a.txt", "offset": 2001 }));
        assert_eq!(place.read(&write, arguments), "replaced a.txt, 1 line (+1 −2500 lines)");
        place.put("binary", b"\x89PNG\0");
        place.read(&read, json!({ "path": "binary" }));
        assert!(place.read(&write, json!({ "path": "binary", "content": "x" })).starts_with("replaced binary"));
    }

    #[test]
    fn line_endings_and_byte_order_mark_are_kept() {
        let (place, (read, write)) = (Place::with(&[("a.txt", "\u{feff}a\r\nb\r\n")]), tools());
        place.read(&read, json!({ "path": "a.txt" }));
        place.read(&write, json!({ "path": "a.txt", "content": "a\nc\r\n" }));
        assert_eq!(place.text("a.txt"), "\u{feff}a\r\nc\r\n");
    }

    #[test]
    fn a_file_stays_written_in_what_it_was_if_that_has_all_characters() {
        let (place, (read, write)) = (Place::new(), tools());
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        place.put("wide", utf16("\u{feff}a\r\nb\r\n"));
        place.put("latin", b"caf\xe9\n");
        for name in ["wide", "latin"] {
            place.read(&read, json!({ "path": name }));
        }
        place.read(&write, json!({ "path": "wide", "content": "中\nb\n" }));
        assert_eq!(place.bytes("wide"), utf16("\u{feff}中\r\nb\r\n"));
        place.read(&write, json!({ "path": "latin", "content": "thé\n" }));
        assert_eq!(place.bytes("latin"), b"th\xe9\n");
        let said = place.read(&write, json!({ "path": "latin", "content": "茶\n" }));
        assert!(said.ends_with("; written in UTF-8 now: Windows-1252 lacks some of its characters"), "{said}");
        assert_eq!(place.text("latin"), "茶\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let (place, (_, write)) = (Place::with(&[("target", "")]), tools());
        std::os::unix::fs::symlink("target", place.path("link")).expect("a link can be made");
        std::os::unix::fs::symlink("fresh", place.path("dangling")).expect("a link can be made");
        place.read(&write, json!({ "path": "link", "content": "x" }));
        place.read(&write, json!({ "path": "dangling", "content": "y" }));
        assert!(place.path("link").is_symlink() && place.path("dangling").is_symlink());
        assert_eq!((place.text("target"), place.text("fresh")), ("x".to_owned(), "y".to_owned()));
    }

    #[test]
    fn what_cannot_be_written_says_why() {
        let (place, (_, write)) = (Place::with(&[("file", "x"), ("dir/x", "")]), tools());
        let fail = |path: &str| place.fail(&write, json!({ "path": path, "content": "" }));
        assert!(fail("file/below").contains("is a file, not a directory"));
        assert!(fail("dir").contains("is a directory"));
        assert!(fail("").contains("names no file"));
        assert!(fail("a\0b").contains("cannot be the path of a file: leave out zero bytes"), "{}", fail("a\0b"));
        assert!(fail("/dev/null").contains("is a device"));
        assert_eq!(place.text("file"), "x");
    }

    #[cfg(unix)]
    #[test]
    fn a_read_only_file_is_not_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let (place, (read, write)) = (Place::with(&[("a.txt", "old")]), tools());
        place.read(&read, json!({ "path": "a.txt" }));
        std::fs::set_permissions(place.path("a.txt"), std::fs::Permissions::from_mode(0o444))
            .expect("it can be set");
        let may_write_anything = std::fs::OpenOptions::new().write(true).open(place.path("a.txt")).is_ok();
        let outcome = place.call(&write, json!({ "path": "a.txt", "content": "new" }));
        // Root may write whatever the mode.
        assert_eq!(outcome.is_ok(), may_write_anything);
        assert_eq!(place.text("a.txt"), if may_write_anything { "new" } else { "old" });
    }

    #[test]
    fn the_preview_is_the_diff() {
        let (place, (read, write)) = (Place::with(&[("a.txt", "a\nb\n")]), tools());
        let arguments = json!({ "path": "a.txt", "content": "a\nc\n" });
        assert!(
            write.preview(&arguments, &place.reach(&write, &arguments), &place.files).is_err(),
            "it was not read: there is nothing to ask"
        );
        place.read(&read, json!({ "path": "a.txt" }));
        let preview = write.preview(&arguments, &place.reach(&write, &arguments), &place.files);
        assert_eq!(preview.expect("it would work"), "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert_eq!(write.writes(&json!({ "path": "a.txt" })), ["a.txt"]);
    }
}
