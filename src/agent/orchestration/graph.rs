//! Checks a plan before any of it runs: the tools and agents must exist, inputs must fit, and references must point to
//! earlier steps. All mistakes are reported at once, each with the number of its step.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::base::text;
use crate::base::validator::{Unknown, Validator};
use crate::conversation::event::plan::{PlanStep, StepCheck};
use crate::tools::RUN_COMMAND;

use super::command;
use super::reference::{self, Reference};
use super::reply::PlanReply;

/// The most steps of a plan.
pub const MOST_STEPS: usize = 8;

/// The prefix of the name of an agent among the candidates.
pub const AGENT: &str = "agent:";
/// The prefix of the name of a flow among the candidates.
pub const FLOW: &str = "flow:";

/// The names that steps and routes may use.
#[derive(Default)]
pub struct Choices<'a> {
    /// The tools, with the compiled schemas of their arguments.
    pub tools: BTreeMap<&'a str, &'a Validator>,
    pub agents: BTreeSet<&'a str>,
    /// The configured flows, for routes. A plan names none.
    pub flows: BTreeSet<&'a str>,
}

/// The arguments of a step for an agent: its job in words.
pub fn agent_parameters() -> Value {
    json!({
        "type": "object",
        "properties": { "prompt": { "type": "string", "minLength": 1 } },
        "required": ["prompt"],
        "additionalProperties": false,
    })
}

/// Checks a plan. Returns its steps with names in full: an agent is `agent:NAME`.
///
/// Callers check for a plan without steps first.
///
/// # Errors
/// Every mistake, each a sentence for the model.
pub fn check_plan(reply: &PlanReply, choices: &Choices<'_>) -> Result<Vec<PlanStep>, Vec<String>> {
    let mut mistakes = Vec::new();
    let steps = &reply.plan;
    if steps.is_empty() {
        mistakes.push("The plan has no steps.".to_owned());
    }
    if steps.len() > MOST_STEPS {
        mistakes.push(format!("The plan has {} steps; at most {MOST_STEPS} are allowed.", steps.len()));
    }
    let order = PlanDependencies::read_steps(steps, &mut mistakes);
    let mut checked = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let mut step = step.clone();
        if step.tool_input.is_null() {
            step.tool_input = Value::Object(Map::new());
        }
        let mut told = |mistake: String| mistakes.push(format!("Step {}: {mistake}.", step.step_id));
        check_dependencies(&step, at, &order, &mut told);
        match complete_name(&step.tool_name, choices) {
            Ok(name) => {
                check_input(&step, &name, choices, &mut told);
                step.tool_name = name;
            }
            Err(mistake) => told(mistake),
        }
        check_references(&step, &order, &mut told);
        step.depends_on.sort_unstable();
        step.depends_on.dedup();
        checked.push(step);
    }
    if mistakes.is_empty() { Ok(checked) } else { Err(mistakes) }
}

/// The name in full of a tool or an agent.
fn complete_name(name: &str, choices: &Choices<'_>) -> Result<String, String> {
    let agent = name.strip_prefix(AGENT).unwrap_or(name);
    if choices.tools.contains_key(name) {
        return Ok(name.to_owned());
    }
    if choices.agents.contains(agent) {
        return Ok(format!("{AGENT}{agent}"));
    }
    let names = || choices.tools.keys().chain(&choices.agents).copied();
    let near = text::find_nearest(agent, names());
    let hint = if near.is_empty() { names().collect::<Vec<_>>().join(", ") } else { near.join(", ") };
    let hint = if hint.is_empty() { "there are none".to_owned() } else { format!("there is {hint}") };
    Err(format!("there is no tool or agent `{}`; {hint}", text::one_line(name, 80)))
}

fn check_input(step: &PlanStep, name: &str, choices: &Choices<'_>, told: &mut dyn FnMut(String)) {
    let own;
    let validator = match choices.tools.get(name) {
        Some(validator) => *validator,
        None => {
            own = Validator::new(&agent_parameters()).expect("the schema of a job is sound");
            &own
        }
    };
    let holes = reference::find_holes(&step.tool_input);
    let unknown = Unknown { holes: &holes, may_lack_fields: !step.depends_on.is_empty() };
    let wrong = validator.certain_mistakes(&step.tool_input, unknown);
    if !wrong.is_empty() {
        told(format!("the input of {name} does not fit: {}", wrong.join("; ").replace("- ", "")));
    }
    let line = (name == RUN_COMMAND).then(|| step.tool_input["command"].as_str()).flatten();
    line.into_iter().flat_map(command::find_misplaced).for_each(&mut *told);
    match &step.check {
        Some(StepCheck::Command(line)) => command::find_misplaced(line).into_iter().for_each(told),
        Some(StepCheck::Schema(schema)) => {
            if let Err(why) = Validator::new(schema) {
                told(format!("the schema of its check is none: {why}"));
            }
        }
        Some(StepCheck::File(_)) | None => {}
    }
}

fn check_dependencies(step: &PlanStep, at: usize, order: &PlanDependencies, told: &mut dyn FnMut(String)) {
    for on in &step.depends_on {
        match order.positions.get(on) {
            None => told(format!("it depends on step {on}, which there is not")),
            Some(_) if *on == step.step_id => told("it depends on itself".to_owned()),
            Some(_) if order.in_one_cycle(step.step_id, *on) => {}
            Some(position) if *position > at => {
                told(format!("it depends on step {on}, which comes after it; steps depend on earlier ones only"));
            }
            Some(_) => {}
        }
    }
}

fn check_references(step: &PlanStep, order: &PlanDependencies, told: &mut dyn FnMut(String)) {
    let check = match &step.check {
        Some(StepCheck::Command(text) | StepCheck::File(text)) => Value::from(text.as_str()),
        Some(StepCheck::Schema(_)) | None => Value::Null,
    };
    let (input, check) = (reference::find_references(&step.tool_input), reference::find_references(&check));
    for mistake in input.mistakes.iter().chain(&check.mistakes) {
        told(format!(
            "`{mistake}` is no reference; write `$step_N_result`, `$step_N_result.key` or `$step_N_result[0]`"
        ));
    }
    let needed = order.needed_by(step.step_id);
    let is_open = |reference: &&Reference| !needed.contains(&reference.step);
    let open_in_check = check.references.iter().filter(|reference| reference.step != step.step_id).filter(is_open);
    for reference in input.references.iter().filter(is_open).chain(open_in_check) {
        told(match order.positions.contains_key(&reference.step) {
            false => format!("`{reference}` refers to step {}, which there is not", reference.step),
            true if reference.step == step.step_id => format!("`{reference}` refers to the step itself"),
            true => format!("`{reference}` refers to step {}, which is not in its `depends_on`", reference.step),
        });
    }
}

/// The dependencies of steps.
struct PlanDependencies {
    /// The position of each step in the plan.
    positions: BTreeMap<u32, usize>,
    /// The steps that each needs, directly or through others.
    needed: BTreeMap<u32, BTreeSet<u32>>,
}

impl PlanDependencies {
    fn read_steps(steps: &[PlanStep], mistakes: &mut Vec<String>) -> Self {
        let mut positions = BTreeMap::new();
        for (at, step) in steps.iter().enumerate() {
            if positions.insert(step.step_id, at).is_some() {
                mistakes.push(format!("Step {}: its number occurs twice; each step needs its own.", step.step_id));
            }
        }
        let order = Self { positions, needed: collect_needed(steps) };
        order.tell_cycles(mistakes);
        order
    }

    fn needed_by(&self, step: u32) -> &BTreeSet<u32> {
        static NONE: BTreeSet<u32> = BTreeSet::new();
        self.needed.get(&step).unwrap_or(&NONE)
    }

    fn in_one_cycle(&self, one: u32, other: u32) -> bool {
        one != other && self.needed_by(one).contains(&other) && self.needed_by(other).contains(&one)
    }

    fn tell_cycles(&self, mistakes: &mut Vec<String>) {
        let mut told = BTreeSet::new();
        for &step in self.positions.keys() {
            let cycle: Vec<u32> = self
                .positions
                .keys()
                .copied()
                .filter(|other| *other == step || self.in_one_cycle(step, *other))
                .collect();
            if cycle.len() > 1 && told.insert(cycle.clone()) {
                mistakes.push(format!("Steps {} wait for one another.", list_numbers(&cycle)));
            }
        }
    }
}

/// The steps that each step needs, directly or through others.
pub fn collect_needed(steps: &[PlanStep]) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut needed: BTreeMap<u32, BTreeSet<u32>> =
        steps.iter().map(|step| (step.step_id, step.depends_on.iter().copied().collect())).collect();
    // A path passes each step once: as many rounds as there are steps reach everything.
    for _ in 0..steps.len() {
        for step in steps {
            let further: BTreeSet<u32> =
                needed[&step.step_id].iter().filter_map(|on| needed.get(on)).flatten().copied().collect();
            needed.entry(step.step_id).or_default().extend(further);
        }
    }
    needed
}

fn list_numbers(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.join(""),
    }
}
