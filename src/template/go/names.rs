//! Walks a template without rendering it: finds the names that it reads from its context, and functions, variables and
//! templates that do not exist.

use std::collections::BTreeSet;

use gotmpl::parse::{BranchNode, Expr, ListNode, Node, PipeNode, SmolStr};

use super::functions::count_arguments;
use super::{GoProblem, GoTree};

/// The names that the template reads, with dots: `user.name`.
pub(super) fn read_names(tree: &GoTree) -> Result<BTreeSet<String>, GoProblem> {
    let mut walk = NameWalk {
        tree,
        names: BTreeSet::new(),
        variables: Vec::new(),
        entered: BTreeSet::new(),
        open: Vec::new(),
    };
    walk.template(&tree.root, Some(String::new()))?;
    for body in tree.defined.values() {
        walk.template(body, None)?;
    }
    Ok(walk.names)
}

/// The name of a value in the context: an empty text for the context itself, `None` for a value without a name there.
type ContextName = Option<String>;

struct NameWalk<'t> {
    tree: &'t GoTree,
    names: BTreeSet<String>,
    variables: Vec<(SmolStr, ContextName)>,
    /// The templates that were entered, with the names of their arguments.
    entered: BTreeSet<(String, String)>,
    /// The templates that the walk is in: one that calls itself reads the same names below any depth.
    open: Vec<&'t str>,
}

/// The depth to which the walk enters templates that call others, and the most that it enters.
const DEEPEST: usize = 20;
const MOST_ENTERED: usize = 1000;

impl<'t> NameWalk<'t> {
    fn template(&mut self, body: &'t ListNode, dot: ContextName) -> Result<(), GoProblem> {
        let outer = std::mem::replace(&mut self.variables, vec![(SmolStr::new_static("$"), dot.clone())]);
        let done = self.list(body, &dot);
        self.variables = outer;
        done
    }

    fn list(&mut self, list: &'t ListNode, dot: &ContextName) -> Result<(), GoProblem> {
        list.nodes.iter().try_for_each(|node| self.node(node, dot))
    }

    fn node(&mut self, node: &'t Node, dot: &ContextName) -> Result<(), GoProblem> {
        match node {
            Node::Text(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_) => Ok(()),
            Node::List(list) => self.list(list, dot),
            Node::Action(action) => self.pipe(&action.pipe, dot).map(drop),
            Node::If(branch) => self.branch(branch, dot, |_| dot.clone()),
            Node::With(branch) => self.branch(branch, dot, |place| place),
            Node::Range(branch) => self.branch(branch, dot, |_| None),
            Node::Template(call) => {
                let given = call.pipe.as_ref().map_or(Ok(None), |pipe| self.pipe(pipe, dot))?;
                let Some(body) = self.tree.defined.get(call.name.as_str()) else {
                    let message = format!("no template `{}` is defined", call.name);
                    return Err(GoProblem { at: call.pos.offset, message });
                };
                let name = call.name.as_str();
                let is_new = |walk: &Self| {
                    walk.open.len() < DEEPEST && walk.entered.len() < MOST_ENTERED && !walk.open.contains(&name)
                };
                if let Some(given) = given
                    && is_new(self)
                    && self.entered.insert((name.to_owned(), given.clone()))
                {
                    self.open.push(name);
                    self.template(body, Some(given))?;
                    self.open.pop();
                }
                Ok(())
            }
        }
    }

    fn branch(
        &mut self,
        branch: &'t BranchNode,
        dot: &ContextName,
        inner: impl FnOnce(ContextName) -> ContextName,
    ) -> Result<(), GoProblem> {
        let outer = self.variables.len();
        let place = self.pipe(&branch.pipe, dot)?;
        self.list(&branch.body, &inner(place))?;
        if let Some(otherwise) = &branch.else_body {
            self.list(otherwise, dot)?;
        }
        self.variables.truncate(outer);
        Ok(())
    }

    fn pipe(&mut self, pipe: &'t PipeNode, dot: &ContextName) -> Result<ContextName, GoProblem> {
        let mut place = None;
        for command in &pipe.commands {
            place = self.command(&command.args, dot)?;
        }
        let place = place.filter(|_| pipe.commands.len() == 1);
        for name in &pipe.decl {
            if pipe.is_assign {
                self.find_variable(name, pipe.pos.offset)?;
            } else {
                // Two variables are those of a `range`, and hold its items.
                let held = place.clone().filter(|_| pipe.decl.len() == 1);
                self.variables.push((name.clone(), held));
            }
        }
        Ok(place)
    }

    fn command(&mut self, arguments: &'t [Expr], dot: &ContextName) -> Result<ContextName, GoProblem> {
        // `index . "a" "b"` reads `a.b`.
        if let [Expr::Identifier(_, name), of, keys @ ..] = arguments
            && name == "index"
            && !keys.is_empty()
        {
            let mut place = self.expression(of, dot)?;
            for key in keys {
                self.expression(key, dot)?;
                place = if let Expr::String(_, key) = key { extend_name(place, [&**key]) } else { None };
                self.note(&place);
            }
            return Ok(place);
        }
        let mut place = None;
        for argument in arguments {
            place = self.expression(argument, dot)?;
        }
        Ok(place.filter(|_| arguments.len() == 1))
    }

    fn expression(&mut self, expression: &'t Expr, dot: &ContextName) -> Result<ContextName, GoProblem> {
        let place = match expression {
            Expr::Dot(_) => return Ok(dot.clone()),
            Expr::Field(_, names) => extend_name(dot.clone(), names.iter().map(SmolStr::as_str)),
            Expr::Variable(at, name, names) => {
                let place = self.find_variable(name, at.offset)?;
                extend_name(place, names.iter().map(SmolStr::as_str))
            }
            Expr::Identifier(at, name) => {
                count_arguments(name).map_err(|message| GoProblem { at: at.offset, message })?;
                None
            }
            Expr::Pipe(_, pipe) => return self.pipe(pipe, dot),
            Expr::Chain(_, of, names) => {
                let place = self.expression(of, dot)?;
                extend_name(place, names.iter().map(SmolStr::as_str))
            }
            Expr::String(..) | Expr::Number(..) | Expr::Bool(..) | Expr::Nil(_) => None,
        };
        self.note(&place);
        Ok(place)
    }

    fn note(&mut self, place: &ContextName) {
        self.names.extend(place.clone().filter(|name| !name.is_empty()));
    }

    fn find_variable(&self, name: &str, at: usize) -> Result<ContextName, GoProblem> {
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        let unknown = || GoProblem { at, message: format!("no variable `{name}` is declared here") };
        found.map(|(_, place)| place.clone()).ok_or_else(unknown)
    }
}

/// The name of a value below a place.
pub(super) fn extend_name<'n>(place: ContextName, names: impl IntoIterator<Item = &'n str>) -> ContextName {
    names.into_iter().fold(place, |place, name| {
        let place = place?;
        Some(if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") })
    })
}
