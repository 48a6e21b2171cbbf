//! Finds all names that a template lacks: more than the first failure, but not those guarded with `default` or
//! `if`. Renders repeatedly with the missing names filled in; used only after a failure.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior, Value};

use super::objects::TemplateClock;
use super::{BoundedOutput, STEPS};

/// The most failures before rendering is abandoned.
const MOST_ROUNDS: usize = 256;
/// The most renderings of a search, and the steps of each.
const MOST_RENDERINGS: usize = 2000;
const STEPS_OF_EACH: u64 = STEPS / 20;

/// `variables` are the names that the template called `name` reads.
pub(super) fn find_missing(
    environment: &Environment<'_>,
    name: &str,
    variables: BTreeSet<String>,
    context: &Value,
) -> Vec<String> {
    let candidates: Vec<String> = variables.into_iter().filter(|name| is_undefined(context, name)).collect();
    let (fills, missing, left) = (Vec::new(), BTreeSet::new(), Cell::new(MOST_RENDERINGS));
    let mut search = MissingSearch { name, context, candidates, fills, missing, left };
    let mut environment = environment.clone();
    environment.set_fuel(Some(STEPS_OF_EACH));
    let stuck = search.fill_in(&environment);
    if let Some(name) = stuck {
        search.missing.insert(name);
        search.pass_over(environment);
    }
    search.missing.into_iter().collect()
}

struct MissingSearch<'t> {
    name: &'t str,
    context: &'t Value,
    /// Names of the context that the template mentions and the context does not define.
    candidates: Vec<String>,
    /// The fillers for names, by path.
    fills: Vec<(Vec<String>, Filler)>,
    missing: BTreeSet<String>,
    /// The number of renderings that are left.
    left: Cell<usize>,
}

/// The end of a rendering.
enum RenderEnd {
    Done,
    /// At the use of this undefined name.
    Undefined(String),
    Otherwise,
}

/// A filler for a missing value; the template decides how it is used.
#[derive(Debug, Clone, Copy)]
enum Filler {
    Anything,
    Number,
    Text,
}

impl MissingSearch<'_> {
    /// Fills in name after name. Returns the name that cannot be filled in because it is not from the context (`{%
    /// for tool in tools %}{{ tool.nothing }}`).
    fn fill_in(&mut self, environment: &Environment<'_>) -> Option<String> {
        for _ in 0..MOST_ROUNDS {
            let name = match self.render(environment) {
                RenderEnd::Done => return None,
                RenderEnd::Undefined(name) => name,
                RenderEnd::Otherwise => match self.fill_otherwise(environment)? {
                    RenderEnd::Undefined(name) => name,
                    _ => return None,
                },
            };
            let missing: Vec<&String> =
                self.candidates.iter().filter(|candidate| is_part(&name, candidate)).collect();
            if missing.is_empty() || self.is_filled(&name) {
                return Some(name);
            }
            self.missing.extend(missing.into_iter().cloned());
            self.fills.push((name.split('.').map(str::to_owned).collect(), Filler::Anything));
        }
        None
    }

    /// Handles a rendering that failed for another reason: perhaps at a filler, where another one may work, or at
    /// an undefined value that the error does not name.
    fn fill_otherwise(&mut self, environment: &Environment<'_>) -> Option<RenderEnd> {
        for at in (0..self.fills.len()).rev() {
            let before = self.fills[at].1;
            if let Some(end) = self.try_fillers(environment, at) {
                return Some(end);
            }
            self.fills[at].1 = before;
        }
        for candidate in self.candidates.clone() {
            self.fills.push((candidate.split('.').map(str::to_owned).collect(), Filler::Anything));
            if let Some(end) = self.try_fillers(environment, self.fills.len() - 1) {
                self.missing.insert(candidate);
                return Some(end);
            }
            self.fills.pop();
        }
        None
    }

    /// Tries one filler after another in a place; `None` if the rendering fails for the same reason with all.
    fn try_fillers(&mut self, environment: &Environment<'_>, at: usize) -> Option<RenderEnd> {
        [Filler::Anything, Filler::Number, Filler::Text].into_iter().find_map(|filler| {
            self.fills[at].1 = filler;
            Some(self.render(environment)).filter(|end| !matches!(end, RenderEnd::Otherwise))
        })
    }

    /// Collects the undefined names that are printed, one more in each round.
    fn pass_over(&mut self, mut environment: Environment<'_>) {
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        for passed in 0..MOST_ROUNDS {
            let left = AtomicUsize::new(passed);
            environment.set_formatter(move |out, state, value| {
                let spent =
                    || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err();
                if value.is_undefined() && spent() {
                    // Fails with an error that names the undefined value.
                    value.get_attr("")?;
                }
                minijinja::escape_formatter(out, state, value)
            });
            match self.render(&environment) {
                RenderEnd::Undefined(name) => self.missing.insert(name),
                _ => return,
            };
        }
    }

    fn render(&self, environment: &Environment<'_>) -> RenderEnd {
        let Some(left) = self.left.get().checked_sub(1) else { return RenderEnd::Done };
        self.left.set(left);
        let context = fill_value(self.context.clone(), self.fills.clone());
        let rendered = environment
            .get_template(self.name)
            .and_then(|template| template.render_captured_to(context, &mut BoundedOutput::default()).map(drop));
        match rendered {
            Ok(()) => RenderEnd::Done,
            Err(error) => undefined_name(&error).map_or(RenderEnd::Otherwise, RenderEnd::Undefined),
        }
    }

    fn is_filled(&self, name: &str) -> bool {
        self.fills.iter().any(|(path, _)| path.iter().map(String::as_str).eq(name.split('.')))
    }
}

/// The name in an error's message: "`one.two` is undefined", or for a function, "one is unknown".
fn undefined_name(error: &Error) -> Option<String> {
    let detail = error.detail()?;
    if error.kind() == ErrorKind::UnknownFunction {
        return detail.strip_suffix(" is unknown").map(str::to_owned);
    }
    let (before, _) = detail.split_once("` is undefined")?;
    before.rsplit_once('`').map(|(_, name)| name.to_owned())
}

/// True if `name` is `told` or one of its attributes.
fn is_part(told: &str, name: &str) -> bool {
    // An item of it is named `one[0]`.
    let told = told.split('[').next().unwrap_or(told);
    name.strip_prefix(told).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn is_undefined(context: &Value, name: &str) -> bool {
    let found = name.split('.').try_fold(context.clone(), |value, part| {
        // What is below a clock is a method.
        let is_clock = value.downcast_object_ref::<TemplateClock>().is_some();
        (!is_clock).then(|| value.get_attr(part).unwrap_or_default())
    });
    found.is_some_and(|value| value.is_undefined())
}

/// `base` with fillers at these paths.
fn fill_value(base: Value, fills: Vec<(Vec<String>, Filler)>) -> Value {
    match fills.iter().find(|(path, _)| path.is_empty()) {
        Some((_, Filler::Anything)) => Value::from_object(Anything),
        Some((_, Filler::Number)) => Value::from(1),
        Some((_, Filler::Text)) => Value::from(""),
        None => Value::from_object(FilledValue { base, fills }),
    }
}

/// A value with fillers below it.
#[derive(Debug)]
struct FilledValue {
    base: Value,
    fills: Vec<(Vec<String>, Filler)>,
}

impl Object for FilledValue {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let here = self.fills.iter().filter(|(path, _)| path.first().map(String::as_str) == key.as_str());
        let inside: Vec<_> = here.map(|(path, filler)| (path[1..].to_vec(), *filler)).collect();
        let base = self.base.get_item(key).ok().filter(|value| !value.is_undefined());
        if inside.is_empty() { base } else { Some(fill_value(base.unwrap_or_default(), inside)) }
    }

    /// A method is not an attribute, so `datetime.now` is a candidate too; it stays as it is.
    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        if self.fills.iter().any(|(path, _)| path.as_slice() == [method]) {
            return Ok(Value::from_object(Anything));
        }
        self.base.call_method(state, method, arguments)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}

/// An empty list that has every attribute, item and method, and can be called.
#[derive(Debug)]
struct Anything;

impl Object for Anything {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, _key: &Value) -> Option<Value> {
        Some(Value::from_object(Self))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }

    fn call(self: &Arc<Self>, _state: &mut State<'_, '_>, _arguments: &[Value]) -> Result<Value, Error> {
        Ok(Value::from_object(Self))
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        _method: &str,
        _arguments: &[Value],
    ) -> Result<Value, Error> {
        Ok(Value::from_object(Self))
    }
}
