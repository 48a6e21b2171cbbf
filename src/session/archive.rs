//! The archive: items that are no longer sent, or not verbatim. They are read by handle or found by a text search.
//!
//! A session with a log reads the log; one without keeps the items in memory. Nothing is written twice.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::contract::Archive;
use crate::long_text::{self, Found, Row};
use crate::message::{Handle, Item, Step};

use super::entry::{Head, Line};

/// The items that the view does not show verbatim. Shared with the tools that read them.
#[derive(Debug, Default)]
pub(super) struct Originals {
    /// `None`: the items are in memory.
    log: Option<PathBuf>,
    /// The hidden items by number. With a log, only the numbers are kept.
    hidden: Mutex<BTreeMap<u64, Option<Item>>>,
}

impl Originals {
    pub fn new(log: Option<PathBuf>) -> Self {
        Self { log, hidden: Mutex::default() }
    }

    /// Stores an item before its first change.
    pub fn hide(&self, number: u64, item: Item) {
        let kept = if self.log.is_some() { None } else { Some(item) };
        self.hidden().entry(number).or_insert(kept);
    }

    /// The number of hidden items.
    pub fn len(&self) -> usize {
        self.hidden().len()
    }

    /// Removes all items: the view shows them again.
    pub fn clear(&self) {
        self.hidden().clear();
    }

    /// The log that the items are read from; `None` where they are in memory.
    pub fn log(&self) -> Option<&Path> {
        self.log.as_deref()
    }

    /// The items that are in memory.
    pub fn in_memory(&self) -> BTreeMap<u64, Item> {
        self.hidden().iter().filter_map(|(number, item)| Some((*number, item.clone()?))).collect()
    }

    fn hidden(&self) -> MutexGuard<'_, BTreeMap<u64, Option<Item>>> {
        self.hidden.lock().expect("no holder panics")
    }

    /// Passes items to `each`, in order, until it returns false.
    fn each(&self, wanted: impl Fn(u64) -> bool, mut each: impl FnMut(u64, &Item) -> bool) -> io::Result<()> {
        let Some(log) = &self.log else {
            for (number, item) in self.hidden().iter().filter(|(number, _)| wanted(**number)) {
                if item.as_ref().is_some_and(|item| !each(*number, item)) {
                    break;
                }
            }
            return Ok(());
        };
        // Nothing was written yet.
        if !log.exists() {
            return Ok(());
        }
        each_item(log, wanted, each)
    }
}

/// Hands out the wanted items of a log, in order, their answers in them, until `each` says stop. Only their lines are
/// parsed, and one item is in memory at a time. Damaged lines are passed over.
pub(super) fn each_item(
    log: &Path,
    wanted: impl Fn(u64) -> bool,
    mut each: impl FnMut(u64, &Item) -> bool,
) -> io::Result<()> {
    // The newest step, whose answers are still to come.
    let mut open: Option<(u64, Step)> = None;
    let mut bytes = Vec::new();
    let mut reader = BufReader::with_capacity(1 << 16, File::open(log)?);
    loop {
        bytes.clear();
        if reader.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let Some(head) = Head::of(&bytes) else { continue };
        if !head.is_answer
            && let Some((number, step)) = open.take()
            && !each(number, &Item::Step(step))
        {
            return Ok(());
        }
        if !wanted(head.number) {
            continue;
        }
        let mut said_item = None;
        match Line::parse(&bytes) {
            Ok(Line::Answer { n, call, answer, .. }) => {
                if let Some((number, step)) = &mut open
                    && *number == n
                {
                    step.fill(call, answer);
                }
            }
            Ok(Line::Reply { n, step }) => open = Some((n, step)),
            Ok(Line::Said { n, said }) => said_item = Some((n, Item::Said(said))),
            _ => {}
        }
        if said_item.is_some_and(|(number, item)| !each(number, &item)) {
            return Ok(());
        }
    }
    if let Some((number, step)) = open {
        each(number, &Item::Step(step));
    }
    Ok(())
}

impl Archive for Originals {
    fn read(&self, handle: Handle) -> io::Result<Option<String>> {
        let mut found = None;
        self.each(
            |number| number == handle.number,
            |_, item| {
                found = text_of(item, handle.call);
                false
            },
        )?;
        Ok(found)
    }

    fn search(&self, query: &str, limit: usize) -> io::Result<Vec<Found>> {
        let numbers = self.numbers();
        let mut newest = Newest { limit, hits: 0, found: VecDeque::new() };
        self.each(
            |number| numbers.binary_search(&number).is_ok(),
            |number, item| {
                let mut rows = look(&text_of(item, None).unwrap_or_default(), query, limit);
                if item.as_step().is_some() {
                    rows.retain(|row| !is_call_of_recall(&row.text));
                }
                newest.add(Handle::item(number), rows);
                let calls = item.as_step().into_iter().flat_map(Step::calls).enumerate();
                // What `recall` found would be found again, and again.
                for (at, call) in calls.filter(|(_, call)| !is_recall(&call.request.name, &call.request.arguments))
                {
                    let answer = call.answer.as_ref().map_or("", |answer| &answer.content);
                    newest.add(Handle::answer(number, at), look(answer, query, limit));
                }
                true
            },
        )?;
        Ok(newest.found.into())
    }

    fn numbers(&self) -> Vec<u64> {
        self.hidden().keys().copied().collect()
    }
}

/// The newest texts that were found, the newest first, with just enough of them for so many hits.
struct Newest {
    limit: usize,
    hits: usize,
    found: VecDeque<Found>,
}

impl Newest {
    /// Adds a text that is newer than those before.
    fn add(&mut self, handle: Handle, rows: Vec<Row>) {
        let text = Found { id: handle.to_string(), rows };
        if text.hits() == 0 {
            return;
        }
        self.hits += text.hits();
        self.found.push_front(text);
        while let Some(oldest) =
            self.found.back().map(Found::hits).filter(|oldest| self.hits - oldest >= self.limit)
        {
            self.hits -= oldest;
            self.found.pop_back();
        }
    }
}

fn look(text: &str, query: &str, limit: usize) -> Vec<Row> {
    long_text::search(text.as_bytes(), query, limit).expect("memory can be read")
}

/// Whether a line of a step is a call of `recall`, as [`text_of`] writes it.
fn is_call_of_recall(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(name, rest)| rest.starts_with('{') && is_recall(name, rest))
}

/// Whether a call is one of `recall`, by itself or through `call_tool`.
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
