//! Walks a template without rendering it: finds the names that it reads from its context, and functions, variables and
//! templates that do not exist.

use std::collections::BTreeSet;

use gotmpl::parse::{BranchNode, Expr, ListNode, Node, PipeNode, SmolStr};

use super::functions::arguments;
use super::{Problem, Tree};

/// The names that the template reads, with dots: `user.name`.
pub(super) fn read(tree: &Tree) -> Result<BTreeSet<String>, Problem> {
    let mut walk =
        Walk { tree, names: BTreeSet::new(), variables: Vec::new(), entered: BTreeSet::new(), open: Vec::new() };
    walk.template(&tree.root, Some(String::new()))?;
    for body in tree.defined.values() {
        walk.template(body, None)?;
    }
    Ok(walk.names)
}

/// The name of a value in the context: an empty text for the context itself, `None` for a value without a name there.
type Place = Option<String>;

struct Walk<'t> {
    tree: &'t Tree,
    names: BTreeSet<String>,
    variables: Vec<(SmolStr, Place)>,
    /// The templates that were entered, with the names of their arguments.
    entered: BTreeSet<(String, String)>,
    /// The templates that the walk is in: one that calls itself reads the same names below any depth.
    open: Vec<&'t str>,
}

/// The depth to which the walk enters templates that call others, and the most that it enters.
const DEEPEST: usize = 20;
const MOST_ENTERED: usize = 1000;

impl<'t> Walk<'t> {
    fn template(&mut self, body: &'t ListNode, dot: Place) -> Result<(), Problem> {
        let outer = std::mem::replace(&mut self.variables, vec![(SmolStr::new_static("$"), dot.clone())]);
        let done = self.list(body, &dot);
        self.variables = outer;
        done
    }

    fn list(&mut self, list: &'t ListNode, dot: &Place) -> Result<(), Problem> {
        list.nodes.iter().try_for_each(|node| self.node(node, dot))
    }

    fn node(&mut self, node: &'t Node, dot: &Place) -> Result<(), Problem> {
        match node {
            Node::Text(_) | Node::Define(_) | Node::Break(_) | Node::Continue(_) => Ok(()),
            Node::List(list) => self.list(list, dot),
            Node::Action(action) => self.pipe(&action.pipe, dot).map(drop),
            Node::If(branch) => self.branch(branch, dot, |_| dot.clone()),
            Node::With(branch) => self.branch(branch, dot, |place| place),
            Node::Range(branch) => self.branch(branch, dot, |_| None),
            Node::Template(call) => {
                let given = match &call.pipe {
                    Some(pipe) => self.pipe(pipe, dot)?,
                    None => None,
                };
                let Some(body) = self.tree.defined.get(call.name.as_str()) else {
                    let message = format!("no template `{}` is defined", call.name);
                    return Err(Problem { at: call.pos.offset, message });
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
        dot: &Place,
        inner: impl FnOnce(Place) -> Place,
    ) -> Result<(), Problem> {
        let outer = self.variables.len();
        let place = self.pipe(&branch.pipe, dot)?;
        self.list(&branch.body, &inner(place))?;
        if let Some(otherwise) = &branch.else_body {
            self.list(otherwise, dot)?;
        }
        self.variables.truncate(outer);
        Ok(())
    }

    fn pipe(&mut self, pipe: &'t PipeNode, dot: &Place) -> Result<Place, Problem> {
        let mut place = None;
        for command in &pipe.commands {
            place = self.command(&command.args, dot)?;
        }
        if pipe.commands.len() > 1 {
            place = None;
        }
        for name in &pipe.decl {
            if pipe.is_assign {
                self.known(name, pipe.pos.offset)?;
            } else {
                // Two variables are those of a `range`, and hold its items.
                let held = place.clone().filter(|_| pipe.decl.len() == 1);
                self.variables.push((name.clone(), held));
            }
        }
        Ok(place)
    }

    fn command(&mut self, arguments: &'t [Expr], dot: &Place) -> Result<Place, Problem> {
        // `index . "a" "b"` reads `a.b`.
        if let [Expr::Identifier(_, name), of, keys @ ..] = arguments
            && name == "index"
            && !keys.is_empty()
        {
            let mut place = self.expression(of, dot)?;
            for key in keys {
                self.expression(key, dot)?;
                place = match key {
                    Expr::String(_, key) => below(place, [&**key]),
                    _ => None,
                };
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

    fn expression(&mut self, expression: &'t Expr, dot: &Place) -> Result<Place, Problem> {
        let place = match expression {
            Expr::Dot(_) => return Ok(dot.clone()),
            Expr::Field(_, names) => below(dot.clone(), names.iter().map(SmolStr::as_str)),
            Expr::Variable(at, name, names) => {
                let place = self.known(name, at.offset)?;
                below(place, names.iter().map(SmolStr::as_str))
            }
            Expr::Identifier(at, name) => {
                arguments(name).map_err(|message| Problem { at: at.offset, message })?;
                None
            }
            Expr::Pipe(_, pipe) => return self.pipe(pipe, dot),
            Expr::Chain(_, of, names) => {
                let place = self.expression(of, dot)?;
                below(place, names.iter().map(SmolStr::as_str))
            }
            Expr::String(..) | Expr::Number(..) | Expr::Bool(..) | Expr::Nil(_) => None,
        };
        self.note(&place);
        Ok(place)
    }

    fn note(&mut self, place: &Place) {
        self.names.extend(place.clone().filter(|name| !name.is_empty()));
    }

    fn known(&self, name: &str, at: usize) -> Result<Place, Problem> {
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        let unknown = || Problem { at, message: format!("no variable `{name}` is declared here") };
        found.map(|(_, place)| place.clone()).ok_or_else(unknown)
    }
}

/// The name of a value below a place.
pub(super) fn below<'n>(place: Place, names: impl IntoIterator<Item = &'n str>) -> Place {
    names.into_iter().fold(place, |place, name| {
        let place = place?;
        Some(if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") })
    })
}
