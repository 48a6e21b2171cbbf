//! The strategies that need no model: `window` keeps the newest items of a conversation, `selective` the most
//! important ones. A summary written by code replaces the removed items.

use crate::conversation::message::{CallStatus, Item};

use super::calls;
use super::draft::PlanDraft;
use super::give_way::give_way;

/// Removes the least important items, oldest first.
pub fn remove_least_important(draft: PlanDraft<'_>) -> PlanDraft<'_> {
    let unresolved = calls::find_unresolved(draft.material.items);
    let is_unresolved = |index: usize| unresolved.iter().any(|(item, _)| *item == index);
    let mut order: Vec<usize> = (0..draft.recent).collect();
    order.sort_by_key(|index| measure_importance(draft.material.items, *index, is_unresolved(*index)));
    plan_removal(order, draft)
}

/// Plans for a note, which is shorter than a summary since no model writes it.
pub(super) fn plan_removal(order: impl IntoIterator<Item = usize>, mut draft: PlanDraft<'_>) -> PlanDraft<'_> {
    draft.room.summary = draft.room.summary.min(300);
    draft.summarise(|draft| {
        for index in order {
            if draft.tokens() > draft.goal.to && draft.may_go(index) {
                draft.remove(index);
            }
        }
    });
    give_way(draft)
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

fn measure_importance(items: &[Item], index: usize, is_unresolved: bool) -> Importance {
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
