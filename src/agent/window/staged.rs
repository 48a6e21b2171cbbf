//! The strategies that keep as much as they can: `staged` shortens old results first, then removes idle skills,
//! and only then has older items summarised; `summary` does only the last.

use super::draft::PlanDraft;
use super::give_way::give_way;

/// Shortens old results, removes idle skills, summarises old items, in this order. The steps that need no summary
/// happen early if they buy many steps. Otherwise the conversation grows for a while, since a pass is cheaper the
/// more it buys, and only then is a summary requested.
pub fn plan_stages(whole: PlanDraft<'_>) -> PlanDraft<'_> {
    let (before, goal) = (whole.tokens(), whole.goal);
    let is_early = !goal.asked && before <= goal.late();
    let enough = if goal.asked {
        goal.to
    } else if is_early {
        goal.to.max(before.saturating_sub(goal.most * 3 / 10))
    } else {
        goal.late().saturating_sub(whole.many_steps())
    };
    if is_early && before.saturating_sub(whole.potential()) > enough {
        return whole;
    }
    let masked = mask_results(whole.clone());
    match masked.tokens() <= enough {
        true => masked,
        false if is_early => whole,
        false => plan_summary(masked),
    }
}

/// Summarises everything before the recent items: a summary costs a request, so it makes as much room as it can. It
/// includes an earlier summary.
pub fn plan_summary(mut draft: PlanDraft<'_>) -> PlanDraft<'_> {
    draft.summarise(|draft| {
        for index in 0..draft.recent {
            if draft.may_go(index) {
                draft.remove(index);
            }
        }
    });
    give_way(draft)
}

/// Shortens the oldest items first, results and arguments before skills, until slightly past the goal: the
/// provider's cached prefix is lost either way.
fn mask_results(mut draft: PlanDraft<'_>) -> PlanDraft<'_> {
    let is_enough = |draft: &PlanDraft<'_>| draft.tokens() <= draft.goal.to.saturating_sub(draft.goal.most / 10);
    for index in 0..draft.recent {
        if is_enough(&draft) {
            return draft;
        }
        draft.digest_answers(index, false);
        draft.shorten_arguments(index);
    }
    if !is_enough(&draft) {
        draft.unload(|skill| !skill.in_use);
    }
    draft
}
