//! Formats a plan and its progress for a person: `/plan`, `agent session show`.

use crate::agent::orchestration::progress::{PlanProgress, PlanStepState};
use crate::base::text;
use crate::conversation::event::plan::{self, PlanStep, StepStatus};

/// The columns of the longest part of a line.
const LONGEST: usize = 200;

/// Formats the last plan with the states of its steps and its judgements; `None` if there was no plan.
pub fn format_table(happened: &[plan::PlanEvent]) -> Option<String> {
    let machine = PlanProgress::replay(happened);
    let created = machine.plan()?;
    let ending = happened.iter().rev().find_map(|one| match one {
        plan::PlanEvent::Closed { why } => Some(why.as_str()),
        _ => None,
    });
    let ending = ending.unwrap_or("not finished");
    let revision = if created.revision > 1 { format!(" {}", created.revision) } else { String::new() };
    let mut out = format!("plan{revision} ({ending}): {}\n", text::one_line(&created.analysis, LONGEST));
    out.extend(machine.steps().iter().map(|step| format_step(step, machine.state(step.step_id))));
    out.extend(machine.reflections().iter().map(|reflection| {
        let decision = text::one_line(&reflection.decision.word_decision(), LONGEST);
        format!("judged: {} · {decision}\n", reflection.evaluation.word_scores())
    }));
    Some(out)
}

fn format_step(step: &PlanStep, state: Option<&PlanStepState>) -> String {
    let (mark, told) = match state {
        None | Some(PlanStepState::Waiting | PlanStepState::Running) => ("☐", String::new()),
        Some(PlanStepState::Interrupted) => ("☐", "may have run in part".to_owned()),
        Some(PlanStepState::Ended(ended)) => {
            let is_refuted = ended.check.as_ref().is_some_and(|check| !check.passed);
            let mark = match ended.status {
                StepStatus::Ok if !is_refuted => "☑",
                StepStatus::Skipped => "☐",
                _ => "☒",
            };
            let word = ended.status.word();
            let check = ended.check.as_ref().map(|check| {
                let held = if check.passed { "checked" } else { "check failed" };
                format!("{held}: {}", check.detail)
            });
            let summary = check.unwrap_or_else(|| ended.summary.clone());
            let colon = if word.is_empty() || summary.is_empty() { "" } else { ": " };
            (mark, format!("{word}{colon}{summary}"))
        }
    };
    let dot = if told.is_empty() { "" } else { " · " };
    let words = format!("{} · {}{dot}{told}", step.description, step.tool_name);
    format!("{mark} {}. {}\n", step.step_id, text::one_line(&words, LONGEST))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::format_table;
    use crate::conversation::event::plan::PlanEvent;

    fn happened(entries: &[Value]) -> Vec<PlanEvent> {
        entries.iter().map(|entry| serde_json::from_value(entry.clone()).expect("an entry")).collect()
    }

    #[test]
    fn a_plan_is_told_with_the_state_of_each_step() {
        assert_eq!(format_table(&[]), None);
        let step = |id: u32, after: &[u32]| json!({"step_id": id, "description": format!("Step {id}"), "tool_name": "grep", "tool_input": {}, "depends_on": after});
        let ended = |id: u32, status: &str, summary: &str| json!({"what": "finished", "step_id": id, "attempt": 1, "status": status, "summary": summary, "duration_ms": 1});
        let score = |score: u8| json!({"score": score, "reason": "r"});
        let mut entries = vec![
            json!({"what": "planned", "request": "x", "revision": 1, "analysis": "Four\nsteps.",
                   "steps": [step(1, &[]), step(2, &[]), step(3, &[2]), step(4, &[])]}),
            ended(1, "ok", "3 hits"),
            ended(2, "failed", "no such file"),
            ended(3, "skipped", ""),
            json!({"what": "started", "step_id": 4, "attempt": 1, "tool_name": "grep", "description": "Step 4"}),
        ];
        let shown = "plan (not finished): Four steps.\n☑ 1. Step 1 · grep · 3 hits\n☒ 2. Step 2 · grep · failed: no such \
                     file\n☐ 3. Step 3 · grep · skipped\n☐ 4. Step 4 · grep · may have run in part\n";
        assert_eq!(format_table(&happened(&entries)).as_deref(), Some(shown));
        entries
            .push(json!({"what": "reflected", "overall_pass": false, "action": "escalate", "why": "step 2 fails",
            "evaluation": {"completeness": score(2), "correctness": score(1), "format": score(5)}, "retries": 3}));
        entries.push(json!({"what": "closed", "why": "given back"}));
        let shown = format_table(&happened(&entries)).expect("a plan");
        assert!(shown.starts_with("plan (given back): Four steps.\n"), "{shown}");
        assert!(
            shown.ends_with("judged: complete 2, correct 1, form 5 · not accepted: step 2 fails\n"),
            "{shown}"
        );
    }
}
