//! The archive: items that are no longer sent, or not verbatim. They are read by handle or found by a text search.
//!
//! A session with a log reads the log; one without keeps the items in memory. Nothing is written twice.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::base::long_text::{self, FoundLine, FoundText};
use crate::conversation::Archive;
use crate::conversation::message::{Call, CallAnswer, Handle, Item, Step};

use super::entry::{LineHead, LogLine};
use super::lines::{LinesBack, LogLines};
use crate::base::seal::SealCheck;

/// The items that the view does not show verbatim. Shared with the tools that read them.
#[derive(Debug, Default)]
pub(super) struct Originals {
    /// `None` if the items are in memory.
    log: Option<PathBuf>,
    /// The hidden items by number. With a log, only the numbers are kept.
    hidden: Mutex<BTreeMap<u64, Option<Box<Item>>>>,
    /// The numbers of the items that an undo took out of the conversation.
    out: Vec<RangeInclusive<u64>>,
}

impl Originals {
    pub fn new(log: Option<PathBuf>) -> Self {
        Self { log, hidden: Mutex::default(), out: Vec::new() }
    }

    /// Takes items out of the conversation.
    pub fn take_out(&mut self, numbers: RangeInclusive<u64>) {
        self.lock_hidden().retain(|number, _| !numbers.contains(number));
        self.out.push(numbers);
    }

    /// True if an item was taken out of the conversation.
    pub fn is_out(&self, number: u64) -> bool {
        self.out.iter().any(|numbers| numbers.contains(&number))
    }

    /// Stores an item before its first change.
    pub fn hide(&self, number: u64, item: &Item) {
        let kept = || if self.log.is_some() { None } else { Some(Box::new(item.clone())) };
        self.lock_hidden().entry(number).or_insert_with(kept);
    }

    /// The number of hidden items.
    pub fn len(&self) -> usize {
        self.lock_hidden().len()
    }

    /// Removes all items: the view shows them again.
    pub fn clear(&self) {
        self.lock_hidden().clear();
    }

    /// The log that the items are read from; `None` if they are in memory.
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// The items that are in memory.
    pub fn in_memory(&self) -> BTreeMap<u64, Item> {
        self.lock_hidden()
            .iter()
            .filter_map(|(number, item)| Some((*number, Item::clone(item.as_deref()?))))
            .collect()
    }

    fn lock_hidden(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Box<Item>>>> {
        self.hidden.lock().expect("no holder panics")
    }

    /// Passes hidden items to `each`, the newest first, until it returns false.
    fn each_newest(&self, mut each: impl FnMut(u64, &Item) -> bool) -> io::Result<()> {
        let Some(log) = &self.log else {
            let hidden = self.lock_hidden();
            let mut newest = hidden.iter().rev().filter_map(|(number, item)| Some((*number, item.as_deref()?)));
            // Stop at the first item that was refused.
            let _ = newest.all(|(number, item)| each(number, item));
            return Ok(());
        };
        // Nothing was written yet.
        if !log.exists() {
            return Ok(());
        }
        let numbers = self.numbers();
        let mut lines = LinesBack::new(File::open(log)?)?;
        // Answers come after their step.
        let mut answers: Vec<(u64, usize, CallAnswer)> = Vec::new();
        while let Some(line) = lines.read()? {
            let is_wanted = |head: LineHead| numbers.binary_search(&head.number).is_ok();
            if !(LineHead::parse(&line).is_some_and(is_wanted) && SealCheck::default().is_sound(&line)) {
                continue;
            }
            let item = match LogLine::parse(&line) {
                Ok(LogLine::Answer { n, call, answer, .. }) => {
                    answers.push((n, call, answer));
                    continue;
                }
                Ok(LogLine::Reply { n, mut step }) => {
                    let own = answers.drain(..).rev().filter(|(number, ..)| *number == n);
                    own.for_each(|(_, call, answer)| {
                        step.fill(call, answer);
                    });
                    Some((n, Item::Step(step)))
                }
                Ok(LogLine::Said { n, said }) => Some((n, Item::Said(said))),
                _ => None,
            };
            if item.is_some_and(|(number, item)| !each(number, &item)) {
                break;
            }
        }
        Ok(())
    }

    /// The item with this number.
    fn item(&self, number: u64) -> io::Result<Option<Item>> {
        let Some(log) = self.log.as_ref() else {
            return Ok(self.lock_hidden().get(&number).and_then(|item| item.as_deref().cloned()));
        };
        let mut found = None;
        if log.exists() && !self.is_out(number) {
            let keep = |_, item| {
                found = Some(item);
                false
            };
            each_item(log, |wanted| wanted == number, keep)?;
        }
        Ok(found)
    }
}

/// Passes the wanted items of a log to `each`, in order and with their answers, until it returns false. Only their
/// lines are parsed, and one item is in memory at a time. Damaged lines are skipped.
pub(super) fn each_item(
    log: &Path,
    wanted: impl Fn(u64) -> bool,
    mut each: impl FnMut(u64, Item) -> bool,
) -> io::Result<()> {
    // The newest step, whose answers are still to come.
    let mut open: Option<(u64, Step)> = None;
    let mut lines = LogLines::new(File::open(log)?);
    let mut check = SealCheck::default();
    while let Some(line) = lines.read()? {
        let Some(head) = LineHead::parse(line).filter(|_| check.is_sound(line)) else { continue };
        if head.call.is_none()
            && let Some((number, step)) = open.take()
            && !each(number, Item::Step(step))
        {
            return Ok(());
        }
        if !wanted(head.number) {
            continue;
        }
        let mut said_item = None;
        match LogLine::parse(line) {
            Ok(LogLine::Answer { n, call, answer, .. }) => {
                if let Some((number, step)) = &mut open
                    && *number == n
                {
                    step.fill(call, answer);
                }
            }
            Ok(LogLine::Reply { n, step }) => open = Some((n, step)),
            Ok(LogLine::Said { n, said }) => said_item = Some((n, Item::Said(said))),
            _ => {}
        }
        if said_item.is_some_and(|(number, item)| !each(number, item)) {
            return Ok(());
        }
    }
    if let Some((number, step)) = open {
        each(number, Item::Step(step));
    }
    Ok(())
}

impl Archive for Originals {
    fn read(&self, handle: Handle) -> io::Result<Option<String>> {
        Ok(self.item(handle.number)?.and_then(|item| text_of(&item, handle.call)))
    }

    fn search(&self, query: &str, limit: usize) -> io::Result<Vec<FoundText>> {
        let mut newest = Newest { limit, hits: 0, found: Vec::new() };
        self.each_newest(|number, item| {
            let calls: Vec<&Call> = item.as_step().into_iter().flat_map(Step::calls).collect();
            // Otherwise the results of `recall` would be found again and again.
            let is_asked = |call: &Call| !is_recall(&call.request.name, &call.request.arguments);
            for (at, call) in calls.into_iter().enumerate().rev().filter(|(_, call)| is_asked(call)) {
                let answer = call.answer.as_ref().map_or("", |answer| &answer.content);
                newest.add(Handle::answer(number, at), || search_text(answer, query, limit));
            }
            newest.add(Handle::item(number), || {
                let mut rows = search_text(&text_of(item, None).unwrap_or_default(), query, limit);
                if item.as_step().is_some() {
                    rows.retain(|row| {
                        !row.text
                            .split_once(' ')
                            .is_some_and(|(name, rest)| rest.starts_with('{') && is_recall(name, rest))
                    });
                }
                rows
            });
            newest.hits < limit
        })?;
        Ok(newest.found)
    }

    fn numbers(&self) -> Vec<u64> {
        self.lock_hidden().keys().copied().collect()
    }
}

/// The texts that were found, the newest first, up to a number of hits.
struct Newest {
    limit: usize,
    hits: usize,
    found: Vec<FoundText>,
}

impl Newest {
    /// Searches a text that is older than those before, unless they have enough hits.
    fn add(&mut self, handle: Handle, look: impl FnOnce() -> Vec<FoundLine>) {
        if self.hits >= self.limit {
            return;
        }
        let text = FoundText { id: handle.to_string(), rows: look() };
        let hits = text.hits();
        if hits > 0 {
            self.hits += hits;
            self.found.push(text);
        }
    }
}

fn search_text(text: &str, query: &str, limit: usize) -> Vec<FoundLine> {
    long_text::search_lines(text.as_bytes(), query, limit).expect("memory can be read")
}

/// True if a call is one of `recall`, directly or through `call_tool`.
fn is_recall(name: &str, arguments: &str) -> bool {
    match name {
        "recall" => true,
        "call_tool" => arguments.contains("\"recall\""),
        _ => false,
    }
}

/// The text behind a handle: an answer as the model read it, a reply with its calls, or a user's text.
fn text_of(item: &Item, call: Option<usize>) -> Option<String> {
    if let Some(call) = call {
        let answer = item.as_step()?.calls().nth(call)?.answer.as_ref()?;
        return Some(answer.content.clone());
    }
    Some(match item {
        Item::Said(said) => said.texts().collect::<Vec<_>>().join("\n\n"),
        Item::Summary(summary) => summary.text.clone(),
        Item::Step(step) => {
            let mut text = step.text();
            for call in step.calls() {
                let gap = if text.is_empty() { "" } else { "\n" };
                let _ = write!(text, "{gap}{} {}", call.request.name, call.request.arguments);
            }
            text
        }
    })
}
