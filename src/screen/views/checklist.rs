//! Draws an orchestrated turn: the route, the plan as a list, each step as it begins and ends, and the judgement. A
//! state is a mark and, if it matters, a word; never only a colour.

use super::fit::{draw_words, fit_checklist, indent_line, join_fitting};
use crate::base::text;
use crate::conversation::event::EventKind;
use crate::conversation::event::plan::{
    PlanCreated, PlanStep, Reflection, Routed, ScoreDecision, StepFinished, StepStarted, StepStatus,
};
use crate::screen::ink::{Ink, Inks, Line};

/// The plan that is carried out, and its progress.
#[derive(Debug, Default)]
pub struct Checklist {
    title: String,
    steps: Vec<ChecklistStep>,
}

#[derive(Debug)]
struct ChecklistStep {
    id: u32,
    description: String,
    state: ChecklistState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChecklistState {
    Waiting,
    Running,
    Done,
    /// The step or the check of its result failed.
    Failed,
    Skipped,
}

impl ChecklistState {
    const fn mark(self) -> (&'static str, Ink) {
        match self {
            Self::Waiting => ("☐", Ink::Dim),
            Self::Running => ("▸", Ink::Cyan),
            Self::Done => ("☑", Ink::Green),
            Self::Failed => ("☒", Ink::Red),
            Self::Skipped => ("☐", Ink::Yellow),
        }
    }

    fn from_end(step: &StepFinished) -> Self {
        let is_refuted = step.check.as_ref().is_some_and(|check| !check.passed);
        match step.status {
            StepStatus::Ok if is_refuted => Self::Failed,
            StepStatus::Ok => Self::Done,
            StepStatus::Failed | StepStatus::Denied => Self::Failed,
            StepStatus::Skipped => Self::Skipped,
        }
    }
}

impl Checklist {
    /// Updates the plan from an event of the run itself. Returns the lines for output that is not redrawn, each at most
    /// `room` columns; none for an event of another kind.
    pub fn follow(&mut self, kind: &EventKind, room: usize) -> Vec<Line> {
        match kind {
            EventKind::TurnStarted { .. } => {
                *self = Self::default();
                Vec::new()
            }
            EventKind::RouteDecided(routed) => vec![draw_route(routed, room)],
            EventKind::PlanCreated(plan) => {
                self.begin(plan);
                draw_plan(plan, &self.title, room)
            }
            EventKind::StepStarted(step) => {
                self.set(step.step_id, ChecklistState::Running);
                vec![self.draw_started(step, room)]
            }
            EventKind::StepFinished(step) => {
                self.set(step.step_id, ChecklistState::from_end(step));
                vec![self.draw_finished(step, room)]
            }
            EventKind::Reflection(reflection) => vec![draw_judgement(reflection, room)],
            _ => Vec::new(),
        }
    }

    /// Draws the plan in at most `rows` lines; none without a plan. If it does not fit, steps that have ended are
    /// dropped first; steps left out at the end are counted.
    pub fn lines(&self, room: usize, rows: usize) -> Vec<Line> {
        let has_ended =
            |step: &ChecklistStep| !matches!(step.state, ChecklistState::Waiting | ChecklistState::Running);
        let draw_step = |step: &ChecklistStep| {
            let (mark, ink) = step.state.mark();
            let line = Line::from((ink, mark)).add(Inks::PLAIN, &format!(" {}. ", step.id));
            indent_line(line.add(Inks::PLAIN, &text::one_line(&step.description, room)), room)
        };
        let title = draw_words(Ink::Bold, &self.title, room);
        fit_checklist(title, &self.steps, has_ended, draw_step, room, rows)
    }

    fn begin(&mut self, plan: &PlanCreated) {
        let revision = if plan.revision > 1 { format!(" {}", plan.revision) } else { String::new() };
        self.title = format!("plan{revision}: {}", plan.analysis);
        let step = |step: &PlanStep| ChecklistStep {
            id: step.step_id,
            description: step.description.clone(),
            state: if plan.kept.contains(&step.step_id) { ChecklistState::Done } else { ChecklistState::Waiting },
        };
        self.steps = plan.steps.iter().map(step).collect();
    }

    fn set(&mut self, id: u32, state: ChecklistState) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.id == id) {
            step.state = state;
        }
    }

    /// Draws a step that started: `▸ 2/3 Run the tests · run_command`.
    fn draw_started(&self, step: &StepStarted, room: usize) -> Line {
        let again = if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
        let tail = format!("{}{again}", step.tool_name);
        let about = self.write_about(step.name.as_ref(), step.step_id, &step.description);
        fit_step((ChecklistState::Running.mark().0, Ink::Dim), &about, &tail, Ink::Dim, room)
    }

    /// Draws a step that ended: `☑ 2/3 Run the tests · 12 passed`.
    fn draw_finished(&self, step: &StepFinished, room: usize) -> Line {
        let word = step.status.word();
        let check = step.check.as_ref().map(|check| {
            let held = if check.passed { "checked" } else { "check failed" };
            format!("{held}: {}", check.detail)
        });
        // The result of a check is more important than the summary. Later lines of the summary are shown below the
        // call.
        let first = step.summary.lines().next().unwrap_or_default();
        let summary = check.as_deref().unwrap_or(first);
        let tail = match (word, summary) {
            ("", summary) => summary.to_owned(),
            (word, "") => word.to_owned(),
            (word, summary) => format!("{word}: {summary}"),
        };
        let known = self.steps.iter().find(|known| known.id == step.step_id);
        let description = known.map_or("", |known| &known.description);
        let about = self.write_about(step.name.as_ref(), step.step_id, description);
        let mark = ChecklistState::from_end(step).mark();
        fit_step(mark, &about, &tail, if mark.1 == Ink::Green { Ink::Dim } else { mark.1 }, room)
    }

    /// The name of a step, else its id, the number of steps and its description: `2/3 Run the tests`. Ids need not start
    /// at 1.
    fn write_about(&self, name: Option<&String>, id: u32, description: &str) -> String {
        match (name, self.steps.len()) {
            (Some(name), _) => name.clone(),
            (None, 0) => format!("{id} {description}"),
            (None, count) => format!("{id}/{count} {description}"),
        }
    }
}

/// Draws a new plan as a list of boxes; steps that are already done are ticked.
fn draw_plan(plan: &PlanCreated, title: &str, room: usize) -> Vec<Line> {
    let line = |step: &PlanStep| {
        let is_kept = plan.kept.contains(&step.step_id);
        let state = if is_kept { ChecklistState::Done } else { ChecklistState::Waiting };
        let after = match step.depends_on.as_slice() {
            [] => String::new(),
            ids => format!(", after {}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let done = if is_kept { ", done before" } else { "" };
        let about = format!("{}. {}", step.step_id, step.description);
        let tail = format!("{}{after}{done}", step.tool_name);
        indent_line(fit_step(state.mark(), &about, &tail, Ink::Dim, room.saturating_sub(2)), room)
    };
    std::iter::once(draw_words(Ink::Bold, title, room)).chain(plan.steps.iter().map(line)).collect()
}

/// Draws a route: `route: tool grep (0.92) · a search by pattern`.
fn draw_route(routed: &Routed, room: usize) -> Line {
    let Routed { kind, name, reasoning, confidence } = routed;
    let chosen = if name == "none" { "none".to_owned() } else { format!("{kind} {name}") };
    let ink = if name == "none" { Ink::Yellow } else { Ink::Dim };
    fit_step(("route:", ink), &format!("{chosen} ({confidence:.2})"), reasoning, Ink::Dim, room)
}

/// Draws a judgement: `judged: complete 5, correct 4, form 5 · accepted`.
fn draw_judgement(reflection: &Reflection, room: usize) -> Line {
    let ink = match reflection.decision {
        ScoreDecision::Accept => Ink::Green,
        ScoreDecision::RetryStep { .. } | ScoreDecision::Replan { .. } => Ink::Yellow,
        ScoreDecision::Escalate { .. } => Ink::Red,
    };
    let (scores, decision) = (reflection.evaluation.word_scores(), reflection.decision.word_decision());
    fit_step(("judged:", Ink::Dim), &scores, &decision, ink, room)
}

/// Fits `mark about · tail` into `room` columns. `about` is shortened first, down to half of the room.
fn fit_step(mark: (&str, Ink), about: &str, tail: &str, tail_ink: Ink, room: usize) -> Line {
    let head = Line::from((mark.1, mark.0)).add(Inks::PLAIN, " ").join(draw_words(Inks::PLAIN, about, room));
    join_fitting(head, draw_words(tail_ink, tail, room), room / 2, room)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::conversation::event::plan::{Evaluation, ProgramCheck, Score};

    fn step(step_id: u32, description: &str, tool: &str, depends_on: &[u32]) -> PlanStep {
        PlanStep {
            step_id,
            description: description.to_owned(),
            tool_name: tool.to_owned(),
            depends_on: depends_on.to_vec(),
            ..PlanStep::default()
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
            ..PlanCreated::default()
        })
    }

    fn started(attempt: u32) -> EventKind {
        let (tool_name, description) = ("run_command".to_owned(), "Run the tests".to_owned());
        EventKind::StepStarted(StepStarted { step_id: 2, name: None, attempt, tool_name, description })
    }

    fn finished(status: StepStatus, summary: &str, check: Option<bool>) -> EventKind {
        let check = check.map(|passed| ProgramCheck { passed, detail: "`true` exits with 0".to_owned() });
        let (summary, result) = (summary.to_owned(), Value::Null);
        EventKind::StepFinished(StepFinished {
            step_id: 2,
            name: None,
            attempt: 1,
            status,
            summary,
            check,
            duration_ms: 5,
            cut: false,
            result,
        })
    }

    fn judged(decision: ScoreDecision) -> EventKind {
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
            (judged(ScoreDecision::Accept), "judged: complete 5, correct 4, form 3 · accepted"),
            (
                judged(ScoreDecision::RetryStep { step_id: 2, modification: words("use grep") }),
                "judged: complete 5, correct 4, form 3 · step 2 again: use grep",
            ),
            (
                judged(ScoreDecision::Replan { modification: words("begin with b") }),
                "judged: complete 5, correct 4, form 3 · a new plan: begin with b",
            ),
            (
                judged(ScoreDecision::Escalate { why: words("three retries") }),
                "judged: complete 5, correct 4, form 3 · not accepted: three retries",
            ),
            (EventKind::TurnStarted { input: words("x") }, ""),
        ] {
            let lines: Vec<String> = list.follow(&kind, 100).iter().map(Line::text).collect();
            assert_eq!(lines.join("\n"), expected);
        }
    }

    #[test]
    fn the_plan_as_it_stands_is_a_list_that_counts_what_does_not_fit() {
        let shown = |list: &Checklist, rows| {
            let lines: Vec<String> = list.lines(60, rows).iter().map(Line::text).collect();
            lines.join("\n")
        };
        let mut list = Checklist::default();
        assert_eq!(shown(&list, 9), "");
        list.follow(&plan(), 60);
        let title = "plan 2: Read, then test everything that was read.";
        assert_eq!(shown(&list, 9), format!("{title}\n  ☑ 1. Read the notes\n  ☐ 2. Run␛ the tests"));
        list.follow(&started(1), 60);
        assert_eq!(shown(&list, 9), format!("{title}\n  ☑ 1. Read the notes\n  ▸ 2. Run␛ the tests"));
        assert_eq!(shown(&list, 3), format!("{title}\n  ☑ 1. Read the notes\n  ▸ 2. Run␛ the tests"));
        list.follow(&finished(StepStatus::Ok, "x", Some(false)), 60);
        assert_eq!(shown(&list, 9), format!("{title}\n  ☑ 1. Read the notes\n  ☒ 2. Run␛ the tests"));
        list.follow(&EventKind::TurnStarted { input: String::new() }, 60);
        assert_eq!(shown(&list, 9), "");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let mut list = Checklist::default();
        for room in 1..60 {
            for kind in [
                plan(),
                started(2),
                finished(StepStatus::Failed, "日本語日本語日本語日本語", None),
                judged(ScoreDecision::Replan {
                    modification: "a\nlong modification of the plan that stands".to_owned(),
                }),
                routed("agent", "an-agent-with-a-long-name"),
            ] {
                for line in list.follow(&kind, room) {
                    assert!(line.columns() <= room && !line.text().contains('\n'), "{line:?} in {room}");
                }
                for rows in 0..5 {
                    let lines = list.lines(room, rows);
                    assert!(lines.len() <= rows, "{lines:?}");
                    assert!(lines.iter().all(|line| line.columns() <= room), "{lines:?} in {room}");
                }
            }
        }
        let forty: Vec<String> = list.follow(&plan(), 39).iter().map(Line::text).collect();
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
