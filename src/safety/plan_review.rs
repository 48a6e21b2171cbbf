//! The review of a plan or a proposal: what the user reads before it is carried out, the form in which they edit it,
//! and their decision.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::yaml;
use crate::conversation::event::plan::{PlanCreated, PlanStep};

/// The subject of a decision.
#[derive(Debug, Clone, Copy)]
pub enum PlanSheet<'a> {
    Plan {
        plan: &'a PlanCreated,
        /// The exact effect of each step, by its id: the command, the diff. A step without one shows its arguments.
        previews: &'a BTreeMap<u32, String>,
        /// The mistakes in the plan as it was last edited, one sentence each.
        mistakes: &'a [String],
        /// The form as it was last edited, if that is not a plan.
        draft: Option<&'a str>,
    },
    /// The answer of a turn that explores.
    Proposal(&'a str),
}

/// The user's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanReview {
    Run,
    /// The text to carry out instead: for a plan the text of its form, see [`read_form`].
    Edited(String),
    /// The reason, for the model; empty if none was given.
    Refuse(String),
}

impl PlanSheet<'_> {
    /// The text that an editor opens.
    pub fn form(&self) -> String {
        match self {
            Self::Proposal(text) => format!("{}\n", text.trim_end()),
            Self::Plan { draft: Some(draft), .. } => (*draft).to_owned(),
            // Via JSON, which has no tags.
            Self::Plan { plan, .. } => {
                HEAD.to_owned() + &yaml::write_document(&json!(plan.steps)).unwrap_or_default()
            }
        }
    }

    /// The end of a name for a file with the form.
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Proposal(_) => "md",
            Self::Plan { .. } => "yaml",
        }
    }
}

const HEAD: &str = "# The steps of the plan. They are checked when you close the editor, and shown to you again before anything runs.
#   tool_input    the arguments; $step_1_result stands for the result of step 1, $step_1_result.items[0] for a part of it
#   depends_on    the steps whose results a step needs; steps that need nothing of one another may run side by side
#   replaces      optional: a file that the step may replace although it was not read
#   check         optional: { command: \"cargo test\" }, { file: out.txt } or { schema: {...} }

";

/// Reads an edited form.
///
/// # Errors
/// The form is wrong; the error is a sentence.
pub fn read_form(text: &str) -> Result<Vec<PlanStep>, String> {
    let value: Value = yaml::parse_document(text).map_err(|error| {
        let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("The plan is not YAML: {line}{}.", error.message)
    })?;
    match value {
        Value::Array(steps) if !steps.is_empty() => {
            (1..).zip(steps).map(|(number, step)| step_of(number, step)).collect()
        }
        _ => Err("The plan has no steps. Answer n to refuse it.".to_owned()),
    }
}

fn step_of(number: usize, step: Value) -> Result<PlanStep, String> {
    serde_json::from_value(step).map_err(|error| format!("Step {number} of the list is not a step: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::event::plan::StepCheck;

    fn step(step_id: u32, tool_input: Value, check: Option<StepCheck>) -> PlanStep {
        let (description, tool_name) = ("Does it: now".to_owned(), "grep".to_owned());
        PlanStep { step_id, description, tool_name, tool_input, check, ..PlanStep::default() }
    }

    #[test]
    fn what_the_form_says_is_the_plan() {
        let checks = [
            None,
            Some(StepCheck::Command("true # it is".to_owned())),
            Some(StepCheck::File("a.txt".to_owned())),
            Some(StepCheck::Schema(json!({"type": "object"}))),
        ];
        let inputs = [
            json!({"path": "a: b", "n": 5, "text": "5", "lines": "one\ntwo\n"}),
            json!({"value": "$step_1_result.items[0]", "flag": true, "none": null}),
            json!(null),
            json!({}),
        ];
        let steps: Vec<PlanStep> = (1..)
            .zip(checks.into_iter().zip(inputs))
            .map(|(id, (check, input))| PlanStep { depends_on: (1..id).collect(), ..step(id, input, check) })
            .collect();
        let plan = PlanCreated { revision: 1, steps: steps.clone(), ..PlanCreated::default() };
        let sheet = PlanSheet::Plan { plan: &plan, previews: &BTreeMap::new(), mistakes: &[], draft: None };
        assert_eq!(read_form(&sheet.form()).expect("it is a plan"), steps, "{}", sheet.form());
    }

    #[test]
    fn what_is_no_plan_is_said() {
        for (text, why) in [
            ("", "has no steps"),
            ("[]", "has no steps"),
            ("- step_id: one\n  description: d\n  tool_name: t\n", "Step 1 of the list is not a step"),
            ("- description: d\n  tool_name: t\n", "missing field `step_id`"),
            ("- step_id: 1\n  description: [\n", "not YAML"),
        ] {
            let error = read_form(text).expect_err("none");
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
