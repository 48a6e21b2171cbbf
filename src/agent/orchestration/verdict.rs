//! Decides from the scores of a reflector. Code decides; the reply only chooses between another attempt at one step and
//! a new plan.

use crate::conversation::event::plan::{Evaluation, ScoreDecision};

use super::progress::PlanFacts;
use super::reply::{ReflectorAction, ReflectorReply};

/// The most retries and new plans together.
pub const MOST_RETRIES: u32 = 3;

/// The lowest score that is good.
const GOOD: u8 = 4;
/// The highest score that is bad.
const BAD: u8 = 2;

/// Decides from the scores and the facts.
pub fn decide_step(reply: &ReflectorReply, facts: &PlanFacts) -> ScoreDecision {
    let correctness = judge_correctness(reply.evaluation.correctness.score, facts);
    let lowest = reply.evaluation.completeness.score.min(reply.evaluation.format.score).min(correctness);
    if lowest >= GOOD || lowest > BAD && correctness >= GOOD {
        return ScoreDecision::Accept;
    }
    let modification = match reply.retry_details.modification.as_str() {
        blank if blank.trim().is_empty() => word_verdict(&reply.evaluation, correctness, facts),
        modification => modification.to_owned(),
    };
    if reply.action == ReflectorAction::Escalate {
        return ScoreDecision::Escalate { why: modification };
    }
    if facts.retries >= MOST_RETRIES {
        let why = format!("{MOST_RETRIES} retries are used up: {modification}");
        return ScoreDecision::Escalate { why };
    }
    match (reply.action, step_to_repeat(reply, facts)) {
        (ReflectorAction::Replan, _) | (_, None) => ScoreDecision::Replan { modification },
        (_, Some(step_id)) => ScoreDecision::RetryStep { step_id, modification },
    }
}

/// The score of correctness that counts: the results of checks override the model's opinion.
fn judge_correctness(score: u8, facts: &PlanFacts) -> u8 {
    match facts {
        PlanFacts { failed, .. } if !failed.is_empty() => 1,
        PlanFacts { proven: true, .. } => 5,
        _ => score,
    }
}

/// The step that the reply names, if the plan has it; else the one that failed, if only one did.
fn step_to_repeat(reply: &ReflectorReply, facts: &PlanFacts) -> Option<u32> {
    let named = reply.retry_details.step_id.filter(|step| facts.steps.contains(step));
    named.or(match facts.failed.as_slice() {
        [only] => Some(*only),
        _ => None,
    })
}

/// The reason that a result was not accepted.
fn word_verdict(evaluation: &Evaluation, correctness: u8, facts: &PlanFacts) -> String {
    if !facts.failed.is_empty() {
        let steps: Vec<String> = facts.failed.iter().map(u32::to_string).collect();
        return format!("failed: step {}", steps.join(", step "));
    }
    let scores = [
        ("completeness", evaluation.completeness.score, &evaluation.completeness.reason),
        ("correctness", correctness, &evaluation.correctness.reason),
        ("format", evaluation.format.score, &evaluation.format.reason),
    ];
    let low = scores.iter().filter(|(_, score, _)| *score < GOOD);
    low.map(|(name, score, reason)| format!("{name} {score} of 5: {reason}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use crate::conversation::event::plan::Score;

    use super::super::reply::RetryDetails;
    use super::*;

    /// The actions that a reply may name.
    const ACTIONS: [ReflectorAction; 4] =
        [ReflectorAction::Accept, ReflectorAction::RetryStep, ReflectorAction::Replan, ReflectorAction::Escalate];

    fn reply(scores: [u8; 3], action: ReflectorAction, step_id: Option<u32>) -> ReflectorReply {
        let [completeness, correctness, format] =
            scores.map(|score| Score { score, reason: format!("because {score}") });
        ReflectorReply {
            evaluation: Evaluation { completeness, correctness, format },
            overall_pass: true,
            action,
            retry_details: RetryDetails { step_id, modification: "search deeper".to_owned() },
        }
    }

    fn facts(retries: u32) -> PlanFacts {
        PlanFacts { steps: [1, 2].into(), retries, ..PlanFacts::default() }
    }

    /// The rules as the document states them, score by score.
    fn stated(scores: [u8; 3], retries: u32) -> &'static str {
        let correctness = scores[1];
        if scores.iter().all(|score| [4, 5].contains(score)) {
            "accept"
        } else if scores.iter().any(|score| [1, 2].contains(score)) || correctness == 3 {
            if retries < 3 { "again" } else { "escalate" }
        } else {
            "accept"
        }
    }

    fn word(decision: &ScoreDecision) -> &'static str {
        match decision {
            ScoreDecision::Accept => "accept",
            ScoreDecision::RetryStep { .. } | ScoreDecision::Replan { .. } => "again",
            ScoreDecision::Escalate { .. } => "escalate",
        }
    }

    #[test]
    fn every_triple_of_scores_leads_where_the_rules_say() {
        let scores = || 1..=5u8;
        let mut triples = 0;
        for completeness in scores() {
            for correctness in scores() {
                for format in scores() {
                    let triple = [completeness, correctness, format];
                    triples += 1;
                    for retries in 0..=4 {
                        for action in ACTIONS {
                            let decided = decide_step(&reply(triple, action, Some(1)), &facts(retries));
                            let expected = match (stated(triple, retries), action) {
                                ("again", ReflectorAction::Escalate) => "escalate",
                                (stated, _) => stated,
                            };
                            assert_eq!(word(&decided), expected, "{triple:?}, {action:?}, {retries} retries");
                            let is_accepted = decided == ScoreDecision::Accept;
                            assert!(!is_accepted || correctness > 2, "{triple:?} is never accepted");
                        }
                    }
                }
            }
        }
        assert_eq!(triples, 125);
    }

    #[test]
    fn the_reply_chooses_between_a_step_and_a_new_plan() {
        let again = |step_id| ScoreDecision::RetryStep { step_id, modification: "search deeper".to_owned() };
        let replan = || ScoreDecision::Replan { modification: "search deeper".to_owned() };
        let with_failed = |failed: &[u32]| PlanFacts { failed: failed.to_vec(), ..facts(0) };
        for (action, step, facts, expected) in [
            (ReflectorAction::RetryStep, Some(2), facts(0), again(2)),
            (ReflectorAction::RetryStep, Some(9), facts(0), replan()),
            (ReflectorAction::RetryStep, None, facts(0), replan()),
            (ReflectorAction::RetryStep, None, with_failed(&[1]), again(1)),
            (ReflectorAction::RetryStep, None, with_failed(&[1, 2]), replan()),
            (ReflectorAction::Replan, Some(2), facts(0), replan()),
            (ReflectorAction::Accept, Some(2), facts(0), again(2)),
            (ReflectorAction::Accept, None, facts(0), replan()),
            (ReflectorAction::Accept, None, with_failed(&[2]), again(2)),
        ] {
            assert_eq!(
                decide_step(&reply([2, 2, 2], action, step), &facts),
                expected,
                "{action:?} {step:?} {facts:?}"
            );
        }
    }

    #[test]
    fn what_a_program_found_outranks_the_scores() {
        let failed = PlanFacts { failed: vec![2], ..facts(0) };
        let proven = PlanFacts { proven: true, ..facts(0) };
        let nothing = facts(0);
        let both = PlanFacts { failed: vec![2], proven: true, ..facts(0) };
        for (scores, facts, expected) in [
            ([5, 5, 5], &failed, "again"),
            ([5, 5, 5], &both, "again"),
            ([5, 1, 5], &proven, "accept"),
            ([3, 1, 5], &proven, "accept"),
            ([2, 1, 5], &proven, "again"),
            ([5, 1, 5], &nothing, "again"),
        ] {
            let decided = decide_step(&reply(scores, ReflectorAction::Accept, None), facts);
            assert_eq!(word(&decided), expected, "{scores:?} {facts:?}");
        }
    }

    #[test]
    fn a_person_reads_why() {
        let mut silent = reply([5, 2, 3], ReflectorAction::Accept, Some(1));
        silent.retry_details.modification = " ".to_owned();
        let why = |decision| match decision {
            ScoreDecision::Escalate { why } => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            why(decide_step(&silent, &facts(3))),
            "3 retries are used up: correctness 2 of 5: because 2; format 3 of 5: because 3"
        );
        let failed = PlanFacts { failed: vec![1, 2], ..facts(3) };
        assert_eq!(why(decide_step(&silent, &failed)), "3 retries are used up: failed: step 1, step 2");
        let asked = reply([5, 2, 3], ReflectorAction::Escalate, None);
        assert_eq!(why(decide_step(&asked, &facts(0))), "search deeper");
    }
}
