//! `edit_file`: replaces one passage of a file by another. `edit_match` finds the passage; the file keeps its line
//! endings, byte order mark and mode, and a failed edit shows the most similar lines.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::diff::{self, LineCounts};
use crate::base::output::{ToolError, ToolOutput};
use crate::config::{Permission, ToolEffect};
use crate::conversation::knowledge::{Familiarity, Ledger};
use crate::model::ToolDefinition;
use crate::safety::Reach;

use super::files::edit_match::{self, EditMatch, Replacement};
use super::files::encoding::TextEncoding;
use super::files::replace::replace_file;
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, files, parse_arguments};

/// `edit_file`: replaces one text of a file by another.
pub struct EditFile(ToolDefinition);

#[derive(Debug, Deserialize)]
struct EditFileArguments {
    path: String,
    #[serde(flatten)]
    only: Option<Passage>,
    /// In place of one passage, several: each in the text that those before it left.
    edits: Option<Vec<Passage>>,
}

/// A passage and what replaces it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Passage {
    old_text: String,
    new_text: String,
    replace_all: Option<bool>,
}

/// A change that can be made.
struct PlannedEdit {
    path: PathBuf,
    name: String,
    encoding: TextEncoding,
    old: String,
    new: String,
    /// The places in the new text, each with the number of its lines.
    places: Vec<EditedPlace>,
    forgiven: Option<&'static str>,
}

/// A place in the new text.
#[derive(Debug, Clone, Copy)]
struct EditedPlace {
    at: usize,
    lines: usize,
}

impl EditFile {
    pub fn new() -> Self {
        Self(ToolDefinition {
            previews_change: true,
            advice: "Read the file first. old_text is whole lines of it, copied exactly, spaces included, without the `12<tab>` that read_file puts before a line. If it occurs twice, include one more line.",
            reads: Some("path"),
            writes: Some("path"),
            ..define_tool(
                "edit_file",
                "Replaces a passage of a file. old_text must occur exactly once unless replace_all; \
                 copy it without line numbers.",
                (Permission::Write, &[ToolEffect::Files]),
                json!({
                    "path": { "type": "string" },
                    "old_text": { "type": "string" },
                    "new_text": { "type": "string" },
                    "replace_all": { "type": "boolean" },
                    "edits": {
                        "type": "array",
                        "items": { "type": "object" },
                        "description": "of {old_text, new_text, replace_all}",
                    },
                }),
                &["path"],
            )
        })
    }
}

impl Tool for EditFile {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn preview(&self, given: &Value, reach: &Reach, _: &Ledger) -> Result<String, ToolError> {
        let arguments: EditFileArguments = parse_arguments(given.clone())?;
        let planned = plan_edit(&arguments, reach)?;
        Ok(diff::unify(&planned.name, &planned.old, &planned.new))
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        // There is no await point: a call that has begun to write cannot be dropped halfway.
        Box::pin(async move {
            let arguments: EditFileArguments = parse_arguments(given)?;
            let planned = plan_edit(&arguments, context.reach)?;
            make_edit(&arguments.path, &planned, context.files)
        })
    }
}

fn make_edit(path: &str, planned: &PlannedEdit, ledger: &Ledger) -> Result<ToolOutput, ToolError> {
    let PlannedEdit { old, new, encoding, .. } = planned;
    let (before, after) = (encoding.encode(old, path)?, encoding.encode(new, path)?);
    let was_known = ledger.familiarity(&planned.path, &before) == Familiarity::Current;
    replace_file(&planned.path, &after).map_err(|error| files::word_failure(path, &error))?;
    // An edit proves that the passage was known, not the rest of the file.
    if was_known {
        ledger.remember(&planned.path, &after);
    }
    let change = LineCounts::count_changes(old, new);
    Ok(ToolOutput {
        result: json!({
            "path": planned.name, "replaced": planned.places.len(), "added": change.added, "removed": change.removed,
        }),
        observation: planned.observation(change),
        summary: diff::summarise_change(&change.to_string(), &diff::unify_nameless(old, new)),
        ..ToolOutput::default()
    })
}

impl PlannedEdit {
    /// Replaces these ranges of the text so far, which are in order.
    fn replace(&mut self, edits: &[Replacement]) {
        let gain = |edit: &Replacement| edit.new.len().cast_signed() - edit.range.len().cast_signed();
        for place in &mut self.places {
            let before = edits.iter().filter(|edit| edit.range.start < place.at);
            place.at = place.at.saturating_add_signed(before.map(gain).sum());
        }
        let mut moved: isize = 0;
        for edit in edits {
            let at = edit.range.start.saturating_add_signed(moved);
            moved += gain(edit);
            self.places.push(EditedPlace { at, lines: edit.new.lines().count() });
        }
        self.new = edit_match::apply_edits(&self.new, edits);
    }

    fn observation(&self, change: LineCounts) -> String {
        let mut places = self.places.clone();
        places.sort_by_key(|place| place.at);
        let mut lines = edit_match::lines_of(&self.new, places.iter().map(|place| place.at));
        lines.dedup();
        let name = &self.name;
        let mut out = match (lines.as_slice(), places.as_slice()) {
            ([first], [place]) => {
                let last = first + place.lines.saturating_sub(1);
                let range = if last > *first { format!("lines {first}-{last}") } else { format!("line {first}") };
                format!("edited {name}, {range} ({change})")
            }
            _ => format!("edited {name}, {} places, lines {} ({change})", places.len(), list_numbers(&lines)),
        };
        if let Some(forgiven) = self.forgiven {
            let _ = write!(out, "; matched although {forgiven} differ");
        }
        out
    }
}

/// Reads the file and finds the passages.
fn plan_edit(arguments: &EditFileArguments, reach: &Reach) -> Result<PlannedEdit, ToolError> {
    let path = &arguments.path;
    let passages: Vec<&Passage> = match (&arguments.only, &arguments.edits) {
        (Some(only), None) => vec![only],
        (None, Some(edits)) if !edits.is_empty() => edits.iter().collect(),
        (Some(_), Some(_)) => {
            return Err(ToolError::parameter("give old_text and new_text, or edits, not both"));
        }
        (None, _) => return Err(ToolError::parameter("give old_text and new_text, or a list of edits")),
    };
    let mut found = files::find_file(reach, path)?;
    let decoded = TextEncoding::decode(&files::read_for_change(path, &mut found, "edited here")?);
    let (old, encoding) =
        decoded.ok_or_else(|| ToolError::permanent(format!("{path} is no text: it is not edited here")))?;
    let name = reach.workspace().display(&found.path);
    let new = old.clone();
    let mut planned =
        PlannedEdit { path: found.path, name, encoding, old, new, places: Vec::new(), forgiven: None };
    for (number, passage) in passages.iter().enumerate() {
        let number = (passages.len() > 1).then_some(number + 1);
        plan_passage(&mut planned, path, passage).map_err(|error| match number {
            Some(number) => ToolError { message: format!("edit {number}: {}", error.message), ..error },
            None => error,
        })?;
    }
    Ok(planned)
}

fn plan_passage(planned: &mut PlannedEdit, path: &str, passage: &Passage) -> Result<(), ToolError> {
    let Passage { old_text, new_text, replace_all } = passage;
    if old_text.is_empty() {
        return Err(ToolError::parameter("old_text is empty: to create or fill a file use write_file"));
    }
    if old_text == new_text {
        return Err(ToolError::parameter("old_text and new_text are the same: nothing to change"));
    }
    match edit_match::find_match(&planned.new, old_text, new_text, replace_all.unwrap_or(false)) {
        EditMatch::Found { edits, forgiven } => {
            planned.replace(&edits);
            planned.forgiven = planned.forgiven.or(forgiven);
            Ok(())
        }
        EditMatch::Ambiguous { lines, forgiven } => Err(refuse_ambiguous(path, &lines, forgiven)),
        EditMatch::Missing => Err(refuse_missing(path, &planned.new, old_text)),
    }
}

fn refuse_ambiguous(path: &str, lines: &[usize], forgiven: Option<&str>) -> ToolError {
    let (count, listed) = (lines.len(), list_numbers(lines));
    ToolError::parameter(match forgiven {
        None => format!(
            "old_text occurs {count} times in {path}, at lines {listed}: add the lines around the one you mean, or \
             set replace_all"
        ),
        Some(forgiven) => format!(
            "old_text does not occur in {path} as written, and forgiving {forgiven} it occurs {count} times, at \
             lines {listed}: copy one passage exactly"
        ),
    })
}

fn refuse_missing(path: &str, content: &str, old: &str) -> ToolError {
    let mut message = format!("old_text does not occur in {path}");
    if has_line_numbers(old) {
        message += "; leave out the line numbers, they are not part of the file";
    }
    match edit_match::nearest_shown(content, old) {
        None => message += ", nor anything like it: read the file again",
        Some(passage) => {
            message += "; the nearest passage is\n";
            message += &passage;
        }
    }
    ToolError::parameter(message.trim_end())
}

/// True if every line begins like the output of `read_file`.
fn has_line_numbers(old: &str) -> bool {
    let numbered = |line: &str| {
        line.split_once('\t')
            .is_some_and(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    old.lines().all(numbered)
}

/// The first few of these line numbers.
fn list_numbers(lines: &[usize]) -> String {
    const MOST: usize = 10;
    let mut out = lines.iter().take(MOST).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > MOST {
        let _ = write!(out, " and {}", count_noun((lines.len() - MOST) as u64, "more", "more"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::read_file::ReadFile;
    use super::super::testing::Place;
    use super::super::write_file::WriteFile;
    use super::*;

    fn tool() -> EditFile {
        EditFile::new()
    }

    #[test]
    fn an_edit_says_which_lines_changed() {
        let place = Place::with(&[("a.rs", "one\ntwo\nthree\n")]);
        let arguments = json!({ "path": "a.rs", "old_text": "two\n", "new_text": "2\n2b\n" });
        let preview = tool().preview(&arguments, &place.reach(&tool(), &arguments), &place.files);
        assert_eq!(
            preview.expect("it applies"),
            "--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"
        );
        let output = place.call(&tool(), arguments).expect("the edit applies");
        assert_eq!(output.observation, "edited a.rs, lines 2-3 (+2 −1 lines)");
        assert_eq!(output.outcome(), "+2 −1 lines");
        assert_eq!(place.text("a.rs"), "one\n2\n2b\nthree\n");
    }

    #[test]
    fn all_occurrences_and_where_they_now_are() {
        let place = Place::with(&[("a", "x\nx\nx\n")]);
        let arguments = json!({ "path": "a", "old_text": "x", "new_text": "1\n2", "replace_all": true });
        assert_eq!(place.read(&tool(), arguments), "edited a, 3 places, lines 1, 3, 5 (+6 −3 lines)");
    }

    #[test]
    fn several_edits_are_made_one_after_another_or_none() {
        let place = Place::with(&[("a", "one\ntwo\nthree\n")]);
        let edit = |old: &str, new: &str| json!({ "old_text": old, "new_text": new });
        let edits = json!([edit("three", "3\n3"), edit("one\n", ""), edit("3\n3", "drei\nvier")]);
        let said = place.read(&tool(), json!({ "path": "a", "edits": edits }));
        assert_eq!(said, "edited a, 3 places, lines 1, 2 (+2 −2 lines)");
        assert_eq!(place.text("a"), "two\ndrei\nvier\n");
        let edits = json!([edit("two", "2"), edit("none", "x")]);
        assert!(
            place.fail(&tool(), json!({ "path": "a", "edits": edits })).starts_with("edit 2: old_text does not")
        );
        assert_eq!(place.text("a"), "two\ndrei\nvier\n");
        assert!(place.fail(&tool(), json!({ "path": "a" })).contains("or a list of edits"));
        let both = json!({ "path": "a", "old_text": "two", "new_text": "2", "edits": [edit("two", "3")] });
        assert!(place.fail(&tool(), both).contains("not both"));
        for (wrong, why) in [
            (json!({ "old_text": "two" }), "missing field `new_text`"),
            (json!({ "old_text": "two", "new_text": 5 }), "expected a string"),
            (json!({ "old_text": "two", "new_text": "2", "replaceall": true }), "unknown field `replaceall`"),
        ] {
            let said = place.fail(&tool(), json!({ "path": "a", "edits": [wrong] }));
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn what_was_forgiven_is_said() {
        let place = Place::with(&[("a", "\u{feff}it’s\r\n")]);
        let observation = place.read(&tool(), json!({ "path": "a", "old_text": "it's", "new_text": "it is" }));
        assert!(observation.contains("typographic punctuation differ"), "{observation}");
        assert_eq!(place.text("a"), "\u{feff}it is\r\n");
    }

    #[test]
    fn a_failed_edit_says_why_and_shows_the_nearest_lines() {
        let place =
            Place::with(&[("a.rs", "fn main() {\n    let total = compute(1, 2);\n    println!();\n}\nx\nx\n")]);
        let fail = |old: &str, new: &str| {
            place.fail(&tool(), json!({ "path": "a.rs", "old_text": old, "new_text": new }))
        };
        assert_eq!(
            fail("    let total = compute(1, 3);\n", ""),
            "old_text does not occur in a.rs; the nearest passage is\n1\tfn main() {\n2\t    let total = compute(1, 2);\n\
             3\t    println!();\n4\t}"
        );
        assert!(fail("x\n", "y").contains("occurs 2 times in a.rs, at lines 5, 6"));
        assert!(fail("2\t    let total = compute(1, 2);", "").contains("leave out the line numbers"));
        assert!(fail("zzzzzzzz", "").contains("nor anything like it"));
        assert!(fail("", "y").contains("write_file"));
        assert!(fail("x", "x").contains("nothing to change"));
    }

    #[test]
    fn an_edit_of_an_unread_file_does_not_make_the_rest_of_it_known() {
        let place = Place::with(&[("a", "one\ntwo\n")]);
        let (edit, write) = (EditFile::new(), WriteFile::new());
        let overwrite = json!({ "path": "a", "content": "" });
        place.read(&edit, json!({ "path": "a", "old_text": "one", "new_text": "1" }));
        assert!(place.fail(&write, overwrite.clone()).contains("was not read"));
        place.read(&ReadFile::new(), json!({ "path": "a" }));
        place.read(&edit, json!({ "path": "a", "old_text": "two", "new_text": "2" }));
        place.read(&write, overwrite);
    }

    #[test]
    fn a_file_stays_in_what_it_is_written_in() {
        let place = Place::new();
        let edit = |name: &str, old: &str, new: &str| json!({ "path": name, "old_text": old, "new_text": new });
        place.put("latin", b"caf\xe9\n");
        place.read(&tool(), edit("latin", "café", "thé"));
        assert_eq!(place.bytes("latin"), b"th\xe9\n");
        assert!(
            place.fail(&tool(), edit("latin", "thé", "茶")).contains("written in Windows-1252, which has no `茶`")
        );
        place.put("wide", b"\xff\xfeh\0i\0");
        place.read(&tool(), edit("wide", "hi", "中"));
        assert_eq!(place.bytes("wide"), b"\xff\xfe\x2d\x4e");
        place.put("binary", b"caf\xe9\0");
        assert!(place.fail(&tool(), edit("binary", "caf", "x")).contains("is no text"));
    }
}
