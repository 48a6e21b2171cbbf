//! The parts of a log that its view does not show in the end. They are found before the log is read, so that texts are
//! not loaded only to be discarded: a conversation needs memory only for what it still sends.

use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::RangeInclusive;

use super::entry::{LineHead, LogLine};
use super::lines::LogLines;
use super::view::ItemChange;
use crate::base::seal::SealCheck;

/// The items and answers whose text no longer counts.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// The numbers of the items that were removed.
    items: HashSet<u64>,
    /// The answers that were replaced: the number of the item, the position of the call.
    answers: HashSet<(u64, usize)>,
    /// The number of the line that undid all compressions before it; 0 if there is none.
    restored: usize,
    /// The lines that an undo took out of the conversation, from the first to that of the undo.
    undone: Vec<RangeInclusive<usize>>,
    /// The lines of undos that were taken back.
    void: HashSet<usize>,
}

/// The lines that change what is sent, as they come.
#[derive(Default)]
struct EditLines {
    /// What each edit removed or replaced, with the number of its line: an item, or the answer to a call of it.
    edits: Vec<(usize, u64, Option<usize>)>,
    /// The lines that restore everything.
    restored: Vec<usize>,
    /// The lines of undos, with the number of the first item that each takes out.
    undone: Vec<(usize, u64)>,
    /// The lines of undos that were taken back.
    void: HashSet<usize>,
}

impl Unseen {
    /// Looks through a log, whose lines all have seals if it `is_sealed`. Only the lines of compressions are parsed.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn find(log: impl Read, is_sealed: bool) -> io::Result<Self> {
        let mut found = EditLines::default();
        // The line of each item, by its number.
        let mut places: Vec<(u64, usize)> = Vec::new();
        let mut lines = LogLines::new(log);
        let (mut line_number, mut last, mut numbers_grow) = (0, 0, true);
        let mut check = SealCheck::of_sealed(is_sealed);
        while let Some(line) = lines.read()? {
            line_number += 1;
            if !check.is_sound(line) {
                continue;
            }
            if let Some(head) = LineHead::parse(line) {
                if head.call.is_none() {
                    places.push((head.number, line_number));
                }
                numbers_grow &= head.call.is_some() || head.number > last;
                last = last.max(head.number);
            } else if LineHead::is_edit(line) {
                found.add(line_number, line, last);
            }
        }
        Ok(Self::new(&found, &places, numbers_grow))
    }

    fn new(found: &EditLines, places: &[(u64, usize)], numbers_grow: bool) -> Self {
        let line_of = |from: u64, end: usize| {
            let before = places.iter().filter(|(number, line)| *number >= from && *line < end);
            before.map(|(_, line)| *line).min().unwrap_or(end)
        };
        let undone = found.undone.iter().map(|(end, from)| line_of(*from, *end)..=*end).collect();
        let mut unseen = Self { undone, void: found.void.clone(), ..Self::default() };
        let stands = |line: usize| !unseen.undone.iter().any(|lines| lines.contains(&line));
        let restored = found.restored.iter().copied().filter(|line| stands(*line)).max().unwrap_or(0);
        // A number that is not unique names no text: every one is read.
        let edits = found.edits.iter().filter(|(line, ..)| numbers_grow && *line > restored && stands(*line));
        let (mut items, mut answers) = (HashSet::new(), HashSet::new());
        for (_, number, call) in edits {
            match call {
                None => drop(items.insert(*number)),
                Some(call) => drop(answers.insert((*number, *call))),
            }
        }
        (unseen.items, unseen.answers, unseen.restored) = (items, answers, restored);
        unseen
    }

    /// True if the texts of a line no longer count.
    pub fn covers(&self, line_number: usize, line: &[u8]) -> bool {
        let Some(LineHead { number, call }) = LineHead::parse(line) else { return false };
        self.is_taken_out(line_number)
            || self.items.contains(&number)
            || call.is_some_and(|call| self.answers.contains(&(number, call)))
    }

    /// True if a compression in this line was undone later.
    pub fn is_undone(&self, line_number: usize) -> bool {
        line_number < self.restored || self.is_taken_out(line_number)
    }

    /// True if this line is an undo that was taken back.
    pub fn is_void(&self, line_number: usize) -> bool {
        self.void.contains(&line_number)
    }

    /// True if an undo took this line out of the conversation.
    pub fn is_taken_out(&self, line_number: usize) -> bool {
        self.undone.iter().any(|lines| lines.contains(&line_number))
    }
}

impl EditLines {
    /// Takes in a line; `last` is the largest number of an item before it.
    fn add(&mut self, line_number: usize, line: &[u8], last: u64) {
        match LogLine::parse(line) {
            Ok(LogLine::Compressed { edits, .. } | LogLine::Unloaded { edits }) => {
                for edit in edits.iter().filter(|edit| edit.number <= last) {
                    match &edit.change {
                        ItemChange::Remove => self.edits.push((line_number, edit.number, None)),
                        ItemChange::Answer { call, .. } => {
                            self.edits.push((line_number, edit.number, Some(*call)));
                        }
                        ItemChange::Text { .. }
                        | ItemChange::Arguments { .. }
                        | ItemChange::Unload { .. }
                        | ItemChange::Picture { .. } => {}
                    }
                }
            }
            Ok(LogLine::Restored {}) => self.restored.push(line_number),
            Ok(LogLine::Undone { n }) => self.undone.push((line_number, n)),
            Ok(LogLine::Redone {}) => self.void.extend(self.undone.pop().map(|(line, _)| line)),
            _ => {}
        }
    }
}
