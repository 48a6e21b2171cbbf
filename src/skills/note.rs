//! Notes on skills that were left out, or used with a flaw, during discovery.

use std::fmt;

/// One remark on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillNote {
    /// The file or directory, for people.
    pub path: String,
    /// 1-based, where known.
    pub line: Option<usize>,
    pub message: String,
    /// True if the skill is used nevertheless.
    pub used: bool,
}

impl fmt::Display for SkillNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message, used } = self;
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(f, "{path}{line}{}: {message}", if *used { "" } else { " is left out" })
    }
}

/// The lines shown when a run begins: a few for the skills left out, one for all that are used nevertheless.
pub(super) fn write_notes(notes: &[SkillNote]) -> Vec<String> {
    const MOST: usize = 5;
    const HOW: &str = "`agent skill check` shows everything";
    let left_out: Vec<&SkillNote> = notes.iter().filter(|note| !note.used).collect();
    let mut told: Vec<String> = left_out.iter().take(MOST).map(ToString::to_string).collect();
    if left_out.len() > MOST {
        told.push(format!("{} more skills or directories of skills are left out ({HOW})", left_out.len() - MOST));
    }
    let mut paths: Vec<&str> = notes.iter().filter(|note| note.used).map(|note| note.path.as_str()).collect();
    let count = paths.len();
    paths.dedup();
    match (count, paths.as_slice()) {
        (0, _) | (_, []) => {}
        (1, _) => told.extend(notes.iter().find(|note| note.used).map(ToString::to_string)),
        (_, [path]) => told.push(format!("{path} departs from the standard in {count} ways and is used ({HOW})")),
        (_, [path, ..]) => {
            told.push(format!(
                "{} skills, {path} first, depart from the standard and are used ({HOW})",
                paths.len()
            ));
        }
    }
    told
}
