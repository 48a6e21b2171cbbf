//! The parts of a log that its view does not show in the end. They are found before the log is read, so that texts are
//! not loaded only to be discarded: a conversation needs memory only for what it still sends.

use std::collections::HashSet;
use std::io::{self, Read};

use super::entry::{LineHead, LogLine};
use super::lines::LogLines;
use super::view::ItemChange;

/// The items and answers whose text no longer counts.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// The numbers of the items that were removed.
    items: HashSet<u64>,
    /// The answers that were replaced: the number of the item, the position of the call.
    answers: HashSet<(u64, usize)>,
    /// The number of the line that undid all compressions before it; 0 if there is none.
    restored: usize,
}

impl Unseen {
    /// Looks through a log. Only the lines of compressions are parsed.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn find(log: impl Read) -> io::Result<Self> {
        let mut unseen = Self::default();
        let mut lines = LogLines::new(log);
        let (mut line_number, mut last, mut numbers_grow) = (0, 0, true);
        while let Some(line) = lines.read()? {
            line_number += 1;
            if let Some(head) = LineHead::parse(line) {
                numbers_grow &= head.call.is_some() || head.number > last;
                last = last.max(head.number);
            } else if LineHead::is_edit(line) {
                match LogLine::parse(line) {
                    Ok(LogLine::Compressed { edits, .. } | LogLine::Unloaded { edits }) => {
                        let known = edits.iter().filter(|edit| edit.number <= last);
                        known.for_each(|edit| unseen.note(edit.number, &edit.change));
                    }
                    Ok(LogLine::Restored {}) => unseen = Self { restored: line_number, ..Self::default() },
                    _ => {}
                }
            }
        }
        if !numbers_grow {
            // A number is not unique: every text is read.
            unseen = Self { restored: unseen.restored, ..Self::default() };
        }
        Ok(unseen)
    }

    /// True if the texts of a line no longer count.
    pub fn covers(&self, line: &[u8]) -> bool {
        let Some(LineHead { number, call }) = LineHead::parse(line) else { return false };
        self.items.contains(&number) || call.is_some_and(|call| self.answers.contains(&(number, call)))
    }

    /// True if an edit in this line was undone later.
    pub fn is_undone(&self, line_number: usize) -> bool {
        line_number < self.restored
    }

    fn note(&mut self, number: u64, change: &ItemChange) {
        match change {
            ItemChange::Remove => drop(self.items.insert(number)),
            ItemChange::Answer { call, .. } => drop(self.answers.insert((number, *call))),
            ItemChange::Text { .. }
            | ItemChange::Arguments { .. }
            | ItemChange::Unload { .. }
            | ItemChange::Unpicture => {}
        }
    }
}
