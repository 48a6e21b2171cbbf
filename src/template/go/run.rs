//! Renders a template: steps, depth and sizes are bounded, every error has its place, and missing names are collected
//! until the end.

use std::collections::BTreeSet;
use std::rc::Rc;

use gotmpl::parse::{BranchNode, ListNode, Node, SmolStr, TemplateNode};
use minijinja::Value;

use super::values::{Basic, classify_value, is_list, is_map, is_true, sorted_keys, type_name};
use super::{GoProblem, GoTree, functions};
use crate::template::{DEEPEST, LONGEST_OUTPUT, STEPS, Undefined, too_long, too_many_steps};

/// The bytes that count as one step.
const BYTES_A_STEP: usize = 1024;

/// The reason that nothing was rendered.
pub(super) struct RenderStop {
    pub problem: GoProblem,
    /// The names that nothing defines, if that is the reason.
    pub missing: BTreeSet<String>,
}

/// The ways to leave a body before its end.
pub(super) enum Leave {
    Break,
    Continue,
    Problem(GoProblem),
    /// A limit was exceeded, whatever is missing.
    Bound(GoProblem),
}

/// A value, and its name in the context, which is empty for the context itself.
#[derive(Clone)]
pub(super) struct NamedValue {
    pub value: Value,
    pub name: Option<Rc<str>>,
}

impl NamedValue {
    pub(super) fn unnamed(value: Value) -> Self {
        Self { value, name: None }
    }

    /// The full name of a name below it.
    pub(super) fn name_below(&self, below: &[SmolStr]) -> String {
        let own = self.name.as_deref().filter(|name| !name.is_empty());
        own.into_iter().chain(below.iter().map(SmolStr::as_str)).collect::<Vec<_>>().join(".")
    }
}

pub(super) type GoOutcome<T> = Result<T, Leave>;

pub(super) struct GoRun<'t> {
    tree: &'t GoTree,
    pub(super) is_strict: bool,
    out: String,
    pub(super) variables: Vec<(SmolStr, NamedValue)>,
    steps: u64,
    depth: usize,
    pub(super) made: usize,
    pub(super) missing: BTreeSet<String>,
    /// The position of the first missing name.
    pub(super) first: usize,
}

impl<'t> GoRun<'t> {
    pub(super) fn new(tree: &'t GoTree, undefined: Undefined) -> Self {
        Self {
            tree,
            is_strict: undefined == Undefined::Error,
            out: String::new(),
            variables: Vec::new(),
            steps: 0,
            depth: 0,
            made: 0,
            missing: BTreeSet::new(),
            first: 0,
        }
    }

    pub(super) fn render(mut self, context: &Value) -> Result<String, RenderStop> {
        let dot = NamedValue { value: context.clone(), name: Some("".into()) };
        let root = &self.tree.root;
        match self.template(root, &dot) {
            Err(Leave::Bound(problem)) => Err(RenderStop { problem, missing: BTreeSet::new() }),
            _ if !self.missing.is_empty() => {
                let problem = GoProblem { at: self.first, message: String::new() };
                Err(RenderStop { problem, missing: self.missing })
            }
            Err(Leave::Problem(problem)) => Err(RenderStop { problem, missing: BTreeSet::new() }),
            Err(Leave::Break | Leave::Continue) | Ok(()) => Ok(self.out),
        }
    }

    fn template(&mut self, body: &'t ListNode, dot: &NamedValue) -> GoOutcome<()> {
        let dollar = vec![(SmolStr::new_static("$"), dot.clone())];
        let outer = std::mem::replace(&mut self.variables, dollar);
        let done = self.list(body, dot);
        self.variables = outer;
        done
    }

    fn list(&mut self, list: &'t ListNode, dot: &NamedValue) -> GoOutcome<()> {
        for node in &list.nodes {
            match self.node(node, dot) {
                // Continues, to find all missing names.
                Err(Leave::Problem(_)) if !self.missing.is_empty() => {}
                done => done?,
            }
        }
        Ok(())
    }

    fn node(&mut self, node: &'t Node, dot: &NamedValue) -> GoOutcome<()> {
        match node {
            Node::Text(text) => self.write(&text.text, text.pos.offset),
            Node::Action(action) => {
                let value = self.pipe(&action.pipe, dot)?.value;
                if !action.pipe.decl.is_empty() || value.is_undefined() {
                    return Ok(());
                }
                let at = action.pos.offset;
                let shown = functions::show_value(&value).map_err(|message| leave_with_error(at, message))?;
                self.write(&shown, at)
            }
            Node::If(branch) => self.run_deeper(branch.pos.offset, |run| {
                let value = run.pipe(&branch.pipe, dot)?.value;
                run.one_of(branch, is_true(&value).then_some(dot), dot)
            }),
            Node::With(branch) => self.run_deeper(branch.pos.offset, |run| {
                let value = run.pipe(&branch.pipe, dot)?;
                run.one_of(branch, is_true(&value.value).then_some(&value), dot)
            }),
            Node::Range(branch) => self.run_deeper(branch.pos.offset, |run| run.range(branch, dot)),
            Node::Template(call) => self.run_deeper(call.pos.offset, |run| run.call_template(call, dot)),
            Node::List(list) => self.list(list, dot),
            Node::Define(_) => Ok(()),
            Node::Break(_) => Err(Leave::Break),
            Node::Continue(_) => Err(Leave::Continue),
        }
    }

    /// Runs `act` one level deeper, with its own variables.
    fn run_deeper(&mut self, at: usize, act: impl FnOnce(&mut Self) -> GoOutcome<()>) -> GoOutcome<()> {
        if self.depth == DEEPEST {
            let message = format!("it goes more than {DEEPEST} levels deep");
            return Err(Leave::Bound(GoProblem { at, message }));
        }
        self.depth += 1;
        let outer = self.variables.len();
        let done = act(self);
        self.variables.truncate(outer);
        self.depth -= 1;
        done
    }

    fn one_of(&mut self, branch: &'t BranchNode, chosen: Option<&NamedValue>, dot: &NamedValue) -> GoOutcome<()> {
        match (chosen, &branch.else_body) {
            (Some(chosen), _) => self.list(&branch.body, chosen),
            (None, Some(otherwise)) => self.list(otherwise, dot),
            (None, None) => Ok(()),
        }
    }

    fn call_template(&mut self, call: &'t TemplateNode, dot: &NamedValue) -> GoOutcome<()> {
        let at = call.pos.offset;
        self.step(at, 0)?;
        let given = match &call.pipe {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => NamedValue::unnamed(Value::from(())),
        };
        let Some(body) = self.tree.defined.get(call.name.as_str()) else {
            return Err(leave_with_error(at, format!("no template `{}` is defined", call.name)));
        };
        self.template(body, &given)
    }

    fn range(&mut self, branch: &'t BranchNode, dot: &NamedValue) -> GoOutcome<()> {
        let at = branch.pos.offset;
        let over = self.commands(&branch.pipe, dot)?;
        let name: Option<Rc<str>> = over.name.as_deref().map(|name| format!("{name}[]").into());
        let value = &over.value;
        let items: Box<dyn Iterator<Item = (Value, Value)>> = match classify_value(value) {
            Basic::Nil => Box::new(std::iter::empty()),
            Basic::Int(_) if branch.pipe.decl.len() > 1 => {
                return Err(leave_with_error(at, "a `range` over a number has one variable"));
            }
            Basic::Int(most) => {
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                Box::new((0..most).map(|number| (number.into(), number.into())))
            }
            _ if is_list(value) => {
                let items = value.try_iter().map_err(|_| leave_with_error(at, "a list cannot be read"))?;
                Box::new(items.enumerate().map(|(number, item)| (number.into(), item)))
            }
            _ if is_map(value) => {
                let keys = sorted_keys(value);
                self.step(at, keys.len().saturating_mul(BYTES_A_STEP))?;
                let entry = |key: Value| (key.clone(), value.get_item(&key).unwrap_or_default());
                Box::new(keys.into_iter().map(entry))
            }
            _ => {
                let message = format!("`range` cannot go through a value of type {}", type_name(value));
                return Err(leave_with_error(at, message));
            }
        };
        let mut went = false;
        for (key, value) in items {
            went = true;
            if !self.turn(branch, key, NamedValue { value, name: name.clone() })? {
                break;
            }
        }
        match &branch.else_body {
            Some(otherwise) if !went => self.list(otherwise, dot),
            _ => Ok(()),
        }
    }

    /// One iteration of a loop. Returns false if it was the last.
    fn turn(&mut self, branch: &'t BranchNode, key: Value, item: NamedValue) -> GoOutcome<bool> {
        self.step(branch.pos.offset, 0)?;
        let outer = self.variables.len();
        let is_assign = branch.pipe.is_assign;
        match branch.pipe.decl.as_slice() {
            [] => {}
            [of_key, of_item] => {
                self.bind(of_key, NamedValue::unnamed(key), is_assign);
                self.bind(of_item, item.clone(), is_assign);
            }
            [of_item, ..] => self.bind(of_item, item.clone(), is_assign),
        }
        let done = self.list(&branch.body, &item);
        self.variables.truncate(outer);
        match done {
            Ok(()) | Err(Leave::Continue) => Ok(true),
            Err(Leave::Break) => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    pub(super) fn bind(&mut self, name: &SmolStr, value: NamedValue, is_assigned: bool) {
        match self.variables.iter_mut().rev().find(|(known, _)| is_assigned && known == name) {
            Some((_, held)) => *held = value,
            None => self.variables.push((name.clone(), value)),
        }
    }

    fn write(&mut self, text: &str, at: usize) -> GoOutcome<()> {
        self.step(at, text.len())?;
        if self.out.len() + text.len() > LONGEST_OUTPUT {
            return Err(Leave::Bound(GoProblem { at, message: too_long() }));
        }
        self.out.push_str(text);
        Ok(())
    }

    pub(super) fn step(&mut self, at: usize, bytes: usize) -> GoOutcome<()> {
        self.steps = self.steps.saturating_add(1 + (bytes / BYTES_A_STEP) as u64);
        if self.steps > STEPS {
            return Err(Leave::Bound(GoProblem { at, message: too_many_steps() }));
        }
        Ok(())
    }
}

pub(super) fn leave_with_error(at: usize, message: impl Into<String>) -> Leave {
    Leave::Problem(GoProblem { at, message: message.into() })
}
