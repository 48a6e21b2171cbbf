//! Finds every mistake of a flow that its types do not: in the work of a step, the values that it reads, its limits,
//! and the calls among flows. Only tools and their parameters are checked by the caller, which knows them.

use std::collections::BTreeSet;

use super::texts::{FlowTextForm, StepText, collect_fillings, step_of};
use super::ways;
use super::{ASK_USER, DEEPEST, FlowConfig, FlowRole, FlowStep, MOST_ROUNDS, MOST_STEPS, RESERVED, StepWork};
use crate::base::validator::Validator;
use crate::base::yaml::Node;
use crate::config::command::inside_quotes;
use crate::config::merge::Merged;
use crate::config::mistake::{Mistake, did_you_mean};
use crate::config::settings::Named;
use crate::config::source::{Sources, SubjectKind};
use crate::template::TemplateError;

/// The names outside a flow that it can refer to.
struct FlowSurroundings<'n> {
    agents: Vec<&'n str>,
    models: Vec<&'n str>,
}

pub(in crate::config) fn check_flows(
    merged: &Merged,
    sources: &Sources,
    flows: &Named<FlowConfig>,
    mistakes: &mut Vec<Mistake>,
) {
    let names = |kind| merged.of_kind(kind).map(|(name, _)| name).collect();
    let around = FlowSurroundings { agents: names(SubjectKind::Agents), models: names(SubjectKind::Models) };
    for (name, flow) in flows {
        let Some(node) = merged.get(SubjectKind::Flows, name) else { continue };
        let ids = flow.all_steps().into_iter().map(|(_, step)| step.id.as_str()).collect();
        FlowCheck { flow, flows, around: &around, node, sources, mistakes, ids }.flow();
    }
}

struct FlowCheck<'f> {
    flow: &'f FlowConfig,
    flows: &'f Named<FlowConfig>,
    around: &'f FlowSurroundings<'f>,
    node: &'f Node,
    sources: &'f Sources,
    mistakes: &'f mut Vec<Mistake>,
    /// The ids of all steps, in the order of the file.
    ids: Vec<&'f str>,
}

/// The names that a step can read: the steps before it, and the names of the loops around it.
#[derive(Clone, Default)]
struct StepScope<'f> {
    earlier: BTreeSet<&'f str>,
    loops: Vec<&'static str>,
}

impl<'f> FlowCheck<'f> {
    /// Reports a mistake at the value, or at the nearest place.
    fn tell(&mut self, path: &[String], message: impl Into<String>) -> &mut Mistake {
        let near = (0..=path.len()).rev().find_map(|n| self.node.find(path[..n].iter().map(String::as_str)));
        self.mistakes.push(Mistake::place_at(self.sources, near.unwrap_or(self.node).place, message));
        self.mistakes.last_mut().expect("one was just added")
    }

    /// The same for a value of the step at `path`.
    fn tell_below(&mut self, path: &[String], keys: &[&str], message: impl Into<String>) -> &mut Mistake {
        self.tell(&extend_path(path, keys), message)
    }

    fn flow(&mut self) {
        let name = self.flow.name.as_str();
        if RESERVED.contains(&name) {
            self.tell(&[], format!("a flow `{name}` is built in; call the file otherwise"));
        }
        for (name, input) in &self.flow.inputs {
            let path = ["inputs".to_owned(), name.clone()];
            if !is_identifier(name) {
                self.tell(&path, format!("`{name}` is not a name for an input: {IDENTIFIER}"));
            }
            if input.required == Some(true) && input.default.is_some() {
                self.tell(&path, "an input that has to be given needs no default: leave out one of them");
            }
            if input
                .default
                .as_ref()
                .is_some_and(|value| !value.is_null() && input.input_type.read(value).is_none())
            {
                let kind = input.input_type.describe_type();
                self.tell(
                    &[path.as_slice(), &["default".to_owned()]].concat(),
                    format!("the default must be {kind}"),
                );
            }
        }
        let steps = ["steps".to_owned()];
        if self.flow.steps.is_empty() {
            self.tell(&steps, "a flow has at least one step");
        }
        if self.ids.len() > MOST_STEPS {
            let message = format!("a flow has at most {MOST_STEPS} steps, and this one has {}", self.ids.len());
            self.tell(&steps, message).hint = Some("put a part of it into a flow of its own".to_owned());
        }
        let mut scope = StepScope::default();
        self.steps(&self.flow.steps, &steps, &mut scope, 1, &mut BTreeSet::new());
        let mut texts = Vec::new();
        for (key, value) in &self.flow.outputs {
            collect_fillings(value, &mut vec!["outputs".to_owned(), key.clone()], &[], &mut texts);
        }
        texts.extend(self.flow.answer.as_deref().map(|text| StepText {
            path: vec!["answer".to_owned()],
            text,
            form: FlowTextForm::Filling,
            names: &[],
        }));
        for text in texts {
            self.text(None, &[], &text, &scope);
        }
        if let Some(message) = ways::find_recursion(self.flow, self.flows) {
            self.tell(&steps, message);
        }
    }

    fn steps(
        &mut self,
        steps: &'f [FlowStep],
        path: &[String],
        scope: &mut StepScope<'f>,
        depth: usize,
        seen: &mut BTreeSet<&'f str>,
    ) {
        for (at, step) in steps.iter().enumerate() {
            let path = [path, &[at.to_string()]].concat();
            let id = step.id.as_str();
            if !is_identifier(id) {
                self.tell_below(&path, &["id"], format!("`{id}` is not an id for a step: {IDENTIFIER}"));
            } else if !seen.insert(id) {
                self.tell_below(&path, &["id"], format!("there is a step `{id}` already: ids must be unique"));
            }
            self.work(step, &path);
            self.loops(step, &path);
            for (number, earlier) in step.depends_on.iter().enumerate() {
                self.earlier(step, earlier, scope, &extend_path(&path, &["depends_on", &number.to_string()]));
            }
            for text in step.texts() {
                self.text(Some(step), &path, &text, scope);
            }
            if let Some(inner) = &step.steps {
                let mut inside = scope.clone();
                inside.loops.extend(step.loop_names());
                if inner.is_empty() {
                    self.tell_below(&path, &["steps"], format!("the group `{id}` has no steps"));
                }
                if depth >= DEEPEST {
                    let message = format!("groups lie at most {DEEPEST} deep in one another");
                    self.tell_below(&path, &["steps"], message);
                } else {
                    self.steps(inner, &extend_path(&path, &["steps"]), &mut inside, depth + 1, seen);
                }
            }
            scope.earlier.insert(id);
        }
    }

    /// Checks that a step does one thing, which exists.
    fn work(&mut self, step: &'f FlowStep, path: &[String]) {
        let works: Vec<StepWork<'f>> = step.works().collect();
        let [work] = works.as_slice() else {
            let keys = "tool, prompt, agent, role, flow, steps";
            let message = if works.is_empty() {
                format!("the step `{}` does nothing: it needs one of {keys}", step.id)
            } else {
                let said: Vec<&str> = works.iter().map(|work| work.key()).collect();
                format!("the step `{}` has {}: a step does one thing", step.id, said.join(" and "))
            };
            self.tell(path, message);
            return;
        };
        let at = extend_path(path, &[work.key()]);
        match *work {
            StepWork::Tool(RUN_COMMAND) => self.command(step, path),
            StepWork::Agent(name) => {
                if !self.around.agents.contains(&name) {
                    let hint = did_you_mean(name, self.around.agents.iter().copied());
                    self.tell(&at, format!("there is no agent `{name}`")).hint = hint;
                }
                self.arguments(step, path, "the agent", &[("prompt", true)]);
            }
            StepWork::Role(role) => self.arguments(step, path, &format!("the {}", role.name()), role.takes()),
            StepWork::Flow(name) => match self.flows.get(name) {
                None => {
                    let hint = did_you_mean(name, self.flows.keys().map(String::as_str));
                    self.tell(&at, format!("there is no flow `{name}`")).hint = hint;
                }
                Some(flow) => {
                    let takes: Vec<(&str, bool)> =
                        flow.inputs.iter().map(|(name, input)| (name.as_str(), input.is_required())).collect();
                    self.arguments(step, path, &format!("the flow `{name}`"), &takes);
                }
            },
            StepWork::Group(_) if !step.with.is_empty() => {
                self.tell_below(path, &["with"], "a group takes nothing: its steps read what is around it");
            }
            StepWork::Tool(_) | StepWork::Prompt(_) | StepWork::Group(_) => {}
        }
        self.of_prompts(step, path, matches!(work, StepWork::Prompt(_)));
        self.attempts(step, path, *work);
    }

    /// Checks that no placeholder in a command is quoted: each value is a variable with its own quotes.
    fn command(&mut self, step: &FlowStep, path: &[String]) {
        let line = step.with.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
        if inside_quotes(line).is_some() {
            let hint = "leave the quotes out: each value is already one word, whatever it contains";
            let message = "the placeholder is inside quotes";
            self.tell_below(path, &["with", "command"], message).hint = Some(hint.to_owned());
        }
    }

    /// Checks `model` and `schema`, which only prompts have.
    fn of_prompts(&mut self, step: &FlowStep, path: &[String], is_prompt: bool) {
        for (key, is_there) in [("model", step.model.is_some()), ("schema", step.schema.is_some())] {
            if is_there && !is_prompt {
                self.tell_below(path, &[key], format!("only a step with `prompt` has a `{key}`"));
            }
        }
        if let Some(model) = step.model.as_deref().filter(|model| !model.contains('/') && is_prompt)
            && !self.around.models.contains(&model)
        {
            let hint = did_you_mean(model, self.around.models.iter().copied());
            self.tell_below(path, &["model"], format!("there is no model `{model}`")).hint = hint;
        }
        let schema = step.schema.clone().map(serde_json::Value::Object);
        if let Some(Err(why)) = schema.as_ref().map(Validator::new) {
            self.tell_below(path, &["schema"], format!("`schema` is not a valid JSON Schema: {why}"));
        }
    }

    /// Checks the keys of single attempts, which steps of other steps do not have.
    fn attempts(&mut self, step: &FlowStep, path: &[String], work: StepWork<'_>) {
        let is_whole = matches!(work, StepWork::Flow(_) | StepWork::Group(_) | StepWork::Role(FlowRole::Executor));
        let stated = [
            ("retry", step.retry > 0),
            ("time_limit", step.time_limit.is_some()),
            ("idempotent", step.idempotent),
        ];
        for (key, _) in stated.into_iter().filter(|(_, is_stated)| *is_stated && is_whole) {
            self.tell_below(path, &[key], format!("`{key}` is for single steps: give it to those inside"));
        }
        if step.retry > MOST_RETRIES {
            self.tell_below(path, &["retry"], format!("`retry` is a number up to {MOST_RETRIES}"));
        }
        if step.retry > 0 && !step.idempotent && matches!(work, StepWork::Agent(_)) {
            let message = "an agent may change something: a step that is retried says `idempotent: true`";
            self.tell_below(path, &["retry"], message);
        }
        if step.replaces.is_some() && !matches!(work, StepWork::Tool(_)) {
            self.tell_below(path, &["replaces"], "only a step with `tool` replaces a file");
        }
        if step.tool.as_deref() == Some(ASK_USER) && self.flow.inputs.contains_key(&step.id) {
            let message = format!("`{}` is an input already: its answer is given by that name", step.id);
            self.tell_below(path, &["id"], message);
        }
    }

    fn arguments(&mut self, step: &FlowStep, path: &[String], whose: &str, takes: &[(&str, bool)]) {
        for (name, _) in takes.iter().filter(|(name, required)| *required && !step.with.contains_key(*name)) {
            self.tell_below(path, &["with"], format!("{whose} needs `with.{name}`"));
        }
        for name in step.with.keys().filter(|name| !takes.iter().any(|(known, _)| known == name)) {
            let hint = did_you_mean(name, takes.iter().map(|(name, _)| *name));
            self.tell_below(path, &["with", name], format!("{whose} takes no `{name}`")).hint = hint;
        }
    }

    fn loops(&mut self, step: &FlowStep, path: &[String]) {
        if step.for_each.is_some() && step.repeat.is_some() {
            self.tell_below(
                path,
                &["repeat"],
                "a step has `for_each` or `repeat`, not both: put one around a group",
            );
        }
        let each = step.for_each.as_ref().map(|each| ("for_each", each.most));
        for (key, most) in each.into_iter().chain(step.repeat.as_ref().map(|repeat| ("repeat", repeat.most))) {
            if !(1..=MOST_ROUNDS).contains(&most) {
                self.tell_below(path, &[key, "most"], format!("`most` is a number from 1 to {MOST_ROUNDS}"));
            }
        }
    }

    /// Checks one text: its syntax, and everything that it reads.
    fn text(&mut self, step: Option<&FlowStep>, path: &[String], text: &StepText<'_>, scope: &StepScope<'f>) {
        let at = [path, &text.path].concat();
        let paths = match text.form.paths(text.text) {
            Ok(paths) => paths,
            // The syntax of templates is reported where all of them are read.
            Err(_) if text.form == FlowTextForm::Filling => return,
            Err(error) => return self.expression(&at, text.text, &error),
        };
        let mut told = BTreeSet::new();
        for read in paths {
            let (root, second) =
                read.split_once('.').map_or((read.as_str(), None), |(root, rest)| (root, rest.split('.').next()));
            if !told.insert((root.to_owned(), second.map(str::to_owned))) {
                continue;
            }
            match (root, second) {
                ("inputs" | "steps", None) => {
                    let what = if root == "inputs" { "inputs.NAME" } else { "steps.ID" };
                    self.tell(&at, format!("`{root}` is not a value: write {what}"));
                }
                ("inputs", Some(name)) if !self.flow.inputs.contains_key(name) => {
                    let hint = did_you_mean(name, self.flow.inputs.keys().map(String::as_str));
                    self.tell(&at, format!("the flow has no input `{name}`")).hint = hint;
                }
                ("inputs", Some(_)) => {}
                ("steps", Some(_)) => {
                    let id = step_of(&read).unwrap_or_default();
                    match step {
                        Some(step) => self.earlier(step, id, scope, &at),
                        None => self.of_the_whole(id, scope, &at),
                    }
                }
                (name, _) if text.names.contains(&name) || scope.loops.contains(&name) => {}
                (name, _) => {
                    let loops: Vec<&str> = text.names.iter().chain(&scope.loops).copied().collect();
                    let known: Vec<&str> = ["inputs", "steps"].into_iter().chain(loops).collect();
                    let hint = format!("known here: {}", known.join(", "));
                    self.tell(&at, format!("nothing is called `{name}` here")).hint = Some(hint);
                }
            }
        }
    }

    fn expression(&mut self, at: &[String], text: &str, error: &TemplateError) {
        let node = self.node.find(at.iter().map(String::as_str)).unwrap_or(self.node);
        let mistake = Mistake::template(self.sources, node, error);
        let hint = text.contains("{{").then(|| "an expression here has no braces".to_owned());
        self.mistakes.push(Mistake { hint: hint.or(mistake.hint.clone()), ..mistake });
    }

    /// Checks that a step comes before another one that reads it or waits for it.
    fn earlier(&mut self, step: &FlowStep, id: &str, scope: &StepScope<'f>, at: &[String]) {
        if scope.earlier.contains(id) {
            return;
        }
        let from = step.id.as_str();
        if !self.ids.contains(&id) {
            let hint = did_you_mean(id, self.ids.iter().copied());
            self.tell(at, format!("there is no step `{id}`")).hint = hint;
        } else if id == from {
            self.tell(at, format!("the step `{id}` cannot wait for itself"));
        } else if let Some(cycle) = ways::find_cycle(self.flow, from, id) {
            self.tell(at, format!("these steps wait for one another: {cycle}"));
        } else {
            let message = format!("the step `{id}` does not come before `{from}`, or is in another group");
            self.tell(at, message).hint = Some("a step reads those above it and around it".to_owned());
        }
    }

    /// Checks that a step that the outputs or the answer read is one of the flow's own.
    fn of_the_whole(&mut self, id: &str, scope: &StepScope<'f>, at: &[String]) {
        if scope.earlier.contains(id) {
            return;
        }
        if self.ids.contains(&id) {
            self.tell(at, format!("the step `{id}` is in a group: read it by the group, `steps.GROUP.{id}`"));
        } else {
            let hint = did_you_mean(id, self.ids.iter().copied());
            self.tell(at, format!("there is no step `{id}`")).hint = hint;
        }
    }
}

/// The most retries that a step may state.
const MOST_RETRIES: u32 = 10;

/// The tool whose argument `command` a shell reads.
const RUN_COMMAND: &str = "run_command";

const IDENTIFIER: &str = "a lower-case letter, then lower-case letters, digits and `_`";

fn is_identifier(name: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(word)
}

fn extend_path(path: &[String], keys: &[&str]) -> Vec<String> {
    path.iter().cloned().chain(keys.iter().map(|&key| key.to_owned())).collect()
}
