//! Templates of command lines: the template's own text and its values stay separate, so that no value can be
//! mistaken for a part of the command.

use std::collections::BTreeSet;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind};

use super::guard::{OrderForm, RenderGuard};
use super::jinja::Jinja;
use super::{Syntax, TemplateError, Undefined, Value, take_text};

/// Surrounds every value while a template is rendered. No argument of a program can contain it.
const MARK: char = '\0';

/// A piece of a rendered template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenderedPiece {
    /// Written in the template.
    Literal(String),
    /// The value of one `{{ … }}`; undefined and none give no piece.
    Given(String),
}

/// A template whose values stay separate from its text.
#[derive(Debug)]
pub struct PieceTemplate {
    jinja: Jinja,
    guard: RenderGuard,
}

impl PieceTemplate {
    /// Compiles a template that can include no other. Errors refer to it as `name`.
    pub fn compile(name: &str, source: &str, undefined: Undefined) -> Result<Self, TemplateError> {
        if source.contains(MARK) {
            return Err(TemplateError::new("a command has no zero byte in it"));
        }
        let mut template = Jinja::compile(name, source, undefined, |_| None)?;
        template.environment.set_formatter(|out, _state, value| {
            if value.is_undefined() || value.is_none() {
                return Ok(());
            }
            let text = as_argument(value)?;
            if text.contains(MARK) {
                let why = "a value has a zero byte in it, or is a block that was captured";
                return Err(Error::new(ErrorKind::InvalidOperation, why));
            }
            write!(out, "{MARK}{text}{MARK}")?;
            Ok(())
        });
        let apart = || RenderGuard::apart(OrderForm::Pieces, Syntax::Jinja, name, source, undefined);
        let guard = if template.is_plain { RenderGuard::here() } else { apart() };
        Ok(Self { jinja: template, guard })
    }

    /// Renders with `context` as the top-level names.
    pub fn render(&self, context: &Value) -> Result<Vec<RenderedPiece>, TemplateError> {
        let text = self.guard.render(context, || self.render_marked(context), take_text)?;
        // Between marks the parts alternate; the first is the template's own.
        let parts = text.split(MARK).enumerate().map(|(number, part)| {
            let text = part.to_owned();
            if number % 2 == 0 { RenderedPiece::Literal(text) } else { RenderedPiece::Given(text) }
        });
        Ok(parts.filter(|part| *part != RenderedPiece::Literal(String::new())).collect())
    }

    /// The text with a mark before and after each value, rendered here.
    pub(super) fn render_marked(&self, context: &Value) -> Result<String, TemplateError> {
        self.jinja.render(context)
    }

    /// See [`Template::variables`](super::Template::variables).
    pub fn variables(&self) -> BTreeSet<String> {
        self.jinja.variables()
    }
}

/// The value as JSON, but strings without quotes.
fn as_argument(value: &Value) -> Result<String, Error> {
    match value.kind() {
        ValueKind::Bool | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => serde_json::to_string(value)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string())),
        _ => Ok(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PieceTemplate, RenderedPiece, Undefined};
    use crate::template::convert_value;

    #[test]
    fn values_stay_apart_whatever_they_hold() {
        let template = PieceTemplate::compile(
            "t",
            "a {{ x }}{% if y %} -y {{ y }}{% endif %};{{ z | upper }}",
            Undefined::Empty,
        )
        .expect("valid");
        let given = |text: &str| RenderedPiece::Given(text.to_owned());
        let literal = |text: &str| RenderedPiece::Literal(text.to_owned());
        let pieces =
            template.render(&convert_value(&json!({"x": "; rm -rf '\"$(x)", "z": "b"}))).expect("renders");
        assert_eq!(pieces, [literal("a "), given("; rm -rf '\"$(x)"), literal(";"), given("B")]);
        let pieces = template.render(&convert_value(&json!({"x": 3, "y": ["p q", true]}))).expect("renders");
        assert_eq!(
            pieces,
            [literal("a "), given("3"), literal(" -y "), given("[\"p q\",true]"), literal(";"), given("")]
        );
        let zero = template.render(&convert_value(&json!({"x": "a\u{0}b"}))).expect_err("a zero byte");
        assert!(zero.message.contains("zero byte"), "{}", zero.message);
    }

    #[test]
    fn what_is_missing_is_an_error_that_names_it() {
        let template = PieceTemplate::compile("t", "{{ x }}-{{ y }}", Undefined::Error).expect("valid");
        let error = template.render(&convert_value(&json!({"x": ""}))).expect_err("y is missing");
        assert_eq!(error.missing, ["y"]);
        assert_eq!(template.variables().into_iter().collect::<Vec<_>>(), ["x", "y"]);
    }
}
