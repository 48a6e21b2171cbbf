//! The text of a plan for a person's review: what each step calls, with what input, and after which other steps.

use serde_json::Value;

use super::sheet::{Sheet, SheetBody};
use crate::base::{json, text};
use crate::conversation::event::plan::{PlanCreated, PlanStep, StepCheck};
use crate::safety::PlanSheet;
use crate::screen::ink::{Ink, Inks, Line};

/// Formats a plan or a proposal, and returns the question about it. `is_shown` means that the text of a proposal is
/// already on the screen.
pub(super) fn format_sheet(what: PlanSheet<'_>, is_shown: bool) -> (Sheet, &'static str) {
    match what {
        PlanSheet::Proposal(words) => {
            let title = Line::from((Ink::Bold, "This is a proposal; nothing was changed."));
            let body = if is_shown { SheetBody::default() } else { SheetBody::from_text(words.trim()) };
            (Sheet { title, body, notes: Vec::new() }, "Carry it out?")
        }
        PlanSheet::Plan { plan, previews, mistakes, .. } => {
            let wrong = mistakes.iter().map(|why| {
                let why = text::one_line(&text::reveal(why), 400);
                Line::from((Ink::Yellow, format!("! {why}")))
            });
            let steps = plan.steps.iter();
            let body = steps.flat_map(|step| format_step(step, plan, previews.get(&step.step_id))).collect();
            let title = Line::from((Ink::Bold, write_title(plan)));
            (Sheet { title, body: SheetBody::Lines(body), notes: wrong.collect() }, "Run it?")
        }
    }
}

fn write_title(plan: &PlanCreated) -> String {
    let again = if plan.revision > 1 { format!(", revision {}", plan.revision) } else { String::new() };
    let steps = if plan.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", plan.steps.len()) };
    let analysis = text::one_line(&text::reveal(&plan.analysis), 200);
    let colon = if analysis.is_empty() { "" } else { ": " };
    format!("Plan of {steps}{again}{colon}{analysis}")
}

fn format_step(step: &PlanStep, plan: &PlanCreated, preview: Option<&String>) -> Vec<Line> {
    let after = match step.depends_on.as_slice() {
        [] => String::new(),
        ids => format!(", after {}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ")),
    };
    let kept = if plan.kept.contains(&step.step_id) { " (done)" } else { "" };
    let line = text::reveal_in_line;
    let (id, tool) = (step.step_id, line(&step.tool_name));
    let unpainted = |text: String| Line::from((Inks::PLAIN, text));
    let mut lines = vec![unpainted(format!("{id}. {} · {tool}{after}{kept}", line(&step.description)))];
    let arguments = || match &step.tool_input {
        Value::Null => String::new(),
        input => json::list_keys(input),
    };
    let shown = preview.cloned().unwrap_or_else(arguments);
    lines.extend(text::reveal(shown.trim_end()).lines().map(|line| {
        // As in a diff, if it is one.
        let ink = match line.as_bytes().first() {
            Some(b'+') => Ink::Green,
            Some(b'-') => Ink::Red,
            _ => Ink::Dim,
        };
        unpainted("   ".to_owned()).add(ink, line)
    }));
    let check = step.check.as_ref().map(|check| match check {
        StepCheck::Command(command) => format!("   checked by running: {}", line(command)),
        StepCheck::File(path) => format!("   checked: {} exists", line(path)),
        StepCheck::Schema(schema) => format!("   checked against the schema {}", line(&schema.to_string())),
    });
    lines.into_iter().chain(check.map(unpainted)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
            ..PlanStep::default()
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
            ..PlanCreated::default()
        }
    }

    fn text(sheet: &Sheet) -> String {
        sheet.draw(60).all().iter().map(|line| line.text().trim_end_matches('─').to_owned() + "\n").collect()
    }

    #[test]
    fn a_step_says_what_it_calls_with_what_and_after_which() {
        let previews = BTreeMap::from([(2, "ls\u{1b}[8m -l".to_owned()), (3, "--- b\n+one\n".to_owned())]);
        let mistakes = ["step 9 does not exist".to_owned()];
        let plan = plan();
        let sheet = PlanSheet::Plan { plan: &plan, previews: &previews, mistakes: &mistakes, draft: None };
        assert_eq!(
            text(&format_sheet(sheet, false).0),
            "┌ Plan of 3 steps, revision 2: Two things.␛[8m \n│ 1. Step␊read_file · read_file (done)\n│    path: a.txt\n\
             │ 2. Step␊run_command · run_command\n│    ls␛[8m -l\n│    checked by running: true\n│ 3. Step␊write_file \
             · write_file, after 1 and 2\n│    --- b\n│    +one\n│    checked: b exists\n├ ! step 9 does not exist\n"
        );
    }

    #[test]
    fn a_proposal_is_shown_once() {
        let shown = |is_shown| text(&format_sheet(PlanSheet::Proposal("line 1\nline 2"), is_shown).0);
        assert_eq!(shown(false), "┌ This is a proposal; nothing was changed. \n│ line 1\n│ line 2\n");
        assert_eq!(shown(true), "┌ This is a proposal; nothing was changed. \n");
    }
}
