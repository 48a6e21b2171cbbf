//! Context commands of a person: show what fills the window, compress it, or preview a compression.

use std::collections::BTreeMap;

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::window::{self, Basis, Fill};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::base::text;
use crate::config::Strategy;
use crate::conversation::event::{Compressed, CompressionReason};
use crate::conversation::message::{Handle, Item};
use crate::conversation::session::{ItemChange as Edited, Session};

/// The effect of a compression on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCompression {
    pub what: &'static str,
    /// The item, in a few words.
    pub item: String,
    /// Its tokens now.
    pub tokens: u64,
}

/// The effects of a compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub changes: Vec<ItemCompression>,
    pub before: u64,
    /// Estimated.
    pub after: u64,
}

/// Compresses a conversation. `focus` is the topic that a summary must keep. `None` if there is nothing to gain.
///
/// # Errors
/// It was interrupted, or the program itself failed.
pub async fn compress_conversation(
    agent: &Agent,
    conversation: &mut Conversation,
    run: &mut Run,
    focus: &str,
    cancel: &Cancel,
) -> Result<Option<Compressed>, TurnStop> {
    let mut turn = Turn::new(agent, conversation, run);
    tokio::select! {
        biased;
        () = cancel.triggered() => Err(TurnStop::Interrupted),
        done = turn.compress(CompressionReason::Manual, focus) => done,
    }
}

/// Previews [`compress_conversation`]. It sends no request and changes nothing.
pub fn preview_compression(agent: &Agent, conversation: &mut Conversation, run: &mut Run) -> Preview {
    let mut turn = Turn::new(agent, conversation, run);
    let before = turn.measure().tokens;
    let Some(plan) = turn.plan(CompressionReason::Manual) else {
        return Preview { changes: Vec::new(), before, after: before };
    };
    let weights = turn.conversation.ruler.weights();
    let summarises = matches!(agent.context.strategy, Strategy::Staged | Strategy::Summary);
    let mut what: BTreeMap<u64, &'static str> = BTreeMap::new();
    for edit in &plan.edits {
        let word = match edit.change {
            Edited::Remove if summarises => "summarise",
            Edited::Remove => "leave out",
            Edited::Unload { .. } => "unload",
            Edited::Text { .. } | Edited::Arguments { .. } | Edited::Answer { .. } | Edited::Picture { .. } => {
                "shorten"
            }
        };
        what.entry(edit.number).or_insert(word);
    }
    let session = &turn.conversation.session;
    let items = session.ids().iter().zip(session.items()).zip(weights);
    let changes = items.filter_map(|((id, item), tokens)| {
        Some(ItemCompression { what: what.get(&id.number)?, item: window::in_short(item), tokens })
    });
    Preview { changes: changes.collect(), before, after: plan.tokens }
}

/// The contents of the window, counted, and the basis of the counts.
pub fn measure_fill(agent: &Agent, conversation: &mut Conversation, run: &mut Run) -> (Fill, Basis) {
    let mut turn = Turn::new(agent, conversation, run);
    let basis = turn.measure_from(0).basis;
    (turn.fill(), basis)
}

/// Pins an item: that with this handle (`m12`), or the only one that contains the text; without either, the person's
/// last message and its answer. Returns a line for each.
///
/// # Errors
/// Nothing or more than one thing is meant, or the disk fails.
pub fn pin_items(session: &mut Session, which: &str, now: jiff::Timestamp) -> anyhow::Result<Vec<String>> {
    let chosen = if which.is_empty() { find_last_exchange(session.items()) } else { find_one(session, which)? };
    anyhow::ensure!(!chosen.is_empty(), "there is nothing to pin yet");
    let numbers: Vec<u64> = chosen.iter().map(|index| session.ids()[*index].number).collect();
    session.pin(&numbers, now)?;
    Ok(chosen.into_iter().map(|index| name_item(session, index)).collect())
}

/// Takes pins back: the last ones, or that of an item, named as for [`pin_items`]. Returns a line for each.
///
/// # Errors
/// Nothing or more than one thing is meant, or the disk fails.
pub fn unpin_items(session: &mut Session, which: &str, now: jiff::Timestamp) -> anyhow::Result<Vec<String>> {
    let numbers = if which.is_empty() {
        session.unpin(None, now)?
    } else {
        let chosen: Vec<u64> =
            find_one(session, which)?.into_iter().map(|index| session.ids()[index].number).collect();
        session.unpin(Some(&chosen), now)?
    };
    anyhow::ensure!(!numbers.is_empty(), "nothing is pinned there");
    let places = (0..session.items().len()).filter(|index| numbers.contains(&session.ids()[*index].number));
    Ok(places.map(|index| name_item(session, index)).collect())
}

fn name_item(session: &Session, index: usize) -> String {
    format!("{}  {}", Handle::item(session.ids()[index].number), window::in_short(&session.items()[index]))
}

fn find_last_exchange(items: &[Item]) -> Vec<usize> {
    let said = items.iter().rposition(|item| item.said_by_person().is_some());
    let is_answer = |item: &Item| item.as_step().is_some_and(|step| !step.has_calls());
    let answer = items.iter().rposition(is_answer);
    said.into_iter().chain(answer.filter(|answer| said.is_some_and(|said| said < *answer))).collect()
}

/// The place of the item that is meant by its handle or by a text in it.
fn find_one(session: &Session, which: &str) -> anyhow::Result<Vec<usize>> {
    const SHOWN: usize = 8;
    let numbered = |handle: Handle| session.ids().iter().position(|id| id.number == handle.number);
    if let Some(index) = Handle::parse(which).and_then(numbered) {
        return Ok(vec![index]);
    }
    let matches = |index: &usize| session.items()[*index].texts().any(|held| held.contains(which));
    let found: Vec<usize> = (0..session.items().len()).filter(matches).collect();
    let asked = text::one_line(which, 60);
    anyhow::ensure!(!found.is_empty(), "no message contains `{asked}`");
    if found.len() > 1 {
        let rows: Vec<String> = found.iter().rev().take(SHOWN).map(|index| name_item(session, *index)).collect();
        anyhow::bail!("{} messages contain `{asked}`; name one by its id:\n{}", found.len(), rows.join("\n"));
    }
    Ok(found)
}
