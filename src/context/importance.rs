//! The strategies that need no model: `window` keeps the newest of a conversation, `selective` what matters most of
//! it. A note stands for what goes.

use crate::message::{CallStatus, Message};

use super::draft::Draft;
use super::staged::give_way;
use super::units::{Kind, Unit};

/// The oldest units go.
pub fn window(draft: &mut Draft<'_>) {
    for unit in 0..draft.recent {
        if draft.is_enough() {
            return;
        }
        draft.remove(unit, &|_| false);
    }
    give_way(draft);
}

/// The least important units go, the oldest of them first.
pub fn selective(draft: &mut Draft<'_>) {
    let mut order: Vec<usize> = (0..draft.recent).collect();
    order.sort_by_key(|unit| importance(draft, *unit));
    for unit in order {
        if draft.is_enough() {
            return;
        }
        draft.remove(unit, &|_| false);
    }
    give_way(draft);
}

/// How much a unit matters. The order: errors that were overcome, calls and their results, plain replies, what the
/// person said, final answers, the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Importance {
    HandledError,
    Calls,
    Plain,
    Said,
    Final,
    System,
}

fn importance(draft: &Draft<'_>, unit: usize) -> Importance {
    let Unit { kind, range } = &draft.units[unit];
    let mut messages = range.clone().map(|index| (index, &draft.material.messages[index]));
    match kind {
        Kind::System => Importance::System,
        Kind::Said => Importance::Said,
        Kind::Note => Importance::Plain,
        Kind::Step if range.len() == 1 => {
            let ends_turn = draft.units.get(unit + 1).is_none_or(|next| next.kind == Kind::Said);
            if ends_turn { Importance::Final } else { Importance::Plain }
        }
        Kind::Step => {
            let handled = |(index, message): (usize, &Message)| match message {
                Message::Tool(answer) => answer.status != CallStatus::Ok && !draft.unresolved.contains(&index),
                _ => false,
            };
            if messages.any(handled) { Importance::HandledError } else { Importance::Calls }
        }
    }
}
