//! Finds skills: the folders below a directory that contain a `SKILL.md`.
//!
//! A skill's own folder is not searched for more skills. The search is bounded, skips `.git`, `node_modules`,
//! hidden and git-ignored directories, and follows a link only to a place below its start directory. Only the head
//! of each file is read.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Cursor};
use std::path::{Path, PathBuf};

use crate::base::text;
use crate::config::{FileAccess, SkillDir, SkillScope};
use crate::files::ignored::IgnoreFiles;

use super::catalogue::{Skill, SkillPlace};
use super::header::{self, DESCRIPTION_CHARS, NAME_CHARS, Remark};
use super::inside::FILE;
use super::note::SkillNote;

/// A common misspelling of the file's name.
pub(super) const FILE_IN_LOWERCASE: &str = "skill.md";
/// The maximum depth of a skill below the directory.
const DEPTH: usize = 4;
/// The most directories that are searched.
const MOST_DIRECTORIES: usize = 20_000;
/// The bytes of a `SKILL.md` that are read for the catalogue; the head must end within them.
const HEAD_BYTES: u64 = 64 * 1024;

/// A folder that is a skill, and the file that makes it one.
pub(super) type FoundSkill = (PathBuf, PathBuf);

/// The skills below a directory whose real path is `root`, ordered by path. A link from it into one of the
/// `others` is left to the search there.
pub(super) fn find_folders(
    dir: &SkillDir,
    root: &Path,
    others: &[PathBuf],
    notes: &mut Vec<SkillNote>,
) -> Vec<FoundSkill> {
    let ignored = IgnoreFiles::start_below(dir.top.as_deref().unwrap_or(root));
    let mut search =
        SkillSearch { root, others, ignored, seen: HashSet::from([root.to_path_buf()]), found: Vec::new(), notes };
    search.descend(root, 0);
    search.found
}

/// The skill of a folder, if its head can be parsed.
pub(super) fn read_skill(
    found: &FoundSkill,
    scope: SkillScope,
    through: &FileAccess,
    notes: &mut Vec<SkillNote>,
) -> Option<Skill> {
    let (dir, file) = found;
    let path = || file.display().to_string();
    let mut leave_out = |line, message| {
        notes.push(SkillNote { path: path(), line, message, used: false });
        None
    };
    let is_link = file.symlink_metadata().is_ok_and(|data| data.is_symlink());
    if is_link && !crate::files::canonicalize(file).is_ok_and(|real| real.starts_with(dir)) {
        return leave_out(None, format!("it is a link out of {}", dir.display()));
    }
    if !file.is_file() {
        return leave_out(None, "it is no file".to_owned());
    }
    if !through.has(file) {
        return leave_out(None, "it was not there when the workspace was examined".to_owned());
    }
    let mut header = match read_head(file, through).and_then(|head| header::read_header(&head)) {
        Ok(header) => header,
        Err((line, why)) => return leave_out(line, why),
    };
    let Some(description) = header.description.take() else {
        return leave_out(None, "it has no description".to_owned());
    };
    let folder = dir.file_name().unwrap_or_default().to_string_lossy();
    let name = header.name.take().unwrap_or_else(|| folder.clone().into_owned());
    header.remarks.extend(find_doubts(&name, &description, &folder));
    let note = |(line, message)| SkillNote { path: path(), line, message, used: true };
    notes.extend(std::mem::take(&mut header.remarks).into_iter().map(note));
    Some(Skill::new(name, description, header, scope, {
        let (dir, file, through) = (dir.clone(), file.clone(), through.clone());
        SkillPlace::Folder { dir, file, through }
    }))
}

/// The real path of a directory of skills; `None` if it does not exist or cannot be used; the latter is noted.
pub(super) fn find_root(dir: &SkillDir, notes: &mut Vec<SkillNote>) -> Option<PathBuf> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let message = match (crate::files::canonicalize(&dir.dir), dir.top.as_deref()) {
        (Ok(root), Some(top)) if !root.starts_with(top) => format!("it is a link out of {}", top.display()),
        (Ok(root), _) => return Some(root),
        (Err(error), _) if missing(&error) && dir.scope != SkillScope::Configured => return None,
        (Err(error), _) => error.to_string(),
    };
    notes.push(SkillNote { path: dir.dir.display().to_string(), line: None, message, used: false });
    None
}

/// The text between the dashes at the beginning of a file.
///
/// # Errors
/// There is no head, or it cannot be read.
fn read_head(file: &Path, through: &FileAccess) -> Result<String, Remark> {
    let unreadable = |error: io::Error| (None, error.to_string());
    let mut reader = Cursor::new(through.start(file, HEAD_BYTES).map_err(|why| (None, format!("it {why}")))?);
    let (mut head, mut line) = (Vec::new(), Vec::new());
    let mut is_open = false;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            let why = if is_open {
                format!("its head is not closed by a line of three dashes within {} KiB", HEAD_BYTES / 1024)
            } else {
                "it is empty".to_owned()
            };
            return Err((Some(1), why));
        }
        let unmarked = line.strip_prefix("\u{feff}".as_bytes()).filter(|_| !is_open).unwrap_or(&line);
        match (is_open, unmarked.trim_ascii_end() == b"---") {
            (false, true) => is_open = true,
            (false, false) => return Err((Some(1), "it does not begin with a line of three dashes".to_owned())),
            (true, true) => return Ok(String::from_utf8_lossy(&head).into_owned()),
            (true, false) => head.extend_from_slice(&line),
        }
    }
}

struct SkillSearch<'a> {
    /// With links resolved.
    root: &'a Path,
    others: &'a [PathBuf],
    ignored: IgnoreFiles,
    seen: HashSet<PathBuf>,
    found: Vec<FoundSkill>,
    notes: &'a mut Vec<SkillNote>,
}

impl SkillSearch<'_> {
    /// Searches a directory that is not a skill, or only by a lowercase file name.
    fn descend(&mut self, dir: &Path, depth: usize) {
        let mut entries: Vec<(OsString, fs::FileType)> = match fs::read_dir(dir) {
            Ok(entries) => {
                let entry = |entry: fs::DirEntry| Some((entry.file_name(), entry.file_type().ok()?));
                entries.filter_map(|found| entry(found.ok()?)).collect()
            }
            Err(error) => return self.leave_out(dir, error.to_string()),
        };
        let named = |name: &str| entries.iter().any(|(file, kind)| file == name && !kind.is_dir());
        if depth > 0 && named(FILE_IN_LOWERCASE) {
            return self.found.push((dir.to_path_buf(), dir.join(FILE_IN_LOWERCASE)));
        }
        if depth == DEPTH {
            return;
        }
        entries.retain(|(name, kind)| {
            let name = name.as_encoded_bytes();
            !kind.is_file() && !name.starts_with(b".") && name != b"node_modules"
        });
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in entries {
            let path = dir.join(name);
            let real = if kind.is_symlink() { self.follow_link(&path) } else { Some(path) };
            if let Some(real) = real.filter(|real| !self.ignored.has(real, true)) {
                self.look(&real, depth + 1);
            }
        }
    }

    /// Takes the directory as a skill, or searches it.
    fn look(&mut self, dir: &Path, depth: usize) {
        if !self.seen.insert(dir.to_path_buf()) {
            return;
        }
        if self.seen.len() > MOST_DIRECTORIES {
            if self.seen.len() == MOST_DIRECTORIES + 1 {
                let message = format!("more than {MOST_DIRECTORIES} directories: the rest was not searched");
                self.leave_out(self.root, message);
            }
            return;
        }
        let file = dir.join(FILE);
        match file.symlink_metadata() {
            Ok(_) => self.found.push((dir.to_path_buf(), file)),
            Err(_) => self.descend(dir, depth),
        }
    }

    /// The target of a link to a directory, if it is below the root.
    fn follow_link(&mut self, link: &Path) -> Option<PathBuf> {
        let real = crate::files::canonicalize(link).ok().filter(|real| real.is_dir())?;
        if real.starts_with(self.root) {
            return Some(real);
        }
        if !self.others.iter().any(|other| real.starts_with(other)) {
            self.leave_out(link, format!("it is a link out of {}", self.root.display()));
        }
        None
    }

    fn leave_out(&mut self, path: &Path, message: String) {
        self.notes.push(SkillNote { path: path.display().to_string(), line: None, message, used: false });
    }
}

/// The deviations of a usable skill from the standard.
fn find_doubts(name: &str, description: &str, folder: &str) -> impl Iterator<Item = Remark> {
    let plain = name.chars().all(|c| c == '-' || (c.is_alphanumeric() && !c.is_uppercase()));
    let dashes = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    let long = |text: &str, most| text.len() > most && text.chars().count() > most;
    let doubts = [
        (name != folder && text::normalise_nfkc(name) != text::normalise_nfkc(folder))
            .then(|| format!("its name `{name}` differs from its directory `{folder}`")),
        (!plain || dashes).then(|| format!("its name `{name}` should be lowercase words joined by `-`")),
        long(name, NAME_CHARS).then(|| format!("its name is longer than {NAME_CHARS} characters")),
        long(description, DESCRIPTION_CHARS)
            .then(|| format!("its description is longer than {DESCRIPTION_CHARS} characters and is cut")),
    ];
    doubts.into_iter().flatten().map(|doubt| (None, doubt))
}
