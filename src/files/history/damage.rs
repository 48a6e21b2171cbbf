//! Damage to what an undo reads: each flipped bit is told, or does nothing. No path is ever changed into what it never was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::ContentStore;
use super::journal::{FileJournal, UndoneRecords};
use super::restore::apply_changes;
use super::{ChangingCall, Direction, FileHistory, JournalLine, RestorePlan, contents_beside, journal_beside};

/// Flips of each of four files.
const FLIPS: usize = 250;

type TreeContents = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// Two calls changed this workspace, and nothing runs any more.
struct ChangedWorkspace {
    dir: tempfile::TempDir,
    before: TreeContents,
    after: TreeContents,
}

impl ChangedWorkspace {
    fn make() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("w");
        fs::create_dir_all(root.join("src")).expect("made");
        fs::create_dir(dir.path().join("state")).expect("made");
        write(&root, "src/a.txt", "what was there before\n", 0o644);
        write(&root, "bin", "#!/bin/sh\n", 0o755);
        write(&root, "gone", "it goes\n", 0o600);
        let mut changed = Self { dir, before: TreeContents::new(), after: TreeContents::new() };
        changed.before = changed.read();
        let history = changed.history();
        for item in [2, 4] {
            let call = history.begin_call(ChangingCall { item, call: "run_command".to_owned() }, &[]);
            if item == 2 {
                write(&root, "src/a.txt", "what is there now\n", 0o600);
                fs::remove_file(root.join("gone")).expect("removed");
            } else {
                write(&root, "bin", "#!/bin/bash\n", 0o644);
                write(&root, "new", "it comes\n", 0o644);
            }
            call.end(false);
        }
        changed.after = changed.read();
        changed
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("state/s.jsonl")
    }

    /// As a new process sees it.
    fn history(&self) -> Arc<FileHistory> {
        Arc::new(FileHistory::new(&self.root(), &self.log(), false))
    }

    fn read(&self) -> TreeContents {
        let mut tree = TreeContents::new();
        for dir in ["", "src"] {
            for entry in fs::read_dir(self.root().join(dir)).expect("listed").flatten() {
                if entry.path().is_file() {
                    let mode = entry.metadata().expect("there").permissions().mode() & 0o777;
                    let path = Path::new(dir).join(entry.file_name());
                    tree.insert(path, (mode, fs::read(entry.path()).expect("readable")));
                }
            }
        }
        tree
    }

    /// Undoes everything, as far as nothing warns; then makes the tree again as the calls left it.
    fn undo(&self) -> (TreeContents, RestorePlan, Vec<String>) {
        let history = self.history();
        let undo = Direction::Undo(0);
        let plan = history.plan(undo).expect("a plan").unwrap_or_default();
        let is_sure = plan.changed_since.is_empty() && plan.lost.is_empty() && plan.gaps.is_empty();
        let failed =
            if is_sure { history.carry_out(undo, &plan).expect("carried out").failed } else { Vec::new() };
        let found = self.read();
        fs::remove_dir_all(self.root()).expect("removed");
        fs::create_dir_all(self.root().join("src")).expect("made");
        for (path, (mode, bytes)) in &self.after {
            write(&self.root(), path.to_str().expect("a name"), &String::from_utf8_lossy(bytes), *mode);
        }
        (found, plan, failed)
    }
}

fn restore(files: &[PathBuf], texts: &[Vec<u8>]) {
    for (file, text) in files.iter().zip(texts) {
        fs::write(file, text).expect("written");
    }
}

fn write(root: &Path, path: &str, text: &str, mode: u32) {
    fs::write(root.join(path), text).expect("written");
    fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).expect("set");
}

#[test]
fn every_flipped_bit_is_told_or_does_nothing() {
    let changed = ChangedWorkspace::make();
    let store = contents_beside(&changed.log());
    let kept = fs::read_dir(&store).expect("kept").map(|entry| entry.expect("listed").path());
    let files: Vec<PathBuf> = kept.chain([journal_beside(&changed.log())]).collect();
    assert_eq!(files.len(), 4, "a pack, its list, what was seen, and the journal: {files:?}");
    let sound: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("readable")).collect();
    let (found, plan, failed) = changed.undo();
    assert_eq!((found, plan.gaps, failed), (changed.before.clone(), Vec::new(), Vec::new()), "without damage");
    restore(&files, &sound);
    for (file, bytes) in files.iter().zip(&sound) {
        let bits = 8 * bytes.len();
        for bit in (0..FLIPS.min(bits)).map(|number| number * 7919 % bits) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, damaged).expect("written");
            let (found, plan, failed) = changed.undo();
            let is_told = found == changed.after && plan != RestorePlan::default();
            assert!(found == changed.before || is_told, "{file:?}, bit {bit}: {found:?} {plan:?} {failed:?}");
            restore(&files, &sound);
        }
    }
}

#[test]
fn half_a_line_at_the_end_spoils_no_other() {
    let changed = ChangedWorkspace::make();
    let journal = journal_beside(&changed.log());
    let text = fs::read(&journal).expect("a journal");
    fs::write(&journal, [&text[..], br#"{"type":"begun","item":6,"#].concat()).expect("written");
    let history = changed.history();
    let call = history.begin_call(ChangingCall { item: 6, call: "write_file".to_owned() }, &[]);
    write(&changed.root(), "new", "changed\n", 0o644);
    call.end(false);
    let plan = changed.history().plan(Direction::Undo(6)).expect("a plan").expect("a change");
    assert_eq!(plan.changes.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["new"]);
    let [gap] = &plan.gaps[..] else { panic!("{:?}", plan.gaps) };
    assert!(gap.ends_with("s.files:5: this line is damaged"), "{gap}");
}

#[test]
fn a_redo_tells_that_the_line_of_its_undo_is_damaged() {
    let changed = ChangedWorkspace::make();
    let history = changed.history();
    let undo = Direction::Undo(0);
    history.carry_out(undo, &history.plan(undo).expect("a plan").expect("changes")).expect("carried out");
    let journal = journal_beside(&changed.log());
    let text = fs::read_to_string(&journal).expect("a journal");
    fs::write(&journal, text.replace("\"undone\"", "\"Undone\"")).expect("written");
    let plan = changed.history().plan(Direction::Redo).expect("a plan").expect("what is not known");
    let [gap] = &plan.gaps[..] else { panic!("{:?}", plan.gaps) };
    assert!(gap.ends_with("s.files:6: this line is damaged"), "{gap}");
}

#[test]
fn an_undo_that_was_stopped_anywhere_is_ended_and_taken_back_whole() {
    for (made, is_ended) in (0..=4).flat_map(|made| [(made, true), (made, false)]) {
        let changed = ChangedWorkspace::make();
        write(&changed.root(), "bin", "a person's work\n", 0o644);
        let after = changed.read();
        let undo = Direction::Undo(0);
        let plan = changed.history().plan(undo).expect("a plan").expect("changes");
        assert_eq!((plan.changes.len(), &plan.changed_since[..]), (4, &["bin".to_owned()][..]));
        let mut journal = FileJournal::open(&journal_beside(&changed.log())).expect("a journal");
        let undoing = UndoneRecords { records: vec![1, 2], changes: plan.changes.clone() };
        journal.add(JournalLine::Undoing(undoing)).expect("written");
        let store = ContentStore::open(&contents_beside(&changed.log())).expect("a store");
        apply_changes(&changed.root(), &plan.changes[..made], &store);
        if is_ended {
            let history = changed.history();
            let plan = history.plan(undo).expect("a plan").expect("changes");
            assert_eq!(plan.changes.len(), 4 - made);
            history.carry_out(undo, &plan).expect("carried out");
            assert_eq!(changed.read(), changed.before);
        }
        let history = changed.history();
        let plan = history.plan(Direction::Redo).expect("a plan").expect("an undo");
        assert_eq!((&plan.changed_since[..], &plan.lost[..]), (&[][..], &[][..]));
        history.carry_out(Direction::Redo, &plan).expect("carried out");
        assert_eq!(changed.read(), after, "{made} made");
        assert_eq!(history.plan(Direction::Redo), Ok(None));
        assert_eq!(history.plan(undo).expect("a plan").expect("changes").changes.len(), 4);
    }
}

#[test]
fn what_a_person_did_before_a_call_that_was_killed_is_not_of_the_call() {
    let changed = ChangedWorkspace::make();
    let history = changed.history();
    assert!(history.is_followed());
    write(&changed.root(), "mine", "a person's\n", 0o644);
    drop(history.begin_call(ChangingCall { item: 6, call: "run_command".to_owned() }, &[]));
    drop(history);
    write(&changed.root(), "new", "changed\n", 0o644);
    let plan = changed.history().plan(Direction::Undo(6)).expect("a plan").expect("changes");
    assert_eq!(plan.changes.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["new"]);
    assert_eq!(plan.unsure, [""; 0]);
}

#[test]
fn what_an_interrupted_call_changed_outside_is_known() {
    let changed = ChangedWorkspace::make();
    let beside = changed.root().with_file_name("beside");
    let (old, new) = (beside.join("old"), beside.join("deep/new"));
    fs::create_dir(&beside).expect("made");
    write(&beside, "old", "before\n", 0o644);
    let by = ChangingCall { item: 6, call: "apply_patch".to_owned() };
    drop(changed.history().begin_call(by, &[old.clone(), new.clone()]));
    write(&beside, "old", "after\n", 0o644);
    fs::create_dir(beside.join("deep")).expect("made");
    write(&beside, "deep/new", "new\n", 0o644);
    write(&beside, "another", "a person's\n", 0o644);
    let history = changed.history();
    let undo = Direction::Undo(6);
    let plan = history.plan(undo).expect("a plan").expect("changes");
    assert_eq!((plan.changes.len(), plan.changed_since.len()), (3, 0), "{plan:?}");
    assert_eq!(history.carry_out(undo, &plan).expect("carried out").failed, [""; 0]);
    assert_eq!(fs::read_to_string(&old).expect("there"), "before\n");
    assert!(!beside.join("deep").exists() && beside.join("another").exists());
    let plan = changed.history().plan(Direction::Redo).expect("a plan").expect("changes");
    changed.history().carry_out(Direction::Redo, &plan).expect("carried out");
    assert_eq!(fs::read_to_string(new).expect("there"), "new\n");
}

#[test]
fn the_next_session_writes_down_what_a_killed_call_of_another_changed() {
    for runs_on in [false, true] {
        let changed = ChangedWorkspace::make();
        let log = fs::File::create(changed.log()).expect("created");
        let beside = crate::files::canonicalize(changed.dir.path()).expect("there").join("beside");
        let call = |item| ChangingCall { item, call: "run_command".to_owned() };
        drop(changed.history().begin_call(call(7), std::slice::from_ref(&beside)));
        write(&changed.root(), "new", "by the call\n", 0o644);
        fs::write(&beside, "by the call, too\n").expect("written");
        if runs_on {
            log.lock().expect("nobody has it");
        }
        let next = changed.log().with_file_name("next.jsonl");
        let history = Arc::new(FileHistory::new(&changed.root(), &next, false));
        history.begin_call(call(1), &[]).end(false);
        let records = FileJournal::open(&journal_beside(&next)).expect("readable").records;
        assert_eq!(records.len(), 0, "it is nothing that this session did");
        let plan = changed.history().plan(Direction::Undo(7)).expect("a plan").expect("it is there");
        // One that runs settles its own calls; here it does so from a look that another session has made since.
        let expected = if runs_on { (0, 1) } else { (2, 0) };
        assert_eq!((plan.changes.len(), plan.gaps.len()), expected, "{plan:?}");
    }
}

#[test]
fn a_call_whose_changes_are_not_known_is_named() {
    let changed = ChangedWorkspace::make();
    let history = changed.history();
    drop(history.begin_call(ChangingCall { item: 6, call: "run_command".to_owned() }, &[]));
    write(&changed.root(), "new", "changed\n", 0o644);
    fs::remove_file(contents_beside(&changed.log()).join("seen")).expect("removed");
    let plan = |from| changed.history().plan(Direction::Undo(from)).expect("a plan").unwrap_or_default();
    assert_eq!(plan(6).gaps, ["what run_command changed in step 6 is not known"]);
    assert_eq!(plan(6).gaps.len(), 1, "it is known once");
    assert_eq!(plan(7), RestorePlan::default());
    let text = fs::read_to_string(journal_beside(&changed.log())).expect("a journal");
    assert_eq!(text.matches(r#"{"type":"missed""#).count(), 1, "{text}");
    assert!(serde_json::from_str::<JournalLine>(text.lines().last().expect("a line")).is_ok());
}
