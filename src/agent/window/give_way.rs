//! The last resort of every strategy: recent items are shortened or removed until the request fits. The last step
//! comes second to last, the person's last message last.
//!
//! What the model has not read yet stays readable: of each result of the last step head, tail and handle, at least the
//! least of 300 tokens, its size, and its share of the room that is left.

use super::digest;
use super::draft::PlanDraft;

/// The minimum tokens of a shortened text, as long as there is an alternative, and of the text of a reply in the end.
const LEAST_TEXT: u64 = 100;
const SHORTEST_TEXT: u64 = 40;

/// The tokens of a result of which a few words can be read.
const SHORTEST_RESULT: u64 = 60;

/// The tokens of a result that are worth the room up to the budget; beyond them it is cut to stay below the trigger.
const ENOUGH: u64 = 300;

/// Shortens and removes items until the request fits.
pub fn give_way(mut draft: PlanDraft<'_>) -> PlanDraft<'_> {
    let stages: [fn(&mut PlanDraft<'_>); 11] = [
        shorten_results,
        all_but_the_last_step,
        |draft| draft.shrink_summary(),
        share_last_step,
        last_arguments,
        share_last_step,
        |draft| shorten_words(draft, LEAST_TEXT),
        last_results,
        shorten_message,
        |draft| shorten_words(draft, SHORTEST_TEXT),
        remove_last_step,
    ];
    for stage in stages {
        if draft.fits() {
            break;
        }
        stage(&mut draft);
        // The summary names what was removed, so it may have grown.
        draft.stand();
    }
    draft
}

/// Shortens the results of every step but the last.
fn shorten_results(draft: &mut PlanDraft<'_>) {
    for index in 0..draft.material.items.len() {
        if draft.last_step != Some(index) && !draft.fits() {
            draft.digest_answers(index, true);
            draft.shorten_arguments(index);
        }
    }
}

/// Summarises everything but the last step and the person's last message.
fn all_but_the_last_step(draft: &mut PlanDraft<'_>) {
    draft.summarise(|draft| {
        for index in 0..draft.material.items.len() {
            if draft.last_step != Some(index) {
                draft.remove(index);
            }
        }
    });
}

/// Cuts the results of the last step, which the model has not read, and the words before them in proportion: the longest
/// give way first, all to one length. Skills that the step loaded go only if the results would have too little.
fn share_last_step(draft: &mut PlanDraft<'_>) {
    let Some(last) = draft.last_step else { return };
    draft.shorten_arguments(last);
    if choose_length(draft, last) < ENOUGH {
        draft.unload(|skill| skill.item == last);
    }
    let most = choose_length(draft, last).max(SHORTEST_RESULT);
    draft.cut_answers(last, most);
    draft.shorten_text(last, most.max(LEAST_TEXT));
}

/// The most tokens for each part of the last step. It aims below the trigger, but not if that leaves too little.
fn choose_length(draft: &PlanDraft<'_>, last: usize) -> u64 {
    let mut sizes = draft.weigh_parts(last);
    sizes.sort_unstable();
    let all: u64 = sizes.iter().sum();
    let within = |most: u64| share_room(&sizes, (most + all).saturating_sub(draft.tokens()));
    within(draft.goal.at).max(within(draft.goal.most).min(ENOUGH))
}

/// The most for each part if all of them together have this room: what a short one leaves is for the others. `sizes` are
/// in order.
fn share_room(sizes: &[u64], mut room: u64) -> u64 {
    for (at, size) in sizes.iter().enumerate() {
        let share = room / (sizes.len() - at) as u64;
        if *size > share {
            return share;
        }
        room -= size;
    }
    u64::MAX
}

/// Replaces the arguments of the last step by notes, as it may have many calls.
fn last_arguments(draft: &mut PlanDraft<'_>) {
    if let Some(last) = draft.last_step {
        draft.rewrite_arguments(last, digest::instead_of_arguments);
    }
}

/// Shortens the text of the last reply, as the model may have rambled.
fn shorten_words(draft: &mut PlanDraft<'_>, most: u64) {
    if let Some(last) = draft.last_step {
        draft.shorten_text(last, most);
    }
}

/// Leaves only the handles of the last results, and of skills only their names.
fn last_results(draft: &mut PlanDraft<'_>) {
    draft.unload(|_| true);
    if let Some(last) = draft.last_step
        && !draft.fits()
    {
        draft.cut_answers(last, 0);
    }
}

/// Shortens the person's last message, so that a fifth of what is beside prompt and tools is left for the work.
fn shorten_message(draft: &mut PlanDraft<'_>) {
    if let Some(index) = draft.asked {
        let most = draft.goal.most;
        let target = draft.goal.at.min(most - most.saturating_sub(draft.material.fixed) / 5);
        let room = (target + draft.weigh_text(index)).saturating_sub(draft.tokens());
        draft.shorten_text(index, room.max(LEAST_TEXT));
    }
}

/// Summarises the last step too: its calls alone are more than the request holds.
fn remove_last_step(draft: &mut PlanDraft<'_>) {
    draft.summarise(|draft| {
        if let Some(last) = draft.last_step {
            draft.remove(last);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::share_room;

    #[test]
    fn what_short_parts_leave_is_for_the_long_ones() {
        for (sizes, room, length) in [
            (&[10, 20, 500, 900][..], 430, 200),
            (&[10, 20, 500, 900], 1430, u64::MAX),
            (&[10, 20, 500, 900], 1429, 899),
            (&[10, 20, 500, 900], 30, 7),
            (&[], 0, u64::MAX),
        ] {
            assert_eq!(share_room(sizes, room), length, "{sizes:?} in {room}");
        }
    }
}
