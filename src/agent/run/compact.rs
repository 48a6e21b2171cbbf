//! Context commands of a person: show what fills the window, compress it, or preview a compression.

use std::collections::BTreeMap;

use crate::agent::turn::{Turn, TurnStop};
use crate::agent::window::{self, Basis, Fill};
use crate::agent::{Agent, Cancel, Conversation, Run};
use crate::config::Strategy;
use crate::conversation::event::{Compressed, CompressionReason};
use crate::conversation::message::Item;
use crate::conversation::session::{ItemChange as Edited, Session, SessionError};

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
            Edited::Text { .. } | Edited::Arguments { .. } | Edited::Answer { .. } | Edited::Unpicture => {
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

/// Pins the items that contain `text`; without one, the person's last message and its answers. Returns a short
/// description of each.
///
/// # Errors
/// The disk fails.
pub fn pin_items(session: &mut Session, text: &str, now: jiff::Timestamp) -> Result<Vec<String>, SessionError> {
    let items = session.items();
    let chosen: Vec<usize> = if text.is_empty() {
        let said = items.iter().rposition(|item| item.said_by_person().is_some());
        let is_answer = |item: &Item| item.as_step().is_some_and(|step| !step.has_calls());
        let answer = items.iter().rposition(is_answer);
        said.into_iter().chain(answer.filter(|answer| said.is_some_and(|said| said < *answer))).collect()
    } else {
        let matches = |index: &usize| items[*index].texts().any(|held| held.contains(text));
        (0..items.len()).filter(matches).collect()
    };
    let numbers: Vec<u64> = chosen.iter().map(|index| session.ids()[*index].number).collect();
    let named = chosen.iter().map(|index| window::in_short(&items[*index])).collect();
    if !numbers.is_empty() {
        session.pin(&numbers, now)?;
    }
    Ok(named)
}
