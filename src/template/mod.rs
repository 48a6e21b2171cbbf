//! The one door to templates (Jinja): compiled once, rendered in a sandbox; a value is never rendered a second
//! time.
//!
//! The sandbox: fuel bounds loops, the output and single values are bounded (`growth`), files come only from the caller's loader, and the
//! context cannot be dumped. Errors name places and variables, never values.

mod growth;
mod missing;
mod objects;
mod pieces;

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior};
use minijinja_contrib::pycompat;
use serde::Serialize;

pub use minijinja::Value;
pub use objects::{clock, lookup, object};
pub use pieces::{Piece, PieceTemplate};

/// The longest text that a template may produce, in bytes.
pub const LONGEST_OUTPUT: usize = 1024 * 1024;
const FUEL: u64 = 1_000_000;

/// What all templates have in common. A clone shares it.
static GROUND: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    // In debug mode errors name the undefined variable. They also hold values, so only `describe` prints them.
    environment.set_debug(true);
    environment.remove_global("debug");
    environment.set_unknown_method_callback(method);
    growth::bound(&mut environment);
    environment
});

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    name: String,
}

/// The value of an undefined name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undefined {
    /// The empty string: configuration.
    Empty,
    /// An error: prompts and scripts.
    Error,
}

/// A template error with its place. Never holds a rendered value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    pub message: String,
    /// 1-based line in the template, where known.
    pub line: Option<usize>,
    /// 1-based column of that line, in characters, where known.
    pub column: Option<usize>,
    /// The byte range of the template that it concerns, where known.
    pub range: Option<Range<usize>>,
    /// All undefined names that the template needs, if that is the error.
    pub missing: Vec<String>,
}

/// Whether `text` has anything to render. Text without marks need not be compiled.
#[must_use]
pub fn is_template(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// Whether a template may be included by this name: a relative path without `..`.
#[must_use]
pub fn is_safe_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\\', ':', '\0'])
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

impl Template {
    /// Compiles a template that can include no other. Errors refer to it as `name`.
    pub fn compile(name: &str, source: &str, undefined: Undefined) -> Result<Self, TemplateError> {
        Self::compile_with(name, source, undefined, |_| None)
    }

    /// Compiles a template whose `{% include %}`, `{% extends %}` and `{% import %}` ask `loader` for the text of
    /// a name. Names that [`is_safe_name`] rejects never reach it.
    pub fn compile_with(
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
            Ok(source.map(|source| growth::guarded(&source).into_owned()))
        });
        environment
            .add_template_owned(name.to_owned(), growth::guarded(source).into_owned())
            .map_err(|e| TemplateError::from(&e))?;
        Ok(Self { environment, name: name.to_owned() })
    }

    /// Renders with `context` as the top-level names.
    pub fn render(&self, context: &Value) -> Result<String, TemplateError> {
        self.render_raw(context).map_err(|error| {
            let missing = match self.environment.undefined_behavior() {
                UndefinedBehavior::SemiStrict => missing::find(self, context),
                _ => Vec::new(),
            };
            let mut described = TemplateError::from(&error);
            if !missing.is_empty() {
                described.message = format!("nothing defines {}", missing.join(", "));
                described.missing = missing;
            }
            described
        })
    }

    /// The names that the template reads from its context, with dotted attributes: `session.id`, `vars`. Excludes
    /// the names that included templates read.
    #[must_use]
    pub fn variables(&self) -> BTreeSet<String> {
        let template = self.environment.get_template(&self.name).expect("compiled under this name");
        let globals: BTreeSet<&str> = self.environment.globals().map(|(name, _)| name).collect();
        let names = template.undeclared_variables(true);
        names.into_iter().filter(|name| !globals.contains(name.as_str())).collect()
    }

    fn render_raw(&self, context: &Value) -> Result<String, Error> {
        let template = self.environment.get_template(&self.name)?;
        let mut output = Bounded(Vec::new());
        growth::begin();
        template.render_captured_to(context, &mut output)?;
        String::from_utf8(output.0).map_err(|_| Error::new(ErrorKind::BadEscape, "the result is not Unicode"))
    }
}

/// The methods that Python has. In configuration an unset variable is the empty string, so it has the methods of a
/// string: `env.NAMES.split(',')`.
fn method(state: &mut State<'_, '_>, value: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    growth::check_method(value, name, arguments)?;
    if value.is_undefined() && state.undefined_behavior() == UndefinedBehavior::Chainable {
        return pycompat::unknown_method_callback(state, &Value::from(""), name, arguments);
    }
    pycompat::unknown_method_callback(state, value, name, arguments)
}

struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST_OUTPUT {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<&Error> for TemplateError {
    fn from(error: &Error) -> Self {
        let mut message = describe(error);
        let mut source = std::error::Error::source(error);
        while let Some(inner) = source.and_then(|source| source.downcast_ref::<Error>()) {
            let name = inner.name().unwrap_or("?");
            message = format!("{message}: {} (in {name}:{})", describe(inner), inner.line().unwrap_or(0));
            source = std::error::Error::source(inner);
        }
        let written = |end: usize| Some(growth::as_written(error.template_source()?.get(..end)?));
        let range = error.range().and_then(|range| Some(written(range.start)?.len()..written(range.end)?.len()));
        let before = range.as_ref().and_then(|_| written(error.range()?.start));
        let column = before.map(|before| before.chars().rev().take_while(|c| *c != '\n').count() + 1);
        Self { message, line: error.line(), column, range, missing: Vec::new() }
    }
}

fn describe(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "it runs too long".to_owned(),
        (ErrorKind::WriteFailure, _) => format!("its result is longer than {} KiB", LONGEST_OUTPUT / 1024),
        (ErrorKind::UnknownFunction, Some(detail)) => format!("unknown function: {detail}"),
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    }
}

/// Whether a value has named attributes.
#[must_use]
pub fn is_mapping(value: &Value) -> bool {
    value.kind() == ValueKind::Map
}

/// Converts a serialisable value for a template.
pub fn value<T: Serialize>(value: &T) -> Value {
    Value::from(minijinja::value::Serde(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Template, Undefined, Value, clock, is_safe_name, is_template, lookup, object, value};

    fn context() -> Value {
        let env = lookup(vec!["HOME".to_owned()], |name| match name {
            "NAMES" => Some("a,b".to_owned()),
            "HOME" => Some("/home/u".to_owned()),
            _ => None,
        });
        let now = "2026-01-02T03:04:05+02:00[+02:00]".parse().expect("a moment");
        let session = value(&json!({"id": "s1", "user": {"name": "Ann"}}));
        object([("env", env), ("datetime", clock(now)), ("session", session), ("raw", "{{ env.HOME }}".into())])
    }

    #[test]
    fn what_templates_give() {
        let table = [
            ("{{ env.HOME }}|{{ env.NOPE }}|{{ env.NOPE | default('x') }}|{{ env }}", "/home/u||x|{}"),
            ("{% for n in env.NAMES.split(',') %}<{{ n }}>{% endfor %}", "<a><b>"),
            ("{% for n in env.NOPE.split(',') if n %}<{{ n }}>{% endfor %}", ""),
            ("{{ datetime.now().strftime('%Y-%m-%d %H:%M:%S') }}", "2026-01-02 03:04:05"),
            ("{{ datetime.now().isoformat() }} {{ datetime.now().year }}", "2026-01-02T03:04:05+02:00 2026"),
            ("{% for n in [1,2,3] %}{% if n == 2 %}{% break %}{% endif %}{{ n }}{% endfor %}", "1"),
            ("{{ raw }}", "{{ env.HOME }}"),
            ("{% for name, value in env.items() %}{{ name }}={{ value }}{% endfor %}", "HOME=/home/u"),
            ("{{ env | length }}{% for name in env %}<{{ name }}>{% endfor %}", "1<HOME>"),
            ("<{{ '&' }}>", "<&>"),
            ("{{ session.user.name.upper() }}{{ nothing.at.all }}", "ANN"),
        ];
        for (source, expected) in table {
            let template = Template::compile("t.html", source, Undefined::Empty).expect(source);
            assert_eq!(template.render(&context()).expect(source), expected);
        }
    }

    #[test]
    fn all_missing_names_are_told_and_guarded_ones_are_not() {
        let source = "{{ session.id }}{{ one }}{{ session.user.age }}{{ two | default('') }}\
                      {% if three %}x{% endif %}{{ env.KEY }}{% for x in range(2) %}{{ x }}{% endfor %}";
        let template = Template::compile("t", source, Undefined::Error).expect("valid");
        let error = template.render(&context()).expect_err("three are missing");
        assert_eq!(error.missing, ["env.KEY", "one", "session.user.age"]);
        assert_eq!(error.message, "nothing defines env.KEY, one, session.user.age");

        let beside_a_method = "{{ datetime.now().year }}{{ one }}{{ session.two }}";
        let template = Template::compile("t", beside_a_method, Undefined::Error).expect("valid");
        assert_eq!(template.render(&context()).expect_err("two are missing").missing, ["one", "session.two"]);

        let inside = "{{ one }}{{ datetime.now().year }}{% for x in [{}] %}{{ x.y }}{% endfor %}";
        let template = Template::compile("t", inside, Undefined::Error).expect("valid");
        assert_eq!(template.render(&context()).expect_err("two are missing").missing, ["one", "x.y"]);
    }

    #[test]
    fn one_error_hides_no_other_missing_name() {
        let both = ["one", "two"].as_slice();
        for (source, expected) in [
            ("{{ one | upper }}{{ two }}", both),
            ("{{ one + 1 }}{{ two }}", both),
            ("{{ 1 + one }}{{ two * 2 }}{{ session.id }}", both),
            ("{{ one | round }}{{ two }}", both),
            ("{% for x in one %}{{ x }}{% endfor %}{{ two }}", both),
            ("{{ one | join(',') }}{{ two + 1 }}", &["two"]),
            ("{{ one() }}{{ two }}", both),
            ("{{ one[0] }}{{ two }}", both),
            ("{{ 'a' ~ one }}{{ two }}", both),
            ("{% set x = one %}{{ x }}{{ two }}", both),
            ("{{ one.a.b }}{{ two }}", &["one.a.b", "two"]),
            ("{{ one.a() }}{{ two }}", &["one.a", "two"]),
            ("{{ two }}{{ session.id + 1 }}", &["two"]),
            ("{% for x in [{}] %}{{ x.a }}{{ x.b }}{% endfor %}{{ two }}", &["two", "x.a", "x.b"]),
        ] {
            let template = Template::compile("t", source, Undefined::Error).expect("valid");
            let error = template.render(&context()).expect_err("names are missing");
            assert_eq!(error.missing, expected, "{source}: {error}");
        }
    }

    #[test]
    fn the_sandbox_holds() {
        let table = [
            ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "it runs too long"),
            ("{% for a in range(9999) %}{{ 'x' * 1000 }}{% endfor %}", "its result is longer than 1024 KiB"),
            ("{{ debug() }}", "unknown function: debug is unknown"),
            ("{% include '../secret' %}", "tried to include non-existing template '../secret'"),
            ("{{ datetime.now().strftime('%Q%') }}", "`%Q%` is no format for a time"),
        ];
        for (source, expected) in table {
            let template =
                Template::compile_with("t", source, Undefined::Empty, |_| Some("leak".to_owned())).expect(source);
            let error = template.render(&context()).expect_err(source);
            assert_eq!(error.message, expected);
        }
        assert!(is_safe_name("a/b.j2") && !is_safe_name("/a") && !is_safe_name("a/../b") && !is_safe_name(""));
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let error = Template::compile("t", "one\n{{ two + }}", Undefined::Empty).expect_err("not an expression");
        assert_eq!((error.line, error.column), (Some(2), Some(10)));
        assert!(is_template("a {# b #}") && !is_template("a { b } {"));
    }

    #[test]
    fn included_templates_come_from_the_loader_alone() {
        let loader = |name: &str| (name == "part.j2").then(|| "[{{ session.id }}{{ x.y.z() }}]".to_owned());
        let template =
            Template::compile_with("t", "{% include 'part.j2' %}", Undefined::Empty, loader).expect("ok");
        let error = template.render(&context()).expect_err("no such method");
        assert!(error.message.contains("(in part.j2:1)"), "{}", error.message);
        assert_eq!(template.variables().len(), 0);
    }
}
