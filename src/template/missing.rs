//! Which names a template truly misses: not the first that failed, and not those that it guards with `default` or
//! `if`. Found by rendering once per candidate with all other candidates filled in; only ever after a failure.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object};
use minijinja::{Error, ErrorKind, State, Value};

use super::Template;

pub(super) fn find(template: &Template, context: &Value) -> Vec<String> {
    let candidates: Vec<String> =
        template.variables().into_iter().filter(|name| is_undefined(context, name)).collect();
    let failure_without = |missing: Option<&String>| {
        let filled = candidates.iter().filter(|name| Some(*name) != missing);
        let paths = filled.map(|name| name.split('.').map(str::to_owned).collect()).collect();
        let context = Value::from_object(Filled { base: context.clone(), paths });
        template.render_raw(&context).err().filter(|error| error.kind() == ErrorKind::UndefinedError)
    };
    // What stays undefined is no name of the context (`{% for tool in tools %}{{ tool.nothing }}`), and fails every
    // trial: then only what a failure names counts.
    let inner = failure_without(None).map(|error| undefined_name(&error));
    let is_missing = |name: &&String| {
        failure_without(Some(*name)).is_some_and(|error| {
            inner.is_none() || undefined_name(&error).is_some_and(|told| is_part(&told, name))
        })
    };
    let names = candidates.iter().filter(is_missing).cloned();
    names.chain(inner.clone().flatten()).collect()
}

/// The name in the words of an error: "`one.two` is undefined".
fn undefined_name(error: &Error) -> Option<String> {
    error.detail()?.strip_prefix('`')?.split_once('`').map(|(name, _)| name.to_owned())
}

/// Whether `name` is `told` or one of its attributes.
fn is_part(told: &str, name: &str) -> bool {
    name.strip_prefix(told).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn is_undefined(context: &Value, name: &str) -> bool {
    let mut value = context.clone();
    for part in name.split('.') {
        value = value.get_attr(part).unwrap_or_default();
        if value.is_undefined() {
            return true;
        }
    }
    false
}

/// A value in which the attributes at `paths` are the empty string.
#[derive(Debug)]
struct Filled {
    base: Value,
    paths: Vec<Vec<String>>,
}

impl Object for Filled {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let inside: Vec<&[String]> = self
            .paths
            .iter()
            .filter(|path| path.first().map(String::as_str) == key.as_str())
            .map(|path| &path[1..])
            .collect();
        let base = self.base.get_item(key).ok().filter(|value| !value.is_undefined());
        let deeper: Vec<Vec<String>> = inside.iter().filter(|p| !p.is_empty()).map(|p| p.to_vec()).collect();
        match base {
            Some(base) if deeper.is_empty() => Some(base),
            None if inside.is_empty() => None,
            None if deeper.is_empty() => Some(Value::from("")),
            base => Some(Value::from_object(Self { base: base.unwrap_or_default(), paths: deeper })),
        }
    }

    /// A method is no attribute, so `datetime.now` is a candidate too; it stays what it is.
    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        self.base.call_method(state, method, arguments)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::NonEnumerable
    }
}
