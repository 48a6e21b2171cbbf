//! A plan as a person reads it before it runs: what each step calls, with what, and after which others.

use std::collections::BTreeMap;

use serde_json::Value;

use super::question::Size;
use super::question::abridged;
use crate::contract::PlanSheet;
use crate::event::plan::{PlanCreated, PlanStep, StepCheck};
use crate::ink::{Ink, Style};
use crate::{json, text};

/// The text of a question about a plan or a proposal.
pub(super) struct Review {
    head: Vec<String>,
    lines: Vec<String>,
    /// What is shown first, where the whole does not fit.
    abridged: Option<Vec<String>>,
    /// The question, without the keys.
    pub question: &'static str,
}

impl Review {
    /// `is_shown` says that the words of a proposal stand on the screen already. Without a size everything is shown.
    pub fn new(sheet: PlanSheet<'_>, style: Style, size: Option<Size>, is_shown: bool) -> Self {
        let bold = |line: &str| style.paint(Ink::Bold, line).into_owned();
        let (head, lines, question) = match sheet {
            PlanSheet::Proposal(words) => {
                let words = if is_shown { "" } else { words.trim() };
                let lines = text::revealed(words).lines().map(str::to_owned).collect();
                (vec![bold("This is a proposal; nothing was changed.")], lines, "Carry it out?")
            }
            PlanSheet::Plan { plan, previews, mistakes, .. } => {
                let wrong = mistakes.iter().map(|why| {
                    let why = text::one_line(&text::revealed(why), 400);
                    style.paint(Ink::Yellow, &format!("! {why}")).into_owned()
                });
                let head = wrong.chain([bold(&title(plan))]).collect();
                (head, steps(plan, previews, style), "Run it?")
            }
        };
        let abridged = size.and_then(|size| abridged(&lines, size));
        Self { head, lines, abridged, question }
    }

    pub fn is_abridged(&self) -> bool {
        self.abridged.is_some()
    }

    /// As much as fits.
    pub fn first(&self) -> String {
        self.with(self.abridged.as_deref().unwrap_or(&self.lines))
    }

    pub fn whole(&self) -> String {
        self.with(&self.lines)
    }

    fn with(&self, lines: &[String]) -> String {
        self.head.iter().chain(lines).flat_map(|line| [line, "\n"]).collect()
    }
}

fn title(plan: &PlanCreated) -> String {
    let again = if plan.revision > 1 { format!(", revision {}", plan.revision) } else { String::new() };
    let steps = if plan.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps.len()) };
    let analysis = text::one_line(&text::revealed(&plan.analysis), 200);
    let colon = if analysis.is_empty() { "" } else { ": " };
    format!("Plan of {steps}{again}{colon}{analysis}")
}

fn steps(plan: &PlanCreated, previews: &BTreeMap<u32, String>, style: Style) -> Vec<String> {
    plan.steps.iter().flat_map(|step| of_step(step, plan, previews.get(&step.step_id), style)).collect()
}

fn of_step(step: &PlanStep, plan: &PlanCreated, preview: Option<&String>, style: Style) -> Vec<String> {
    let after = match step.depends_on.as_slice() {
        [] => String::new(),
        ids => format!(", after {}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ")),
    };
    let kept = if plan.kept.contains(&step.step_id) { " (done)" } else { "" };
    let line = |words: &str| text::revealed(words).replace('\n', "␊");
    let (id, tool) = (step.step_id, line(&step.tool_name));
    let mut lines = vec![format!("  {id}. {} · {tool}{after}{kept}", line(&step.description))];
    let arguments = || match &step.tool_input {
        Value::Null => String::new(),
        input => json::listed(input),
    };
    let shown = preview.cloned().unwrap_or_else(arguments);
    lines.extend(text::revealed(shown.trim_end()).lines().map(|line| {
        let ink = match line.as_bytes() {
            [b'+', ..] => Ink::Green,
            [b'-', ..] => Ink::Red,
            _ => Ink::Dim,
        };
        format!("     {}", style.paint(ink, line))
    }));
    let check = step.check.as_ref().map(|check| match check {
        StepCheck::Command(command) => format!("     checked by running: {}", line(command)),
        StepCheck::File(path) => format!("     checked: {} exists", line(path)),
        StepCheck::Schema(schema) => format!("     checked against the schema {}", line(&schema.to_string())),
    });
    lines.into_iter().chain(check).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan() -> PlanCreated {
        let step = |step_id, tool: &str, tool_input, depends_on: &[u32], check| PlanStep {
            step_id,
            description: format!("Step\n{tool}"),
            tool_name: tool.to_owned(),
            tool_input,
            depends_on: depends_on.to_vec(),
            check,
        };
        PlanCreated {
            request: "x".to_owned(),
            revision: 2,
            analysis: "Two things.\u{1b}[8m".to_owned(),
            steps: vec![
                step(1, "read_file", json!({"path": "a.txt"}), &[], None),
                step(2, "run_command", json!({"command": "ls"}), &[], Some(StepCheck::Command("true".to_owned()))),
                step(3, "write_file", json!({"path": "b"}), &[1, 2], Some(StepCheck::File("b".to_owned()))),
            ],
            kept: vec![1],
        }
    }

    #[test]
    fn a_step_says_what_it_calls_with_what_and_after_which() {
        let previews = BTreeMap::from([(2, "ls\u{1b}[8m -l".to_owned()), (3, "--- b\n+one\n".to_owned())]);
        let mistakes = ["step 9 does not exist".to_owned()];
        let (whole, plan) = (Style::default(), plan());
        let sheet = PlanSheet::Plan { plan: &plan, previews: &previews, mistakes: &mistakes, draft: None };
        let shown = Review::new(sheet, whole, None, false).first();
        assert_eq!(
            shown,
            "! step 9 does not exist\nPlan of 3 steps, revision 2: Two things.␛[8m\n  1. Step␊read_file · read_file \
             (done)\n     path: a.txt\n  2. Step␊run_command · run_command\n     ls␛[8m -l\n     checked by running: \
             true\n  3. Step␊write_file · write_file, after 1 and 2\n     --- b\n     +one\n     checked: b exists\n"
        );
    }

    #[test]
    fn what_does_not_fit_is_counted_and_a_proposal_is_shown_once() {
        let long = (1..=90).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
        let review =
            |is_shown| Review::new(PlanSheet::Proposal(&long), Style::default(), Some((80, 24)), is_shown);
        let not_shown = review(false);
        assert!(not_shown.is_abridged() && not_shown.first().contains("more lines (v shows all)"));
        assert!(not_shown.whole().contains("line 45\n"));
        assert_eq!(review(true).first(), "This is a proposal; nothing was changed.\n");
    }
}
