//! Resolves a path that a model wrote to a file that may be read, with errors that suggest alternatives.
//!
//! Devices, FIFOs and sockets are refused before they are opened: reading one may block forever or have effects.

pub(super) mod edit_match;
pub(super) mod encoding;
pub(super) mod replace;
pub(super) mod walk;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{output::ToolError, text};
use crate::files::disk::{self, Dir, DirEntryKind, FileFacts, Opened};
use crate::files::{file_name, workspace::Workspace};
use crate::safety::Reach;

/// Files up to this size are read whole, and remembered in the ledger; larger ones are only ever streamed.
pub const WHOLE_BYTES: u64 = 8 * 1024 * 1024;

/// The number of leading bytes that decide whether a file is text.
pub const SNIFFED_BYTES: u64 = 8192;

/// A file or directory that exists.
pub struct FoundPath {
    /// Absolute, links followed.
    pub path: PathBuf,
    pub facts: FileFacts,
}

/// A regular file, opened.
pub struct FoundFile {
    /// Absolute, links followed.
    pub path: PathBuf,
    pub opened: Opened,
    /// Its text in the person's editor, if that is not saved.
    unsaved: Option<Arc<String>>,
}

impl FoundFile {
    /// The number of its bytes.
    pub fn len(&self) -> u64 {
        self.unsaved.as_ref().map_or(self.opened.facts.len, |text| text.len() as u64)
    }
}

/// The file or directory that `path` leads to.
///
/// # Errors
/// Nothing is there; the message names similar paths.
pub fn find_path(reach: &Reach, path: &str) -> Result<FoundPath, ToolError> {
    let resolved = reach.find(path)?;
    match disk::read_facts(&resolved) {
        Ok(facts) => Ok(FoundPath { path: resolved, facts }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refuse_missing(reach, path, &resolved)),
        Err(error) => Err(word_failure(path, &error)),
    }
}

/// A regular file, opened for reading.
///
/// # Errors
/// Nothing is there, or something that is not a file.
pub fn find_file(reach: &Reach, path: &str) -> Result<FoundFile, ToolError> {
    let FoundPath { path: resolved, facts } = find_path(reach, path)?;
    if facts.kind == DirEntryKind::Dir {
        return Err(ToolError::parameter(format!("{path} is a directory: use list_dir to see what is in it")));
    }
    refuse_special(path, facts.kind)?;
    let opened = disk::open_file(&resolved).map_err(|error| word_failure(path, &error))?;
    let unsaved = reach.unsaved.get(&resolved).cloned();
    Ok(FoundFile { path: resolved, opened, unsaved })
}

/// The whole of the file that `path` leads to, as [`read_for_change`]; `None` if there is none yet.
///
/// # Errors
/// The path cannot name a file, or something that is not a file is there, or it cannot be read.
pub fn read_existing(reach: &Reach, path: &str, refusal: &str) -> Result<Option<Vec<u8>>, ToolError> {
    names_a_file(reach.workspace(), path)?;
    match disk::read_facts(&reach.find(path)?) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read_for_change(path, &mut find_file(reach, path)?, refusal).map(Some),
    }
}

/// A directory; the workspace if no path is given.
///
/// # Errors
/// Nothing is there, or something that is not a directory.
pub fn find_dir(reach: &Reach, path: Option<&str>) -> Result<PathBuf, ToolError> {
    let path = path.unwrap_or(".");
    let found = find_path(reach, path)?;
    if found.facts.kind != DirEntryKind::Dir {
        return Err(ToolError::parameter(format!("{path} is not a directory")));
    }
    Ok(found.path)
}

/// Checks that a path, which may not exist yet, could name a file.
///
/// # Errors
/// The path names a directory, or a home by `~`: no shell expands it, and a directory of that name is a trap for
/// anyone who removes it.
fn names_a_file(workspace: &Workspace, path: &str) -> Result<(), ToolError> {
    let read = file_name::unquote(path);
    let name = read.to_string_lossy();
    if name.trim().is_empty() || name.ends_with('/') {
        return Err(ToolError::parameter(format!("`{path}` names no file")));
    }
    let first = name.split('/').next().unwrap_or_default();
    let is_home = first == "~" || (first.starts_with('~') && name.contains('/'));
    if is_home && !workspace.root().join(first).exists() {
        return Err(ToolError::parameter(format!("`{first}` is not looked up: write the whole path of {path}")));
    }
    Ok(())
}

/// # Errors
/// It is neither a file nor a directory.
pub fn refuse_special(path: &str, kind: DirEntryKind) -> Result<(), ToolError> {
    match kind {
        DirEntryKind::File | DirEntryKind::Dir => Ok(()),
        kind => Err(ToolError::parameter(format!("{path} is {}, not a file: it is not opened", kind.name()))),
    }
}

/// An error of the operating system about `path`, for the model.
pub fn word_failure(path: &str, error: &io::Error) -> ToolError {
    ToolError::permanent(match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{path}: no permission"),
        io::ErrorKind::NotADirectory => format!("{path}: a part of the path is a file, not a directory"),
        io::ErrorKind::StorageFull => format!("{path}: the disk is full"),
        io::ErrorKind::InvalidInput => format!("{path} cannot be the path of a file: leave out zero bytes"),
        io::ErrorKind::ReadOnlyFilesystem => format!("{path}: the file system is read-only"),
        _ => format!("{path}: {error}"),
    })
}

/// The whole of a file that is not larger than [`WHOLE_BYTES`].
///
/// # Errors
/// The file cannot be read.
pub fn read_whole(path: &str, found: &mut FoundFile) -> Result<Vec<u8>, ToolError> {
    if let Some(text) = &found.unsaved {
        return Ok(text.as_bytes().to_vec());
    }
    found.opened.read(WHOLE_BYTES).map_err(|error| word_failure(path, &error))
}

/// The whole of a file that is to be changed. `refusal` says what is not done with one that is too large for that.
///
/// # Errors
/// The file is too large, or cannot be read.
pub fn read_for_change(path: &str, found: &mut FoundFile, refusal: &str) -> Result<Vec<u8>, ToolError> {
    if found.len() > WHOLE_BYTES {
        let size = format_size(found.len());
        return Err(ToolError::permanent(format!("{path} has {size}: files that large are not {refusal}")));
    }
    read_whole(path, found)
}

/// A sentence about entries that were left out without being read.
fn left_out(count: u64) -> String {
    let (entries, them) = if count == 1 { ("entry", "it") } else { ("entries", "them") };
    format!("[{count} {entries} left out: a rule denies {them}, or credentials are kept there]")
}

/// What could not be read, with the reasons.
pub type UnreadPaths = BTreeMap<PathBuf, io::Error>;

/// A line about what could not be read, with the first of it; `None` if there is nothing.
pub fn describe_unread(workspace: &Workspace, unread: &UnreadPaths, one: &str, many: &str) -> Option<String> {
    let (path, error) = unread.first_key_value()?;
    let first = word_failure(&workspace.display(path), error).message;
    let more = if unread.len() > 1 { ", …" } else { "" };
    Some(format!("[{} could not be read: {first}{more}]", text::count_noun(unread.len() as u64, one, many)))
}

/// `12 B`, `3.4 KB`, `5.0 GB`.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

fn refuse_missing(reach: &Reach, path: &str, resolved: &Path) -> ToolError {
    let (Some(parent), Some(name)) = (resolved.parent(), resolved.file_name()) else {
        return ToolError::permanent(format!("{path} does not exist"));
    };
    let (workspace, name) = (reach.workspace(), name.to_string_lossy());
    let Ok(dir) = Dir::open(parent) else {
        let dir = workspace.display(parent);
        return ToolError::permanent(format!("{path} does not exist, nor does the directory {dir}"));
    };
    let entries = dir.entries().unwrap_or_default().into_iter().map(|entry| entry.name);
    let names: BTreeMap<String, OsString> = entries
        .filter(|name| !reach.omits(&parent.join(name), parent))
        .map(|name| (name.to_string_lossy().into_owned(), name))
        .collect();
    let near: Vec<String> = text::find_nearest(&name, names.keys().map(String::as_str))
        .into_iter()
        .map(|name| workspace.display(&parent.join(&names[name])))
        .collect();
    ToolError::permanent(if near.is_empty() {
        format!("{path} does not exist")
    } else {
        format!("{path} does not exist; near it: {}", near.join(", "))
    })
}
