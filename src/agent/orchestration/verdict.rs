//! What follows from the scores of a reflector. Code decides; the reply chooses only between another attempt at one
//! step and a new plan.

use crate::event::plan::{Decision, Evaluation};

use super::progress::Facts;
use super::reply::{ReflectorAction, ReflectorReply};

/// The most retries and new plans together.
pub const MOST_RETRIES: u32 = 3;

/// The lowest score that is good.
const GOOD: u8 = 4;
/// The highest score that is bad.
const BAD: u8 = 2;

/// What scores come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    Accepted,
    ToRepeat,
}

/// Decides from the scores and what is known.
#[must_use]
pub fn decide(reply: &ReflectorReply, facts: &Facts) -> Decision {
    let correctness = correctness(reply.evaluation.correctness.score, facts);
    if worth(&reply.evaluation, correctness) == Worth::Accepted {
        return Decision::Accept;
    }
    let modification = || reply.retry_details.modification.clone();
    let reasons = || told(&reply.evaluation, correctness, facts);
    if reply.action == ReflectorAction::Escalate {
        return Decision::Escalate { why: non_empty(modification()).unwrap_or_else(reasons) };
    }
    if facts.retries >= MOST_RETRIES {
        let why =
            format!("{MOST_RETRIES} retries are used up: {}", non_empty(modification()).unwrap_or_else(reasons));
        return Decision::Escalate { why };
    }
    let modification = non_empty(modification()).unwrap_or_else(reasons);
    match (reply.action, step_to_repeat(reply, facts)) {
        (ReflectorAction::Replan, _) | (_, None) => Decision::Replan { modification },
        (_, Some(step_id)) => Decision::RetryStep { step_id, modification },
    }
}

/// The score of correctness that counts: what a program found outranks what a model says.
fn correctness(score: u8, facts: &Facts) -> u8 {
    match facts {
        Facts { failed, .. } if !failed.is_empty() => 1,
        Facts { proven: true, .. } => 5,
        _ => score,
    }
}

fn worth(evaluation: &Evaluation, correctness: u8) -> Worth {
    let lowest = evaluation.completeness.score.min(evaluation.format.score).min(correctness);
    match lowest {
        GOOD.. => Worth::Accepted,
        score if score > BAD && correctness >= GOOD => Worth::Accepted,
        _ => Worth::ToRepeat,
    }
}

/// The step that the reply names, if the plan has it; else the one that failed, if only one did.
fn step_to_repeat(reply: &ReflectorReply, facts: &Facts) -> Option<u32> {
    let named = reply.retry_details.step_id.filter(|step| facts.steps.contains(step));
    named.or(match facts.failed.as_slice() {
        [only] => Some(*only),
        _ => None,
    })
}

/// Why a result was not accepted.
fn told(evaluation: &Evaluation, correctness: u8, facts: &Facts) -> String {
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

fn non_empty(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}
