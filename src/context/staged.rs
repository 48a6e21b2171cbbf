//! The strategies that keep as much as they can: `staged` shortens old results first, then lets go of idle skills, and
//! only then has older turns summarised; `summary` does the last of these alone.

use crate::message::Message;

use super::draft::Draft;
use super::plan::Fate;
use super::skills::{self, SKILL_TOOLS};
use super::units::Kind;

/// Old results, idle skills, old turns, in this order, and no further than needed.
pub fn staged(draft: &mut Draft<'_>) {
    shorten_results(draft);
    shorten_arguments(draft);
    unload_skills(draft);
    summarise(draft);
    give_way(draft);
}

/// Old turns alone.
pub fn summary(draft: &mut Draft<'_>) {
    summarise(draft);
    give_way(draft);
}

/// The oldest results first. Errors that were not overcome, plans and skills stay.
fn shorten_results(draft: &mut Draft<'_>) {
    for index in draft.old() {
        if draft.is_enough() {
            return;
        }
        if is_shortable(draft, index) && !draft.unresolved.contains(&index) {
            draft.shorten(index);
        }
    }
}

/// What files were given to write, for example: their text is in the files.
fn shorten_arguments(draft: &mut Draft<'_>) {
    for index in draft.old() {
        if draft.is_enough() {
            return;
        }
        if matches!(draft.material.messages[index], Message::Assistant(_)) {
            draft.shorten(index);
        }
    }
}

fn unload_skills(draft: &mut Draft<'_>) {
    if draft.is_enough() {
        return;
    }
    for (index, name) in skills::idle(draft) {
        draft.unload(index, &name);
    }
}

/// The oldest units first. As a summary costs a request, it makes more room than was asked for: the next few times
/// shortening results will do.
fn summarise(draft: &mut Draft<'_>) {
    if draft.is_enough() {
        return;
    }
    draft.quotes = true;
    let deep = draft.goal.to * 3 / 5;
    for unit in 0..draft.recent {
        if draft.tokens() <= deep {
            return;
        }
        remove(draft, unit);
    }
}

/// What recent steps hold, when nothing else is left: their results, the oldest first, then the steps themselves.
/// The last step stays longest.
pub fn give_way(draft: &mut Draft<'_>) {
    let last = draft.units.iter().rposition(|unit| unit.kind == Kind::Step).unwrap_or(0);
    let is_enough = |draft: &Draft<'_>| draft.tokens() <= draft.goal.at_most;
    for unit in draft.recent..draft.units.len() {
        for index in draft.units[unit].range.clone() {
            if is_enough(draft) {
                return;
            }
            if is_shortable(draft, index) || matches!(draft.material.messages[index], Message::Assistant(_)) {
                draft.shorten(index);
            }
        }
    }
    for unit in draft.recent..last {
        if is_enough(draft) {
            return;
        }
        remove(draft, unit);
    }
}

/// Takes a unit out, save for the texts of skills that are still loaded.
fn remove(draft: &mut Draft<'_>, unit: usize) {
    let kept = |index: &usize| *draft.fate(*index) == Fate::Keep;
    let skills: Vec<usize> = draft.units[unit]
        .range
        .clone()
        .filter(|index| draft.skill_texts.contains_key(index))
        .filter(kept)
        .collect();
    draft.remove(unit, &|index| skills.contains(&index));
}

/// Whether the message is a result whose text may go: not a skill's, and not the plan.
pub fn is_shortable(draft: &Draft<'_>, index: usize) -> bool {
    match &draft.material.messages[index] {
        Message::Tool(answer) => answer.name != "todo" && !SKILL_TOOLS.contains(&answer.name.as_str()),
        _ => false,
    }
}
