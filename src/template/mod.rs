//! The only entry to templates, in three syntaxes: compiled once, rendered in a sandbox; a value is never rendered a
//! second time.
//!
//! The sandbox: steps are counted, and with them the bytes and items that they make or visit; the output is limited,
//! files come only from the caller's loader, and the context cannot be dumped. Errors name places and variables, never
//! values.
//!
//! To add:
//! - a form of a template syntax: one file in `tests/template_cases/SYNTAX/`; `BLESS=1` writes docs/templates.md.

mod error;
mod objects;
mod guard;
mod nesting;
mod methods;
mod missing;
mod jinja;
mod python;
mod fstring;
mod go;
mod pieces;
mod expression;
mod filling;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "the process that renders apart is on Linux alone")
)]
mod apart;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use guard::{FileLoader, OrderForm, RenderGuard};

#[cfg(target_os = "linux")]
pub use apart::{OrderQuestion, serve_order};
pub use error::TemplateError;
pub use expression::Expression;
pub use filling::Filling;
#[cfg(target_os = "linux")]
pub use guard::render_apart_with;
pub use minijinja::Value;
pub use objects::{layer_values, make_clock, make_lookup, make_object};
pub use pieces::{PieceTemplate, RenderedPiece};

/// The longest text that a template may produce, in bytes.
pub const LONGEST_OUTPUT: usize = 1024 * 1024;
/// The most steps of a rendering: an instruction of Jinja, an action or a call of a Go template.
const STEPS: u64 = 1_000_000;
/// The depth to which lists and maps may be nested, and the blocks of a Go template.
const DEEPEST: usize = 100;
/// The most items of a list.
const MOST_ITEMS: usize = 100_000;

/// The syntax of a template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// `{{ name }}`, as in Jinja2.
    #[default]
    Jinja,
    /// `{name}`, as in Python's `str.format`.
    FString,
    /// `{{.name}}`, as in Go's `text/template`.
    GoTemplate,
}

impl Syntax {
    /// Every syntax by its name.
    pub const NAMES: [(&str, Self); 3] =
        [("jinja", Self::Jinja), ("fstring", Self::FString), ("gotemplate", Self::GoTemplate)];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, syntax)| *syntax == self).map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Syntax {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, syntax)| *syntax);
        found.ok_or_else(|| {
            format!("`{name}` is not a syntax of templates; there are jinja, fstring and gotemplate")
        })
    }
}

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    body: TemplateBody,
    guard: RenderGuard,
}

#[derive(Debug)]
enum TemplateBody {
    Jinja(Box<jinja::Jinja>),
    FString(fstring::FString),
    Go(Box<go::GoTemplate>),
}

/// The value of an undefined name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Undefined {
    /// The empty string: configuration.
    Empty,
    /// An error: prompts and scripts.
    #[default]
    Error,
}

/// True if `text` has anything to render. Text without marks need not be compiled.
pub fn is_template(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// A template that gives this text back.
pub fn escape_text(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, marks) = rest.split_at(at);
        let after = marks.trim_start_matches('{');
        let braces = &marks[..marks.len() - after.len()];
        // One at the end could meet those of a variable.
        let is_plain = braces.len() == 1 && after.starts_with(|c| !matches!(c, '%' | '#'));
        out += before;
        if is_plain {
            out += braces;
        } else {
            out.extend(["{{ \"", braces, "\" }}"]);
        }
        rest = after;
    }
    out + rest
}

/// True if a template may be included by this name: a relative path without `..`.
pub fn is_safe_name(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\\', ':', '\0'])
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

impl Template {
    /// Compiles a Jinja template that can include no other. Errors refer to it as `name`.
    pub fn compile(name: &str, source: &str, undefined: Undefined) -> Result<Self, TemplateError> {
        Self::compile_with(name, source, undefined, |_| None)
    }

    /// Compiles a template of any syntax that can include no other. Errors refer to it as `name`.
    pub fn compile_as(
        syntax: Syntax,
        name: &str,
        source: &str,
        undefined: Undefined,
    ) -> Result<Self, TemplateError> {
        let (body, is_plain) = match syntax {
            Syntax::Jinja => return Self::compile(name, source, undefined),
            Syntax::FString => (TemplateBody::FString(fstring::FString::compile(source, undefined)?), true),
            Syntax::GoTemplate => {
                let is_plain = !["range", "define", "block", "template"].iter().any(|word| source.contains(word));
                (TemplateBody::Go(Box::new(go::GoTemplate::compile(source, undefined)?)), is_plain)
            }
        };
        let apart = || RenderGuard::apart(OrderForm::Text, syntax, name, source, undefined);
        Ok(Self { body, guard: if is_plain { RenderGuard::here() } else { apart() } })
    }

    /// Compiles a Jinja template whose `{% include %}`, `{% extends %}` and `{% import %}` ask `loader` for the text
    /// of a name. Names that [`is_safe_name`] rejects never reach it.
    pub fn compile_with(
        name: &str,
        source: &str,
        undefined: Undefined,
        loader: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, TemplateError> {
        let loader: FileLoader = Arc::new(loader);
        let load = Arc::clone(&loader);
        let jinja = jinja::Jinja::compile(name, source, undefined, move |name| load(name))?;
        let apart =
            || RenderGuard::apart(OrderForm::Text, Syntax::Jinja, name, source, undefined).with_loader(loader);
        let guard = if jinja.is_plain { RenderGuard::here() } else { apart() };
        Ok(Self { body: TemplateBody::Jinja(Box::new(jinja)), guard })
    }

    /// Compiles a Jinja template that the program brings along: nothing in it is checked, and it is rendered in this
    /// process.
    pub fn compile_trusted(name: &str, source: &str) -> Result<Self, TemplateError> {
        let jinja = jinja::Jinja::compile_trusted(name, source, Undefined::Error, |_| None)?;
        Ok(Self { body: TemplateBody::Jinja(Box::new(jinja)), guard: RenderGuard::here() })
    }

    /// Renders with `context` as the top-level names.
    pub fn render(&self, context: &Value) -> Result<String, TemplateError> {
        let here = || match &self.body {
            TemplateBody::Jinja(jinja) => jinja.render(context),
            TemplateBody::FString(fstring) => fstring.render(context),
            TemplateBody::Go(go) => go.render(context),
        };
        self.guard.render(context, here, take_text)
    }

    /// The names that the template reads from its context, with dotted attributes: `session.id`, `vars`. Excludes
    /// the names that included templates read.
    pub fn variables(&self) -> BTreeSet<String> {
        match &self.body {
            TemplateBody::Jinja(jinja) => jinja.variables(),
            TemplateBody::FString(fstring) => fstring.variables(),
            TemplateBody::Go(go) => go.variables(),
        }
    }
}

/// The text that was rendered apart.
fn take_text(value: Option<Json>) -> String {
    value.and_then(|value| if let Json::String(text) = value { Some(text) } else { None }).unwrap_or_default()
}

/// The output, up to [`LONGEST_OUTPUT`] bytes.
#[derive(Debug, Default)]
struct BoundedOutput(Vec<u8>);

impl io::Write for BoundedOutput {
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

fn too_long() -> String {
    format!("its result is longer than {} KiB", LONGEST_OUTPUT / 1024)
}

fn value_too_long() -> String {
    format!("a value is longer than {} KiB", LONGEST_OUTPUT / 1024)
}

fn too_many_steps() -> String {
    "it runs too long".to_owned()
}

/// Converts a serialisable value for a template.
pub fn convert_value<T: Serialize>(value: &T) -> Value {
    Value::from(minijinja::value::Serde(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        Syntax, Template, Undefined, Value, convert_value, is_safe_name, is_template, make_clock, make_lookup,
        make_object,
    };

    fn context() -> Value {
        let env = make_lookup(vec!["HOME".to_owned()], |name| match name {
            "NAMES" => Some("a,b".to_owned()),
            "HOME" => Some("/home/u".to_owned()),
            _ => None,
        });
        let now = "2026-01-02T03:04:05+02:00[+02:00]".parse().expect("a moment");
        let session = convert_value(&json!({"id": "s1", "user": {"name": "Ann"}}));
        make_object([
            ("env", env),
            ("datetime", make_clock(now)),
            ("session", session),
            ("raw", "{{ env.HOME }}".into()),
        ])
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
            ("{{ one | join(',') }}{{ two + 1 }}", both),
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
    fn many_missing_names_are_all_told() {
        let source: Vec<String> = (0..150).map(|number| format!("{{{{ name{number} | upper }}}}")).collect();
        let source = source.concat();
        let template = Template::compile("t", &source, Undefined::Error).expect("valid");
        assert_eq!(template.render(&context()).expect_err("all are missing").missing.len(), 150);
    }

    #[test]
    fn defaults_stand_in_for_what_is_missing() {
        let defaults = convert_value(&json!({"session": {"id": "s0", "user": {"age": 7}}, "tone": "plain"}));
        for (syntax, source) in [
            (Syntax::Jinja, "{{ session.id }} {{ session.user.name }} {{ session.user.age }} {{ tone }}"),
            (Syntax::FString, "{session.id} {session.user.name} {session.user.age} {tone}"),
            (Syntax::GoTemplate, "{{.session.id}} {{.session.user.name}} {{.session.user.age}} {{.tone}}"),
        ] {
            let template = Template::compile_as(syntax, "t", source, Undefined::Error).expect("valid");
            let layered = super::layer_values(context(), defaults.clone());
            assert_eq!(template.render(&layered).as_deref(), Ok("s1 Ann 7 plain"), "{syntax}");
            assert_eq!("{}".parse::<Syntax>().ok(), None);
            assert_eq!(syntax.name().parse(), Ok(syntax));
        }
    }

    #[test]
    fn the_sandbox_holds() {
        let table = [
            ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "it runs too long"),
            ("{% for a in range(9999) %}{{ 'x' * 1000 }}{% endfor %}", "its result is longer than 1024 KiB"),
            ("{{ debug() }}", "unknown function: debug is unknown"),
            ("{% include '../secret' %}", "tried to include non-existing template '../secret'"),
            ("{{ datetime.now().strftime('%Q%') }}", "`%Q%` is not a format for a time"),
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
