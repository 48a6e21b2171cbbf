//! The first line of a log. A damaged one is rebuilt: the id is the file's name, and every turn repeats the rest.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::entry::{FORMAT_VERSION, HeaderKind, LogHeader, LogLine, OLDEST_VERSION};
use super::error::SessionError;
use super::id::{format_stamp, workspace_slug};
use super::lines::LogLines;
use crate::base::seal::has_seal;

/// In a damaged line: the trial is a layer.
const IS_LAYER: &[u8] = b"\"is_layer\":true";

/// The header of a log, and how it was found.
#[derive(Debug)]
pub(super) struct FoundHeader {
    pub header: LogHeader,
    /// True if the first line is damaged.
    pub is_rebuilt: bool,
    /// True if the first line is an entry: the header itself is gone.
    pub is_gone: bool,
}

/// Reads the header from the first line of a log, or rebuilds it.
///
/// # Errors
/// It is not a log, or has another format.
pub(super) fn read_header(path: &Path, line: &[u8]) -> Result<FoundHeader, SessionError> {
    #[derive(Deserialize)]
    struct Probe {
        v: u64,
    }
    let (oldest, known) = (u64::from(OLDEST_VERSION), u64::from(FORMAT_VERSION));
    let probed = serde_json::from_slice(line).ok().filter(|_| has_seal(line) != Some(false));
    match probed {
        Some(Probe { v: found }) if !(oldest..=known).contains(&found) => {
            return Err(SessionError::other_format(path, found));
        }
        // Only the oldest format has no seals.
        Some(Probe { v }) if v == oldest || has_seal(line).is_some() => {
            if let Ok(header) = serde_json::from_slice(line) {
                return Ok(FoundHeader { header, is_rebuilt: false, is_gone: false });
            }
        }
        _ => {}
    }
    rebuild_header(path, line).ok_or_else(|| no_log(path, "its first line is none of a session"))
}

pub(super) fn no_log(path: &Path, why: impl std::fmt::Display) -> SessionError {
    SessionError::NotALog { path: path.to_path_buf(), why: why.to_string() }
}

/// Rebuilds the header of a log whose first line is damaged; `None` if it is no log.
fn rebuild_header(path: &Path, line: &[u8]) -> Option<FoundHeader> {
    /// Of the log, where a turn and an entry must be found.
    const MOST_BYTES: u64 = 1 << 20;
    let id = path.file_stem()?.to_str()?;
    let began = DateTime::strptime("%Y%m%d-%H%M%S", id.rsplit_once('-')?.0).ok()?;
    let began = TimeZone::UTC.to_timestamp(began).ok()?;
    let mut lines = LogLines::new(File::open(path).ok()?.take(MOST_BYTES));
    let (mut turn, mut entries, mut is_sealed) = (None, 0, false);
    while turn.is_none()
        && let Ok(Some(line)) = lines.read()
    {
        let sealed = has_seal(line);
        is_sealed |= sealed == Some(true);
        let is_entry =
            sealed != Some(false) && LogLine::parse(line).is_ok_and(|line| !matches!(line, LogLine::Other));
        entries += usize::from(is_entry);
        turn = (is_entry && find_text(line, "run_id").is_some()).then(|| line.to_vec());
    }
    if entries == 0 {
        return None;
    }
    let slug = path.parent()?.file_name()?;
    let of_turn = |name| find_text(turn.as_deref()?, name);
    let of_line = |name| find_text(line, name);
    let is_of_this_place = |workspace: &String| workspace_slug(Path::new(workspace)).as_str() == slug;
    let created_at = of_line("created_at")
        .filter(|stamp| stamp.parse::<Timestamp>().is_ok_and(|stamp| stamp.as_second() == began.as_second()));
    let header = LogHeader {
        v: if is_sealed { FORMAT_VERSION } else { OLDEST_VERSION },
        kind: HeaderKind::Session,
        id: id.to_owned(),
        workspace: of_line("workspace")
            .filter(is_of_this_place)
            .or_else(|| of_turn("workspace"))
            .unwrap_or_default(),
        agent: of_turn("agent").or_else(|| of_line("agent")).unwrap_or_else(|| "default".to_owned()),
        model: of_turn("model").or_else(|| of_line("model")).unwrap_or_default(),
        created_at: created_at.unwrap_or_else(|| format_stamp(began)),
        parent: of_turn("parent").or_else(|| of_line("parent")),
        copy: of_line("copy"),
        is_layer: line.windows(IS_LAYER.len()).any(|part| part == IS_LAYER),
        forked_from: of_line("forked_from"),
    };
    let is_gone = has_seal(line) == Some(true) && LogLine::parse(line).is_ok();
    Some(FoundHeader { header, is_rebuilt: true, is_gone })
}

/// The text of a field in a line that may be damaged elsewhere.
fn find_text(line: &[u8], name: &str) -> Option<String> {
    let key = format!(r#""{name}":"#);
    let at = line.windows(key.len()).position(|window| window == key.as_bytes())? + key.len();
    serde_json::Deserializer::from_slice(&line[at..]).into_iter::<String>().next()?.ok()
}
