//! The last resort of every strategy: recent items are shortened or removed until the request fits. The last step
//! comes second to last, the person's last message last.

use super::digest;
use super::draft::PlanDraft;

/// The minimum tokens of a shortened text.
const LEAST_TEXT: u64 = 100;

/// The minimum tokens of a shortened result that the model has not read yet.
const LEAST_RESULT: u64 = 40;

/// Shortens and removes items until the request fits.
pub fn give_way(mut draft: PlanDraft<'_>) -> PlanDraft<'_> {
    let stages: [fn(&mut PlanDraft<'_>); 6] =
        [shorten_results, all_but_the_last_step, last_results, last_arguments, last_text, shorten_message];
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

/// Shortens the results of the last step, each to its share of the room.
fn last_results(draft: &mut PlanDraft<'_>) {
    let Some(last) = draft.last_step else { return };
    draft.shorten_arguments(last);
    let step = draft.material.items[last].as_step();
    let answers = step.map_or(0, |step| step.calls().filter(|call| call.answer.is_some()).count() as u64);
    for least in [LEAST_RESULT, 0] {
        if answers == 0 || draft.fits() {
            break;
        }
        let results = draft.weight_of_answers(last);
        let room = (draft.goal.at + results).saturating_sub(draft.tokens());
        let most = if least == 0 { 0 } else { (room / answers).max(least) };
        draft.cut_answers(last, most);
    }
}

/// Replaces the arguments of the last step by notes, as it may have many calls.
fn last_arguments(draft: &mut PlanDraft<'_>) {
    if let Some(last) = draft.last_step {
        draft.rewrite_arguments(last, digest::instead_of_arguments);
    }
}

/// Shortens the text of the last reply, as the model may have rambled.
fn last_text(draft: &mut PlanDraft<'_>) {
    shorten_item(draft, draft.last_step);
}

/// Shortens the person's last message.
fn shorten_message(draft: &mut PlanDraft<'_>) {
    shorten_item(draft, draft.asked);
}

fn shorten_item(draft: &mut PlanDraft<'_>, index: Option<usize>) {
    if let Some(index) = index {
        let room = (draft.goal.at + draft.weight_of_text(index)).saturating_sub(draft.tokens());
        draft.shorten_text(index, room.max(LEAST_TEXT));
    }
}
