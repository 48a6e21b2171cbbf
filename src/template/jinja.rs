//! Jinja: compiled and rendered by minijinja, in the one environment that everything shares.

use std::collections::BTreeSet;
use std::io;
use std::sync::LazyLock;

use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value, tests};
use minijinja_contrib::pycompat;
use serde::Serialize;
use serde_json::ser::Formatter;

use super::error::{TemplateError, cut_excerpt};
use super::nesting::check_nesting;
use super::{BoundedOutput, STEPS, Undefined, is_safe_name, methods, missing, too_long, too_many_steps};

/// The depth to which blocks, macros and includes may be nested; a macro counts for four, an include for ten.
const DEEPEST: usize = 120;
/// The bytes of a text that are read in a step.
const BYTES_A_STEP: u64 = 16;

/// The environment of all templates. Clones share it.
pub(super) static GROUND: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(STEPS));
    // In debug mode errors name the undefined variable. They also contain values, so only `describe` prints them.
    environment.set_debug(true);
    environment.remove_global("debug");
    environment.set_unknown_method_callback(call_method);
    environment.set_recursion_limit(DEEPEST);
    environment
        .add_filter("count", |state: &mut State<'_, '_>, value: Value| state.apply_filter("length", &[value]));
    environment.add_filter("json", |state: &mut State<'_, '_>, value: Value| {
        let mut text = Vec::new();
        let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, SpacedJson));
        let text = written.map(|()| String::from_utf8_lossy(&text).into_owned());
        let text = text
            .map_err(|error| Error::new(ErrorKind::BadSerialization, format!("the value is not data: {error}")))?;
        state.consume_fuel(text.len() as u64 / BYTES_A_STEP).map(|()| text)
    });
    // The engine reads the whole text for these two without counting it.
    for (name, is_so) in [("lower", tests::is_lower as fn(&Value) -> bool), ("upper", tests::is_upper)] {
        environment.add_test(name, move |state: &State<'_, '_>, value: Value| {
            let bytes = value.as_str().map_or(0, str::len);
            state.consume_fuel(bytes as u64 / BYTES_A_STEP).map(|()| is_so(&value))
        });
    }
    environment
});

/// JSON on one line with spaces, as in prompts and in Python.
struct SpacedJson;

impl Formatter for SpacedJson {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.begin_array_value(out, is_first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

/// A compiled Jinja template.
#[derive(Debug)]
pub(super) struct Jinja {
    pub(super) environment: Environment<'static>,
    pub(super) name: String,
    /// True if nothing in it can run away.
    pub(super) is_plain: bool,
}

impl Jinja {
    pub(super) fn compile(
        name: &str,
        source: &str,
        undefined: Undefined,
        loader: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, TemplateError> {
        let is_plain = check_nesting(source)?;
        Self::compile_trusted(name, source, undefined, loader).map(|jinja| Self { is_plain, ..jinja })
    }

    /// Compiles a template whose nesting is known to be harmless.
    pub(super) fn compile_trusted(
        name: &str,
        source: &str,
        undefined: Undefined,
        loader: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, TemplateError> {
        let mut environment = GROUND.clone();
        environment.set_undefined_behavior(match undefined {
            Undefined::Empty => UndefinedBehavior::Chainable,
            Undefined::Error => UndefinedBehavior::SemiStrict,
        });
        environment.set_loader(move |name| {
            let source = Some(name).filter(|name| is_safe_name(name)).and_then(&loader);
            let Some(source) = source else { return Ok(None) };
            let checked = check_nesting(&source).map(|_| Some(source));
            checked.map_err(|error| Error::new(ErrorKind::SyntaxError, error.message))
        });
        let added = environment.add_template_owned(name.to_owned(), source.to_owned());
        added.map_err(|error| word_error(&error))?;
        Ok(Self { environment, name: name.to_owned(), is_plain: true })
    }

    pub(super) fn render(&self, context: &Value) -> Result<String, TemplateError> {
        self.render_raw(context).map_err(|error| {
            let missing = match self.environment.undefined_behavior() {
                UndefinedBehavior::SemiStrict => {
                    missing::find_missing(&self.environment, &self.name, self.variables(), context)
                }
                _ => Vec::new(),
            };
            let told = word_error(&error);
            let error = match error.name().filter(|name| *name != self.name) {
                Some(included) => told.in_included(included),
                None => told,
            };
            if missing.is_empty() { error } else { error.add_missing(missing) }
        })
    }

    pub(super) fn variables(&self) -> BTreeSet<String> {
        let template = self.environment.get_template(&self.name).expect("compiled under this name");
        without_globals(&self.environment, template.undeclared_variables(true))
    }

    fn render_raw(&self, context: &Value) -> Result<String, Error> {
        let template = self.environment.get_template(&self.name)?;
        let mut output = BoundedOutput::default();
        template.render_captured_to(context, &mut output)?;
        String::from_utf8(output.0).map_err(|_| Error::new(ErrorKind::BadEscape, "the result is not Unicode"))
    }
}

/// The names that come from a context.
pub(super) fn without_globals(
    environment: &Environment<'_>,
    names: impl IntoIterator<Item = String>,
) -> BTreeSet<String> {
    let globals: BTreeSet<&str> = environment.globals().map(|(name, _)| name).collect();
    names.into_iter().filter(|name| !globals.contains(name.as_str())).collect()
}

/// The methods that Python has. In configuration an unset variable is the empty string, so it has the methods of a
/// string: `env.NAMES.split(',')`.
fn call_method(state: &mut State<'_, '_>, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    let empty = Value::from("");
    let is_text = value.is_undefined() && state.undefined_behavior() == UndefinedBehavior::Chainable;
    let value = if is_text { &empty } else { value };
    if let Some(found) = value.as_str().and_then(|text| methods::call_method(text, name, arguments)) {
        return found;
    }
    pycompat::unknown_method_callback(state, value, name, arguments)
}

/// The engine's error in our words, with its place.
pub(super) fn word_error(error: &Error) -> TemplateError {
    let mut message = describe_error(error);
    let mut innermost = None;
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause.and_then(|cause| cause.downcast_ref::<Error>()) {
        innermost = Some(inner);
        cause = std::error::Error::source(inner);
    }
    if let Some(inner) = innermost {
        let name = inner.name().unwrap_or("?");
        message = format!("{message}: {} (in {name}:{})", describe_error(inner), inner.line().unwrap_or(0));
    }
    let (line, range) = (error.line(), error.range());
    let before = range.as_ref().and_then(|range| error.template_source()?.get(..range.start));
    let column = before.map(|before| before.chars().rev().take_while(|c| *c != '\n').count() + 1);
    let excerpt =
        error.template_source().zip(line).and_then(|(whole, line)| cut_excerpt(whole, line, column.unwrap_or(1)));
    TemplateError { line, column, range, excerpt, ..TemplateError::new(message) }
}

fn describe_error(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => too_many_steps(),
        (ErrorKind::WriteFailure, _) => too_long(),
        (ErrorKind::UnknownFunction, Some(detail)) => format!("unknown function: {detail}"),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    }
}
