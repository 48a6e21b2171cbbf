//! The values of expressions and of functions' calls.

use gotmpl::parse::{CommandNode, Expr, Number, PipeNode, SmolStr};
use minijinja::Value;

use super::run::{GoOutcome, GoRun, Leave, NamedValue, leave_with_error};
use super::values::{estimate_size, is_list, is_map, is_true, type_name};
use super::{GoProblem, functions};
use crate::template::LONGEST_OUTPUT;

/// The most bytes of all values that functions make.
const MOST_MADE: usize = 64 * LONGEST_OUTPUT;

impl<'t> GoRun<'t> {
    pub(super) fn pipe(&mut self, pipe: &'t PipeNode, dot: &NamedValue) -> GoOutcome<NamedValue> {
        let value = self.commands(pipe, dot)?;
        match pipe.decl.as_slice() {
            [] => {}
            [name] => self.bind(name, value.clone(), pipe.is_assign),
            _ => return Err(leave_with_error(pipe.pos.offset, "only a `range` has two variables")),
        }
        Ok(value)
    }

    pub(super) fn commands(&mut self, pipe: &'t PipeNode, dot: &NamedValue) -> GoOutcome<NamedValue> {
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(command, value, dot)?);
        }
        value.ok_or_else(|| leave_with_error(pipe.pos.offset, "there is no value here"))
    }

    fn command(
        &mut self,
        command: &'t CommandNode,
        piped: Option<NamedValue>,
        dot: &NamedValue,
    ) -> GoOutcome<NamedValue> {
        let at = command.pos.offset;
        self.step(at, 0)?;
        let Some((first, rest)) = command.args.split_first() else {
            return Err(leave_with_error(at, "there is no value here"));
        };
        match first {
            Expr::Identifier(_, name) => self.call(name, at, rest, piped, dot).map(NamedValue::unnamed),
            Expr::Chain(place, inner, names) if let Expr::Identifier(_, name) = &**inner => {
                let value = self.call(name, at, rest, piped, dot)?;
                self.fields(NamedValue::unnamed(value), names, place.offset)
            }
            _ if piped.is_some() || !rest.is_empty() => {
                Err(leave_with_error(at, "only a function takes arguments, and this is none"))
            }
            Expr::Nil(_) => Err(leave_with_error(at, "`nil` alone is not a value to show")),
            _ => self.expression(first, dot),
        }
    }

    fn call(
        &mut self,
        name: &str,
        at: usize,
        arguments: &'t [Expr],
        piped: Option<NamedValue>,
        dot: &NamedValue,
    ) -> GoOutcome<Value> {
        if let "and" | "or" = name {
            return self.first_that(name == "or", at, arguments, piped, dot);
        }
        let mut given = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            given.push(self.expression(argument, dot)?.value);
        }
        given.extend(piped.map(|piped| piped.value));
        self.step(at, given.iter().map(estimate_size).sum())?;
        let value = functions::call_function(name, &given).map_err(|message| leave_with_error(at, message))?;
        self.made += if name == "index" { 0 } else { estimate_size(&value) };
        if self.made > MOST_MADE {
            let message = format!("its values take more than {} MiB", MOST_MADE / LONGEST_OUTPUT);
            return Err(Leave::Bound(GoProblem { at, message }));
        }
        Ok(value)
    }

    /// `and` and `or`: the first argument that decides, or else the last.
    fn first_that(
        &mut self,
        decides: bool,
        at: usize,
        arguments: &'t [Expr],
        piped: Option<NamedValue>,
        dot: &NamedValue,
    ) -> GoOutcome<Value> {
        let mut last = None;
        for argument in arguments {
            let value = self.expression(argument, dot)?.value;
            if is_true(&value) == decides {
                return Ok(value);
            }
            last = Some(value);
        }
        let last = piped.map(|piped| piped.value).or(last);
        last.ok_or_else(|| leave_with_error(at, "`and` and `or` take at least 1 argument, not 0"))
    }

    fn expression(&mut self, expression: &'t Expr, dot: &NamedValue) -> GoOutcome<NamedValue> {
        Ok(match expression {
            Expr::Dot(_) => dot.clone(),
            Expr::Field(at, names) => self.fields(dot.clone(), names, at.offset)?,
            Expr::Variable(at, name, names) => {
                let unknown = || leave_with_error(at.offset, format!("no variable `{name}` is declared here"));
                let mut newest_first = self.variables.iter().rev();
                let (_, held) = newest_first.find(|(known, _)| known == name).ok_or_else(unknown)?;
                self.fields(held.clone(), names, at.offset)?
            }
            Expr::Identifier(at, name) => NamedValue::unnamed(self.call(name, at.offset, &[], None, dot)?),
            Expr::Pipe(_, pipe) => self.pipe(pipe, dot)?,
            Expr::Chain(at, of, names) => {
                let value = self.expression(of, dot)?;
                self.fields(value, names, at.offset)?
            }
            Expr::String(_, text) => NamedValue::unnamed(Value::from(&**text)),
            Expr::Number(_, Number::Int(number)) => NamedValue::unnamed((*number).into()),
            Expr::Number(_, Number::Float(number)) => NamedValue::unnamed((*number).into()),
            Expr::Number(at, Number::Uint(number)) => {
                return Err(leave_with_error(at.offset, format!("{number} is too large for a number")));
            }
            Expr::Bool(_, value) => NamedValue::unnamed((*value).into()),
            Expr::Nil(_) => NamedValue::unnamed(Value::from(())),
        })
    }

    fn fields(&mut self, of: NamedValue, names: &[SmolStr], at: usize) -> GoOutcome<NamedValue> {
        let mut value = of.value.clone();
        for name in names {
            if value.is_none() {
                return Err(leave_with_error(at, format!("`{}` is nil up to `.{name}`", of.name_below(names))));
            }
            let is_text_or_number = !is_map(&value) && value.as_object().is_none() && !value.is_undefined();
            if is_text_or_number || is_list(&value) {
                let message = format!("a value of type {} has no field `{name}`", type_name(&value));
                return Err(leave_with_error(at, message));
            }
            value = value.get_attr(name).unwrap_or_default();
        }
        if names.is_empty() {
            return Ok(of);
        }
        if value.is_undefined() && self.is_strict {
            if self.missing.is_empty() {
                self.first = at;
            }
            self.missing.insert(of.name_below(names));
        }
        let name = of.name.is_some().then(|| of.name_below(names).into());
        Ok(NamedValue { value, name })
    }
}
