//! The lines of an orchestrated turn: who was chosen, the plan as a list, each step as it begins and ends, the
//! judgement. A state is a mark and, where it matters, a word; never a colour alone.

use crate::event::EventKind;
use crate::event::plan::{
    Decision, Evaluation, PlanCreated, PlanStep, Reflection, Routed, StepFinished, StepStarted, StepStatus,
};
use crate::ink::Ink;
use crate::text;

/// A line, and its ink.
pub(super) type Line = (Ink, String);

/// The plan that is carried out, as far as the lines of its steps need it.
#[derive(Debug, Default)]
pub(super) struct Checklist {
    steps: Vec<(u32, String)>,
}

impl Checklist {
    /// The lines for an event, each at most `room` columns; none for one that is not of this kind.
    pub fn lines(&mut self, kind: &EventKind, room: usize) -> Vec<Line> {
        match kind {
            EventKind::RouteDecided(routed) => vec![route(routed, room)],
            EventKind::PlanCreated(plan) => {
                let named = |step: &PlanStep| (step.step_id, step.description.clone());
                self.steps = plan.steps.iter().map(named).collect();
                checklist(plan, room)
            }
            EventKind::StepStarted(step) => vec![self.started(step, room)],
            EventKind::StepFinished(step) => vec![self.finished(step, room)],
            EventKind::Reflection(reflection) => vec![judgement(reflection, room)],
            _ => Vec::new(),
        }
    }

    /// `▸ 2/3 Run the tests · run_command`
    fn started(&self, step: &StepStarted, room: usize) -> Line {
        let again = if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
        let tail = format!("{}{again}", step.tool_name);
        if let Some(name) = &step.name {
            return (Ink::Dim, fitted("▸", name, &tail, room));
        }
        (Ink::Dim, fitted(&format!("▸ {}", self.number(step.step_id)), &step.description, &tail, room))
    }

    /// `☑ 2/3 Run the tests · 12 passed`
    fn finished(&self, step: &StepFinished, room: usize) -> Line {
        let is_refuted = step.check.as_ref().is_some_and(|check| !check.passed);
        let (mark, ink, word) = match step.status {
            StepStatus::Ok if is_refuted => ("☒", Ink::Red, ""),
            StepStatus::Ok => ("☑", Ink::Green, ""),
            StepStatus::Failed => ("☒", Ink::Red, "failed"),
            StepStatus::Skipped => ("☐", Ink::Yellow, "skipped"),
        };
        let check = step.check.as_ref().map(|check| {
            let held = if check.passed { "checked" } else { "check failed" };
            format!("{held}: {}", check.detail)
        });
        // What a check found outranks the words of the step.
        let summary = check.as_deref().unwrap_or(&step.summary);
        let tail = match (word, summary) {
            ("", summary) => summary.to_owned(),
            (word, "") => word.to_owned(),
            (word, summary) => format!("{word}: {summary}"),
        };
        if let Some(name) = &step.name {
            return (ink, fitted(mark, name, &tail, room));
        }
        (
            ink,
            fitted(&format!("{mark} {}", self.number(step.step_id)), self.description(step.step_id), &tail, room),
        )
    }

    fn description(&self, id: u32) -> &str {
        self.steps.iter().find(|(other, _)| *other == id).map_or("", |(_, description)| description)
    }

    /// `2/3`: the id, and how many steps there are. Ids need not count from 1.
    fn number(&self, id: u32) -> String {
        match self.steps.len() {
            0 => id.to_string(),
            count => format!("{id}/{count}"),
        }
    }
}

/// The plan as a list of boxes, the steps that are done already ticked.
fn checklist(plan: &PlanCreated, room: usize) -> Vec<Line> {
    let revision = if plan.revision > 1 { format!(" {}", plan.revision) } else { String::new() };
    let head = text::one_line(&format!("plan{revision}: {}", plan.analysis), room);
    let line = |step: &PlanStep| -> Line {
        let is_kept = plan.kept.contains(&step.step_id);
        let mark = if is_kept { "☑" } else { "☐" };
        let after = match step.depends_on.as_slice() {
            [] => String::new(),
            ids => format!(", after {}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let done = if is_kept { ", done before" } else { "" };
        let tail = format!("{}{after}{done}", step.tool_name);
        let line = fitted(&format!("{mark} {}.", step.step_id), &step.description, &tail, room.saturating_sub(2));
        (Ink::Dim, text::cut(&format!("  {line}"), room).into_owned())
    };
    std::iter::once((Ink::Bold, head)).chain(plan.steps.iter().map(line)).collect()
}

/// `route: tool grep (0.92) · a search by pattern`
fn route(routed: &Routed, room: usize) -> Line {
    let Routed { kind, name, reasoning, confidence } = routed;
    let chosen = if name == "none" { "none".to_owned() } else { format!("{kind} {name}") };
    let line = fitted("route:", &format!("{chosen} ({confidence:.2})"), reasoning, room);
    (if name == "none" { Ink::Yellow } else { Ink::Dim }, line)
}

/// `judged: complete 5, correct 4, form 5 · accepted`
fn judgement(reflection: &Reflection, room: usize) -> Line {
    let Evaluation { completeness, correctness, format } = &reflection.evaluation;
    let scores = format!("complete {}, correct {}, form {}", completeness.score, correctness.score, format.score);
    let (ink, decision) = match &reflection.decision {
        Decision::Accept => (Ink::Green, "accepted".to_owned()),
        Decision::RetryStep { step_id, modification } => {
            (Ink::Yellow, format!("step {step_id} again: {modification}"))
        }
        Decision::Replan { modification } => (Ink::Yellow, format!("a new plan: {modification}")),
        Decision::Escalate { why } => (Ink::Red, format!("not accepted: {why}")),
    };
    (ink, fitted("judged:", &scores, &decision, room))
}

/// `head subject · tail` in `room` columns. The subject gives way first, down to a half.
fn fitted(head: &str, subject: &str, tail: &str, room: usize) -> String {
    let whole = text::one_line(&format!("{head} {subject}"), usize::MAX / 8);
    if tail.is_empty() {
        return text::cut(&whole, room).into_owned();
    }
    let tail = format!(" · {}", text::one_line(tail, room));
    let wanted = text::columns(&whole).min(room / 2);
    let tail = text::cut(&tail, room - wanted).into_owned();
    text::cut(&whole, room - text::columns(&tail)).into_owned() + &tail
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::event::plan::{Checked, Score};

    fn step(step_id: u32, description: &str, tool: &str, depends_on: &[u32]) -> PlanStep {
        PlanStep {
            step_id,
            description: description.to_owned(),
            tool_name: tool.to_owned(),
            tool_input: Value::Null,
            depends_on: depends_on.to_vec(),
            check: None,
        }
    }

    fn plan() -> EventKind {
        EventKind::PlanCreated(PlanCreated {
            request: "x".to_owned(),
            revision: 2,
            analysis: "Read, then test everything that was read.".to_owned(),
            steps: vec![
                step(1, "Read the notes", "read_file", &[]),
                step(2, "Run\u{1b} the tests", "run_command", &[1]),
            ],
            kept: vec![1],
        })
    }

    fn started(attempt: u32) -> EventKind {
        let (tool_name, description) = ("run_command".to_owned(), "Run the tests".to_owned());
        EventKind::StepStarted(StepStarted { step_id: 2, name: None, attempt, tool_name, description })
    }

    fn finished(status: StepStatus, summary: &str, check: Option<bool>) -> EventKind {
        let check = check.map(|passed| Checked { passed, detail: "`true` exits with 0".to_owned() });
        let (summary, result) = (summary.to_owned(), Value::Null);
        EventKind::StepFinished(StepFinished {
            step_id: 2,
            name: None,
            attempt: 1,
            status,
            summary,
            check,
            duration_ms: 5,
            result,
        })
    }

    fn judged(decision: Decision) -> EventKind {
        let score = |score| Score { score, reason: String::new() };
        let evaluation = Evaluation { completeness: score(5), correctness: score(4), format: score(3) };
        EventKind::Reflection(Reflection { evaluation, overall_pass: true, decision, retries: 0 })
    }

    fn routed(kind: &str, name: &str) -> EventKind {
        let (kind, name, reasoning) = (kind.to_owned(), name.to_owned(), "a search by pattern".to_owned());
        EventKind::RouteDecided(Routed { kind, name, reasoning, confidence: 0.923 })
    }

    #[test]
    fn every_state_is_a_mark_or_a_word() {
        let mut list = Checklist::default();
        let words = |text: &str| text.to_owned();
        for (kind, expected) in [
            (routed("tool", "grep"), "route: tool grep (0.92) · a search by pattern"),
            (routed("none", "none"), "route: none (0.92) · a search by pattern"),
            (started(1), "▸ 2 Run the tests · run_command"),
            (
                plan(),
                "plan 2: Read, then test everything that was read.\n  ☑ 1. Read the notes · read_file, done before\n  ☐ \
                 2. Run␛ the tests · run_command, after 1",
            ),
            (started(1), "▸ 2/2 Run the tests · run_command"),
            (started(3), "▸ 2/2 Run the tests · run_command, attempt 3"),
            (finished(StepStatus::Ok, "12 passed", None), "☑ 2/2 Run␛ the tests · 12 passed"),
            (finished(StepStatus::Ok, "", None), "☑ 2/2 Run␛ the tests"),
            (finished(StepStatus::Ok, "x", Some(true)), "☑ 2/2 Run␛ the tests · checked: `true` exits with 0"),
            (
                finished(StepStatus::Ok, "x", Some(false)),
                "☒ 2/2 Run␛ the tests · check failed: `true` exits with 0",
            ),
            (finished(StepStatus::Failed, "no such file", None), "☒ 2/2 Run␛ the tests · failed: no such file"),
            (finished(StepStatus::Skipped, "", None), "☐ 2/2 Run␛ the tests · skipped"),
            (judged(Decision::Accept), "judged: complete 5, correct 4, form 3 · accepted"),
            (
                judged(Decision::RetryStep { step_id: 2, modification: words("use grep") }),
                "judged: complete 5, correct 4, form 3 · step 2 again: use grep",
            ),
            (
                judged(Decision::Replan { modification: words("begin with b") }),
                "judged: complete 5, correct 4, form 3 · a new plan: begin with b",
            ),
            (
                judged(Decision::Escalate { why: words("three retries") }),
                "judged: complete 5, correct 4, form 3 · not accepted: three retries",
            ),
            (EventKind::TurnStarted { input: words("x") }, ""),
        ] {
            let lines: Vec<String> = list.lines(&kind, 100).into_iter().map(|(_, line)| line).collect();
            assert_eq!(lines.join("\n"), expected);
        }
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let mut list = Checklist::default();
        for room in 1..60 {
            for kind in [
                plan(),
                started(2),
                finished(StepStatus::Failed, "日本語日本語日本語日本語", None),
                judged(Decision::Replan {
                    modification: "a\nlong modification of the plan that stands".to_owned(),
                }),
                routed("agent", "an-agent-with-a-long-name"),
            ] {
                for (_, line) in list.lines(&kind, room) {
                    assert!(text::columns(&line) <= room && !line.contains('\n'), "{line:?} in {room}");
                }
            }
        }
        let forty: Vec<String> = list.lines(&plan(), 39).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            forty,
            [
                "plan 2: Read, then test everything tha…",
                "  ☑ 1. Read the not… · read_file, done…",
                "  ☐ 2. Run␛ the tes… · run_command, af…"
            ]
        );
    }
}
