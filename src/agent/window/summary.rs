//! A summary of the removed items: its parts, and the facts that code adds.
//!
//! A model writes the parts. Code adds what it knows better (the files, the plan, the person's own words), so that
//! no summary can lose or distort it. A removed summary passes its facts on.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::base::present;
use crate::base::text;
use crate::conversation::message::{Call, CallStatus, Handle, Item, Summary, ToolCall};

use super::calls::{self, Files};
use super::digest;
use super::plan::{CompressionPlan, Material};
use super::rates::Rates;
use super::room::Room;

/// The facts that code knows about the removed items.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryFacts {
    /// The body of the summary that this one replaces; empty if there is none.
    pub previous: String,
    /// The person's last request, which stays.
    pub asked: Option<String>,
    pub room: Room,
    /// What texts have in tokens.
    pub rates: Rates,
    pub(super) replies: Vec<String>,
    pub(super) calls: Vec<(ToolCall, CallStatus)>,
    said: Vec<String>,
    files: Files,
    covers: u64,
    /// The number of the last removed item.
    last: u64,
    skills: Vec<String>,
    plan: Option<Value>,
}

impl SummaryFacts {
    /// The facts of a plan's summary. `todo` is the session's todo list, if any.
    pub fn collect(material: Material<'_>, plan: &CompressionPlan, todo: Option<&Value>) -> Self {
        Self::new(material, &plan.removed, &plan.unloaded, todo, plan.room)
    }

    /// True if there is an earlier summary to update.
    pub fn updates(&self) -> bool {
        !self.previous.is_empty()
    }

    pub(super) fn new(
        material: Material<'_>,
        removed: &[usize],
        unloaded: &[(String, u64)],
        todo: Option<&Value>,
        room: Room,
    ) -> Self {
        let asked = material.items.iter().rev().find_map(Item::said_by_person).map(str::to_owned);
        let mut facts = Self {
            previous: String::new(),
            asked,
            room,
            rates: material.ruler.rates(),
            replies: Vec::new(),
            calls: Vec::new(),
            said: Vec::new(),
            files: Files::default(),
            covers: 0,
            last: 0,
            skills: unloaded.iter().map(|(name, _)| name.clone()).collect(),
            plan: todo.cloned(),
        };
        let mut known = Files::default();
        for index in removed {
            let number = material.ids[*index].number;
            facts.last = facts.last.max(number);
            facts.take_in(&material.items[*index], number, &mut known);
        }
        let calls = facts.calls.iter().map(|(call, status)| (call, *status));
        facts.files = merge_files(calls::collect_files(calls), known, Room::bytes(room.files));
        facts.said = keep_texts(std::mem::take(&mut facts.said), Room::bytes(room.quoted));
        facts
    }

    fn take_in(&mut self, item: &Item, number: u64, known: &mut Files) {
        /// Messages of the person up to this many bytes are quoted whole if there is room.
        const LONG_MESSAGE: usize = 8 * 1024;
        match item {
            Item::Summary(summary) => {
                let gap = if self.previous.is_empty() { "" } else { "\n\n" };
                let _ = write!(self.previous, "{gap}{}", summary.body);
                self.said.extend(summary.said.iter().cloned());
                known.read.extend(summary.read.iter().cloned());
                known.changed.extend(summary.changed.iter().cloned());
                self.covers += summary.covers;
                return;
            }
            Item::Said(said) if said.author.is_person() => {
                let most = LONG_MESSAGE.min(Room::bytes(self.room.quoted) / 2);
                self.said.push(digest::of_text(&said.text, most, &Handle::item(number).to_string()));
            }
            Item::Said(_) => {}
            Item::Step(step) => {
                let text = step.text();
                if !text.trim().is_empty() {
                    self.replies.push(text);
                }
                let ended = |call: &Call| Some((call.request.clone(), call.answer.as_ref()?.status));
                self.calls.extend(step.calls().filter_map(ended));
            }
        }
        self.covers += 1;
    }
}

/// The newest files, and as many of the earlier ones as there is room for.
fn merge_files(new: Files, known: Files, room: usize) -> Files {
    let capped = |new: BTreeSet<String>, known: BTreeSet<String>| -> BTreeSet<String> {
        let mut fits = Room::fill(room, 3);
        new.into_iter().chain(known).filter(|path| fits(path)).collect()
    };
    let changed = capped(new.changed, known.changed);
    let read = capped(&new.read - &changed, &known.read - &changed);
    Files { read, changed }
}

/// The first text, which states the purpose, and the newest of the others.
fn keep_texts(mut said: Vec<String>, room: usize) -> Vec<String> {
    if said.iter().map(String::len).sum::<usize>() <= room || said.is_empty() {
        return said;
    }
    let first = said.remove(0);
    let mut fits = Room::fill(room.saturating_sub(first.len()), 0);
    let kept = said.iter().rev().take_while(|text| fits(text)).count();
    let mut out = vec![first];
    out.extend(said.drain(said.len() - kept..));
    out
}

/// The summary that replaces the removed items: `body` is the parts, written by a model or by code.
pub fn compose_summary(facts: &SummaryFacts, body: &str) -> Summary {
    let mut text = format!(
        "[{} earlier items of this conversation made room for this summary. recall id={} reads the last of them (lower \
         numbers are older), recall with a query searches them all. It is a record and no request: the work goes on \
         where it stood.]\n\n{}\n",
        facts.covers,
        Handle::item(facts.last),
        present::break_text_marks(body.trim())
    );
    write_list(&mut text, "Files read", facts.files.read.iter().map(|path| text::one_line(path, 200)));
    write_list(&mut text, "Files changed", facts.files.changed.iter().map(|path| text::one_line(path, 200)));
    let loads = |name: &String| format!("{name}: load_skill name={} loads it again", Value::from(name.as_str()));
    write_list(&mut text, "Skills whose instructions made room", facts.skills.iter().map(loads));
    write_list(&mut text, "Plan", facts.todo().into_iter());
    if !facts.said.is_empty() {
        text += "\n## What the person said until then, verbatim, the oldest first (handled, unless said otherwise above)\n";
        let quoted =
            facts.said.iter().map(|said| said.lines().fold(String::new(), |out, line| out + "> " + line + "\n"));
        text += &quoted.collect::<Vec<_>>().join("\n");
    }
    Summary {
        text,
        body: body.trim().to_owned(),
        said: facts.said.clone(),
        read: facts.files.read.clone(),
        changed: facts.files.changed.clone(),
        covers: facts.covers,
    }
}

impl SummaryFacts {
    /// The items of the todo list that fit into the room, and the number of the others.
    fn todo(&self) -> Vec<String> {
        let items = self.plan.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let room = Room::bytes(self.room.files).saturating_mul(2);
        let longest = (room / 4).clamp(40, 300);
        let field = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let entry = |item: &Value| {
            format!("[{}] {}", field(item, "status"), text::one_line(&field(item, "text"), longest))
        };
        let mut fits = Room::fill(room.saturating_add(1), 0);
        let mut shown: Vec<String> = items.iter().map(entry).take_while(|entry| fits(entry)).collect();
        if shown.len() < items.len() {
            shown.push(format!("… and {} more", items.len() - shown.len()));
        }
        shown
    }
}

fn write_list(out: &mut String, heading: &str, entries: impl Iterator<Item = String>) {
    for (at, entry) in entries.enumerate() {
        if at == 0 {
            let _ = write!(out, "\n## {heading}\n");
        }
        let _ = writeln!(out, "- {entry}");
    }
}
