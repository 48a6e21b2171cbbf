//! The files of one skill: the listing, and the content of one file.
//!
//! A path is checked twice: as it is written, so that nothing is revealed about files outside, and where it really
//! leads, so that no link escapes.

use std::path::Path;

use crate::base::builtin::Dir;
use crate::base::text;
use crate::config::FileAccess;
use crate::files::disk::{self, DirEntryKind};

use super::error::{SkillError, SkillErrorKind};
use super::inside::{LARGEST, refuse_outside, resolve_inside, write_slashes};
use super::served::ServedFolder;

/// The most files that a listing names.
const LISTED: usize = 50;
/// The maximum depth, and number of files, of the search for the listing.
const DEPTH: usize = 5;
const MOST_FILES: usize = 2000;
/// The number of bytes that are examined to distinguish text from binary data.
const SNIFFED: usize = 8 * 1024;

/// The place of a skill's files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Folder<'a> {
    /// Absolute, with links resolved.
    Disk(&'a Path, &'a FileAccess),
    /// The embedded directory, and the one that the skill is unpacked to.
    Builtin(&'a Dir<'static>, &'a Path),
    Served(&'a ServedFolder),
}

/// The requested part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileWindow {
    /// The first line, 1-based.
    pub offset: usize,
    /// The most lines.
    pub limit: usize,
    /// The most bytes.
    pub bytes: usize,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePage {
    /// Relative to the skill's folder, with `/`.
    pub path: String,
    /// The size of the whole file, in bytes.
    pub size: u64,
    pub content: FileContent,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    Lines {
        text: String,
        /// The first and the last line of `text`, 1-based; `last` is `first - 1` in an empty file.
        first: usize,
        last: usize,
        /// The number of lines in the whole file.
        lines: usize,
        /// True if a single line was longer than the window and was cut.
        cut: bool,
    },
    /// Not shown; a description instead: `binary`, `too large to page through`.
    Other(&'static str),
}

impl FileWindow {
    /// A window for a page of about this many bytes, including its frame.
    pub fn new(offset: Option<usize>, limit: Option<usize>, bytes: usize) -> Self {
        const FRAME: usize = 256;
        let bytes = bytes.saturating_sub(FRAME).max(FRAME);
        Self { offset: offset.unwrap_or(1), limit: limit.unwrap_or(usize::MAX), bytes }
    }
}

impl FilePage {
    /// The path, with the lines if it is not the whole file.
    pub fn title(&self) -> String {
        match &self.content {
            FileContent::Lines { first, last, lines, .. } if *first > 1 || last < lines => {
                format!("{}, lines {first} to {last}", self.path)
            }
            _ => self.path.clone(),
        }
    }
}

impl Folder<'_> {
    /// The files beside `SKILL.md`, sorted, and the number of files left out.
    pub fn files(self) -> (Vec<String>, usize) {
        let mut files = Vec::new();
        match self {
            Self::Disk(root, through) => {
                walk_files(root, root, 0, &mut files);
                files.retain(|file| through.has(&root.join(file)));
            }
            Self::Builtin(dir, _) => walk_builtin(dir, dir.path(), &mut files),
            Self::Served(folder) => files = folder.paths(),
        }
        files.retain(|file| !file.eq_ignore_ascii_case("SKILL.md"));
        files.sort_unstable();
        let more = files.len().saturating_sub(LISTED);
        files.truncate(LISTED);
        (files, more)
    }

    /// Reads a part of the file at `path`, which is relative to the folder (or absolute and inside it).
    ///
    /// # Errors
    /// The path leads outside, is not a file, cannot be read, or has no such line.
    pub fn page(self, path: &str, window: FileWindow) -> Result<FilePage, SkillError> {
        let root = match self {
            Self::Disk(root, _) | Self::Builtin(_, root) => root,
            Self::Served(_) => Path::new(""),
        };
        let relative = resolve_inside(root, path)?;
        let shown = write_slashes(&relative);
        let (size, bytes) = match self {
            Self::Disk(root, through) => self.read(root, &relative, through)?,
            Self::Builtin(dir, _) => {
                let file = dir.get_file(dir.path().join(&relative)).ok_or_else(|| self.no_file(&shown))?;
                (file.contents().len() as u64, Some(file.contents().to_vec()))
            }
            Self::Served(folder) => {
                let (size, bytes) = folder.content(&shown).ok_or_else(|| self.no_file(&shown))?;
                (size, bytes.map(|bytes| bytes.to_vec()))
            }
        };
        let content = match bytes {
            None => FileContent::Other("too large to page through"),
            Some(bytes) => match decode_text(bytes) {
                None => FileContent::Other("binary"),
                Some(text) => select_lines(&shown, &text, window)?,
            },
        };
        Ok(FilePage { path: shown, size, content })
    }

    /// Reads a file on disk, or only its size if it is too large.
    fn read(
        self,
        root: &Path,
        relative: &Path,
        through: &FileAccess,
    ) -> Result<(u64, Option<Vec<u8>>), SkillError> {
        let shown = write_slashes(relative);
        let real = crate::files::canonicalize(&root.join(relative)).map_err(|_| self.no_file(&shown))?;
        if !real.starts_with(root) {
            return Err(refuse_outside(&shown));
        }
        let facts = disk::read_facts(&real).map_err(|_| self.no_file(&shown))?;
        if facts.kind != DirEntryKind::File {
            return Err(self.no_file(&shown));
        }
        if facts.len > LARGEST {
            return Ok((facts.len, None));
        }
        let bytes = through.read(&real, LARGEST).map_err(|why| {
            SkillError::new(SkillErrorKind::Unreadable, format!("{} cannot be read: {why}", real.display()))
        })?;
        let bytes = bytes.ok_or_else(|| self.no_file(&shown))?;
        Ok((bytes.len() as u64, Some(bytes)))
    }

    fn no_file(self, path: &str) -> SkillError {
        let (files, more) = self.files();
        let near = text::find_nearest(path, files.iter().map(String::as_str));
        let known = match (near.as_slice(), files.as_slice()) {
            (_, []) => "it has no files besides SKILL.md".to_owned(),
            ([], files) => format!("its files: {}{}", files.join(", "), and_more(more)),
            (near, _) => format!("did you mean {}?", near.join(" or ")),
        };
        SkillError::new(SkillErrorKind::Unknown, format!("the skill has no file `{path}`; {known}"))
    }
}

/// The ending of a listing that was cut: `, … and 3 more`.
pub(super) fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(", … and {more} more") }
}

fn walk_files(root: &Path, dir: &Path, depth: usize, files: &mut Vec<String>) {
    let Ok(mut entries) = disk::Dir::open(dir).and_then(|dir| dir.entries()) else { return };
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for disk::DirEntry { name, kind } in entries {
        let path = dir.join(&name);
        let name = name.to_string_lossy();
        if files.len() >= MOST_FILES || name.starts_with('.') || name == "node_modules" {
            continue;
        }
        // A link may not lead outside, and a link to a directory could form a cycle.
        let is_file = match kind {
            DirEntryKind::Link => {
                crate::files::canonicalize(&path).is_ok_and(|real| real.starts_with(root) && real.is_file())
            }
            kind => kind == DirEntryKind::File,
        };
        if kind == DirEntryKind::Dir && depth < DEPTH {
            walk_files(root, &path, depth + 1, files);
        } else if is_file && let Ok(relative) = path.strip_prefix(root) {
            files.push(write_slashes(relative));
        }
    }
}

fn walk_builtin(dir: &Dir<'_>, root: &Path, files: &mut Vec<String>) {
    files.extend(dir.files().filter_map(|file| file.path().strip_prefix(root).ok()).map(write_slashes));
    for dir in dir.dirs() {
        walk_builtin(dir, root, files);
    }
}

/// The bytes as text, unless they are binary.
fn decode_text(bytes: Vec<u8>) -> Option<String> {
    if bytes.iter().take(SNIFFED).any(|byte| *byte == 0) {
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        // Text with a few invalid bytes is still text; mostly invalid bytes are not.
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes());
            let odd = text.matches('\u{fffd}').count();
            (odd * 10 < text.chars().count()).then(|| text.into_owned())
        }
    }
}

fn select_lines(path: &str, text: &str, window: FileWindow) -> Result<FileContent, SkillError> {
    let lines = text.lines().count();
    let first = window.offset.max(1);
    if first > lines.max(1) {
        let message = format!("`{path}` has {lines} lines; there is no line {first}");
        return Err(SkillError::new(SkillErrorKind::Unknown, message));
    }
    let mut out = String::new();
    let mut last = first - 1;
    for line in text.split_inclusive('\n').skip(first - 1).take(window.limit.max(1)) {
        if out.len() + line.len() > window.bytes {
            break;
        }
        out.push_str(line);
        last += 1;
    }
    let cut = last < first && lines > 0;
    if cut {
        let line = text.lines().nth(first - 1).unwrap_or_default();
        text::take_head(line, window.bytes).clone_into(&mut out);
        last = first;
    }
    Ok(FileContent::Lines { text: out, first, last, lines, cut })
}
