//! The strategies that need no model: `window` keeps the newest items of a conversation, `selective` the most
//! important ones. A summary written by code replaces the removed items.

use crate::conversation::message::{CallStatus, Item};

use super::calls;
use super::draft::Draft;
use super::give_way::give_way;

/// Removes the oldest items.
pub fn window(draft: Draft<'_>) -> Draft<'_> {
    let order = 0..draft.recent;
    give_way(removed(draft, order))
}

/// Removes the least important items, oldest first.
pub fn selective(draft: Draft<'_>) -> Draft<'_> {
    let unresolved = calls::unresolved(draft.material.items);
    let is_unresolved = |index: usize| unresolved.iter().any(|(item, _)| *item == index);
    let mut order: Vec<usize> = (0..draft.recent).collect();
    order.sort_by_key(|index| importance(draft.material.items, *index, is_unresolved(*index)));
    give_way(removed(draft, order.into_iter()))
}

/// Plans for a note, which is shorter than a summary since no model writes it.
fn removed(mut draft: Draft<'_>, order: impl Iterator<Item = usize>) -> Draft<'_> {
    draft.room = draft.room.of_a_note();
    let mut shorter = draft.clone();
    for index in order {
        if shorter.tokens() <= draft.goal.to {
            break;
        }
        if draft.may_go(index) {
            shorter.remove(index);
        }
    }
    shorter.stand();
    if shorter.tokens() < draft.tokens() { shorter } else { draft }
}

/// The importance of an item, in ascending order: overcome errors, calls and their results, plain replies, the
/// person's messages, final answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Importance {
    HandledError,
    Calls,
    Plain,
    Said,
    Final,
}

fn importance(items: &[Item], index: usize, is_unresolved: bool) -> Importance {
    match &items[index] {
        // A summary of older items is always removed first: the next one carries it over.
        Item::Summary(_) => Importance::HandledError,
        Item::Said(said) if said.author.is_person() => Importance::Said,
        Item::Said(_) => Importance::Plain,
        Item::Step(step) if !step.has_calls() => {
            let ends_turn = items.get(index + 1).is_none_or(|next| next.said_by_person().is_some());
            if ends_turn { Importance::Final } else { Importance::Plain }
        }
        Item::Step(step) => {
            let failed = step
                .calls()
                .any(|call| call.answer.as_ref().is_some_and(|answer| answer.status != CallStatus::Ok));
            if failed && !is_unresolved { Importance::HandledError } else { Importance::Calls }
        }
    }
}
