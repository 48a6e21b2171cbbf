//! `apply_patch`: changes in several files at once, all of them or none.
//!
//! Everything is read and checked before anything is written; each file is replaced atomically, and if a later
//! write fails, the earlier ones are undone.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::base::diff::{self, LineCounts};
use crate::base::output::{ToolError, ToolOutput};
use crate::base::text;
use crate::config::{Permission, ToolEffect};
use crate::conversation::knowledge::{Familiarity, Ledger};
use crate::model::ToolDefinition;
use crate::safety::Reach;

use super::files::encoding::TextEncoding;
use super::files::replace::ReplaceStep;
use super::files::{self, edit_match, replace};
use super::patch::matching::{self, Misfit};
use super::patch::{self, FilePatch, PatchAction, PatchHunk};
use super::{CallContext, Tool, ToolFuture, count_noun, define_tool, parse_arguments, text_of};

/// `apply_patch`: a patch of several files.
pub struct ApplyPatch(ToolDefinition);

#[derive(Debug, Deserialize)]
struct PatchArguments {
    patch: String,
}

impl ApplyPatch {
    pub fn new() -> Self {
        Self(ToolDefinition {
            default: false,
            previews_change: true,
            advice: "Lines that stay begin with a blank, new ones with +, old ones with -.",
            ..define_tool(
                "apply_patch",
                "Changes several files at once, all or none. Takes a unified diff, or *** Begin Patch with *** Add File: / \
                 Update File: / Delete File: sections; each hunk must fit one place.",
                (Permission::Write, &[ToolEffect::Files]),
                json!({ "patch": { "type": "string", "description": "Paths relative to the workspace" } }),
                &["patch"],
            )
        })
    }
}

impl Tool for ApplyPatch {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn reads<'a>(&self, arguments: &'a Value) -> Vec<&'a str> {
        let is_read = |file: &&FilePatch<'_>| !matches!(file.action, PatchAction::Add(_));
        list_files(arguments).iter().filter(is_read).flat_map(FilePatch::paths).collect()
    }

    fn writes<'a>(&self, arguments: &'a Value) -> Vec<&'a str> {
        list_files(arguments).iter().flat_map(FilePatch::paths).collect()
    }

    fn subject(&self, arguments: &Value) -> String {
        match self.writes(arguments).as_slice() {
            [] => String::new(),
            [only] => (*only).to_owned(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        }
    }

    fn preview(&self, given: &Value, reach: &Reach, files: &Ledger) -> Result<String, ToolError> {
        let arguments: PatchArguments = parse_arguments(given.clone())?;
        let plan = plan_patch(&arguments.patch, reach, files)?;
        Ok(plan.files.iter().map(PlannedFile::preview).collect())
    }

    fn call<'a>(&'a self, given: Value, context: CallContext<'a>) -> ToolFuture<'a> {
        // There is no await point: a call that has begun to write cannot be dropped halfway.
        Box::pin(async move {
            let arguments: PatchArguments = parse_arguments(given)?;
            let plan = plan_patch(&arguments.patch, context.reach, context.files)?;
            write_plan(&plan, context.files)
        })
    }
}

/// The files of the patch; none if it is no patch.
fn list_files(arguments: &Value) -> Vec<FilePatch<'_>> {
    patch::parse_patch(text_of(arguments, "patch").unwrap_or_default()).unwrap_or_default()
}

/// The changes that a patch would make.
#[derive(Default)]
struct PatchPlan {
    files: Vec<PlannedFile>,
    /// Remarks for the model that wrote the patch.
    notes: Vec<String>,
}

/// One file: its content before and after; `None` if it does not exist.
struct PlannedFile {
    path: PathBuf,
    name: String,
    old: Option<String>,
    new: Option<String>,
    /// What it is written in.
    encoding: TextEncoding,
    /// The former path of this file, whose mode it keeps.
    from: Option<PathBuf>,
    /// True if the session knew the whole file.
    known: bool,
}

fn plan_patch(patch: &str, reach: &Reach, ledger: &Ledger) -> Result<PatchPlan, ToolError> {
    const MOST_SHOWN: usize = 5;
    let patches = patch::parse_patch(patch).map_err(|error| ToolError::parameter(error.to_string()))?;
    let (mut plan, mut wrong) = (PatchPlan::default(), Vec::new());
    for patch in &patches {
        if let Err(errors) = plan_file(&mut plan, patch, reach, ledger) {
            wrong.extend(errors);
        }
    }
    if wrong.is_empty() {
        return Ok(plan);
    }
    let more = wrong.len().saturating_sub(MOST_SHOWN);
    wrong.truncate(MOST_SHOWN);
    let mut message = format!("Nothing was changed.\n{}", wrong.join("\n"));
    if more > 0 {
        let _ = write!(message, "\nand {}", count_noun(more as u64, "more mistake", "more mistakes"));
    }
    Err(ToolError::parameter(message))
}

fn plan_file(
    plan: &mut PatchPlan,
    file: &FilePatch<'_>,
    reach: &Reach,
    ledger: &Ledger,
) -> Result<(), Vec<String>> {
    let path = file.path;
    let at = find_file(plan, path, reach, ledger).map_err(|why| vec![why])?;
    let old = plan.files[at].new.clone();
    if file.sets_mode {
        plan.notes.push(format!("the mode of {path} was not set: use chmod for that"));
    }
    match (&file.action, old) {
        (PatchAction::Add(_), Some(_)) => {
            Err(vec![format!("{path} exists already: update it instead of adding it")])
        }
        (PatchAction::Add(content), None) => {
            plan.files[at].new = Some(content.clone());
            Ok(())
        }
        (PatchAction::Delete(_) | PatchAction::Update { .. }, None) => Err(vec![describe_missing(reach, path)]),
        (PatchAction::Delete(hunks), Some(old)) => {
            if hunks.is_empty() {
                // No hunk proves that the removed content was known.
                refuse_unknown(&plan.files[at], path)?;
            } else if !apply_hunks(plan, path, &old, hunks)?.is_empty() {
                return Err(vec![format!("{path} contains more than the patch deletes: it is not deleted")]);
            }
            (plan.files[at].new, plan.files[at].from) = (None, None);
            Ok(())
        }
        (PatchAction::Update { to, hunks }, Some(old)) => {
            let new = apply_hunks(plan, path, &old, hunks)?;
            let Some(to) = to else {
                plan.files[at].new = Some(new);
                return Ok(());
            };
            let target = find_file(plan, to, reach, ledger).map_err(|why| vec![why])?;
            if plan.files[target].new.is_some() {
                return Err(vec![format!("{to} exists already: {path} is not moved over it")]);
            }
            plan.files[at].new = None;
            let PlannedFile { known, encoding, .. } = plan.files[at];
            // What an earlier section moved here is still where it was.
            let from = plan.files[at].from.take().unwrap_or_else(|| plan.files[at].path.clone());
            let moved = &mut plan.files[target];
            (moved.new, moved.known, moved.from, moved.encoding) = (Some(new), known, Some(from), encoding);
            Ok(())
        }
    }
}

/// The file in the plan, read when it is first named.
fn find_file(plan: &mut PatchPlan, path: &str, reach: &Reach, ledger: &Ledger) -> Result<usize, String> {
    let resolved = reach.find(path).map_err(|error| error.message)?;
    if let Some(at) = plan.files.iter().position(|file| file.path == resolved) {
        return Ok(at);
    }
    let bytes = files::read_existing(reach, path, "patched").map_err(|error| error.message)?;
    let known = bytes
        .as_ref()
        .is_none_or(|old| old.is_empty() || ledger.familiarity(&resolved, old) == Familiarity::Current);
    let decoded = TextEncoding::decode(bytes.as_deref().unwrap_or_default());
    let (text, encoding) = decoded.ok_or_else(|| format!("{path} is no text: it is not patched"))?;
    let (name, old) = (reach.workspace().display(&resolved), bytes.map(|_| text));
    plan.files.push(PlannedFile { path: resolved, name, new: old.clone(), old, encoding, from: None, known });
    Ok(plan.files.len() - 1)
}

fn write_plan(plan: &PatchPlan, ledger: &Ledger) -> Result<ToolOutput, ToolError> {
    let changed: Vec<&PlannedFile> = plan.files.iter().filter(|file| file.old != file.new).collect();
    let encode =
        |file: &PlannedFile| file.new.as_ref().map(|text| file.encoding.encode(text, &file.name)).transpose();
    let contents: Vec<Option<Vec<u8>>> = changed.iter().map(|file| encode(file)).collect::<Result<_, _>>()?;
    let step = |(file, content): (&&PlannedFile, &Option<Vec<u8>>)| ReplaceStep {
        path: file.path.clone(),
        content: content.clone(),
        mode_of: file.from.clone(),
    };
    replace::replace_all(changed.iter().zip(&contents).map(step).collect()).map_err(|failed| {
        let name = changed.iter().find(|file| file.path == failed.path).map_or("a file", |file| &file.name);
        let mut error = files::word_failure(name, &failed.error);
        error.message += match failed.lost.as_slice() {
            [] => ". Nothing was changed: what was written before was taken back",
            _ => ". These could not be taken back, read them again: ",
        };
        let lost: Vec<String> = failed.lost.iter().map(|path| path.display().to_string()).collect();
        error.message += &lost.join(", ");
        error
    })?;
    for (file, content) in changed.iter().zip(&contents) {
        if let (Some(new), true) = (content, file.known) {
            ledger.remember(&file.path, new);
        }
    }
    Ok(report_done(&changed, &plan.notes))
}

impl PlannedFile {
    fn change(&self) -> LineCounts {
        LineCounts::count_changes(self.old.as_deref().unwrap_or_default(), self.new.as_deref().unwrap_or_default())
    }

    fn what(&self) -> &'static str {
        match (&self.old, &self.new, &self.from) {
            (None, Some(_), Some(_)) => "moved to",
            (None, _, _) => "added",
            (Some(_), None, _) => "removed",
            (Some(_), Some(_), _) => "changed",
        }
    }

    fn preview(&self) -> String {
        let diff = diff::unify(
            &self.name,
            self.old.as_deref().unwrap_or_default(),
            self.new.as_deref().unwrap_or_default(),
        );
        match (&self.old, &self.new) {
            (Some(_), Some(_)) => diff,
            _ => format!("{} {}\n{diff}", self.what(), self.name),
        }
    }
}

fn report_done(changed: &[&PlannedFile], notes: &[String]) -> ToolOutput {
    let mut observation = String::new();
    let (mut sum, mut list) = (LineCounts { added: 0, removed: 0 }, Vec::new());
    for file in changed {
        let (what, name, change) = (file.what(), &file.name, file.change());
        let _ = writeln!(observation, "{what} {name} ({change})");
        list.push(json!({ "path": name, "what": what, "added": change.added, "removed": change.removed }));
        sum = LineCounts { added: sum.added + change.added, removed: sum.removed + change.removed };
    }
    if changed.is_empty() {
        observation += "nothing to change: the files already contain all of this\n";
    }
    for note in notes {
        let _ = writeln!(observation, "note: {note}");
    }
    let diffs: String = changed.iter().map(|file| file.preview()).collect();
    ToolOutput {
        result: json!({ "files": list, "added": sum.added, "removed": sum.removed }),
        observation: observation.trim_end().to_owned(),
        summary: diff::summarise_change(
            &format!("{}, {sum}", count_noun(changed.len() as u64, "file", "files")),
            &diffs,
        ),
        ..ToolOutput::default()
    }
}

fn describe_missing(reach: &Reach, path: &str) -> String {
    match files::find_path(reach, path) {
        Err(error) => error.message,
        Ok(_) => format!("{path} was deleted or moved earlier in this patch"),
    }
}

fn refuse_unknown(file: &PlannedFile, path: &str) -> Result<(), Vec<String>> {
    // An earlier update of the patch proves only its hunks.
    if file.known {
        return Ok(());
    }
    Err(vec![format!(
        "{path} was not read in this session as a whole, or has changed since: read it before you delete it"
    )])
}

/// The text with the hunks applied; forgiven differences are noted.
fn apply_hunks(
    plan: &mut PatchPlan,
    path: &str,
    old: &str,
    hunks: &[PatchHunk<'_>],
) -> Result<String, Vec<String>> {
    let patched = matching::apply_hunks(old, hunks).map_err(|misfits| {
        misfits
            .iter()
            .map(|(index, misfit)| misfit_said(path, old, *index, &hunks[*index], misfit))
            .collect::<Vec<_>>()
    })?;
    if let Some(forgiven) = patched.forgiven {
        plan.notes.push(format!("{path} matched although {forgiven} differ"));
    }
    Ok(patched.text)
}

fn misfit_said(path: &str, content: &str, index: usize, hunk: &PatchHunk<'_>, misfit: &Misfit) -> String {
    let place = format!("{path}: hunk {} (line {} of the patch)", index + 1, hunk.line);
    match misfit {
        Misfit::Missing => {
            let old = hunk.old().collect::<Vec<_>>().join("\n");
            match edit_match::nearest_shown(content, &old) {
                Some(nearest) => {
                    format!(
                        "{place}: its lines are not in the file; the nearest passage is\n{}",
                        nearest.trim_end()
                    )
                }
                None => format!("{place}: its lines are not in the file, nor anything like them: read it again"),
            }
        }
        Misfit::Ambiguous(lines) => {
            let lines = lines.iter().take(10).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("{place}: fits at several places, lines {lines}: add lines of context")
        }
        Misfit::NoHeading(heading) => {
            format!("{place}: the line `{}` after @@ is not in the file", text::one_line(heading, 120))
        }
        Misfit::Placeless => format!("{place}: only adds lines and does not say where: add lines of context"),
        Misfit::Overlaps => format!("{place}: changes lines that another hunk changes"),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::fs;

    use super::super::read_file::ReadFile;
    use super::super::testing::Place;
    use super::*;

    fn tool() -> ApplyPatch {
        ApplyPatch::new()
    }

    fn patch(text: &str) -> Value {
        json!({ "patch": text })
    }

    #[test]
    fn a_file_stays_written_in_what_it_was() {
        let place = Place::new();
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        place.put("wide", utf16("\u{feff}中\r\nb\r\n"));
        place.put("latin", b"caf\xe9\nb\n");
        let update =
            |path: &str, old: &str, new: &str| format!("*** Update File: {path}\n@@\n-{old}\n+{new}\n b\n");
        let both = update("wide", "中", "文") + &update("latin", "café", "thé");
        let whole = |sections: &str| patch(&format!("*** Begin Patch\n{sections}*** End Patch\n"));
        place.call(&tool(), whole(&both)).expect("it applies");
        assert_eq!(place.bytes("wide"), utf16("\u{feff}文\r\nb\r\n"));
        assert_eq!(place.bytes("latin"), b"th\xe9\nb\n");
        let refused = place.fail(&tool(), whole(&(update("wide", "文", "x") + &update("latin", "thé", "茶"))));
        assert!(refused.contains("latin is written in Windows-1252, which has no `茶`"), "{refused}");
        assert_eq!(place.bytes("wide"), utf16("\u{feff}文\r\nb\r\n"));
        let moved = "*** Update File: latin\n*** Move to: other\n@@\n-thé\n+café\n b\n";
        place.call(&tool(), whole(moved)).expect("it applies");
        assert_eq!(place.bytes("other"), b"caf\xe9\nb\n");
        place.put("picture", b"\x89PNG\0\xff");
        assert!(place.fail(&tool(), whole(&update("picture", "a", "c"))).contains("no text"));
    }

    #[test]
    fn several_files_at_once() {
        let place = Place::with(&[("a.rs", "one\ntwo\n"), ("old.rs", "x\ny\n"), ("gone.rs", "bye\n")]);
        let text = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\
                    diff --git a/old.rs b/dir/new.rs\nrename from old.rs\nrename to dir/new.rs\n\
                    diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n\
                    --- /dev/null\n+++ b/fresh.rs\n@@ -0,0 +1 @@\n+hello\n";
        assert_eq!(tool().writes(&patch(text)), ["a.rs", "old.rs", "dir/new.rs", "gone.rs", "fresh.rs"]);
        assert_eq!(tool().reads(&patch(text)), ["a.rs", "old.rs", "dir/new.rs", "gone.rs"]);
        let preview =
            tool().preview(&patch(text), &place.reach(&tool(), &patch(text)), &place.files).expect("it applies");
        assert!(preview.contains("-two\n+2\n") && preview.contains("removed gone.rs\n"), "{preview}");
        assert!(place.path("gone.rs").exists(), "a preview changes nothing");
        let output = place.call(&tool(), patch(text)).expect("it applies");
        assert_eq!(
            output.observation,
            "changed a.rs (+1 −1 lines)\nremoved old.rs (+0 −2 lines)\nmoved to dir/new.rs (+2 −0 lines)\n\
             removed gone.rs (+0 −1 lines)\nadded fresh.rs (+1 −0 lines)"
        );
        assert_eq!((place.text("a.rs"), place.text("dir/new.rs")), ("one\n2\n".to_owned(), "x\ny\n".to_owned()));
        assert!(!place.path("old.rs").exists() && !place.path("gone.rs").exists());
        assert_eq!(place.text("fresh.rs"), "hello\n");
    }

    #[test]
    fn one_hunk_that_does_not_fit_changes_nothing() {
        let place = Place::with(&[("a", "one\n"), ("b", "fn main() {\n    let total = 1;\n}\nx\nx\n")]);
        let text = "*** Begin Patch\n*** Update File: a\n-one\n+1\n*** Update File: b\n@@\n-    let total = 2;\n+    z\n\
                    @@\n-x\n+y\n*** Update File: none\n@@\n-x\n+y\n*** End Patch\n";
        let error = place.fail(&tool(), patch(text));
        assert!(
            error.starts_with(
                "Nothing was changed.\nb: hunk 1 (line 6 of the patch): its lines are not in the file"
            )
        );
        assert!(error.contains("2\t    let total = 1;"), "{error}");
        assert!(error.contains("b: hunk 2 (line 9 of the patch): fits at several places, lines 4, 5"), "{error}");
        assert!(error.contains("none does not exist"), "{error}");
        assert_eq!(place.text("a"), "one\n");
    }

    #[test]
    fn what_is_there_is_not_overwritten_and_what_was_not_read_is_not_deleted() {
        let place = Place::with(&[("a", "a\n"), ("b", "b\n")]);
        let envelope = |body: &str| patch(&format!("*** Begin Patch\n{body}\n*** End Patch"));
        let tool = ApplyPatch::new();
        assert!(place.fail(&tool, envelope("*** Add File: a\n+x")).contains("a exists already"));
        let over = "*** Update File: a\n*** Move to: b\n-a\n+x";
        assert!(place.fail(&tool, envelope(over)).contains("is not moved over it"));
        let delete =
            |before: &str, name: &str| envelope(&format!("{before}*** Delete File: {name}\n*** Add File: a"));
        for (before, name) in
            [("", "a"), ("*** Update File: a\n+x\n a\n", "a"), ("*** Update File: a\n*** Move to: c\n", "c")]
        {
            assert!(place.fail(&tool, delete(before, name)).contains("was not read in this session"), "{before}");
        }
        let own = "*** Add File: c\n+c\n*** Delete File: c";
        assert_eq!(place.read(&tool, envelope(own)), "nothing to change: the files already contain all of this");
        place.read(&ReadFile::new(), json!({ "path": "a" }));
        assert_eq!(place.read(&tool, envelope("*** Delete File: a")), "removed a (+0 −1 lines)");
        assert!(place.fail(&tool, patch("hello")).contains("a patch is a unified diff"));
    }

    #[test]
    fn a_file_may_move_twice_but_not_to_two_places() {
        let place = Place::with(&[("a", "one\n"), ("b", "two\n")]);
        let moved = |from: &str, to: &str, line: &str| {
            format!("*** Update File: {from}\n*** Move to: {to}\n@@\n-{line}\n+{line}!\n")
        };
        let whole = |sections: &str| patch(&format!("*** Begin Patch\n{sections}*** End Patch\n"));
        let both = moved("a", "c", "one") + &moved("a", "d", "one");
        assert!(place.fail(&tool(), whole(&both)).contains("a was deleted or moved earlier in this patch"));
        let twice = moved("a", "c", "one") + &moved("c", "d", "one!") + &moved("b", "a", "two");
        let said = place.read(&tool(), whole(&twice));
        assert_eq!(said, "changed a (+1 −1 lines)\nmoved to d (+1 −0 lines)\nremoved b (+0 −1 lines)");
        assert_eq!((place.text("d"), place.text("a")), ("one!!\n".to_owned(), "two!\n".to_owned()));
        assert!(!place.path("b").exists() && !place.path("c").exists());
    }

    #[cfg(unix)]
    #[test]
    fn mode_line_endings_and_byte_order_mark_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let place = Place::with(&[("run.sh", "\u{feff}one\r\ntwo\r\n")]);
        let mode = |name: &str| fs::metadata(place.path(name)).expect("it is there").permissions().mode() & 0o777;
        fs::set_permissions(place.path("run.sh"), fs::Permissions::from_mode(0o750)).expect("it can be set");
        let text = "*** Begin Patch\n*** Update File: run.sh\n*** Move to: go.sh\n-one\n+1\n+1b\n*** End Patch";
        place.read(&tool(), patch(text));
        assert_eq!((place.text("go.sh").as_str(), mode("go.sh")), ("\u{feff}1\r\n1b\r\ntwo\r\n", 0o750));
        let text = "diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n";
        assert!(place.read(&tool(), patch(text)).contains("the mode of x was not set"));
    }
}
