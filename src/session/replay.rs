//! A log read again: what was said, and what had to be overlooked.
//!
//! A torn last line is what a crash leaves behind, and is dropped; a damaged line elsewhere is passed over. Both
//! are reported. A log of a later format is refused rather than half understood.

use std::path::Path;

use serde::Deserialize;

use crate::text;

use super::conversation::Conversation;
use super::entry::{FORMAT_VERSION, Header, Line, Piece};
use super::error::SessionError;

/// Why a call has no real answer, for the model.
pub(super) const INTERRUPTED: &str =
    "interrupted: the session ended before this call did; it may have run in part";

/// What a log holds.
#[derive(Debug)]
pub(super) struct Replayed {
    pub header: Header,
    pub conversation: Conversation,
    /// What a reply had said when the log ended.
    pub partial: Piece,
    /// Bytes up to the end of the last line that counts.
    pub whole: u64,
    /// Whether those bytes end with a line break.
    pub ends_with_newline: bool,
    pub warnings: Vec<String>,
}

/// Reads a whole log.
///
/// # Errors
/// When it is no session log, or one of a later format.
pub(super) fn replay(path: &Path, bytes: &[u8]) -> Result<Replayed, SessionError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let (_, first) = lines.next().ok_or_else(|| no_log(path, "it is empty"))?;
    let header = header(path, first)?;
    let mut log = Replayed {
        conversation: Conversation::new(&header.agent, &header.model),
        header,
        partial: Piece::default(),
        whole: first.len() as u64,
        ends_with_newline: first.ends_with(b"\n"),
        warnings: Vec::new(),
    };
    for (index, line) in lines {
        let whole = line.ends_with(b"\n");
        match Line::parse(line) {
            Ok(line) => log.apply(line),
            Err(_) if !whole => {
                let beginning = text::one_line(&String::from_utf8_lossy(&line[..line.len().min(256)]), 60);
                log.warnings.push(format!(
                    "{}: the last line was not written to its end; {} bytes are dropped: {beginning}",
                    path.display(),
                    line.len()
                ));
                break;
            }
            Err(error) => log.warnings.push(format!(
                "{}:{}: this line is damaged and is passed over: {error}",
                path.display(),
                index + 1
            )),
        }
        log.whole += line.len() as u64;
        log.ends_with_newline = whole;
    }
    let (dropped, added) = log.conversation.repair(INTERRUPTED);
    if dropped + added > 0 {
        log.warnings.push(format!(
            "{}: {dropped} answers without a call are left out, {added} calls without an answer count as \
             interrupted",
            path.display()
        ));
    }
    Ok(log)
}

/// Reads the first line.
///
/// # Errors
/// When it is no header, or one of a later format.
pub(super) fn header(path: &Path, line: &[u8]) -> Result<Header, SessionError> {
    #[derive(Deserialize)]
    struct Probe {
        v: u64,
    }
    let Probe { v } = serde_json::from_slice(line).map_err(|error| no_log(path, error))?;
    if v > u64::from(FORMAT_VERSION) {
        return Err(SessionError::TooNew { path: path.to_path_buf(), found: v, known: FORMAT_VERSION });
    }
    serde_json::from_slice(line).map_err(|error| no_log(path, error))
}

pub(super) fn no_log(path: &Path, why: impl std::fmt::Display) -> SessionError {
    SessionError::NotALog { path: path.to_path_buf(), why: why.to_string() }
}

impl Replayed {
    fn apply(&mut self, line: Line) {
        match line {
            Line::Message(message, number) => {
                self.partial = Piece::default();
                self.conversation.push(message, number);
            }
            Line::Edited(edited) => self.conversation.edit(&edited.reason, edited.edits),
            Line::Restored => _ = self.conversation.view.restore(),
            Line::Budget(learned) => self.conversation.learned_budget = Some(learned.tokens),
            Line::Pinned(pinned) => self.conversation.pinned.extend(pinned.numbers),
            Line::Partial(piece) => {
                self.partial.text.push_str(&piece.text);
                self.partial.reasoning.push_str(&piece.reasoning);
            }
            Line::PartialVoid => self.partial = Piece::default(),
            Line::Switched(now) => self.conversation.switch(&now.agent, &now.model),
            Line::State(state) => self.conversation.update(state.changes),
            Line::Taint(taint) => {
                self.conversation.taint.get_or_insert(taint.source);
            }
            Line::TurnStarted => self.conversation.turns += 1,
            Line::Telemetry(cost) => self.conversation.note(&cost.call_id, cost.telemetry),
            Line::Other => {}
        }
    }
}
